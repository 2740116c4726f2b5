//! Names for refusals, by which callers and the log speak of the same thing.

use std::fmt::Write;

/// Makes up names: one behind the other, after a name that no other session has.
#[derive(Debug, Clone, Default)]
pub struct Ids {
    text: String,
    /// How much of the text all names have in common.
    common: usize,
    count: u64,
}

impl Ids {
    /// Names that begin with `session`.
    pub fn new(session: &str) -> Self {
        let text = format!("{session}-");
        Self { common: text.len(), text, count: 0 }
    }

    /// Makes up the next one.
    pub(super) fn next(&mut self) -> &str {
        self.count += 1;
        self.text.truncate(self.common);
        // A text takes everything.
        write!(self.text, "{}", self.count).ok();
        &self.text
    }
}
