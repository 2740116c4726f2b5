//! A policy that changes under a running hub.

use std::fs;

use rustix::process::Signal;

use super::{HubFolder, POLICY, RunningHub, log};
use crate::support::{replace_file, wait_until};

#[test]
fn a_policy_is_taken_up_when_its_file_changes_and_a_bad_one_is_not() {
    let place = HubFolder::new();
    let mut hub = place.start();
    let version = |hub: &RunningHub| hub.get("/governance/snapshot").json()["version"].clone();
    let first = version(&hub);
    assert_eq!(hub.evaluate("ls")["decision"], "forward");
    replace_file(&place.policy(), &POLICY.replace("match: rm", "match: ls"));
    // It permits `rm`, which was denied, so a person must accept it.
    hub.says("is not what was accepted");
    assert_eq!(version(&hub), first);
    place.accept();
    wait_until("the new policy", || version(&hub) != first);
    assert_eq!(hub.evaluate("ls")["decision"], "deny");
    let second = version(&hub);
    replace_file(&place.policy(), "schema: 1\ngovernance: nonsense\n");
    hub.says("does not load");
    let ready = hub.get("/readyz");
    assert_eq!(ready.status, 200);
    assert!(ready.json()["policy_faults"][0].is_string(), "{}", ready.body);
    assert_eq!(hub.get("/governance/snapshot").json()["version"], second);
    assert_eq!(hub.evaluate("ls")["decision"], "deny");
    assert!(hub.get("/metrics").body.contains("config_load_total{status=\"failure\"} 1"));
    assert!(log(&place.state()).contains("does not load"));
    replace_file(&place.policy(), POLICY);
    place.accept();
    wait_until("the first policy", || hub.get("/governance/snapshot").json()["version"] == first);
    assert!(hub.get("/readyz").json()["policy_faults"].is_null());
}

#[test]
fn a_policy_that_vanishes_is_a_fault_and_no_reason_to_let_everything_through() {
    let place = HubFolder::new();
    let mut hub = place.start();
    fs::remove_file(place.policy()).unwrap();
    hub.says("does not load");
    assert_eq!(hub.evaluate("rm")["decision"], "deny");
}

#[test]
fn a_hang_up_has_the_policy_loaded_with_the_files_it_names() {
    let place = HubFolder::new();
    let cedar = place.folder.path().join("p.cedar");
    fs::write(&cedar, "permit(principal, action, resource);").unwrap();
    let policy = "\
schema: 1
governance: { defaults: { action: policy, policy_id: main } }
cedar: { policies: [p.cedar] }
";
    fs::write(place.policy(), policy).unwrap();
    let hub = place.start();
    assert_eq!(hub.evaluate("ls")["decision"], "forward");
    let snapshot = hub.get("/governance/snapshot").json();
    let files = snapshot["files"].as_object().unwrap();
    assert!(files.iter().any(|(name, text)| {
        name.ends_with("p.cedar") && text.as_str().unwrap().starts_with("permit")
    }));
    assert_eq!(snapshot["config"], policy);
    replace_file(&cedar, "forbid(principal, action, resource);");
    hub.signal(Signal::HUP);
    wait_until("the new policy", || hub.evaluate("ls")["decision"] == "deny");
    assert_eq!(hub.evaluate("ls")["error"]["code"], -32003);
}
