//! How a decision came about, for those who ask.

/// Takes down the steps of a decision, or does not.
pub(super) trait Steps {
    /// Takes down one.
    fn add(&mut self, step: impl FnOnce() -> String);
}

impl Steps for () {
    fn add(&mut self, _: impl FnOnce() -> String) {}
}

impl Steps for Vec<String> {
    fn add(&mut self, step: impl FnOnce() -> String) {
        self.push(step());
    }
}
