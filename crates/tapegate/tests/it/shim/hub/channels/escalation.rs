//! A call that nobody decides goes to a second workflow, also if its hub was killed in between.

use super::{
    ApprovalOutcome, RunningSession, Value, answer, call, event, policy, receiver, start_accepted,
    text, webhook,
};
use crate::support::wait_until;

/// The first workflow has five seconds; then the channel `two` is told, and decides as `two`.
const WORKFLOWS: &str = "timeout: 5m, channels: [one], approvers: [one], escalate: { after: 5s, \
                         to: seniors } }\n  seniors: { channels: [two], approvers: [two], timeout: 5m";

/// A policy with both workflows, so that its rule has to name the first one.
fn two_workflows(channels: &str) -> String {
    policy(WORKFLOWS, channels).replace("action: approve", "action: approve, approval: default")
}

fn escalations(hub: &super::HubProcess) -> Vec<Value> {
    let log = std::fs::read_to_string(hub.state().join("activity.jsonl")).unwrap_or_default();
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["event"] == "escalated").collect()
}

fn start(hub: &super::HubProcess) -> RunningSession {
    let mut run = hub.shim(&["serve"]).within(hub.folder.path()).start();
    run.send(call(1, "ask").as_bytes());
    run
}

#[test]
fn the_channels_and_approvers_of_a_second_workflow_are_asked_after_some_time() {
    let (one, two) = (receiver("200 OK"), receiver("200 OK"));
    let channels = [webhook("one", &one), webhook("two", &two)].concat();
    let hub = start_accepted(&two_workflows(&channels));
    let run = start(&hub);
    let id = text(&event(&one.wait(1)[0])["id"]).to_owned();
    let by_two = format!("POST /approvals/{id}/approve");
    assert_eq!(hub.ask(&by_two, r#"{"by":"two"}"#).status, 403, "not before the escalation");
    let second = event(&two.wait(1)[0]);
    assert_eq!((text(&second["event"]), text(&second["id"])), ("approval.requested", id.as_str()));
    wait_until("the event", || !escalations(&hub).is_empty());
    let logged = &escalations(&hub)[0];
    assert_eq!((text(&logged["escalated_to"]), text(&logged["workflow"])), ("seniors", "default"));
    assert_eq!(hub.follow(text(&second["approve_url"])), 200);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert_eq!(hub.ruling(&id), Some((ApprovalOutcome::Approved, "two".to_owned())));
    // Both are told how it ended.
    assert_eq!(event(&one.wait(2)[1])["event"], "approval.settled");
    assert_eq!(event(&two.wait(2)[1])["event"], "approval.settled");
    assert_eq!(escalations(&hub).len(), 1);
}

#[test]
fn an_escalation_survives_a_hub_that_is_killed_and_the_first_approvers_stay() {
    let (one, two) = (receiver("200 OK"), receiver("200 OK"));
    let channels = [webhook("one", &one), webhook("two", &two)].concat();
    let hub = start_accepted(&two_workflows(&channels));
    let run = start(&hub);
    let first = event(&one.wait(1)[0]);
    let id = text(&first["id"]).to_owned();
    hub.has_told("one", &id);
    let hub = hub.restart(&[]);
    drop(run);
    let second = event(&two.wait(1)[0]);
    assert_eq!(text(&second["id"]), id);
    assert_eq!(hub.follow(text(&first["approve_url"])), 200);
    assert_eq!(hub.ruling(&id), Some((ApprovalOutcome::Approved, "one".to_owned())));
    // The next identical call passes by this approval.
    assert_eq!(answer(&start(&hub), 1)["result"]["for"], 1);
}
