//! A policy that changes is taken up at once; one that does not load is not, and that is said.

use std::fs;

use rustix::process::Signal;

use super::stand::{FORWARD, answer, call, events, is_refused, rules, state};
use crate::support::{Run, replace_file, shim};

fn loads(run: &Run) -> usize {
    events(run.folder()).iter().filter(|event| event["kind"] == "policy").count()
}

fn write(run: &Run, name: &str, text: &str) {
    replace_file(&run.folder().join(name), text);
}

#[test]
fn a_changed_policy_holds_from_the_next_call_on_and_calls_under_way_are_answered() {
    let mut run = shim(FORWARD, &["serve"]).start();
    run.send(call(1, "a").as_bytes());
    answer(&run, 1);
    let before = loads(&run);
    write(&run, "tapegate.yaml", &rules(&[("a", "deny")]));
    run.until("the new policy", |run| loads(run) > before);
    run.send(call(2, "a").as_bytes());
    is_refused(&answer(&run, 2), -32014, "governance", "a", "governance_rule_denied");
    run.end_of_input().exits(0).complains("policy");
}

#[test]
fn sighup_loads_the_policy_anew_and_ends_nothing() {
    let mut run = shim(FORWARD, &["serve"]).start();
    run.send(call(1, "a").as_bytes());
    answer(&run, 1);
    let before = loads(&run);
    run.signal(Signal::HUP);
    run.until("the policy", |run| loads(run) > before);
    run.send(call(2, "a").as_bytes());
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    run.end_of_input().exits(0);
}

#[test]
fn a_policy_that_does_not_load_leaves_the_old_one_and_is_said_loudly() {
    let mut run = shim(&rules(&[("a", "deny")]), &["serve"]).start();
    run.send(call(1, "a").as_bytes());
    answer(&run, 1);
    let before = loads(&run);
    write(&run, "tapegate.yaml", "schema: 1\ngovernance: { defaults: { action: forwad } }\n");
    run.says("forwad");
    run.until("the log of it", |run| loads(run) > before);
    run.send(call(2, "a").as_bytes());
    is_refused(&answer(&run, 2), -32014, "governance", "a", "governance_rule_denied");
    // What is taken away leaves the old policy too: less than it must never hold by accident.
    let before = loads(&run);
    fs::remove_file(run.folder().join("tapegate.yaml")).unwrap();
    run.until("the log of it", |run| loads(run) > before);
    run.send(call(3, "a").as_bytes());
    is_refused(&answer(&run, 3), -32014, "governance", "a", "governance_rule_denied");
    let last = events(run.folder()).into_iter().rfind(|event| event["kind"] == "policy").unwrap();
    assert_eq!(last["level"], "error", "{last}");
    assert!(state(&run).exists());
}

#[test]
fn files_that_the_policy_names_are_watched_too() {
    let policy = "schema: 1\ngovernance: { defaults: { action: policy, policy_id: p } }\ncedar: { policies: [p.cedar] }\n";
    let setup = shim(policy, &["serve"]);
    fs::write(setup.folder().join("p.cedar"), "permit (principal, action, resource);").unwrap();
    let mut run = setup.start();
    run.send(call(1, "a").as_bytes());
    assert!(answer(&run, 1)["result"].is_object());
    let before = loads(&run);
    write(&run, "p.cedar", "forbid (principal, action, resource);");
    run.until("the new policy", |run| loads(run) > before);
    run.send(call(2, "a").as_bytes());
    is_refused(&answer(&run, 2), -32003, "policy", "a", "policy_denied");
}
