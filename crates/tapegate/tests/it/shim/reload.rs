//! A changed policy takes effect at once; one that does not load does not, and that is reported.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::setup::{FORWARD, answer, call, events, is_refused, rules, state};
use crate::support::{RunningSession, accept_policy, replace_file, shim};

fn loads(run: &RunningSession) -> usize {
    events(run.folder()).iter().filter(|event| event["kind"] == "policy").count()
}

fn write(run: &RunningSession, name: &str, text: &str) {
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
    // Removing the file keeps the old policy too: enforcement must never get weaker by accident.
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

/// The names of the events about the policy.
fn noted(folder: &Path) -> Vec<String> {
    let all = events(folder).into_iter().filter(|event| event["kind"] == "policy");
    all.filter_map(|event| event["event"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_change_just_before_the_end_of_a_session_is_logged() {
    let mut run = shim(&rules(&[("a", "deny")]), &["serve"]).start();
    run.send(call(1, "a").as_bytes());
    answer(&run, 1);
    write(&run, "tapegate.yaml", FORWARD);
    let over = run.end_of_input().exits(0).run;
    assert!(
        noted(over.folder()).contains(&"not_accepted".to_owned()),
        "{:?}",
        noted(over.folder())
    );
}

#[test]
fn a_policy_that_is_changed_and_restored_between_two_looks_leaves_a_trace() {
    let text = rules(&[("a", "deny")]);
    let mut run = shim(&text, &["serve"]).start();
    run.send(call(1, "a").as_bytes());
    answer(&run, 1);
    let policy = run.folder().join("tapegate.yaml");
    // The modification time is set back, too.
    let written = fs::metadata(&policy).unwrap().modified().unwrap();
    let is_noted = |name: &String| ["rewritten", "not_accepted"].contains(&name.as_str());
    let change = || {
        fs::write(&policy, FORWARD).unwrap();
        fs::write(&policy, &text).unwrap();
        fs::File::options().write(true).open(&policy).unwrap().set_modified(written).unwrap();
    };
    change();
    run.until("that it is logged", |run| noted(run.folder()).iter().any(is_noted));
    let before = noted(run.folder()).into_iter().filter(is_noted).count();
    change();
    let over = run.end_of_input().exits(0).run;
    let all = noted(over.folder());
    assert!(all.iter().filter(|name| is_noted(name)).count() > before, "{all:?}");
    // Accepting what is already in force changes one of our files, but not the policy.
    let mut run = shim("", &["serve"]).within(over.folder()).start();
    run.send(call(1, "a").as_bytes());
    answer(&run, 1);
    let before = noted(over.folder()).into_iter().filter(is_noted).count();
    let done = accept_policy(over.folder(), &state(&over), &[]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    run.end_of_input().exits(0);
    assert_eq!(noted(over.folder()).into_iter().filter(is_noted).count(), before);
}
