//! The decision about a call does not depend on the calls before it.

use std::sync::Arc;

use proptest::prelude::*;
use tapegate_core::gate::Verdict;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::{Policy, Profile};

use crate::gate_harness::{GateHarness, GateRecord, policy_with, request};

const POLICIES: [&str; 3] = [
    "
schema: 1
governance:
  defaults: {action: deny}
  rules:
    - {match: a, action: forward, arguments: {$.x: ok}}
    - {match: 'a*', action: approve, approval: slow}
    - {match: b, action: forward}
    - {match: c, action: policy, policy_id: p}
cedar: {policies: [p.cedar]}
approval:
  slow: {destination: {type: cli}, timeout: 10m}
",
    "
schema: 1
sources: [{id: fs, kind: mcp, expose: {mode: blocklist, tools: [b]}}]
governance: {defaults: {action: forward}}
",
    "
schema: 1
governance:
  defaults: {action: forward}
  rules: [{match: b, action: deny}, {match: aa, action: deny, arguments: {$.x: {max: 3}}}]
",
];

/// A step of a session: a call, or a new policy.
#[derive(Debug, Clone)]
enum PolicyStep {
    Call { method: &'static str, name: &'static str, arguments: &'static str },
    Policy(usize),
}

fn step() -> impl Strategy<Value = PolicyStep> {
    let one = |of: &'static [&'static str]| prop::sample::select(of);
    let call = (
        one(&["tools/call", "prompts/get"]),
        one(&["a", "aa", "b", "c", "d"]),
        one(&[r#"{"x":"ok"}"#, r#"{"x":2}"#, r#"{"x":9}"#, "{}"]),
    );
    let call =
        call.prop_map(|(method, name, arguments)| PolicyStep::Call { method, name, arguments });
    prop_oneof![12 => call, 1 => (0..POLICIES.len()).prop_map(PolicyStep::Policy)]
}

fn outcome(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Refuse(refusal) => format!("refused {}", refusal.code),
        Verdict::Hold(hold) => format!("held for {} ms", hold.timeout_ms),
        other => format!("{other:?}"),
    }
}

fn harness(policy: &Arc<Policy>) -> GateHarness {
    let policy = Some(Arc::clone(policy));
    GateHarness::sharing(GateRecord::default(), TransportKind::Lines, policy, Profile::Production)
}

fn policies() -> [Arc<Policy>; 3] {
    let cedar = ("p.cedar", "permit(principal, action, resource);");
    POLICIES.map(|text| Arc::new(policy_with(text, &[cedar])))
}

proptest! {
    #[test]
    fn a_call_is_decided_about_as_if_it_were_the_first(steps in prop::collection::vec(step(), 1..40)) {
        let policies = policies();
        let (mut now, mut session) = (&policies[0], harness(&policies[0]));
        for step in steps {
            match step {
                PolicyStep::Policy(index) => {
                    now = &policies[index];
                    session.policy_handle.set_policy(Some(Arc::clone(now)));
                }
                PolicyStep::Call { method, name, arguments } => {
                    let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
                    let text = request(method, &params);
                    let mut alone = harness(now);
                    let verdicts = (session.client(&text), alone.client(&text));
                    prop_assert_eq!(outcome(&verdicts.0), outcome(&verdicts.1), "{}", text);
                    let last = |harness: &GateHarness| {
                        let notes = harness.memory.notes.lock().unwrap();
                        let note = notes.last().unwrap();
                        (note.decision(), note.event.gate, note.event.rule.clone(), note.event.policy_reason.clone())
                    };
                    prop_assert_eq!(last(&session), last(&alone), "{}", text);
                }
            }
        }
    }
}
