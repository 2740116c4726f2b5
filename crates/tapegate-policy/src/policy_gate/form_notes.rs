//! Logs malformed messages, and those refused for a reason other than the policy.

use std::borrow::Cow;

use tapegate_core::activity::ActivityEvent;
use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame::Frame;
use tapegate_core::gate::{GateInput, MessagePlace};

use super::{PolicyGate, case_note};
use crate::decide::GateName;
use crate::inspect::MessageFault;
use crate::judge::Judgement;
use crate::note::{Note, NoteKind};
use crate::refuse::RefusalSubject;

/// A method, a name and a raw id.
type SubjectTexts<'f> = (Option<Cow<'f, str>>, Option<Cow<'f, str>>, Option<&'f [u8]>);

impl PolicyGate {
    /// Logs faults that stop a message, or would in production.
    pub(super) fn note_faults(
        &mut self,
        case: &GateInput<'_>,
        frame: &Frame<'_>,
        faults: &[MessageFault],
        begun_ns: Option<u64>,
    ) -> RefusalSubject {
        let decision = self.fault_decision(faults);
        self.note_malformed(case, frame, faults, (decision, !self.is_strict()), begun_ns)
    }

    /// Logs all elements of a batch that are not messages in one line, with the first one and the
    /// count. Otherwise a few bytes could fill the log.
    pub(super) fn note_strays(
        &mut self,
        case: &GateInput<'_>,
        first: &Frame<'_>,
        judgement: &Judgement<'_>,
        (count, sent): (usize, bool),
        begun_ns: Option<u64>,
    ) -> RefusalSubject {
        let (faults, decision) = match judgement.faults.as_slice() {
            [] => (&*judgement.anomalies, LoggedDecision::Warn),
            faults => (faults, self.fault_decision(faults)),
        };
        let mut reason = faults_message(faults);
        if count > 1 {
            reason.push_str(&format!("; the same applies to {count} elements of the batch"));
        }
        self.note_form_as(case, first, faults, reason, (decision, sent), begun_ns)
    }

    /// The decision about a message with these faults, or what production would decide.
    fn fault_decision(&self, faults: &[MessageFault]) -> LoggedDecision {
        // The sender is told about the first fault, so the log names the same one.
        let first = faults.first().copied().unwrap_or(MessageFault::NotJson);
        match (self.is_strict(), first.production_outcome()) {
            (false, would) => would,
            (true, LoggedDecision::WouldDrop) => LoggedDecision::Drop,
            (true, _) => LoggedDecision::Reject,
        }
    }

    /// Logs the faults of a message, with the decision and whether it is sent on.
    pub(super) fn note_malformed(
        &mut self,
        case: &GateInput<'_>,
        frame: &Frame<'_>,
        faults: &[MessageFault],
        fate: (LoggedDecision, bool),
        begun_ns: Option<u64>,
    ) -> RefusalSubject {
        self.note_form_as(case, frame, faults, faults_message(faults), fate, begun_ns)
    }

    fn note_form_as(
        &mut self,
        case: &GateInput<'_>,
        frame: &Frame<'_>,
        faults: &[MessageFault],
        reason: String,
        (decision, sent): (LoggedDecision, bool),
        begun_ns: Option<u64>,
    ) -> RefusalSubject {
        let (method, name, id) = subject_texts(frame);
        let subject = self.subject("tool", name.as_deref().unwrap_or_default());
        let latency_us = self.latency_us(begun_ns);
        let mut note = case_note(case);
        note.kind = NoteKind::Framing { faults: faults.to_vec() };
        // The message may not be on any tape, so the log keeps its beginning.
        note.raw = Note::start(frame.bytes());
        note.event = ActivityEvent {
            governance_decision: Some(decision),
            method: method.as_deref().and_then(Note::text),
            tool: name.as_deref().and_then(Note::text),
            message_id: Note::truncated_id(id),
            policy_reason: Some(Cow::Owned(reason)),
            forwarded: Some(sent),
            latency_us,
            request_id: Some(Cow::Borrowed(&subject.correlation_id)),
            gate: Some(GateName::Framing),
            ..note.event
        };
        self.effects.note(&self.active_policy, &mut note);
        subject
    }

    /// Logs a message that is refused, or would be, for a reason other than its form.
    pub(super) fn note_rejection(
        &mut self,
        place: MessagePlace,
        frame: &Frame<'_>,
        cause_text: &str,
        refused: bool,
    ) {
        let (method, name, id) = subject_texts(frame);
        let decision = match (refused, self.active_policy.policy.is_some()) {
            (true, _) => LoggedDecision::Reject,
            (false, true) => LoggedDecision::WouldReject,
            (false, false) => LoggedDecision::Warn,
        };
        let mut note = Note::new(place.at, place.lane, place.from);
        note.kind = NoteKind::Framing { faults: Vec::new() };
        note.raw = Note::start(frame.bytes());
        note.event = ActivityEvent {
            governance_decision: Some(decision),
            method: method.as_deref().and_then(Note::text),
            tool: name.as_deref().and_then(Note::text),
            message_id: Note::truncated_id(id),
            policy_reason: Some(Cow::Borrowed(cause_text)),
            forwarded: Some(!refused),
            gate: Some(GateName::Framing),
            ..note.event
        };
        self.effects.note(&self.active_policy, &mut note);
    }
}

/// What a message is about: its method, the name or URI in it, and its raw id.
fn subject_texts<'f>(frame: &'f Frame<'_>) -> SubjectTexts<'f> {
    let Some(envelope) = frame.envelope() else { return (None, None, None) };
    let name = envelope.name.or(envelope.uri);
    (envelope.method.map(|method| method.decode()), name.map(|name| name.decode()), envelope.id)
}

/// A description of the faults.
fn faults_message(faults: &[MessageFault]) -> String {
    let reasons: Vec<&str> = faults.iter().map(|fault| fault.message()).collect();
    reasons.join("; ")
}
