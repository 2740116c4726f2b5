//! Logs responses without a request and requests without a response.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::gate::MessagePlace;
use tapegate_core::pending::UnansweredRequest;
use tapegate_core::side::Side;
use tapegate_core::time::Timestamp;

use super::PolicyGate;
use crate::note::{Note, NoteKind};

/// How many orphans of a kind are logged individually; after that, only each power of ten is.
const EACH_MAX: u64 = 20;

/// The number of orphans, by kind and sender.
#[derive(Debug, Default)]
pub(super) struct OrphanCounts {
    replies: [u64; 2],
    requests: [u64; 2],
}

impl PolicyGate {
    pub(super) fn log_orphan_reply(&mut self, place: MessagePlace, id: &[u8]) {
        let count = next_count(&mut self.orphans.replies, place.from);
        if !is_noted(count) {
            return;
        }
        let reason = Cow::Borrowed("it does not answer any pending request");
        let mut note = Note::new(place.at, place.lane, place.from);
        note.kind = NoteKind::OrphanReply { count };
        note.event.governance_decision = Some(LoggedDecision::Warn);
        note.event.message_id = Note::truncated_id(Some(id));
        note.event.policy_reason = Some(reason);
        self.effects.note(&self.active_policy, &mut note);
    }

    pub(super) fn log_orphan_request(
        &mut self,
        at: Timestamp,
        asker: Side,
        request: &UnansweredRequest,
    ) {
        let count = next_count(&mut self.orphans.requests, asker);
        if !is_noted(count) {
            return;
        }
        let UnansweredRequest { lane, id, pending_request: asked } = request;
        let waited_ms = at.ms_since(asked.at);
        let reason = unanswered_reason(waited_ms, self.settings.answer_timeout_ms);
        let mut note = Note::new(at, *lane, asker);
        note.kind = NoteKind::OrphanRequest { waited_ms, count };
        note.event.governance_decision = Some(LoggedDecision::Warn);
        note.event.tape_seq = Some(asked.n);
        note.event.message_id = Note::truncated_id(Some(id));
        note.event.policy_reason = Some(Cow::Owned(reason));
        note.event.forwarded = Some(true);
        self.effects.note(&self.active_policy, &mut note);
    }
}

fn next_count(counts: &mut [u64; 2], side: Side) -> u64 {
    let count = match side {
        Side::Client => &mut counts[0],
        Side::Server => &mut counts[1],
    };
    *count += 1;
    *count
}

/// Why a request has no response. Before the timeout, the only cause is the end of the session.
fn unanswered_reason(waited_ms: u64, timeout_ms: u64) -> String {
    let waited = waited_ms as f64 / 1000.0;
    if timeout_ms == 0 || waited_ms < timeout_ms {
        return format!(
            "the session or its server ended before an answer came, {waited:.1} s after the request"
        );
    }
    format!("no answer came within {waited:.1} s")
}

/// Whether the orphan with this number is logged: a peer may send any number of them.
fn is_noted(count: u64) -> bool {
    count <= EACH_MAX || 10u64.pow(count.ilog10()) == count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_the_end_left_unanswered_is_not_said_to_be_late() {
        for (waited_ms, timeout_ms) in [(200, 300_000), (200, 0)] {
            let reason = unanswered_reason(waited_ms, timeout_ms);
            assert!(reason.contains("ended before an answer came, 0.2 s after"), "{reason}");
        }
        assert_eq!(unanswered_reason(1000, 1000), "no answer came within 1.0 s");
    }

    #[test]
    fn a_flood_of_orphans_makes_few_lines() {
        assert_eq!((1..=20).filter(|count| is_noted(*count)).count(), 20);
        let later: Vec<u64> = (21..=100_000).filter(|count| is_noted(*count)).collect();
        assert_eq!(later, [100, 1000, 10_000, 100_000]);
    }
}
