//! Carries out decisions about requests and notifications.

use std::borrow::Cow;
use std::sync::Arc;

use tapegate_core::gate::{Refusal, Verdict};
use tapegate_core::json;
use tapegate_core::side::Side;

use super::{Now, Warden};
use crate::decide::{Decision, Outcome};
use crate::gated::Offer;
use crate::judge::{JudgedCall, Judgement};
use crate::model::Policy;
use crate::note::{Note, NoteKind};
use crate::refuse::Subject;

/// What a message asks for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The method, as rules name it.
    pub(super) method: &'a str,
    /// The kind of item asked for, if the server offers such items.
    pub(super) offer: Option<Offer>,
    /// Its name or URI; empty if it has none.
    pub(super) name: &'a str,
}

impl<'a> Asked<'a> {
    fn of(call: &'a JudgedCall<'_>) -> Self {
        let JudgedCall { method, offer, name, .. } = call;
        Self { method, offer: *offer, name }
    }
}

impl Warden {
    /// Carries out the decisions about everything a message asks for.
    pub(super) fn requested(&mut self, now: &Now<'_, '_>, judgement: &Judgement<'_>) -> Verdict {
        let Some(leading) = judgement.leading() else { return Verdict::Forward };
        let Some(policy) = self.regime.policy.clone() else {
            judgement.calls.iter().for_each(|call| self.observed(now, Asked::of(call)));
            return Verdict::Forward;
        };
        let verdict = match &leading.decision {
            Some(decision) => self.carry_out(now, &policy, leading, decision),
            None => Verdict::Forward,
        };
        let sent = matches!(verdict, Verdict::Forward);
        for call in judgement.calls.iter().filter(|call| !std::ptr::eq(*call, leading)) {
            if let Some(decision) = &call.decision {
                self.decided(now, Asked::of(call), decision, sent, None, NoteKind::Decision);
            }
        }
        verdict
    }

    /// Carries out a decision and logs it.
    fn carry_out(
        &mut self,
        now: &Now<'_, '_>,
        policy: &Arc<Policy>,
        call: &JudgedCall<'_>,
        decision: &Decision,
    ) -> Verdict {
        let asked = Asked::of(call);
        let trouble = self.hands.notes.trouble().filter(|_| self.strict());
        if let Some(why) = trouble.map(str::to_owned) {
            return refuse(self.subject_of(asked).unavailable(&why));
        }
        if let Some(approval) = now.case.approved {
            return self.approved(now, asked, decision, approval);
        }
        match &decision.outcome {
            Outcome::Forward => {
                self.decided(now, asked, decision, true, None, NoteKind::Decision);
                Verdict::Forward
            }
            Outcome::Hold { workflow } => self.hold(now, policy, asked, decision, workflow),
            Outcome::Deny => {
                let subject = self.subject_of(asked);
                self.decided(now, asked, decision, false, Some(&subject), NoteKind::Decision);
                let refusal = match call.cannot_wait {
                    true => subject.cannot_wait(),
                    false => subject.denied(decision),
                };
                refuse(refusal)
            }
        }
    }

    /// Logs a decision. `sent` says whether its message is sent on.
    pub(super) fn decided(
        &mut self,
        now: &Now<'_, '_>,
        asked: Asked<'_>,
        decision: &Decision,
        sent: bool,
        subject: Option<&Subject>,
        kind: NoteKind,
    ) {
        let kind = match kind {
            NoteKind::Decision if now.case.from == Side::Server => NoteKind::ServerRequest,
            other => other,
        };
        let latency_ns = self.latency(now.begun_ns);
        let principal = self.state.callers.caller(now.case.lane.session, now.said);
        // A note is large, so it is filled in place.
        let mut note = called(now, asked.method);
        note.kind = kind;
        note.decision = decision.logged();
        note.name = Note::text(asked.name).filter(|name| !name.is_empty());
        note.gate = Some(decision.gate);
        note.n = note.n.or(now.number(sent));
        note.forwarded = Some(sent);
        note.auto_approved = decision.auto_approved();
        note.latency_ns = latency_ns;
        note.correlation_id = subject.map(|subject| Cow::Borrowed(&*subject.correlation_id));
        note.rule = decision.rule.as_deref().map(Cow::Borrowed);
        note.policies = Cow::Borrowed(&decision.policies);
        note.reason = Some(Cow::Borrowed(&decision.reason));
        note.principal = Some(Cow::Borrowed(principal.name.as_str()));
        self.hands.note(&self.regime, &mut note);
    }

    /// Logs a call without a decision.
    fn observed(&mut self, now: &Now<'_, '_>, asked: Asked<'_>) {
        let latency_ns = self.latency(now.begun_ns);
        let principal = self.state.callers.caller(now.case.lane.session, now.said);
        let kind = match now.case.from {
            Side::Client => NoteKind::Decision,
            Side::Server => NoteKind::ServerRequest,
        };
        let mut note = Note {
            kind,
            n: now.number(true),
            name: Note::text(asked.name).filter(|name| !name.is_empty()),
            forwarded: Some(true),
            latency_ns,
            principal: Some(Cow::Borrowed(&principal.name)),
            ..called(now, asked.method)
        };
        self.hands.note(&self.regime, &mut note);
    }

    pub(super) fn subject_of(&mut self, asked: Asked<'_>) -> Subject {
        match asked.offer {
            Some(offer) => self.subject(offer.word(), asked.name),
            None => self.subject("method", asked.method),
        }
    }
}

pub(super) fn refuse(refusal: Refusal) -> Verdict {
    Verdict::Refuse(Box::new(refusal))
}

/// A note about a call. A malformed trace context is dropped, since it could be anything.
fn called<'a>(now: &Now<'a, '_>, method: &'a str) -> Note<'a> {
    let trace = now.said.traceparent.and_then(json::string);
    let mut note = now.note();
    note.method = Note::text(method);
    note.id = Note::raw(now.said.id);
    note.traceparent = trace.filter(|text| crate::trace::is_traceparent(text));
    note
}
