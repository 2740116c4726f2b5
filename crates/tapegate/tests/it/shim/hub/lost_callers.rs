//! Calls whose shim was killed while its hub lives on: the next shim joins their requests.

use rustix::process::Signal;
use tapegate_store::approvals::{ApprovalOutcome, ApprovalStore};

use super::super::setup::{answer, call_with, rules, server_got};
use super::HubProcess;
use super::concurrent_approvals::restart;
use crate::support::{RunningSession, approvals_of, wait_for};

const ARGUMENTS: &str = r#"{"path":"/srv"}"#;

/// A shim of the hub in the hub's folder, whose server logs to this file.
fn shim_with_call(hub: &HubProcess, log: &str) -> RunningSession {
    let folder = hub.folder.path().to_owned();
    let mut run = hub.shim(&[&format!("log={log}"), "serve"]).within(&folder).start();
    run.send(call_with(1, "ask", ARGUMENTS).as_bytes());
    run
}

fn until_waiting(approvals: &ApprovalStore, count: u32) {
    wait_for("a request with this many callers", || {
        let pending = approvals.pending(0).unwrap();
        (pending.len() == 1 && pending[0].waiting == count).then_some(())
    });
}

/// Kills the shim once the hub can see that it is gone, and waits until its call has no caller.
fn kill(hub: &HubProcess, approvals: &ApprovalStore, shim: RunningSession) {
    wait_for("the stream of the shim", || {
        let open = "thoughtgate_connections_active{transport=\"stream\"} 1";
        hub.ask("GET /metrics", "").body.contains(open).then_some(())
    });
    shim.signal(Signal::KILL);
    shim.end();
    until_waiting(approvals, 0);
}

#[test]
fn a_shim_that_was_killed_behind_a_live_hub_leaves_a_request_that_the_next_one_joins() {
    let hub = HubProcess::start_deciding(&rules(&[("ask", "approve")]));
    let approvals = approvals_of(&hub.state());
    let first = shim_with_call(&hub, "log");
    until_waiting(&approvals, 1);
    let id = approvals.pending(0).unwrap().remove(0).id;
    kill(&hub, &approvals, first);
    let second = shim_with_call(&hub, "log");
    until_waiting(&approvals, 1);
    let request = approvals.pending(0).unwrap().remove(0);
    assert_eq!(
        (request.id.as_str(), request.call_count),
        (id.as_str(), 2),
        "people are asked once"
    );
    let path = format!("POST /approvals/{id}/approve");
    assert_eq!(hub.ask(&path, r#"{"by":"a person"}"#).status, 200);
    assert_eq!(answer(&second, 1)["result"]["for"], 1);
    assert_eq!(server_got(hub.folder.path()).matches("/srv").count(), 1);
}

#[test]
fn the_next_identical_call_joins_the_request_of_a_hub_that_was_killed() {
    let mut hub = HubProcess::start_deciding(&rules(&[("ask", "approve")]));
    let approvals = approvals_of(&hub.state());
    let first = shim_with_call(&hub, "log");
    until_waiting(&approvals, 1);
    let id = approvals.pending(0).unwrap().remove(0).id;
    restart(&mut hub);
    // Its shim has answered the call, so the agent makes it again, here with a new shim.
    assert!(answer(&first, 1)["error"].is_object());
    drop(first);
    let second = shim_with_call(&hub, "log");
    wait_for("the call at the new hub", || {
        let pending = approvals.pending(0).unwrap();
        (pending.len() == 1 && pending[0].call_count == 2).then_some(())
    });
    assert_eq!(approvals.pending(0).unwrap().remove(0).id, id, "people are asked once");
    let path = format!("POST /approvals/{id}/approve");
    assert_eq!(hub.ask(&path, r#"{"by":"a person"}"#).status, 200);
    assert_eq!(answer(&second, 1)["result"]["for"], 1);
}

#[test]
fn an_approval_that_comes_after_its_shim_was_killed_lets_the_next_one_pass_once() {
    let hub = HubProcess::start_deciding(&rules(&[("ask", "approve")]));
    let approvals = approvals_of(&hub.state());
    let first = shim_with_call(&hub, "log");
    until_waiting(&approvals, 1);
    let id = approvals.pending(0).unwrap().remove(0).id;
    kill(&hub, &approvals, first);
    let path = format!("POST /approvals/{id}/approve");
    assert_eq!(hub.ask(&path, r#"{"by":"a person"}"#).status, 200);
    let mut second = shim_with_call(&hub, "log");
    assert_eq!(answer(&second, 1)["result"]["for"], 1);
    second.send(call_with(2, "ask", ARGUMENTS).as_bytes());
    until_waiting(&approvals, 1);
    assert_eq!(approvals.decision(&id).unwrap().unwrap().ruling, ApprovalOutcome::Approved);
}
