//! What came of a verification, gathered in bounded memory.

use super::finding::{About, Finding, Note, NoteSort, Skipped, What, Why};

/// How many findings are kept with their details; the rest is counted.
const FINDINGS_MAX: usize = 10_000;
/// How many bytes of messages they may hold: what a server says may be large.
const FINDINGS_BYTES_MAX: usize = 128 << 20;
/// The same for what was not sent.
const SKIPPED_MAX: usize = 10_000;
/// The same for what is only worth knowing.
const NOTES_MAX: usize = 1_000;

/// What came of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What has changed, in the order it was found.
    pub findings: Vec<Finding>,
    /// How many more changes there are.
    pub findings_more: u64,
    /// How many bytes of messages the findings hold.
    pub findings_bytes: usize,
    /// What was not sent.
    pub skipped: Vec<Skipped>,
    /// How much more was not sent.
    pub skipped_more: u64,
    /// What is worth knowing and no change.
    pub notes: Vec<Note>,
    /// How many sessions were played.
    pub sessions: u32,
    /// How many requests of the tape were sent.
    pub requests: u64,
    /// How many answers were compared.
    pub answers: u64,
    /// How many notifications were compared.
    pub notifications: u64,
}

impl Report {
    /// Whether something has changed.
    pub fn has_findings(&self) -> bool {
        !self.findings.is_empty() || self.findings_more > 0
    }

    /// Adds a finding. What is said of a list or of the server itself is told once, however many
    /// sessions ask for it.
    pub(super) fn find(&mut self, about: About, what: What) {
        if what.is_of_server() {
            let same =
                |known: &&mut Finding| known.what == what && known.about.method == about.method;
            if let Some(known) = self.findings.iter_mut().find(same) {
                known.times += 1;
                return;
            }
        }
        // What a server says unasked it can say for ever, and must not hide the rest with it.
        let share = if what.is_unasked() { 2 } else { 1 };
        let bytes = self.findings_bytes + what.bytes();
        let fits = bytes <= FINDINGS_BYTES_MAX / share || self.findings.is_empty();
        if self.findings.len() < FINDINGS_MAX / share && fits {
            self.findings_bytes = bytes;
            self.findings.push(Finding { about, what, times: 1, after_skipped: false });
        } else {
            self.findings_more += 1;
        }
    }

    /// Adds a finding that may have its reason in what was not sent, if something was not.
    pub(super) fn find_after(&mut self, left_out: bool, about: About, what: What) {
        let before = self.findings.len();
        self.find(about, what);
        for new in &mut self.findings[before..] {
            new.after_skipped = left_out;
        }
    }

    /// Adds what was not sent.
    pub(super) fn skip(&mut self, about: About, why: Why) {
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(Skipped { about, why });
        } else {
            self.skipped_more += 1;
        }
    }

    /// Adds what is worth knowing, the same of a session once.
    pub(super) fn note(&mut self, about: About, sort: NoteSort) {
        let same = |known: &Note| known.sort == sort && known.about.method == about.method;
        if self.notes.len() < NOTES_MAX && !self.notes.iter().any(same) {
            self.notes.push(Note { about, sort });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::finding::{Became, List};

    #[test]
    fn large_findings_are_counted_when_there_is_no_more_room_for_them() {
        let mut report = Report::default();
        for _ in 0..40 {
            let question = What::Question(Became::Added(vec![b'x'; 10 << 20]));
            report.find(About::default(), question);
        }
        assert_eq!((report.findings.len(), report.findings_more), (6, 34));
        report.find(About::default(), What::NoAnswer { waited_ms: 1 });
        assert_eq!(report.findings.len(), 7);
    }

    #[test]
    fn what_a_server_says_unasked_does_not_crowd_out_what_has_changed() {
        let mut report = Report::default();
        for _ in 0..2 * FINDINGS_MAX {
            report.find(About::default(), What::Stray { live: Vec::new() });
        }
        let name = "rm".to_owned();
        let became = Became::Added(b"{}".to_vec());
        report.find(About::default(), What::Item { list: List::Tools, name, became });
        assert!(report.findings.iter().any(|finding| finding.what.is_tool_drift()));
    }
}
