//! The result of a verification, collected in bounded memory.

use super::finding::{
    Discrepancy, MessageRef, SkipReason, SkippedMessage, VerifyFinding, VerifyNote, VerifyNoteKind,
};

/// How many findings are kept with their details; the rest are counted.
const FINDINGS_MAX: usize = 10_000;
/// The maximum size of the messages in them, since a server may send large ones.
const FINDINGS_BYTES_MAX: usize = 128 << 20;
/// The same for messages that were not sent.
const SKIPPED_MAX: usize = 10_000;
/// The same for notes.
const NOTES_MAX: usize = 1_000;

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The changes, in the order they were found.
    pub findings: Vec<VerifyFinding>,
    /// How many more changes there are.
    pub findings_more: u64,
    /// The size of the messages in the findings.
    pub findings_bytes: usize,
    /// The messages that were not sent.
    pub skipped: Vec<SkippedMessage>,
    /// How many more were not sent.
    pub skipped_more: u64,
    /// Notes that are not changes.
    pub notes: Vec<VerifyNote>,
    /// How many sessions were played.
    pub sessions: u32,
    /// How many requests of the tape were sent.
    pub requests: u64,
    /// How many answers were compared.
    pub answers: u64,
    /// How many requests were sent to which the tape has no answer to compare.
    pub not_compared: u64,
    /// How many notifications were compared.
    pub notifications: u64,
}

impl VerifyReport {
    /// Whether nothing was found only because the tape has nothing to compare with.
    pub fn has_compared_nothing(&self) -> bool {
        !self.has_findings() && self.answers == 0 && self.notifications == 0
    }

    /// Whether anything has changed.
    pub fn has_findings(&self) -> bool {
        !self.findings.is_empty() || self.findings_more > 0
    }

    /// Adds a finding. One about a list or the server itself is reported once, however many
    /// sessions it occurs in.
    pub(super) fn find(&mut self, about: MessageRef, discrepancy: Discrepancy) {
        if discrepancy.is_of_server() {
            let same = |known: &&mut VerifyFinding| {
                known.discrepancy == discrepancy && known.about.method == about.method
            };
            if let Some(known) = self.findings.iter_mut().find(same) {
                known.times += 1;
                return;
            }
        }
        // A server can send unprompted messages without limit; they must not crowd out other
        // findings.
        let share = if discrepancy.is_unsolicited() { 2 } else { 1 };
        let bytes = self.findings_bytes + discrepancy.bytes();
        // The first finding is kept at any size, so that a report is never empty.
        let fits = bytes <= FINDINGS_BYTES_MAX / share || self.findings.is_empty();
        if self.findings.len() < FINDINGS_MAX / share && fits {
            self.findings_bytes = bytes;
            self.findings.push(VerifyFinding {
                about,
                discrepancy,
                times: 1,
                after_skipped: false,
            });
        } else {
            self.findings_more += 1;
        }
    }

    /// Adds a finding that may be caused by a skipped message, if `left_out`.
    pub(super) fn find_after(
        &mut self,
        left_out: bool,
        about: MessageRef,
        discrepancy: Discrepancy,
    ) {
        let before = self.findings.len();
        self.find(about, discrepancy);
        // A finding that is already known was counted there, so nothing is new here.
        for new in &mut self.findings[before..] {
            new.after_skipped = left_out;
        }
    }

    /// Adds a message that was not sent.
    pub(super) fn skip(&mut self, about: MessageRef, reason: SkipReason) {
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(SkippedMessage { about, skip_reason: reason });
        } else {
            self.skipped_more += 1;
        }
    }

    /// Adds a request that was sent and has no recorded answer.
    pub(super) fn not_compared(&mut self, about: MessageRef) {
        self.not_compared += 1;
        self.note(about, VerifyNoteKind::NotCompared);
    }

    /// Adds a note, unless the same one exists for this method.
    pub(super) fn note(&mut self, about: MessageRef, sort: VerifyNoteKind) {
        // Which tool was not compared matters, not only that it was one of them.
        let named = sort == VerifyNoteKind::NotCompared;
        let same = |known: &VerifyNote| {
            known.kind == sort
                && known.about.method == about.method
                && (!named || known.about.name == about.name)
        };
        if self.notes.len() < NOTES_MAX && !self.notes.iter().any(same) {
            self.notes.push(VerifyNote { about, kind: sort });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::finding::{ItemChange, ListKind};

    #[test]
    fn large_findings_are_counted_when_there_is_no_more_room_for_them() {
        let mut report = VerifyReport::default();
        for _ in 0..40 {
            let question = Discrepancy::Question(ItemChange::Added(vec![b'x'; 10 << 20]));
            report.find(MessageRef::default(), question);
        }
        assert_eq!((report.findings.len(), report.findings_more), (6, 34));
        report.find(MessageRef::default(), Discrepancy::NoAnswer { waited_ms: 1 });
        assert_eq!(report.findings.len(), 7);
    }

    #[test]
    fn what_a_server_says_unasked_does_not_crowd_out_what_has_changed() {
        let mut report = VerifyReport::default();
        for _ in 0..2 * FINDINGS_MAX {
            report.find(MessageRef::default(), Discrepancy::Stray { live: Vec::new() });
        }
        let name = "rm".to_owned();
        let item_change = ItemChange::Added(b"{}".to_vec());
        report.find(
            MessageRef::default(),
            Discrepancy::Item { list: ListKind::Tools, name, item_change },
        );
        assert!(report.findings.iter().any(|finding| finding.discrepancy.is_tool_drift()));
    }
}
