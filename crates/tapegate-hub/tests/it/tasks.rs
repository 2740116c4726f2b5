//! Approval requests through the hub.

use std::rc::Rc;

use serde_json::value::RawValue;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel, Profile};
use tapegate_hub::api::{
    EventsRequest, GovernanceDecision, HubPush, SettleRequest, TaskStatus, upload_object,
};
use tapegate_hub::client::ClientError;
use tapegate_hub::hub_policy::HubPolicyLoad;
use tapegate_store::activity::{LoggedEvent, event_json};
use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome, ApprovalStore};

use crate::support::{call, policy, raw, request, wait_until_active, with_hub};

const POLICY: &str = r#"
schema: 1
governance:
  defaults: { action: forward }
  rules:
    - { match: "pay", action: approve, approval: ops }
    - { match: "buy", action: approve, approval: named }
approval:
  ops: { timeout: 10m, redact_fields: [card] }
  named: { timeout: 10m, approvers: [ann, bob] }
"#;

fn loaded() -> HubPolicyLoad {
    policy(POLICY)
}

fn by(name: &str) -> SettleRequest {
    SettleRequest { by: name.to_owned(), ..SettleRequest::default() }
}

#[test]
fn a_call_waits_is_approved_and_may_be_sent_once() {
    with_hub(loaded, |running| async move {
        let client = &running.client;
        let mut asked = call("pay");
        asked.params =
            serde_json::from_str(r#"{"name":"pay","arguments":{"card":"4111-1111","sum":7}}"#)
                .unwrap();
        let answer = client.evaluate(&asked).await.unwrap();
        assert_eq!(answer.decision, GovernanceDecision::PendingApproval);
        assert_eq!(answer.timeout_ms, Some(600_000));
        let id = answer.task_id.unwrap();
        let list = raw(&running.address, request(&running, "GET", "/approvals", "")).await;
        assert!(list.contains(&id) && list.contains(r#"\"sum\":7"#), "{list}");
        assert!(!list.contains("4111-1111"), "{list}");
        let early = client.revalidate(&id, &asked).await.unwrap_err();
        assert!(matches!(early, ClientError::Status { status: 409, .. }), "{early}");
        let mut pushes = client.pushes("c1").await.unwrap();
        pushes.next().await.unwrap();
        let (settled, decided) = tokio::join!(client.wait_until_settled(&id), async {
            tokio::task::yield_now().await;
            running.approver.approve(&id, &by("ann")).await.unwrap()
        });
        let settled = settled.unwrap();
        assert_eq!((settled.status, decided.status), (TaskStatus::Approved, TaskStatus::Approved));
        assert_eq!(settled.decided_by.as_deref(), Some("ann"));
        let status = TaskStatus::Approved;
        assert_eq!(pushes.next().await.unwrap(), HubPush::Task { task_id: id.clone(), status });
        let other = client.revalidate(&id, &call("pay")).await.unwrap_err();
        assert!(other.to_string().contains("another call"), "{other}");
        let valid = client.revalidate(&id, &asked).await.unwrap();
        assert_eq!(valid.decision, GovernanceDecision::Forward);
        let again = client.revalidate(&id, &asked).await.unwrap_err();
        assert!(again.to_string().contains("has already been used"), "{again}");
        let late = running.approver.deny(&id, &by("bob")).await.unwrap_err();
        assert!(matches!(late, ClientError::Status { status: 409, .. }), "{late}");
    });
}

#[test]
fn the_reason_of_a_request_is_masked() {
    let more = "pins: { on_drift: approve, approval: ops }\nredaction: { enabled: true }\n";
    let load = move || policy(&format!("{POLICY}{more}"));
    with_hub(load, |running| async move {
        let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let mut asked = call("pay");
        asked.drift = Some(format!("its description now has {secret}"));
        let answer = running.client.evaluate(&asked).await.unwrap();
        assert_eq!(answer.decision, GovernanceDecision::PendingApproval);
        let list = raw(&running.address, request(&running, "GET", "/approvals", "")).await;
        assert!(list.contains("description") && !list.contains(secret), "{list}");
    });
}

#[test]
fn only_those_who_are_named_may_decide() {
    with_hub(loaded, |running| async move {
        let client = &running.client;
        let id = client.evaluate(&call("buy")).await.unwrap().task_id.unwrap();
        let error = running.approver.approve(&id, &by("eve")).await.unwrap_err();
        assert!(matches!(error, ClientError::Status { status: 403, .. }), "{error}");
        let error = running.approver.approve(&id, &by(" ")).await.unwrap_err();
        assert!(matches!(error, ClientError::Status { status: 400, .. }), "{error}");
        let denied = running.approver.deny(&id, &by("bob")).await.unwrap();
        assert_eq!(denied.status, TaskStatus::Rejected);
        assert_eq!(client.wait_for_task(&id).await.unwrap().status, TaskStatus::Rejected);
    });
}

#[test]
fn a_decision_of_somebody_else_in_the_folder_wakes_who_waits() {
    with_hub(loaded, |running| async move {
        let id = running.client.evaluate(&call("pay")).await.unwrap().task_id.unwrap();
        let approvals = ApprovalStore::open_project(&running.state(), &running.state()).unwrap();
        let at_us = approvals.request(&id).unwrap().created_us + 1;
        let decided = ApprovalDecision {
            ruling: ApprovalOutcome::Denied,
            by: "cli".to_owned(),
            at_us,
            reason: None,
        };
        let (settled, ()) = tokio::join!(running.client.wait_until_settled(&id), async {
            tokio::task::yield_now().await;
            approvals.decide(&id, &decided).unwrap();
        });
        assert_eq!(settled.unwrap().status, TaskStatus::Rejected);
        let text = raw(&running.address, request(&running, "GET", "/metrics", "")).await;
        for line in [
            r#"thoughtgate_tasks_created_total{task_type="approval"} 1"#,
            r#"thoughtgate_tasks_completed_total{task_type="approval",outcome="rejected"} 1"#,
            r#"thoughtgate_stdio_approval_outcomes_total{server_id="fs",outcome="rejected"} 1"#,
            r#"thoughtgate_stdio_approval_latency_seconds_count{server_id="fs"} 1"#,
            r#"thoughtgate_tasks_pending{task_type="approval"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    });
}

#[test]
fn a_task_can_be_taken_back_and_stays_so() {
    with_hub(loaded, |running| async move {
        let client = &running.client;
        let id = client.evaluate(&call("pay")).await.unwrap().task_id.unwrap();
        assert_eq!(client.cancel(&id).await.unwrap().status, TaskStatus::Cancelled);
        assert_eq!(client.cancel(&id).await.unwrap().status, TaskStatus::Cancelled);
        assert!(running.approver.approve(&id, &by("ann")).await.is_err());
        let unknown = client.wait_for_task("ap_0000000000000000").await.unwrap_err();
        assert!(matches!(unknown, ClientError::Status { status: 404, .. }), "{unknown}");
    });
}

#[test]
fn who_waits_is_told_at_once_that_the_hub_ends() {
    with_hub(loaded, |running| async move {
        let id = running.client.evaluate(&call("pay")).await.unwrap().task_id.unwrap();
        let (settled, ()) = tokio::join!(running.client.wait_until_settled(&id), async {
            wait_until_active(&running, 1).await;
            running.hub.stop();
        });
        let settled = settled.unwrap();
        assert_eq!((settled.status, settled.shutdown), (TaskStatus::Pending, true));
    });
}

#[test]
fn an_approval_that_came_too_late_lets_the_same_call_through_once() {
    with_hub(loaded, |running| async move {
        let client = &running.client;
        let id = client.evaluate(&call("pay")).await.unwrap().task_id.unwrap();
        running.approver.approve(&id, &by("ann")).await.unwrap();
        let again = client.evaluate(&call("pay")).await.unwrap();
        assert_eq!(again.decision, GovernanceDecision::Forward);
        let third = client.evaluate(&call("pay")).await.unwrap();
        assert_eq!(third.decision, GovernanceDecision::PendingApproval);
    });
}

fn event_object(event: &ActivityEvent<'_>, seq: Option<u64>) -> Box<RawValue> {
    let line = LoggedEvent::read(1, event_json(event).as_bytes()).unwrap();
    upload_object(&line, seq)
}

#[test]
fn events_of_a_shim_are_written_down_all_or_none() {
    with_hub(loaded, |running| async move {
        let event = ActivityEvent {
            wall_us: 1_700_000_000_000_000,
            level: EventLevel::Warn,
            kind: ActivityKind::Decision,
            component: Some(EventComponent::Shim),
            server_id: "far".into(),
            governance_decision: Some(tapegate_core::decision::LoggedDecision::Deny),
            profile: Some(Profile::Production),
            ..Default::default()
        };
        let good = event_object(&event, None);
        let bad = good.get().replace("\"warn\"", "\"loud\"");
        let bad = RawValue::from_string(bad).unwrap();
        let sent =
            EventsRequest { batch: None, shipped_from: None, events: vec![good.clone(), bad] };
        let error = running.client.events(&sent).await.unwrap_err();
        assert!(error.to_string().contains("events[1]: `level`"), "{error}");
        let log = || std::fs::read_to_string(running.state().join("activity.jsonl")).unwrap();
        assert!(!log().contains("far"));
        // An answer may be lost; then the same batch is sent again.
        let batch = Some("one".to_owned());
        let sent =
            EventsRequest { batch, shipped_from: None, events: vec![good.clone(), good.clone()] };
        for _ in 0..2 {
            assert_eq!(running.client.events(&sent).await.unwrap().written, 2);
            assert_eq!(log().matches(r#""server_id":"far""#).count(), 2);
        }
        let sent = EventsRequest { batch: None, shipped_from: None, events: vec![good] };
        assert_eq!(running.client.events(&sent).await.unwrap().written, 1);
        assert_eq!(log().matches(r#""server_id":"far""#).count(), 3);
    });
}

#[test]
fn a_line_of_another_log_is_written_once_by_its_number_there() {
    with_hub(loaded, |running| async move {
        let event = ActivityEvent {
            wall_us: 1_700_000_000_000_000,
            level: EventLevel::Info,
            kind: ActivityKind::Decision,
            component: Some(EventComponent::Shim),
            profile: Some(Profile::Production),
            extra: "\"x\":1".into(),
            ..Default::default()
        };
        let line = |seq| event_object(&event, Some(seq));
        let send = async |from: &str, numbers: std::ops::RangeInclusive<u64>| {
            let (shipped_from, events) = (Some(from.to_owned()), numbers.map(line).collect());
            running.client.events(&EventsRequest { batch: None, shipped_from, events }).await
        };
        for (from, numbers) in [
            ("log_a", 1..=3),
            ("log_a", 1..=3),
            ("log_a", 2..=5),
            ("log_b", 4..=4),
            ("log_a", 5..=5),
        ] {
            let count = numbers.clone().count();
            assert_eq!(send(from, numbers).await.unwrap().written, count);
        }
        let log = std::fs::read_to_string(running.state().join("activity.jsonl")).unwrap();
        for (from, numbers) in [("log_a", 1..=5), ("log_b", 4..=4)] {
            let key = format!("\"x\":1,\"shipped_from\":\"{from}\",\"shipped_seq\":");
            let found = log.split(&key).skip(1).map(|rest| rest.split(',').next().unwrap());
            let wanted: Vec<String> = numbers.map(|number| number.to_string()).collect();
            assert_eq!(found.collect::<Vec<_>>(), wanted);
        }
        assert!(send("not a name", 1..=1).await.is_err());
        let events = vec![line(9), line(8)];
        let shipped_from = Some("log_a".to_owned());
        let sent = EventsRequest { batch: None, shipped_from, events };
        assert!(running.client.events(&sent).await.is_err(), "numbers increase");
    });
}

#[test]
fn what_a_shim_holds_is_asked_its_way_and_logged_by_the_shim_alone() {
    with_hub(loaded, |running| async move {
        let mut asked = call("ls");
        (asked.held, asked.workflow) = (true, Some("named".to_owned()));
        asked.connection_id = Some("c1".to_owned());
        let answer = running.client.evaluate(&asked).await.unwrap();
        assert_eq!(answer.decision, GovernanceDecision::PendingApproval);
        let id = answer.task_id.unwrap();
        let error = running.approver.approve(&id, &by("eve")).await.unwrap_err();
        assert!(error.to_string().contains("ann, bob"), "{error}");
        let log = std::fs::read_to_string(running.state().join("activity.jsonl")).unwrap();
        let decided = |line: &str| {
            let refused = line.contains(r#""event":"refused""#);
            line.contains(r#""kind":"decision""#)
                || line.contains(r#""kind":"approval""#) && !refused
        };
        assert!(!log.lines().any(decided), "{log}");
        asked.workflow = Some("nobody".to_owned());
        let answer = running.client.evaluate(&asked).await.unwrap();
        assert_eq!(answer.decision, GovernanceDecision::Deny);
        assert_eq!(answer.error.unwrap().code, -32013);
    });
}

#[test]
fn a_hundred_who_wait_for_one_decision_all_hear_of_it() {
    with_hub(loaded, |running| async move {
        let id = running.client.evaluate(&call("pay")).await.unwrap().task_id.unwrap();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let (running, id) = (Rc::clone(&running), id.clone());
            waiting.spawn_local(async move {
                running.client.wait_until_settled(&id).await.unwrap().status
            });
        }
        wait_until_active(&running, 100).await;
        running.approver.approve(&id, &by("ann")).await.unwrap();
        let heard = waiting.join_all().await;
        assert!(heard.iter().all(|status| *status == TaskStatus::Approved), "{heard:?}");
        wait_until_active(&running, 0).await;
    });
}
