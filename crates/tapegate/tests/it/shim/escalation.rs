//! A held call of a shim without a hub goes to the approvers of a second workflow.

use std::process::Output;

use super::setup::{answer, call, event, held, tapegate_on};
use crate::support::{RunningSession, key_flags, shim};

const POLICY: &str = "schema: 1
governance:
  defaults: { action: forward }
  rules:
    - { match: ask, action: approve, approval: first }
approval:
  first: { timeout: 5m, approvers: [ann], escalate: { after: 5s, to: seniors } }
  seniors: { approvers: [bob] }
";

fn approve(run: &RunningSession, id: &str, by: &str) -> Output {
    let flags = key_flags(&run.folder().join("state"));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    tapegate_on(run, &[&["approvals", "approve", id, "--by", by], &flags[..]].concat())
}

#[test]
fn approvers_of_the_second_workflow_decide_once_the_first_have_not_answered() {
    let mut run = shim(POLICY, &["serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    let shown = |run: &RunningSession| {
        String::from_utf8(tapegate_on(run, &["approvals", "show", &id]).stdout).unwrap()
    };
    assert!(shown(&run).contains("escalation  to seniors in "), "{}", shown(&run));
    let early = approve(&run, &id, "bob");
    assert_eq!(early.status.code(), Some(1), "{}", String::from_utf8_lossy(&early.stderr));
    let escalated = event(run.folder(), &[("event", "escalated"), ("approval_id", &id)]);
    assert_eq!(escalated["escalated_to"], "seniors");
    assert!(shown(&run).contains(" ago: bob"), "{}", shown(&run));
    let late = approve(&run, &id, "bob");
    assert!(late.status.success(), "{}", String::from_utf8_lossy(&late.stderr));
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
}
