//! Implements the relay's `Gate` trait.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame::Frame;
use tapegate_core::gate::{Case, Gate, HoldEnd, ListStep, Ticket, Verdict};
use tapegate_core::pending::Unanswered;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::At;

use super::Warden;
use crate::decide::GateName;
use crate::judge::is_plain_answer;
use crate::note::{Note, NoteKind};

impl Gate for Warden {
    fn judge(&mut self, case: &Case<'_>) -> Verdict {
        self.refresh();
        self.before_judging(case);
        // A plain response that is not masked has nothing to carry out.
        if self.regime.redactor.is_none()
            && is_plain_answer(case.frame, self.settings.arrival(case))
        {
            return Verdict::Forward;
        }
        // Responses are timed only if something in them may be hidden or masked.
        let lists = || case.frame.envelope().is_none_or(|said| said.lists);
        let timed = case.from == Side::Client || self.regime.redactor.is_some() || lists();
        let begun_ns = timed.then(|| (self.hands.clock)());
        let mut judgement = self.judged(case);
        match self.list_first(case, &judgement) {
            Ok(Some(first)) => return Verdict::ListFirst(first),
            Ok(None) => {}
            Err(why) => {
                self.state.set_drift(Some(why));
                judgement = self.judged(case);
            }
        }
        if judgement.elements.is_empty() {
            return self.message(case, case.frame, &judgement, begun_ns, false);
        }
        if !judgement.faults.is_empty() {
            self.note_faults(case, case.frame, &judgement.faults, begun_ns);
        }
        let verdict = self.batch(case, &judgement, begun_ns);
        if !judgement.anomalies.is_empty() {
            let sent = matches!(verdict, Verdict::Forward | Verdict::Rewrite(_));
            self.note_form(
                case,
                case.frame,
                &judgement.anomalies,
                (LoggedDecision::Warn, sent),
                begun_ns,
            );
        }
        verdict
    }

    fn ended(&mut self, at: At, ticket: Ticket, how: HoldEnd) {
        self.lists.forget(ticket);
        self.unheld(at, ticket, how);
    }

    fn own_answer(&mut self, at: At, ticket: Ticket, answer: &Frame<'_>) -> ListStep {
        self.refresh();
        self.own_listed(at, ticket, answer)
    }

    fn own_failed(&mut self, _: At, ticket: Ticket, why: &str) {
        self.own_list_failed(ticket, why);
    }

    fn oversized(&mut self, at: At, lane: Lane, from: Side, bytes_total: u64, head: &[u8]) {
        let reason = format!("a message of {bytes_total} bytes is over the limit");
        let mut note = Note {
            kind: NoteKind::Oversized { bytes_total },
            decision: LoggedDecision::Reject,
            reason: Some(Cow::Owned(reason)),
            forwarded: Some(false),
            gate: Some(GateName::Framing),
            raw: Note::start(head),
            ..Note::new(at, lane, from)
        };
        self.hands.note(&self.regime, &mut note);
    }

    fn orphan_reply(&mut self, at: At, lane: Lane, from: Side, id: &[u8]) {
        self.note_orphan_reply(at, lane, from, id);
    }

    fn orphan_request(&mut self, at: At, asker: Side, request: &Unanswered) {
        self.note_orphan_request(at, asker, request);
    }

    fn answer_timeout_ns(&self) -> Option<u64> {
        let timeout_ms = self.settings.answer_timeout_ms;
        (timeout_ms > 0).then(|| timeout_ms.saturating_mul(1_000_000))
    }

    fn unsent(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>, why: &str) {
        self.note_rejection(Note::new(at, lane, from), frame, why, true);
    }

    fn rejects(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>, why: &str) -> bool {
        // Without a policy, nothing is refused that the server would accept.
        let refused = self.enforces();
        self.note_rejection(Note::new(at, lane, from), frame, why, refused);
        refused
    }

    fn plain_exchange(&mut self, at: At, lane: Lane, what: &str) {
        let mut note = Note {
            kind: NoteKind::Http,
            reason: Note::text(what),
            forwarded: Some(true),
            ..Note::new(at, lane, Side::Client)
        };
        self.hands.note(&self.regime, &mut note);
    }

    fn masks(&mut self) -> bool {
        self.refresh();
        self.regime.redactor.is_some()
    }

    fn mask_text(&mut self, at: At, lane: Lane, what: &str, text: &[u8]) -> Option<Vec<u8>> {
        self.refresh();
        self.masked_text((at, lane), what, text)
    }

    fn enforces(&mut self) -> bool {
        self.refresh();
        self.strict() && self.regime.policy.is_some()
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        self.hands.notes.commit()
    }
}
