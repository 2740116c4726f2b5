//! Logs malformed messages, and those refused for a reason other than the policy.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame::Frame;
use tapegate_core::gate::Case;

use super::{Warden, noted};
use crate::decide::GateName;
use crate::inspect::Fault;
use crate::judge::Judgement;
use crate::note::{Note, NoteKind};
use crate::refuse::Subject;

impl Warden {
    /// Logs faults that stop a message, or would in production.
    pub(super) fn note_faults(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        faults: &[Fault],
        begun_ns: Option<u64>,
    ) -> Subject {
        let decision = self.fault_decision(faults);
        self.note_form(case, frame, faults, (decision, !self.strict()), begun_ns)
    }

    /// Logs all elements of a batch that are not messages in one line, with the first one and the
    /// count. Otherwise a few bytes could fill the log.
    pub(super) fn note_strays(
        &mut self,
        case: &Case<'_>,
        first: &Frame<'_>,
        judgement: &Judgement<'_>,
        (count, sent): (usize, bool),
        begun_ns: Option<u64>,
    ) -> Subject {
        let (faults, decision) = match judgement.faults.as_slice() {
            [] => (&*judgement.anomalies, LoggedDecision::Warn),
            faults => (faults, self.fault_decision(faults)),
        };
        let mut reason = words(faults);
        if count > 1 {
            reason.push_str(&format!("; the same applies to {count} elements of the batch"));
        }
        self.note_form_as(case, first, faults, reason, (decision, sent), begun_ns)
    }

    /// The decision about a message with these faults, or what production would decide.
    fn fault_decision(&self, faults: &[Fault]) -> LoggedDecision {
        let first = faults.first().copied().unwrap_or(Fault::NotJson);
        match (self.strict(), first.would()) {
            (false, would) => would,
            (true, LoggedDecision::WouldDrop) => LoggedDecision::Drop,
            (true, _) => LoggedDecision::Reject,
        }
    }

    /// Logs the faults of a message, with the decision and whether it is sent on.
    pub(super) fn note_form(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        faults: &[Fault],
        fate: (LoggedDecision, bool),
        begun_ns: Option<u64>,
    ) -> Subject {
        self.note_form_as(case, frame, faults, words(faults), fate, begun_ns)
    }

    fn note_form_as(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        faults: &[Fault],
        reason: String,
        (decision, sent): (LoggedDecision, bool),
        begun_ns: Option<u64>,
    ) -> Subject {
        let said = frame.envelope();
        let method = said.and_then(|said| said.method).map(|method| method.decode());
        let name = said.and_then(|said| said.name.or(said.uri)).map(|name| name.decode());
        let subject = self.subject("tool", name.as_deref().unwrap_or_default());
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

    /// Logs a message that is refused, or would be, for a reason other than its form.
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

/// A description of the faults.
fn words(faults: &[Fault]) -> String {
    let reasons: Vec<&str> = faults.iter().map(|fault| fault.words()).collect();
    reasons.join("; ")
}
