//! Implements the relay's `Gate` trait.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame::Frame;
use tapegate_core::gate::{
    Gate, GateInput, HoldEnd, HoldId, ListStep, MessagePlace, UserChoice, Verdict,
};
use tapegate_core::pending::UnansweredRequest;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::Timestamp;

use super::PolicyGate;
use crate::decide::GateName;
use crate::judge::is_plain_answer;
use crate::note::{Note, NoteKind};

impl Gate for PolicyGate {
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict {
        self.effects.notes.note_message(case);
        self.refresh_policy();
        match self.take_answer(case) {
            None => self.judge_case(case),
            Some((text, carried)) => self.judge_answered(case, text, carried),
        }
    }

    fn hold_ended(&mut self, at: Timestamp, hold_id: HoldId, how: HoldEnd) {
        // The id is that of a listing or of an approval. The part that does not know it does
        // nothing.
        self.lists.forget_hold(hold_id);
        self.handle_hold_end(at, hold_id, how);
    }

    fn user_answered(&mut self, at: Timestamp, hold_id: HoldId, choice: Option<UserChoice>) {
        self.refresh_policy();
        self.pass_user_answer(at, hold_id, choice);
    }

    fn hold_refused(&mut self, hold_id: HoldId) {
        // The refusal is already in the log, so only the register is told.
        self.effects.holds.remove(hold_id);
    }

    fn own_request_answered(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        answer: &Frame<'_>,
    ) -> ListStep {
        self.effects.notes.note_own_answer();
        self.refresh_policy();
        self.compare_own_list(at, hold_id, answer)
    }

    fn own_request_failed(&mut self, _: Timestamp, hold_id: HoldId, cause_text: &str) {
        self.note_own_list_failure(hold_id, cause_text);
    }

    fn note_oversize(&mut self, place: MessagePlace, bytes_total: u64, head: &[u8]) {
        let reason = format!("a message of {bytes_total} bytes is over the limit");
        let mut note = Note::new(place.at, place.lane, place.from);
        note.kind = NoteKind::Oversized { bytes_total };
        note.raw = Note::start(head);
        note.event.governance_decision = Some(LoggedDecision::Reject);
        note.event.policy_reason = Some(Cow::Owned(reason));
        note.event.forwarded = Some(false);
        note.event.gate = Some(GateName::Framing);
        self.effects.note(&self.active_policy, &mut note);
    }

    fn note_orphan_reply(&mut self, place: MessagePlace, id: &[u8]) {
        self.log_orphan_reply(place, id);
    }

    fn note_orphan_request(&mut self, at: Timestamp, asker: Side, request: &UnansweredRequest) {
        self.log_orphan_request(at, asker, request);
    }

    fn answer_timeout_ns(&self) -> Option<u64> {
        let timeout_ms = self.settings.answer_timeout_ms;
        (timeout_ms > 0).then(|| timeout_ms.saturating_mul(1_000_000))
    }

    fn note_unsent(&mut self, place: MessagePlace, frame: &Frame<'_>, cause_text: &str) {
        self.note_rejection(place, frame, cause_text, true);
    }

    fn reject_ambiguous(
        &mut self,
        place: MessagePlace,
        frame: &Frame<'_>,
        cause_text: &str,
    ) -> bool {
        // Without a policy, nothing is refused that the server would accept.
        let refused = self.is_enforcing();
        self.note_rejection(place, frame, cause_text, refused);
        refused
    }

    fn note_plain_exchange(&mut self, at: Timestamp, lane: Lane, what: &str) {
        let mut note = Note::new(at, lane, Side::Client);
        note.kind = NoteKind::Http;
        note.event.policy_reason = Note::text(what);
        note.event.forwarded = Some(true);
        self.effects.note(&self.active_policy, &mut note);
    }

    fn masks(&mut self) -> bool {
        self.refresh_policy();
        self.active_policy.redactor.is_some()
    }

    fn mask_text(&mut self, at: Timestamp, lane: Lane, what: &str, text: &[u8]) -> Option<Vec<u8>> {
        self.refresh_policy();
        self.masked_text((at, lane), what, text)
    }

    fn is_enforcing(&mut self) -> bool {
        self.refresh_policy();
        self.is_strict() && self.active_policy.policy.is_some()
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        self.effects.notes.commit()
    }
}

impl PolicyGate {
    /// Judges a message as it is.
    pub(super) fn judge_case(&mut self, case: &GateInput<'_>) -> Verdict {
        // Before judging: a listing that a held call waited for may have shown drift.
        self.observe_lists(case);
        // A plain response that is not masked has nothing to carry out.
        if self.active_policy.redactor.is_none()
            && is_plain_answer(case.frame, self.settings.arrival(case))
        {
            return Verdict::Forward;
        }
        // Responses are timed only if something in them may be hidden or masked.
        let lists = || case.frame.envelope().is_none_or(|envelope| envelope.lists);
        let timed = case.from == Side::Client || self.active_policy.redactor.is_some() || lists();
        let begun_ns = timed.then(|| (self.effects.clock)());
        let mut judgement = self.judge_message(case);
        match self.request_lists_first(case, &judgement) {
            Ok(Some(first)) => return Verdict::ListFirst(first),
            Ok(None) => {}
            Err(cause_text) => {
                // A call whose definition cannot be compared is treated as drifted, not as
                // unchanged.
                self.state.set_drift(Some(cause_text));
                judgement = self.judge_message(case);
            }
        }
        if judgement.elements.is_empty() {
            return self.message(case, case.frame, &judgement, begun_ns, false);
        }
        if !judgement.faults.is_empty() {
            self.note_faults(case, case.frame, &judgement.faults, begun_ns);
        }
        let verdict = self.apply_batch(case, &judgement, begun_ns);
        if !judgement.anomalies.is_empty() {
            let sent = matches!(verdict, Verdict::Forward | Verdict::Rewrite(_));
            self.note_malformed(
                case,
                case.frame,
                &judgement.anomalies,
                (LoggedDecision::Warn, sent),
                begun_ns,
            );
        }
        verdict
    }
}
