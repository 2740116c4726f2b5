//! Records the steps of a decision, for explanations.

/// Records the steps of a decision, or discards them.
pub(super) trait StepRecorder {
    /// Records one step.
    fn add(&mut self, step: impl FnOnce() -> String);
}

impl StepRecorder for () {
    fn add(&mut self, _: impl FnOnce() -> String) {}
}

impl StepRecorder for Vec<String> {
    fn add(&mut self, step: impl FnOnce() -> String) {
        self.push(step());
    }
}
