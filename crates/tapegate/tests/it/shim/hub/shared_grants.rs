//! What was granted behind a hub counts for shims without one in the same project, and the other way
//! round.

use super::super::setup::{answer, call_with, events, rules};
use super::HubProcess;
use crate::support::{RunningSession, approvals_of, key_flags, shim, tapegate, wait_for};

const ARGUMENTS: &str = r#"{"path":"/srv"}"#;

fn policy() -> String {
    format!("{}principal: {{ name: agent }}\n", rules(&[("ask", "approve")]))
}

/// A shim in the hub's folder, with or without the hub.
fn start(hub: &HubProcess, has_hub: bool) -> RunningSession {
    let folder = hub.folder.path().to_owned();
    let setup = if has_hub { hub.shim(&["serve"]) } else { shim("", &["serve"]) };
    setup.within(&folder).start()
}

/// Sends a call and grants it for half an hour once it waits.
fn grant(hub: &HubProcess, run: &mut RunningSession) {
    run.send(call_with(1, "ask", ARGUMENTS).as_bytes());
    let approvals = approvals_of(&hub.state());
    let request = wait_for("a request", || approvals.pending(0).unwrap().pop());
    let config = hub.folder.path().canonicalize().unwrap().join("tapegate.yaml");
    assert_eq!(request.policy, config.display().to_string());
    let mut command = tapegate();
    command.args(["approvals", "approve", &request.id, "--for", "30m"]);
    command.args(key_flags(&hub.state())).env("TAPEGATE_HOME", hub.state());
    let done = command.current_dir(hub.folder.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(answer(run, 1)["result"]["for"], 1);
}

/// Sends the same call, which must pass by the grant.
fn passes(hub: &HubProcess, run: &mut RunningSession) {
    run.send(call_with(7, "ask", ARGUMENTS).as_bytes());
    assert_eq!(answer(run, 7)["result"]["for"], 7);
    assert!(approvals_of(&hub.state()).pending(0).unwrap().is_empty(), "people were asked again");
    let by_grant = |event: &serde_json::Value| {
        event["approval_id"].as_str().is_some_and(|id| id.starts_with("gr_"))
            && event["decided_by"].is_string()
    };
    assert!(events(hub.folder.path()).iter().any(by_grant), "the log names the grant");
}

#[test]
fn a_grant_is_given_listed_and_revoked_through_the_api_and_its_end_is_logged() {
    let hub = HubProcess::start_deciding(&policy());
    let mut run = start(&hub, true);
    run.send(call_with(1, "ask", ARGUMENTS).as_bytes());
    let id = wait_for("a request", || approvals_of(&hub.state()).pending(0).unwrap().pop()).id;
    let shown = hub.ask(&format!("GET /approvals/{id}"), "").body;
    assert!(shown.contains("\"status\":\"pending\"") && shown.contains("/srv"), "{shown}");
    let body = r#"{"by":"ann","grant":{"for_s":3600,"under":{"path":"/srv"}}}"#;
    let done = hub.ask(&format!("POST /approvals/{id}/approve"), body);
    let done: serde_json::Value = serde_json::from_str(&done.body).unwrap();
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    run.send(call_with(2, "ask", r#"{"path":"/srv/deep"}"#).as_bytes());
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    let grant = done["grant_id"].as_str().unwrap();
    let listed = hub.ask("GET /approvals/grants", "").body;
    assert!(listed.contains(grant) && listed.contains("path under /srv"), "{listed}");
    let revoke = hub.ask(&format!("POST /approvals/grants/{grant}/revoke"), r#"{"by":"bob"}"#);
    assert!(revoke.body.contains("\"state\":\"revoked\""), "{}", revoke.body);
    run.send(call_with(3, "ask", r#"{"path":"/srv/deep"}"#).as_bytes());
    let next = wait_for("a request", || approvals_of(&hub.state()).pending(0).unwrap().pop());
    let body = r#"{"by":"ann","grant":{"for_s":1}}"#;
    hub.ask(&format!("POST /approvals/{}/approve", next.id), body);
    assert_eq!(answer(&run, 3)["result"]["for"], 3);
    for word in ["granted", "revoked", "expired"] {
        wait_for(word, || {
            let log = events(hub.folder.path());
            let is_meant = |event: &serde_json::Value| {
                event["event"] == word
                    && event["approval_id"].as_str().is_some_and(|id| id.starts_with("gr_"))
            };
            log.iter().any(is_meant).then_some(())
        });
    }
}

#[test]
fn a_grant_made_behind_a_hub_lets_a_shim_without_one_pass() {
    let hub = HubProcess::start_deciding(&policy());
    let (mut behind, mut alone) = (start(&hub, true), start(&hub, false));
    grant(&hub, &mut behind);
    passes(&hub, &mut alone);
    // And another agent behind the hub.
    passes(&hub, &mut start(&hub, true));
}

#[test]
fn a_grant_made_without_a_hub_lets_a_shim_behind_one_pass() {
    let hub = HubProcess::start_deciding(&policy());
    let (mut behind, mut alone) = (start(&hub, true), start(&hub, false));
    grant(&hub, &mut alone);
    passes(&hub, &mut behind);
    passes(&hub, &mut start(&hub, false));
}
