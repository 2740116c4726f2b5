//! A message to be decided about, as the policy sees it.
//!
//! The message is put together once more from what was asked, and goes through the same inspection
//! and the same decision as in a shim.

use std::borrow::Cow;

use tapegate_core::frame::{Envelope, Frame};
use tapegate_core::json::write_str;
use tapegate_policy::decide::{Call, Decision, Facts, Outcome, Principal, decide};
use tapegate_policy::gated::{Gated, Offer, passes};
use tapegate_policy::inspect::{Carrier, Fault, Target, inspect, targets};
use tapegate_policy::model::{Policy, Profile};

use crate::api::{GovernanceEvaluateRequest, JsonRpcId, MessageType, StreamDirection};

/// What there is to say about a message.
pub(super) enum Answer {
    /// It passes, and nobody was asked.
    Passes,
    /// It is not written as it must be.
    Faulty(Fault),
    /// It calls this, and there is no policy.
    Observed(String),
    /// It was decided about.
    Decided(Box<Decided>),
}

/// What was decided.
pub(super) struct Decided {
    /// The method, as rules name it.
    pub(super) method: String,
    /// What is called: its name or URI.
    pub(super) name: String,
    /// What kind of thing that is.
    pub(super) word: &'static str,
    /// The raw JSON of the arguments.
    pub(super) arguments: Option<Vec<u8>>,
    /// The decision.
    pub(super) decision: Decision,
}

/// What is asked.
pub(super) struct Question<'a> {
    pub(super) policy: Option<&'a Policy>,
    pub(super) profile: Profile,
    pub(super) wall_us: i64,
    pub(super) principal: &'a Principal,
    pub(super) request: &'a GovernanceEvaluateRequest,
}

/// What a call is about.
struct Subject<'a> {
    method: &'a str,
    offer: Option<Offer>,
    name: &'a str,
    arguments: Option<&'a [u8]>,
}

impl Question<'_> {
    /// Finds out what is to be said.
    pub(super) fn answer(&self) -> Answer {
        let request = self.request;
        if request.message_type == MessageType::Response {
            return Answer::Passes;
        }
        let message = message(request);
        let frame = Frame::read(&message);
        let from = match request.direction {
            StreamDirection::AgentToServer => tapegate_core::side::Side::Client,
            StreamDirection::ServerToAgent => tapegate_core::side::Side::Server,
        };
        if let Some(fault) = inspect(&frame, from, Carrier::Http).first() {
            return Answer::Faulty(*fault);
        }
        let Some(said) = frame.envelope() else { return Answer::Passes };
        let gated = match request.direction {
            StreamDirection::AgentToServer => Gated::of(&request.method),
            StreamDirection::ServerToAgent => None,
        };
        match (gated, self.policy) {
            (Some(gated), Some(policy)) => self.called(policy, said, gated),
            (None, Some(policy)) => self.unguarded(policy, said),
            (Some(gated), None) => match targets(said, gated) {
                Ok(Target::One(name)) => Answer::Observed(name.into_owned()),
                Ok(Target::Each(names)) => Answer::Observed(names.join(" ")),
                Err(fault) => Answer::Faulty(fault),
            },
            (None, None) => Answer::Passes,
        }
    }

    fn called(&self, policy: &Policy, said: &Envelope<'_>, gated: Gated) -> Answer {
        let target = match targets(said, gated) {
            Ok(target) => target,
            Err(fault) => return Answer::Faulty(fault),
        };
        let names: &[Cow<'_, str>] = match &target {
            Target::One(name) => std::slice::from_ref(name),
            Target::Each(names) => names,
        };
        let subject = |name| Subject {
            method: gated.method(),
            offer: Some(gated.offer(name)),
            name,
            arguments: said.arguments,
        };
        // What is asked for several things at once gets what the worst of them gets.
        let decided = names.iter().map(|name| self.decided(policy, &subject(name)));
        let worst = decided.max_by_key(|decided| match decided.decision.outcome {
            Outcome::Forward => 0,
            Outcome::Hold { .. } => 1,
            Outcome::Deny => 2,
        });
        worst.map_or(Answer::Passes, |decided| Answer::Decided(Box::new(decided)))
    }

    /// A method that is not gated: a rule may name it all the same.
    fn unguarded(&self, policy: &Policy, said: &Envelope<'_>) -> Answer {
        let method = self.request.method.as_str();
        if passes(method) || policy.rules.iter().all(|rule| rule.methods.is_empty()) {
            return Answer::Passes;
        }
        let name = said.name.or(said.uri).map(|name| name.decode()).unwrap_or_default();
        let subject = Subject { method, offer: None, name: &name, arguments: said.arguments };
        let decided = self.decided(policy, &subject);
        match decided.decision.rule {
            Some(_) => Answer::Decided(Box::new(decided)),
            None => Answer::Passes,
        }
    }

    fn decided(&self, policy: &Policy, subject: &Subject<'_>) -> Decided {
        let Subject { method, offer, name, arguments } = *subject;
        let call = Call { source: &self.request.server_id, method, name, arguments };
        let facts = Facts {
            wall_us: self.wall_us,
            principal: Some(self.principal),
            drift: self.request.drift.as_deref(),
        };
        Decided {
            method: method.to_owned(),
            name: name.to_owned(),
            word: offer.map_or("method", Offer::word),
            arguments: arguments.map(<[u8]>::to_vec),
            decision: decide(policy, self.profile, &call, &facts),
        }
    }
}

/// The message that was asked about.
fn message(request: &GovernanceEvaluateRequest) -> Vec<u8> {
    let mut out = br#"{"jsonrpc":"2.0""#.to_vec();
    if request.message_type == MessageType::Request {
        // Whoever asks need not tell the id, which nothing depends on.
        let id = request.id.as_ref().map_or_else(|| "0".to_owned(), JsonRpcId::to_json);
        out.extend_from_slice(format!(",\"id\":{id}").as_bytes());
    }
    out.extend_from_slice(b",\"method\":");
    write_str(&mut out, &request.method);
    if let Some(params) = &request.params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.get().as_bytes());
    }
    out.push(b'}');
    out
}
