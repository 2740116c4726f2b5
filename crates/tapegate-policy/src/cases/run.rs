//! Runs a case and reports every mismatch with what it expects.

use tapegate_core::frame::Frame;
use tapegate_core::side::Side;

use super::{CaseInput, CaseOutcome, TestCase};
use crate::decide::{DecisionOutcome, PolicyPrincipal};
use crate::inspect::TransportKind;
use crate::judge::{Judgement, MessageArrival, PolicyJudge, SessionState};
use crate::model::Policy;

#[derive(Debug)]
pub struct CaseResult {
    /// The outcome of the call.
    pub case_outcome: CaseOutcome,
    /// The full judgement, with every step.
    pub judgement: Judgement<'static>,
    /// The mismatches; empty if the case passes.
    pub misses: Vec<ExpectationMiss>,
}

/// A mismatch between expectation and result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectationMiss {
    /// The key in the case.
    pub key: &'static str,
    /// The expected value.
    pub expected: String,
    /// The actual value; empty if there is none.
    pub found: String,
}

/// Runs a case, at `now_us` unless it specifies a time.
pub fn run(case: &TestCase, policy: &Policy, now_us: i64) -> CaseResult {
    // A case without a server is about the policy's only source, if there is just one.
    let source = match (case.server.as_str(), policy.sources.as_slice()) {
        ("*", [only]) => only.id.as_str(),
        (named, _) => named,
    };
    let profile = case.profile;
    let judge = PolicyJudge { policy: Some(policy), profile, source, explains: true };
    let wall_us = case.wall_us.unwrap_or(now_us);
    let mut state = SessionState::new(caller(&policy.principal, &case.principal));
    let judgement = match &case.input {
        CaseInput::Message(text) => {
            let (from, carrier) = (Side::Client, TransportKind::Lines);
            let arrival = MessageArrival { from, carrier, session: 0, wall_us };
            judge.judge(&Frame::read(text), arrival, &mut state)
        }
        CaseInput::Call { method, name, arguments } => {
            judge.judge_call(method, name, arguments.as_deref(), wall_us, &mut state)
        }
    };
    let outcome = judgement.outcome(profile);
    let case_outcome = match outcome {
        DecisionOutcome::Forward => CaseOutcome::Forward,
        DecisionOutcome::Deny => CaseOutcome::Deny,
        DecisionOutcome::Hold { .. } => CaseOutcome::Approve,
    };
    let misses = find_misses(case, case_outcome, &outcome, &judgement);
    CaseResult { case_outcome, judgement: judgement.into_owned(), misses }
}

/// The caller: the values of the case, completed from the policy.
fn caller(ours: &PolicyPrincipal, specified: &PolicyPrincipal) -> PolicyPrincipal {
    let text = |specified: &String, ours: &String| {
        if specified.is_empty() { ours } else { specified }.clone()
    };
    PolicyPrincipal {
        name: text(&specified.name, &ours.name),
        namespace: text(&specified.namespace, &ours.namespace),
        service_account: text(&specified.service_account, &ours.service_account),
        roles: if specified.roles.is_empty() { &ours.roles } else { &specified.roles }.clone(),
        client: specified.client.clone().or_else(|| ours.client.clone()),
    }
}

fn find_misses(
    case: &TestCase,
    case_outcome: CaseOutcome,
    outcome: &DecisionOutcome,
    judgement: &Judgement<'_>,
) -> Vec<ExpectationMiss> {
    let expect = &case.expect;
    let mut misses = Vec::new();
    let mut want = |key: &'static str, expected: Option<&str>, found: Vec<&str>| {
        let Some(expected) = expected.filter(|expected| !found.contains(expected)) else { return };
        let (expected, found) = (expected.to_owned(), found.join(", "));
        misses.push(ExpectationMiss { key, expected, found });
    };
    want("expect", Some(expect.case_outcome.as_str()), vec![case_outcome.as_str()]);
    let gate = judgement.gate().map(|gate| gate.title());
    want("gate", expect.gate.map(|gate| gate.title()), gate.into_iter().collect());
    let decision = judgement.leading_call().and_then(|call| call.decision.as_ref());
    let rule = decision.and_then(|decision| decision.rule.as_deref());
    want("rule", expect.rule.as_deref(), rule.into_iter().collect());
    let workflow = match outcome {
        DecisionOutcome::Hold { workflow } => vec![workflow.as_str()],
        _ => Vec::new(),
    };
    want("workflow", expect.workflow.as_deref(), workflow);
    let policies = decision.map(|decision| decision.policies.as_slice()).unwrap_or_default();
    want("policy", expect.policy.as_deref(), policies.iter().map(String::as_str).collect());
    misses
}
