//! Requests and notifications: what becomes of calls.

use std::borrow::Cow;
use std::sync::Arc;

use tapegate_core::frame::Kind;
use tapegate_core::gate::{Refusal, Verdict};
use tapegate_core::json;
use tapegate_core::side::Side;

use super::{Last, Now, Warden};
use crate::decide::{Call, Decision, Facts, Outcome, decide};
use crate::gated::{Gated, Offer, passes};
use crate::inspect::{Target, targets};
use crate::model::Policy;
use crate::note::{Note, NoteKind};
use crate::refuse::Subject;

/// The longest name whose decision is kept.
const NAME_BYTES_MAX: usize = 256;

/// What a message asks for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The method, as rules name it.
    pub(super) method: &'a str,
    /// What is asked for, if it is something that a server offers.
    pub(super) offer: Option<Offer>,
    /// Its name or URI, or nothing.
    pub(super) name: &'a str,
    pub(super) arguments: Option<&'a [u8]>,
}

impl Warden {
    /// The client asks for something.
    pub(super) fn asked(&mut self, now: &Now<'_, '_>) -> Verdict {
        let Some(method) = now.said.method else { return Verdict::Forward };
        if let Some(gated) = Gated::read(method) {
            return self.called(now, gated);
        }
        let method = method.decode();
        if method == "initialize" {
            self.known.introduce(now.case.lane, now.said, &self.settings.principal);
        }
        self.unguarded(now, &method).unwrap_or(Verdict::Forward)
    }

    /// The server asks for something, or tells something.
    pub(super) fn server_said(&mut self, now: &Now<'_, '_>) -> Verdict {
        let Some(method) = now.said.method else { return Verdict::Forward };
        let method = method.decode();
        let verdict = self.unguarded(now, &method);
        if verdict.is_none() && now.said.kind() == Kind::Request && !passes(&method) {
            self.server_asks(now, &method);
        }
        verdict.unwrap_or(Verdict::Forward)
    }

    /// Notes that the server asks the agent for something, and gets it asked.
    pub(super) fn server_asks(&mut self, now: &Now<'_, '_>, method: &str) {
        let note = Note {
            kind: NoteKind::ServerRequest,
            method: Note::text(method),
            id: Note::raw(now.said.id),
            forwarded: Some(true),
            ..now.note()
        };
        let n = Some(now.case.n).filter(|_| !now.in_batch && now.said.method.is_some());
        self.hands.note(&self.regime, &mut Note { n, ..note });
    }

    fn called(&mut self, now: &Now<'_, '_>, gated: Gated) -> Verdict {
        // Only where nothing is refused does a call get here that names nothing.
        let Ok(target) = targets(now.said, gated) else { return Verdict::Forward };
        let names: &[Cow<'_, str>] = match &target {
            Target::One(name) => std::slice::from_ref(name),
            Target::Each(names) => names,
        };
        let asked = |name| Asked {
            method: gated.method(),
            offer: Some(gated.offer(name)),
            name,
            arguments: now.said.arguments,
        };
        let Some(policy) = self.regime.policy.clone() else {
            names.iter().for_each(|name| self.observed(now, asked(name)));
            return Verdict::Forward;
        };
        if let [name] = names {
            return self.called_one(now, &policy, gated, asked(name));
        }
        // What is asked for several things at once gets what the worst of them gets.
        let mut decisions: Vec<_> =
            names.iter().map(|name| (name, self.decision(now, &policy, asked(name)))).collect();
        let worst = (0..decisions.len()).max_by_key(|&at| match decisions[at].1.outcome {
            Outcome::Forward => 0,
            Outcome::Hold { .. } => 1,
            Outcome::Deny => 2,
        });
        let Some(worst) = worst else { return Verdict::Forward };
        let (name, decision) = decisions.swap_remove(worst);
        for (name, decision) in decisions {
            self.decided(now, asked(name), &decision, None, NoteKind::Decision);
        }
        self.carry_out(now, &policy, asked(name), &decision)
    }

    /// An agent that works calls the same thing time and again, and most policies say the same of it
    /// every time.
    fn called_one(
        &mut self,
        now: &Now<'_, '_>,
        policy: &Arc<Policy>,
        gated: Gated,
        asked: Asked<'_>,
    ) -> Verdict {
        let method = gated.method();
        let alike = |last: &Last| last.method == method && last.name == asked.name;
        let last = match self.last.take() {
            Some(last) if alike(&last) && self.drift(policy, asked).is_none() => last,
            _ => Last {
                method,
                name: asked.name.to_owned(),
                decision: self.decision(now, policy, asked),
            },
        };
        let verdict = self.carry_out(now, policy, asked, &last.decision);
        let kept = last.decision.by_name && last.name.len() <= NAME_BYTES_MAX;
        self.last = Some(last).filter(|_| kept);
        verdict
    }

    /// How what is called differs from what was accepted, if it does.
    fn drift(&self, policy: &Policy, asked: Asked<'_>) -> Option<&str> {
        let (lock, source) = (&policy.pins.lock, &self.settings.source);
        self.watch.drift(lock, source, asked.offer?, asked.name)
    }

    /// A method that is not gated: a rule may name it all the same.
    fn unguarded(&mut self, now: &Now<'_, '_>, method: &str) -> Option<Verdict> {
        let policy = self.regime.policy.as_ref().filter(|_| self.rules_name_methods)?.clone();
        let name = now.said.name.or(now.said.uri).map(|name| name.decode()).unwrap_or_default();
        let asked = Asked { method, offer: None, name: &name, arguments: now.said.arguments };
        self.by_method(now, &policy, asked)
    }

    /// What rules that name methods say of one that is not gated, if any does.
    pub(super) fn by_method(
        &mut self,
        now: &Now<'_, '_>,
        policy: &Arc<Policy>,
        asked: Asked<'_>,
    ) -> Option<Verdict> {
        if passes(asked.method) {
            return None;
        }
        let decision = self.decision(now, policy, asked);
        decision.rule.as_ref()?;
        Some(self.carry_out(now, policy, asked, &decision))
    }

    fn decision(&mut self, now: &Now<'_, '_>, policy: &Policy, asked: Asked<'_>) -> Decision {
        let source = self.settings.source.as_str();
        let offer = asked.offer;
        let drift =
            offer.and_then(|offer| self.watch.drift(&policy.pins.lock, source, offer, asked.name));
        let (lane, said) = (now.case.lane, now.said);
        let principal = self.known.caller(lane, said, &self.settings.principal);
        let call =
            Call { source, method: asked.method, name: asked.name, arguments: asked.arguments };
        let wall_us = now.case.at.wall_us;
        let facts = Facts { wall_us, principal: Some(principal), drift };
        decide(policy, self.regime.profile, &call, &facts)
    }

    /// Does what was decided, and notes it.
    fn carry_out(
        &mut self,
        now: &Now<'_, '_>,
        policy: &Arc<Policy>,
        asked: Asked<'_>,
        decision: &Decision,
    ) -> Verdict {
        let trouble = self.hands.notes.trouble().filter(|_| self.strict());
        if let Some(why) = trouble.map(str::to_owned) {
            return refuse(self.subject_of(asked).unavailable(&why));
        }
        if let Some(approval) = now.case.approved {
            return self.approved(now, asked, decision, approval);
        }
        // Only what somebody waits for can wait, and only for itself.
        let waits = now.said.kind() == Kind::Request;
        match &decision.outcome {
            Outcome::Forward => {
                self.decided(now, asked, decision, None, NoteKind::Decision);
                Verdict::Forward
            }
            Outcome::Hold { workflow } if waits && !now.in_batch => {
                self.hold(now, policy, asked, decision, workflow)
            }
            Outcome::Hold { .. } => {
                let (outcome, strict) = (Outcome::Deny, Outcome::Deny);
                let denied = Decision { outcome, strict, ..decision.clone() };
                let subject = self.subject_of(asked);
                self.decided(now, asked, &denied, Some(&subject), NoteKind::Decision);
                refuse(subject.cannot_wait())
            }
            Outcome::Deny => {
                let subject = self.subject_of(asked);
                self.decided(now, asked, decision, Some(&subject), NoteKind::Decision);
                refuse(subject.denied(decision))
            }
        }
    }

    /// Notes a decision.
    pub(super) fn decided(
        &mut self,
        now: &Now<'_, '_>,
        asked: Asked<'_>,
        decision: &Decision,
        subject: Option<&Subject>,
        kind: NoteKind,
    ) {
        let kind = match kind {
            NoteKind::Decision if now.case.from == Side::Server => NoteKind::ServerRequest,
            other => other,
        };
        let latency_ns = self.latency(now.begun_ns);
        let principal = self.known.caller(now.case.lane, now.said, &self.settings.principal);
        // A note is large, and so is filled in where it lies.
        let mut note = called(now, asked.method);
        note.kind = kind;
        note.word = decision.word();
        note.name = Note::text(asked.name).filter(|name| !name.is_empty());
        note.gate = Some(decision.gate);
        note.forwarded = Some(decision.outcome == Outcome::Forward);
        note.auto_approved = decision.auto_approved();
        note.latency_ns = latency_ns;
        note.correlation_id = subject.map(|subject| Cow::Borrowed(&*subject.correlation_id));
        note.rule = decision.rule.as_deref().map(Cow::Borrowed);
        note.policies = Cow::Borrowed(&decision.policies);
        note.reason = Some(Cow::Borrowed(&decision.reason));
        note.principal = Some(Cow::Borrowed(principal.name.as_str()));
        self.hands.note(&self.regime, &mut note);
    }

    /// Notes a call that nothing is decided about.
    fn observed(&mut self, now: &Now<'_, '_>, asked: Asked<'_>) {
        let latency_ns = self.latency(now.begun_ns);
        let principal = self.known.caller(now.case.lane, now.said, &self.settings.principal);
        let mut note = Note {
            name: Note::text(asked.name),
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

/// A note about a call. What is no trace context is not kept: it could be anything.
fn called<'a>(now: &Now<'a, '_>, method: &'a str) -> Note<'a> {
    let trace = now.said.traceparent.and_then(json::string);
    let mut note = now.note();
    note.method = Note::text(method);
    note.id = Note::raw(now.said.id);
    note.traceparent = trace.filter(|text| crate::trace::is_traceparent(text));
    note
}
