//! Runs a case and reports every mismatch with what it expects.

use tapegate_core::frame::Frame;
use tapegate_core::side::Side;

use super::{Case, Fate, What};
use crate::decide::{Outcome, Principal};
use crate::inspect::Carrier;
use crate::judge::{Arrival, Judge, Judgement, SessionState};
use crate::model::Policy;

/// The result of a case.
#[derive(Debug)]
pub struct Came {
    /// The outcome of the call.
    pub fate: Fate,
    /// The full judgement, with every step.
    pub judgement: Judgement<'static>,
    /// The mismatches; empty if the case passes.
    pub misses: Vec<Miss>,
}

/// A mismatch between expectation and result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The key in the case.
    pub key: &'static str,
    /// The expected value.
    pub expected: String,
    /// The actual value; empty if there is none.
    pub found: String,
}

/// Runs a case, at `now_us` unless it specifies a time.
pub fn run(case: &Case, policy: &Policy, now_us: i64) -> Came {
    // A case without a server is about the policy's only source, if there is just one.
    let source = match (case.server.as_str(), policy.sources.as_slice()) {
        ("*", [only]) => only.id.as_str(),
        (named, _) => named,
    };
    let profile = case.profile;
    let judge = Judge { policy: Some(policy), profile, source, explains: true };
    let wall_us = case.wall_us.unwrap_or(now_us);
    let mut state = SessionState::new(caller(&policy.principal, &case.principal));
    let judgement = match &case.what {
        What::Message(text) => {
            let (from, carrier) = (Side::Client, Carrier::Lines);
            let arrival = Arrival { from, carrier, session: 0, wall_us };
            judge.judge(&Frame::read(text), arrival, &mut state)
        }
        What::Call { method, name, arguments } => {
            judge.call(method, name, arguments.as_deref(), wall_us, &mut state)
        }
    };
    let outcome = judgement.outcome(profile);
    let fate = match outcome {
        Outcome::Forward => Fate::Forward,
        Outcome::Deny => Fate::Deny,
        Outcome::Hold { .. } => Fate::Approve,
    };
    let misses = misses(case, fate, &outcome, &judgement);
    Came { fate, judgement: judgement.into_owned(), misses }
}

/// The caller: the values of the case, completed from the policy.
fn caller(ours: &Principal, said: &Principal) -> Principal {
    let text = |said: &String, ours: &String| if said.is_empty() { ours } else { said }.clone();
    Principal {
        name: text(&said.name, &ours.name),
        namespace: text(&said.namespace, &ours.namespace),
        service_account: text(&said.service_account, &ours.service_account),
        roles: if said.roles.is_empty() { &ours.roles } else { &said.roles }.clone(),
        client: said.client.clone().or_else(|| ours.client.clone()),
    }
}

fn misses(case: &Case, fate: Fate, outcome: &Outcome, judgement: &Judgement<'_>) -> Vec<Miss> {
    let expect = &case.expect;
    let mut misses = Vec::new();
    let mut want = |key: &'static str, expected: Option<&str>, found: Vec<&str>| {
        let Some(expected) = expected.filter(|expected| !found.contains(expected)) else { return };
        let (expected, found) = (expected.to_owned(), found.join(", "));
        misses.push(Miss { key, expected, found });
    };
    want("expect", Some(expect.fate.word()), vec![fate.word()]);
    let gate = judgement.gate().map(|gate| gate.title());
    want("gate", expect.gate.map(|gate| gate.title()), gate.into_iter().collect());
    let decision = judgement.leading().and_then(|call| call.decision.as_ref());
    let rule = decision.and_then(|decision| decision.rule.as_deref());
    want("rule", expect.rule.as_deref(), rule.into_iter().collect());
    let workflow = match outcome {
        Outcome::Hold { workflow } => vec![workflow.as_str()],
        _ => Vec::new(),
    };
    want("workflow", expect.workflow.as_deref(), workflow);
    let policies = decision.map(|decision| decision.policies.as_slice()).unwrap_or_default();
    want("policy", expect.policy.as_deref(), policies.iter().map(String::as_str).collect());
    misses
}
