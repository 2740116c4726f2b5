//! Commands that run later than where they stand: the bodies of functions and the actions of traps.
//!
//! They run in whatever folder the shell is in by then. A trap on `DEBUG`, `ERR` or a signal runs
//! between any two commands, so an action that changes the folder makes that of every command
//! unknown.

use std::ops::Range;

use super::CommandUse;

/// The parts of a line that run later.
#[derive(Debug, Default)]
pub(super) struct ReplayTable {
    functions: Vec<Range<usize>>,
    traps: Vec<Range<usize>>,
    /// The commands that change the folder.
    changes: Vec<usize>,
}

impl ReplayTable {
    /// Adds the body of a function.
    pub(super) fn add_function(&mut self, body: Range<usize>) {
        self.functions.push(body);
    }

    /// Adds the action of a trap.
    pub(super) fn add_trap(&mut self, action: Range<usize>) {
        self.traps.push(action);
    }

    /// Notes that a command changes the folder.
    pub(super) fn note_change(&mut self, index: usize) {
        self.changes.push(index);
    }

    /// Makes the folders unknown that a command may run in when it runs later.
    pub(super) fn correct(&self, uses: &mut [CommandUse]) {
        let has_change = |range: &Range<usize>| self.changes.iter().any(|at| range.contains(at));
        // A trap may also call a function that changes the folder.
        let mut later = self.traps.iter().chain(&self.functions);
        if !self.traps.is_empty() && later.any(has_change) {
            uses.iter_mut().for_each(|one| one.folders = None);
            return;
        }
        let last = self.changes.iter().max();
        for range in self.functions.iter().chain(&self.traps) {
            if last.is_some_and(|last| *last >= range.start) {
                let count = range.len();
                uses.iter_mut().skip(range.start).take(count).for_each(|one| one.folders = None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::command_use::read_line;

    /// Whether the folder of the command with this program is known.
    fn is_known(line: &str, program: &str) -> bool {
        let report = read_line(line);
        let mut found = report.uses.iter().filter(|one| one.program() == Some(program));
        found.all(|one| one.folders.is_some())
    }

    #[test]
    fn a_trap_or_a_function_makes_folders_unknown() {
        for line in [
            "trap 'cd ..' DEBUG; echo 1; touch x",
            "touch x; trap 'cd ..' DEBUG",
            "trap 'touch x' EXIT; cd ..",
            "trap 'touch x' ERR; ls; cd sub; false",
            "trap -- 'pushd ..' RETURN; touch x",
            "eval \"trap 'cd ..' DEBUG\"; touch x",
            "builtin trap 'cd ..' USR1; touch x",
            "f() { cd ..; }; trap f DEBUG; touch x",
            "trap f DEBUG; touch x; f() { cd ..; }",
            "g() { touch x; }; cd ..; g",
            "g() { touch x; }; f() { cd ..; }; f; g",
            "bash -c \"trap 'cd ..' DEBUG; touch x\"",
            ". ./e.sh; touch x",
        ] {
            assert!(!is_known(line, "touch"), "{line:?}");
        }
    }

    #[test]
    fn a_trap_or_a_function_in_one_folder_is_known() {
        for line in [
            "trap 'rm -f x' EXIT; touch x",
            "cd sub; g() { touch x; }; g",
            "g() { touch x; }; g",
            "trap - EXIT; touch x",
        ] {
            assert!(is_known(line, "touch") && is_known(line, "rm"), "{line:?}");
        }
    }
}
