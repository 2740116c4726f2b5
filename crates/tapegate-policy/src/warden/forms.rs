//! Notes about messages whose form is odd, or that go nowhere for another reason than the policy.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame::Frame;
use tapegate_core::gate::Case;

use super::{Warden, noted};
use crate::decide::GateName;
use crate::inspect::Fault;
use crate::note::{Note, NoteKind};
use crate::refuse::Subject;

impl Warden {
    /// Notes faults that stop a message, or would in production.
    pub(super) fn note_faults(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        faults: &[Fault],
        begun_ns: Option<u64>,
    ) -> Subject {
        let first = faults.first().copied().unwrap_or(Fault::NotJson);
        let strict = self.strict();
        let decision = match (strict, first.would()) {
            (false, would) => would,
            (true, LoggedDecision::WouldDrop) => LoggedDecision::Drop,
            (true, _) => LoggedDecision::Reject,
        };
        self.note_form(case, frame, faults, (decision, !strict), begun_ns)
    }

    /// Notes what is odd about the form of a message, under this decision, and whether it is sent on.
    pub(super) fn note_form(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        faults: &[Fault],
        (decision, sent): (LoggedDecision, bool),
        begun_ns: Option<u64>,
    ) -> Subject {
        let said = frame.envelope();
        let method = said.and_then(|said| said.method).map(|method| method.decode());
        let name = said.and_then(|said| said.name.or(said.uri)).map(|name| name.decode());
        let subject = self.subject("tool", name.as_deref().unwrap_or_default());
        let reasons: Vec<&str> = faults.iter().map(|fault| fault.words()).collect();
        let reason = reasons.join("; ");
        let latency_ns = self.latency(begun_ns);
        let mut note = Note {
            kind: NoteKind::Framing { faults: faults.to_vec() },
            decision,
            method: method.as_deref().and_then(Note::text),
            name: name.as_deref().and_then(Note::text),
            id: Note::raw(said.and_then(|said| said.id)),
            reason: Some(Cow::Owned(reason)),
            forwarded: Some(sent),
            latency_ns,
            correlation_id: Some(Cow::Borrowed(&subject.correlation_id)),
            gate: Some(GateName::Framing),
            raw: Note::start(frame.bytes()),
            ..noted(case)
        };
        self.hands.note(&self.regime, &mut note);
        subject
    }

    /// Notes a message that goes nowhere, or would go nowhere, for a reason that is not its form.
    pub(super) fn note_rejection(
        &mut self,
        about: Note<'_>,
        frame: &Frame<'_>,
        why: &str,
        refused: bool,
    ) {
        let said = frame.envelope();
        let method = said.and_then(|said| said.method).map(|method| method.decode());
        let name = said.and_then(|said| said.name.or(said.uri)).map(|name| name.decode());
        let Note { at, lane, from, .. } = about;
        let mut note = Note {
            kind: NoteKind::Framing { faults: Vec::new() },
            decision: match (refused, self.regime.policy.is_some()) {
                (true, _) => LoggedDecision::Reject,
                (false, true) => LoggedDecision::WouldReject,
                (false, false) => LoggedDecision::Warn,
            },
            method: method.as_deref().and_then(Note::text),
            name: name.as_deref().and_then(Note::text),
            id: Note::raw(said.and_then(|said| said.id)),
            reason: Some(Cow::Borrowed(why)),
            forwarded: Some(!refused),
            gate: Some(GateName::Framing),
            raw: Note::start(frame.bytes()),
            ..Note::new(at, lane, from)
        };
        self.hands.note(&self.regime, &mut note);
    }
}
