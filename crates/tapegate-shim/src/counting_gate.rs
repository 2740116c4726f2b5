//! The policy gate of a session, which also notes what the messages show about the session.

use tapegate_core::frame::Frame;
use tapegate_core::gate::{
    Gate, GateInput, HoldEnd, HoldId, ListStep, MessagePlace, UserChoice, Verdict,
};
use tapegate_core::pending::UnansweredRequest;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::Timestamp;
use tapegate_policy::policy_gate::PolicyGate;

use crate::journal::ShimJournal;
use crate::traffic_monitor::TrafficMonitor;

/// A gate that notes which side has sent messages, and counts messages for the hub's metrics.
#[derive(Debug)]
pub(crate) struct CountingGate {
    pub(crate) gate: PolicyGate,
    pub(crate) traffic: TrafficMonitor,
    /// Counts the messages, if a hub is told about them.
    pub(crate) journal: Option<ShimJournal>,
}

impl Gate for CountingGate {
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict {
        self.traffic.note_message(case);
        if let Some(journal) = &self.journal {
            let method = case.frame.envelope().and_then(|envelope| envelope.method);
            let method = method.map(|method| method.decode());
            journal.count(case.from, method.as_deref());
        }
        self.gate.judge(case)
    }

    fn hold_ended(&mut self, at: Timestamp, hold_id: HoldId, how: HoldEnd) {
        self.gate.hold_ended(at, hold_id, how);
    }

    fn hold_refused(&mut self, hold_id: HoldId) {
        self.gate.hold_refused(hold_id);
    }

    fn own_request_answered(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        answer: &Frame<'_>,
    ) -> ListStep {
        // An answer to a list that the gate itself requested also shows that the server runs.
        self.traffic.note_session_open();
        self.gate.own_request_answered(at, hold_id, answer)
    }

    fn own_request_failed(&mut self, at: Timestamp, hold_id: HoldId, reason: &str) {
        self.gate.own_request_failed(at, hold_id, reason);
    }

    fn user_answered(&mut self, at: Timestamp, hold_id: HoldId, choice: Option<UserChoice>) {
        self.gate.user_answered(at, hold_id, choice);
    }

    fn note_oversize(&mut self, place: MessagePlace, bytes_total: u64, head: &[u8]) {
        self.gate.note_oversize(place, bytes_total, head);
    }

    fn note_orphan_reply(&mut self, place: MessagePlace, id: &[u8]) {
        self.gate.note_orphan_reply(place, id);
    }

    fn note_orphan_request(&mut self, at: Timestamp, asker: Side, request: &UnansweredRequest) {
        self.gate.note_orphan_request(at, asker, request);
    }

    fn answer_timeout_ns(&self) -> Option<u64> {
        self.gate.answer_timeout_ns()
    }

    fn note_unsent(&mut self, place: MessagePlace, frame: &Frame<'_>, reason: &str) {
        self.gate.note_unsent(place, frame, reason);
    }

    fn reject_ambiguous(&mut self, place: MessagePlace, frame: &Frame<'_>, reason: &str) -> bool {
        self.gate.reject_ambiguous(place, frame, reason)
    }

    fn note_plain_exchange(&mut self, at: Timestamp, lane: Lane, what: &str) {
        self.gate.note_plain_exchange(at, lane, what);
    }

    fn masks(&mut self) -> bool {
        self.gate.masks()
    }

    fn mask_text(&mut self, at: Timestamp, lane: Lane, what: &str, text: &[u8]) -> Option<Vec<u8>> {
        self.gate.mask_text(at, lane, what, text)
    }

    fn is_enforcing(&mut self) -> bool {
        self.gate.is_enforcing()
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        self.gate.commit()
    }
}
