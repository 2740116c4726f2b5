//! `tapegate wrap`: the agent's servers are behind the gate while it runs, and its configs are as
//! they were afterwards, whatever happens.

mod before_start;
mod client_settings;
mod command_line;
mod configs;
mod faults;
mod kills;
mod left_processes;
mod lifecycle;
mod overlay;
mod recorded;
mod seed;
mod stored_entries;
mod terminal;

use crate::wrap_machine::EndedWrap;

impl EndedWrap {
    /// Asserts the exit code.
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Asserts that the agent has written this.
    #[track_caller]
    fn said(self, text: &str) -> Self {
        assert!(self.output.contains(text), "{text} is not in {self:?}");
        self
    }

    /// Asserts that this is on standard error.
    #[track_caller]
    fn complained(self, text: &str) -> Self {
        assert!(self.errors.contains(text), "{text} is not in {}", self.errors);
        self
    }
}
