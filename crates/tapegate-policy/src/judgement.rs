//! What a policy makes of one message by itself: no session, no effects, nothing remembered.
//!
//! It asks what the warden asks, in the same order: how the message is written, what it is about,
//! what is decided about that, and what of a list may be seen.

use std::borrow::Cow;

use tapegate_core::frame::{Body, Envelope, Frame, Kind, elements};
use tapegate_core::side::Side;

use crate::decide::{Call, Decision, Facts, GateName, Outcome, decide, explain};
use crate::filter::{Shown, Sight, filter};
use crate::gated::{Gated, Offer};
use crate::glob::Glob;
use crate::inspect::{Carrier, Fault, Target, inspect, targets};
use crate::model::{Expose, Policy, Profile, Source};
use crate::pins::Watch;

/// Judges messages of one server.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'p> {
    /// The policy.
    pub policy: &'p Policy,
    /// The profile.
    pub profile: Profile,
    /// The server, by the name it goes by in the policy.
    pub source: &'p str,
    /// How messages arrive.
    pub carrier: Carrier,
    /// Whether every step of a decision is told.
    pub telling: bool,
}

/// What a policy makes of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What is wrong with the way it is written. If anything is, nothing else was looked at.
    pub faults: Vec<Fault>,
    /// What was decided about each thing that it asks for.
    pub calls: Vec<Judged>,
    /// What would be seen of the lists in it.
    pub lists: Vec<Shown>,
}

/// Something that a message asks for, and what was decided about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The method.
    pub method: String,
    /// The name of the tool or prompt, or the URI; empty for a method that is about none.
    pub name: String,
    /// What was decided.
    pub decision: Decision,
}

/// What of a server may be seen; nothing of one that is not known or not enabled.
struct Seen<'p>(Option<&'p Source>);

impl Judgement {
    /// What production does with the message: the first thing that keeps it from being sent on.
    pub fn strict(&self) -> Outcome {
        if !self.faults.is_empty() {
            return Outcome::Deny;
        }
        let stopped = self.calls.iter().map(|call| &call.decision.strict);
        let denied = stopped.clone().find(|outcome| **outcome == Outcome::Deny);
        let held = || stopped.clone().find(|outcome| **outcome != Outcome::Forward);
        denied.or_else(held).cloned().unwrap_or(Outcome::Forward)
    }

    /// The gate that has said so.
    pub fn gate(&self) -> Option<GateName> {
        if !self.faults.is_empty() {
            return Some(GateName::Framing);
        }
        self.leading().map(|call| call.decision.gate)
    }

    /// The call that what becomes of the message comes from.
    pub fn leading(&self) -> Option<&Judged> {
        let strict = self.strict();
        self.calls.iter().find(|call| call.decision.strict == strict)
    }
}

impl<'p> Judge<'p> {
    /// Judges a message.
    pub fn judge(&self, frame: &Frame<'_>, from: Side, facts: &Facts<'_>) -> Judgement {
        let faults = inspect(frame, from, self.carrier);
        if !faults.is_empty() {
            return Judgement { faults, ..Judgement::default() };
        }
        let mut judgement = Judgement::default();
        match frame.body() {
            Body::Message(said) => self.message(frame.text(), said, from, facts, &mut judgement),
            Body::Batch => self.batch(frame, from, facts, &mut judgement),
            Body::Garbage(_) => {}
        }
        judgement
    }

    /// Decides about a call.
    pub fn call(
        &self,
        method: &str,
        name: &str,
        arguments: Option<&[u8]>,
        facts: &Facts<'_>,
    ) -> Decision {
        let call = Call { source: self.source, method, name, arguments };
        // Nothing has been listed, so all that can be known is what was never accepted.
        let (watch, lock) = (Watch::default(), &self.policy.pins.lock);
        let offer = Gated::of(method).map(|gated| gated.offer(name));
        let drift = offer.and_then(|offer| watch.drift(lock, self.source, offer, name));
        let facts = &Facts { drift: facts.drift.or(drift), ..*facts };
        if !self.telling {
            return decide(self.policy, self.profile, &call, facts);
        }
        let mut decision = explain(self.policy, self.profile, &call, facts);
        if decision.gate == GateName::Visibility
            && let Some(by) = hidden_by(self.policy, self.source, method, name)
        {
            let first = decision.steps.len().min(1);
            decision.steps.insert(first, format!("visibility: it is {by}"));
        }
        decision
    }

    /// A batch is judged by its elements, of which each must be sound.
    fn batch(&self, frame: &Frame<'_>, from: Side, facts: &Facts<'_>, into: &mut Judgement) {
        for element in elements(frame.text()) {
            let mut one = self.judge(&element, from, facts);
            into.faults.append(&mut one.faults);
            into.calls.append(&mut one.calls);
            into.lists.append(&mut one.lists);
        }
    }

    fn message(
        &self,
        text: &[u8],
        said: &Envelope<'_>,
        from: Side,
        facts: &Facts<'_>,
        into: &mut Judgement,
    ) {
        match (said.kind(), said.method) {
            (Kind::Response, _) if from == Side::Server => {
                into.lists = self.lists(text, said.result.unwrap_or_default());
            }
            (Kind::Request | Kind::Notification, Some(method)) => {
                let method = method.decode();
                let gated = Gated::of(&method).filter(|_| from == Side::Client);
                let names = match gated.map(|gated| targets(said, gated)) {
                    None => {
                        vec![said.name.or(said.uri).map_or(Cow::Borrowed(""), |it| it.decode())]
                    }
                    Some(Ok(Target::One(name))) => vec![name],
                    Some(Ok(Target::Each(names))) => names,
                    Some(Err(fault)) => return into.faults.push(fault),
                };
                for name in names {
                    let decision = self.call(&method, &name, said.arguments, facts);
                    // What is not gated is only stopped by a rule that names it.
                    if gated.is_some()
                        || decision.strict == Outcome::Forward
                        || decision.rule.is_some()
                    {
                        let (method, name) = (method.clone().into_owned(), name.into_owned());
                        into.calls.push(Judged { method, name, decision });
                    }
                }
            }
            _ => {}
        }
    }

    /// What would be seen of the lists in a result.
    fn lists(&self, text: &[u8], result: &[u8]) -> Vec<Shown> {
        let source = self.policy.source(self.source).filter(|source| source.enabled);
        filter(text, result, &Seen(source)).lists
    }
}

/// Which list of a source hides something, in words; nothing if none does.
pub fn hidden_by(policy: &Policy, server: &str, method: &str, name: &str) -> Option<String> {
    let offer = Gated::of(method)?.offer(name);
    let source = policy.source(server).filter(|source| source.enabled)?;
    let list = offer.list();
    let texts = |globs: &[Glob]| {
        let texts: Vec<String> = globs.iter().map(|glob| format!("`{}`", glob.text())).collect();
        texts.join(", ")
    };
    match exposed(source, offer) {
        Expose::All => None,
        Expose::Only(globs) if globs.iter().any(|glob| glob.matches(name)) => None,
        Expose::Only(globs) if globs.is_empty() => {
            Some(format!("on no list: the allowlist for {list} of source `{}` is empty", source.id))
        }
        Expose::Only(globs) => {
            let globs = texts(globs);
            Some(format!("not on the allowlist for {list} of source `{}`: {globs}", source.id))
        }
        Expose::Except(globs) => {
            let hit = globs.iter().find(|glob| glob.matches(name))?;
            let (id, glob) = (&source.id, hit.text());
            Some(format!("on the blocklist for {list} of source `{id}`, by `{glob}`"))
        }
    }
}

impl Sight for Seen<'_> {
    fn limited(&self, offer: Offer) -> bool {
        self.0.is_none_or(|source| !matches!(exposed(source, offer), Expose::All))
    }

    fn shows(&self, offer: Offer, name: &str) -> bool {
        self.0.is_some_and(|source| exposed(source, offer).shows(name))
    }
}

fn exposed(source: &Source, offer: Offer) -> &Expose {
    match offer {
        Offer::Tool => &source.tools,
        Offer::Prompt => &source.prompts,
        Offer::Resource | Offer::Template => &source.resources,
    }
}
