//! Carries out decisions about requests and notifications.

use std::borrow::Cow;
use std::sync::Arc;

use tapegate_core::gate::{Refusal, Verdict};
use tapegate_core::json;
use tapegate_core::side::Side;

use super::{GateContext, PolicyGate};
use crate::decide::{Decision, DecisionOutcome};
use crate::gated_requests::OfferKind;
use crate::judge::{JudgedCall, Judgement};
use crate::model::Policy;
use crate::note::{Note, NoteKind};
use crate::refuse::RefusalSubject;

/// What a message asks for.
#[derive(Clone, Copy)]
pub(super) struct RequestedItem<'a> {
    /// The method, as rules name it.
    pub(super) method: &'a str,
    /// The kind of item asked for, if the server offers such items.
    pub(super) offer: Option<OfferKind>,
    /// Its name or URI; empty if it has none.
    pub(super) name: &'a str,
}

impl<'a> RequestedItem<'a> {
    fn of(call: &'a JudgedCall<'_>) -> Self {
        let JudgedCall { method, offer, name, .. } = call;
        Self { method, offer: *offer, name }
    }
}

impl PolicyGate {
    /// Carries out the decisions about everything a message asks for.
    pub(super) fn apply_request(
        &mut self,
        now: &GateContext<'_, '_>,
        judgement: &Judgement<'_>,
    ) -> Verdict {
        let Some(leading) = judgement.leading_call() else { return Verdict::Forward };
        let Some(policy) = self.active_policy.policy.clone() else {
            judgement
                .calls
                .iter()
                .for_each(|call| self.note_observed(now, RequestedItem::of(call)));
            return Verdict::Forward;
        };
        let verdict = match &leading.decision {
            Some(decision) => self.apply_decision(now, &policy, leading, decision),
            None => Verdict::Forward,
        };
        // The message passes or stops as a whole, so the other calls share the fate of the leading
        // one.
        let sent = matches!(verdict, Verdict::Forward);
        for call in judgement.calls.iter().filter(|call| !std::ptr::eq(*call, leading)) {
            if let Some(decision) = &call.decision {
                self.note_decision(
                    now,
                    RequestedItem::of(call),
                    decision,
                    sent,
                    None,
                    NoteKind::Decision,
                );
            }
        }
        verdict
    }

    /// Carries out a decision and logs it.
    fn apply_decision(
        &mut self,
        now: &GateContext<'_, '_>,
        policy: &Arc<Policy>,
        call: &JudgedCall<'_>,
        decision: &Decision,
    ) -> Verdict {
        let item = RequestedItem::of(call);
        // In production a call is sent only if its decision is in the log (SECURITY.md). This comes
        // before everything that would send or hold the call.
        let trouble = self.effects.notes.failure().filter(|_| self.is_strict());
        if let Some(reason) = trouble.map(str::to_owned) {
            return refuse(self.subject_of(item).approval_unavailable(&reason));
        }
        // The policy may have changed while the call was held, so an approved call has been judged
        // again.
        if let Some(approval) = now.case.approved {
            return self.apply_approval(now, item, decision, approval);
        }
        match &decision.outcome {
            DecisionOutcome::Forward => {
                self.note_decision(now, item, decision, true, None, NoteKind::Decision);
                Verdict::Forward
            }
            DecisionOutcome::Hold { workflow } => self.hold(now, policy, item, decision, workflow),
            DecisionOutcome::Deny => {
                let subject = self.subject_of(item);
                self.note_decision(now, item, decision, false, Some(&subject), NoteKind::Decision);
                let refusal = match call.cannot_wait {
                    true => subject.cannot_be_held(),
                    false => subject.policy_denial(decision),
                };
                refuse(refusal)
            }
        }
    }

    /// Logs a decision. `sent` says whether its message is sent on.
    pub(super) fn note_decision(
        &mut self,
        now: &GateContext<'_, '_>,
        item: RequestedItem<'_>,
        decision: &Decision,
        sent: bool,
        subject: Option<&RefusalSubject>,
        kind: NoteKind,
    ) {
        let kind = match kind {
            NoteKind::Decision if now.case.from == Side::Server => NoteKind::ServerRequest,
            other => other,
        };
        let latency_us = self.latency_us(now.begun_ns);
        let principal = self.state.callers.caller(now.case.lane.session, now.envelope);
        // A note is large, so it is filled in place.
        let mut note = call_note(now, item.method);
        note.kind = kind;
        let event = &mut note.event;
        event.governance_decision = Some(decision.logged());
        event.tool = Note::text(item.name).filter(|name| !name.is_empty());
        event.gate = Some(decision.gate);
        // A refused message of the server is not on the tape, so it has no number there.
        event.tape_seq = event.tape_seq.or(now.number(sent));
        event.forwarded = Some(sent);
        event.auto_approved = decision.is_auto_approved();
        event.latency_us = latency_us;
        event.request_id = subject.map(|subject| Cow::Borrowed(&*subject.correlation_id));
        event.rule = decision.rule.as_deref().map(Cow::Borrowed);
        event.policies = Cow::Borrowed(&decision.policies);
        event.policy_reason = Some(Cow::Borrowed(&decision.reason));
        event.principal = Some(Cow::Borrowed(principal.name.as_str()));
        self.effects.note(&self.active_policy, &mut note);
    }

    /// Logs a call without a decision.
    fn note_observed(&mut self, now: &GateContext<'_, '_>, item: RequestedItem<'_>) {
        let latency_us = self.latency_us(now.begun_ns);
        let principal = self.state.callers.caller(now.case.lane.session, now.envelope);
        let mut note = call_note(now, item.method);
        if now.case.from == Side::Server {
            note.kind = NoteKind::ServerRequest;
        }
        let event = &mut note.event;
        event.tape_seq = now.number(true);
        event.tool = Note::text(item.name).filter(|name| !name.is_empty());
        event.forwarded = Some(true);
        event.latency_us = latency_us;
        event.principal = Some(Cow::Borrowed(&principal.name));
        self.effects.note(&self.active_policy, &mut note);
    }

    pub(super) fn subject_of(&mut self, item: RequestedItem<'_>) -> RefusalSubject {
        match item.offer {
            Some(offer) => self.subject(offer.as_str(), item.name),
            None => self.subject("method", item.method),
        }
    }
}

pub(super) fn refuse(refusal: Refusal) -> Verdict {
    Verdict::Refuse(Box::new(refusal))
}

/// A note about a call. A malformed trace context is dropped, since it could be anything.
fn call_note<'a>(now: &GateContext<'a, '_>, method: &'a str) -> Note<'a> {
    let trace = now.envelope.traceparent.and_then(json::string);
    let mut note = now.note();
    note.event.method = Note::text(method);
    note.event.message_id = Note::truncated_id(now.envelope.id);
    note.event.traceparent = trace.filter(|text| crate::trace::is_traceparent(text));
    note
}
