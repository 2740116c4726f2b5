//! An approval applies only to what was approved: one workflow, one reading of the call, one
//! policy.

use std::sync::Arc;

use tapegate_core::gate::{Approval, HoldId, Verdict};
use tapegate_core::side::Side;
use tapegate_policy::model::{Policy, Profile};

use crate::gate_harness::{GateHarness, policy, refused, request, shown};

fn with_rules(rules: &str) -> Policy {
    policy(&format!(
        "schema: 1\ngovernance:\n  defaults: {{action: forward}}\n  rules:\n{rules}approval: {{default: {{}}, seniors: {{}}}}\n"
    ))
}

fn harness(rules: &str) -> GateHarness {
    GateHarness::new(Some(with_rules(rules)), Profile::Production)
}

fn pay(amount: &str) -> String {
    request("tools/call", &format!(r#"{{"name":"pay","arguments":{{"amount":{amount}}}}}"#))
}

#[test]
fn a_rule_that_only_may_ask_for_approval_hides_no_denial_below_it() {
    let rules = "
    - {match: pay, action: approve, approval: default, arguments: {amount: {min: 100, max: 1000}}}
    - {match: pay, action: deny, arguments: {amount: {min: 1001}}}
";
    assert_eq!(shown(&harness(rules).client(&pay("500"))), "hold 1");
    for amount in [r#""5k""#, "[500,5000]", r#"{"a":5000}"#] {
        assert_eq!(shown(&harness(rules).client(&pay(amount))), "refuse -32014", "{amount}");
    }
}

#[test]
fn a_call_that_two_workflows_may_be_about_is_denied() {
    let rules = "
    - {match: pay, action: approve, approval: default, arguments: {amount: {max: 1000}}}
    - {match: pay, action: approve, approval: seniors, arguments: {amount: {min: 1001}}}
";
    assert_eq!(shown(&harness(rules).client(&pay("500"))), "hold 1");
    assert_eq!(shown(&harness(rules).client(&pay("5000"))), "hold 1");
    let mut odd = harness(rules);
    let refusal = refused(odd.client(&pay(r#""5k""#)));
    assert_eq!(refusal.code, -32014);
    assert!(refusal.message.contains("need different approvals"), "{}", refusal.message);
    assert_eq!(odd.people(), [""; 0]);
}

#[test]
fn an_approval_does_not_count_for_another_workflow() {
    let asks =
        |workflow: &str| format!("    - {{match: pay, action: approve, approval: {workflow}}}\n");
    let approval = Approval { hold_id: HoldId(1), by: "ann".to_owned() };
    for (later, verdict) in [
        (asks("seniors"), "refuse -32011"),
        (asks("default"), "forward"),
        ("    - {match: pay, action: forward}\n".to_owned(), "forward"),
        ("    - {match: pay, action: deny}\n".to_owned(), "refuse -32011"),
    ] {
        let mut harness = harness(&asks("default"));
        assert_eq!(shown(&harness.client(&pay("1"))), "hold 1");
        harness.policy_handle.set_policy(Some(Arc::new(with_rules(&later))));
        let text = pay("1");
        let sent = harness.judge_approved(Side::Client, None, text.as_bytes(), Some(&approval));
        assert_eq!(shown(&sent), verdict, "{later}");
    }
}

#[test]
fn a_message_that_needs_two_approvals_is_denied() {
    let rules = "
    - {match: 'x://a/*', action: approve, approval: default}
    - {match: 'x://b/*', action: approve, approval: seniors}
";
    let listen = |uris: &str| {
        let params = format!(r#"{{"notifications":{{"resourceSubscriptions":[{uris}]}}}}"#);
        request("subscriptions/listen", &params)
    };
    let mut harness = harness(rules);
    assert_eq!(shown(&harness.client(&listen(r#""x://a/1","x://a/2""#))), "hold 1");
    harness.noted();
    let text = listen(r#""x://a/1","x://a/2""#);
    let approval = Approval { hold_id: HoldId(1), by: "ann".to_owned() };
    let sent = harness.judge_approved(Side::Client, None, text.as_bytes(), Some(&approval));
    assert!(matches!(sent, Verdict::Forward), "{sent:?}");
    let forwarded: Vec<_> =
        harness.memory.notes.lock().unwrap().iter().map(|note| note.event.forwarded).collect();
    assert_eq!(forwarded, [Some(true), Some(true)]);
    harness.people();
    let refusal = refused(harness.client(&listen(r#""x://a/1","x://b/1""#)));
    assert_eq!(refusal.code, -32014);
    assert!(refusal.message.contains("a request of its own"), "{}", refusal.message);
    assert_eq!(harness.people(), [""; 0]);
}
