//! Decisions of the hub, and what it logs and counts about them.

use std::cell::Cell;
use std::rc::Rc;

use tapegate_core::activity::{
    ActivityEvent, ActivityKind, EventComponent, EventLevel, GateName, Profile,
};
use tapegate_core::decision::LoggedDecision;
use tapegate_hub::api::{
    ApiProfile, Counters, DecisionCount, GovernanceDecision, HeartbeatRequest, HubPush,
    MessageCount, MessageType, StreamDirection,
};
use tapegate_hub::service::NoticeLevel;
use tapegate_store::activity::{ActivityLog, ActivityLogOptions};

use crate::support::{call, policy, raw, request, with_hub};

const POLICY: &str = r#"
schema: 1
sources:
  - id: "*"
    kind: mcp
    expose: { mode: blocklist, tools: [hidden] }
governance:
  defaults: { action: forward }
  rules:
    - { id: no-rm, match: "rm*", action: deny }
    - { match: "pay", action: approve }
approval:
  default: { timeout: 10m }
"#;

#[test]
fn every_gate_answers_with_its_own_code_and_no_pattern() {
    with_hub(
        || policy(POLICY),
        |running| async move {
            let client = &running.client;
            let fine = client.evaluate(&call("ls")).await.unwrap();
            assert_eq!(fine.decision, GovernanceDecision::Forward);
            assert!(fine.error.is_none() && fine.policy_version.is_some());
            for (name, code, error_type, gate) in [
                ("hidden", -32015, "tool_not_exposed", "visibility"),
                ("rm -rf", -32014, "governance_rule_denied", "governance"),
            ] {
                let answer = client.evaluate(&call(name)).await.unwrap();
                assert_eq!(answer.decision, GovernanceDecision::Deny);
                assert_eq!(answer.gate.as_deref(), Some(gate));
                let error = answer.error.unwrap();
                assert_eq!((error.code, error.error_type.as_str()), (code, error_type));
                assert!(error.message.contains(name) && !error.message.contains("rm*"));
                let data = error.data.unwrap();
                assert!(data.get().contains(&answer.request_id.unwrap()), "{data}");
            }
        },
    );
}

#[test]
fn a_call_that_readers_would_read_differently_is_refused() {
    with_hub(
        || policy(POLICY),
        |running| async move {
            for params in [
                r#"{"name":"ls","name":"rm"}"#,
                r#"{"name":"ls","Name":"rm"}"#,
                r#"{"name":7}"#,
                r#"[1]"#,
                r#"{"name":"a\ud800"}"#,
                r#"{"name":"ls","__proto__":{"arguments":{"path":"/x"}}}"#,
                r#"{"name":"ls","arguments":{"a":[{"__pr\u006fto__":{}}]}}"#,
            ] {
                let mut asked = call("x");
                asked.params = serde_json::from_str(params).unwrap();
                let answer = running.client.evaluate(&asked).await.unwrap();
                assert_eq!(answer.decision, GovernanceDecision::Deny, "{params}");
                assert_eq!(answer.gate.as_deref(), Some("framing"), "{params}");
            }
            let mut told = call("ls");
            told.message_type = MessageType::Notification;
            let answer = running.client.evaluate(&told).await.unwrap();
            assert_eq!(answer.decision, GovernanceDecision::Deny);
        },
    );
}

#[test]
fn a_caller_may_ask_for_more_than_the_hub_wants_and_never_for_less() {
    let asked = |profile| {
        let mut asked = call("rm");
        asked.profile = profile;
        asked
    };
    with_hub(
        || policy(POLICY),
        move |running| async move {
            let answer = running.client.evaluate(&asked(ApiProfile::Development)).await.unwrap();
            assert_eq!(answer.decision, GovernanceDecision::Deny);
        },
    );
    with_hub(
        || policy(&format!("{POLICY}\nprofile: development\n")),
        move |running| async move {
            let answer = running.client.evaluate(&asked(ApiProfile::Development)).await.unwrap();
            assert_eq!(answer.decision, GovernanceDecision::Forward);
            assert_eq!(answer.would.as_deref(), Some("WOULD_BLOCK"));
            let mut asked_people = asked(ApiProfile::Development);
            asked_people.params = call("pay").params;
            let answer = running.client.evaluate(&asked_people).await.unwrap();
            assert!(answer.auto_approved && answer.task_id.is_none());
            assert_eq!(answer.would.as_deref(), Some("WOULD_REQUIRE_APPROVAL"));
            let answer = running.client.evaluate(&asked(ApiProfile::Production)).await.unwrap();
            assert_eq!(answer.decision, GovernanceDecision::Deny);
        },
    );
}

#[test]
fn decisions_are_written_down_and_counted_once() {
    with_hub(
        || policy(POLICY),
        |running| async move {
            for name in ["ls", "ls", "rm"] {
                running.client.evaluate(&call(name)).await.unwrap();
            }
            let log = std::fs::read_to_string(running.state().join("activity.jsonl")).unwrap();
            let decisions = log.lines().filter(|line| line.contains(r#""kind":"decision""#));
            assert_eq!(decisions.count(), 3, "{log}");
            assert!(log.contains(r#""governance_decision":"deny""#) && log.contains("no-rm"));
            let text = raw(&running.address, request(&running, "GET", "/metrics", "")).await;
            for line in [
                r#"thoughtgate_stdio_governance_decisions_total{server_id="fs",decision="forward",profile="production"} 2"#,
                r#"thoughtgate_requests_total{method="tools/call",tool_name="rm",status="deny"} 1"#,
                r#"thoughtgate_decisions_total{gate="governance",outcome="deny"} 1"#,
                r#"thoughtgate_rule_matches_total{action="deny"} 1"#,
                r#"thoughtgate_stdio_messages_total{server_id="fs",direction="agent_to_server",method="tools/call"} 3"#,
                r#"thoughtgate_config_load_total{status="success"} 1"#,
            ] {
                assert!(text.lines().any(|found| found == line), "{line}\n{text}");
            }
        },
    );
}

#[test]
fn what_a_shim_counts_is_added_up_however_often_it_says_so() {
    with_hub(
        || policy(POLICY),
        |running| async move {
            let beat = |connection: &str, count| HeartbeatRequest {
                server_id: "fs".to_owned(),
                connection_id: Some(connection.to_owned()),
                counters: Some(Counters {
                    messages: vec![MessageCount {
                        direction: StreamDirection::ServerToAgent,
                        method: "ping".to_owned(),
                        count,
                    }],
                    decisions: vec![DecisionCount {
                        decision: "deny".to_owned(),
                        profile: ApiProfile::Production,
                        count,
                    }],
                    ..Counters::default()
                }),
                ..HeartbeatRequest::default()
            };
            for (connection, count) in [("a", 5), ("a", 5), ("b", 1), ("a", 7), ("b", 3)] {
                running.client.heartbeat(&beat(connection, count)).await.unwrap();
            }
            let text = raw(&running.address, request(&running, "GET", "/metrics", "")).await;
            for line in [
                r#"thoughtgate_stdio_messages_total{server_id="fs",direction="server_to_agent",method="ping"} 10"#,
                r#"thoughtgate_stdio_governance_decisions_total{server_id="fs",decision="deny",profile="production"} 10"#,
                r#"thoughtgate_stdio_server_state{server_id="fs",state="running"} 2"#,
                "thoughtgate_stdio_active_servers 2",
            ] {
                assert!(text.lines().any(|found| found == line), "{line}\n{text}");
            }
        },
    );
}

#[test]
fn a_bad_new_policy_keeps_the_old_one_and_a_good_one_is_pushed() {
    let step = Rc::new(Cell::new(0));
    let next = Rc::clone(&step);
    let load = move || match next.get() {
        0 => policy(POLICY),
        1 => policy("schema: 2\nbogus: yes\n"),
        _ => policy(&POLICY.replace("rm*", "ls*")),
    };
    with_hub(load, |running| async move {
        let client = &running.client;
        let first = client.snapshot().await.unwrap();
        assert_eq!(first.config.as_deref(), Some(POLICY));
        let mut pushes = client.pushes("c1").await.unwrap();
        assert_eq!(
            pushes.next().await.unwrap(),
            HubPush::Policy { version: first.version.clone() }
        );
        step.set(1);
        running.hub.reload();
        assert_eq!(client.snapshot().await.unwrap(), first);
        let told = running.told.borrow().clone();
        assert!(told.iter().any(|(level, message)| {
            *level == NoticeLevel::Error
                && message.contains(&first.version)
                && message.contains("bogus")
        }));
        let ready = raw(&running.address, request(&running, "GET", "/readyz", "")).await;
        assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("bogus"), "{ready}");
        let answer = client.evaluate(&call("rm")).await.unwrap();
        assert_eq!(answer.decision, GovernanceDecision::Deny);
        step.set(2);
        running.hub.reload();
        let second = client.snapshot().await.unwrap();
        assert_ne!(second.version, first.version);
        assert_eq!(pushes.next().await.unwrap(), HubPush::Policy { version: second.version });
        let answer = client.evaluate(&call("rm")).await.unwrap();
        assert_eq!(answer.decision, GovernanceDecision::Forward);
        let text = raw(&running.address, request(&running, "GET", "/metrics", "")).await;
        assert!(text.contains("thoughtgate_config_load_total{status=\"failure\"} 1"), "{text}");
        assert!(text.contains("thoughtgate_config_load_total{status=\"success\"} 2"), "{text}");
        let log = std::fs::read_to_string(running.state().join("activity.jsonl")).unwrap();
        assert!(log.contains("does not load"), "{log}");
    });
}

#[test]
fn what_shims_write_to_the_log_is_counted_also_after_it_was_put_aside() {
    with_hub(
        || policy(POLICY),
        |running| async move {
            let options = ActivityLogOptions { rotate_bytes: 2000, retention: None };
            let mut shim = ActivityLog::open(&running.state(), options).unwrap();
            let event = ActivityEvent {
                wall_us: 1_800_000_000_000_000,
                level: EventLevel::Warn,
                kind: ActivityKind::Decision,
                component: Some(EventComponent::Shim),
                server_id: "far".into(),
                method: Some("tools/call".into()),
                tool: Some("t".into()),
                governance_decision: Some(LoggedDecision::Deny),
                gate: Some(GateName::Policy),
                policies: vec!["p1".to_owned()].into(),
                profile: Some(Profile::Production),
                ..ActivityEvent::default()
            };
            let framing = ActivityEvent {
                kind: ActivityKind::Framing,
                extra: r#""faults":["smuggling"]"#.into(),
                ..event.clone()
            };
            let scrape = || raw(&running.address, request(&running, "GET", "/metrics", ""));
            for _ in 0..10 {
                shim.append(&event);
                shim.append(&framing);
                shim.commit().unwrap();
                scrape().await;
            }
            assert!(
                std::fs::read_dir(running.state()).unwrap().count() > 4,
                "nothing was put aside"
            );
            let text = scrape().await;
            for line in [
                r#"thoughtgate_requests_total{method="tools/call",tool_name="t",status="deny"} 10"#,
                r#"thoughtgate_cedar_evaluations_total{decision="deny",policy_id="p1"} 10"#,
                r#"thoughtgate_stdio_framing_errors_total{server_id="far",error_type="smuggling"} 10"#,
            ] {
                assert!(text.lines().any(|found| found == line), "{line}\n{text}");
            }
        },
    );
}

#[test]
fn secrets_in_names_are_in_no_log_and_in_no_request_for_approval() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let text = format!("{POLICY}redaction: {{ enabled: true, patterns: [secrets] }}\n");
    let text = text.replace("match: \"pay\"", "match: \"x://*\"");
    with_hub(
        move || policy(&text),
        move |running| async move {
            let mut asked = call("x");
            asked.method = "resources/read".to_owned();
            let params = format!(r#"{{"uri":"x://{secret}"}}"#);
            asked.params = serde_json::from_str(&params).unwrap();
            let answer = running.client.evaluate(&asked).await.unwrap();
            assert_eq!(answer.decision, GovernanceDecision::PendingApproval);
            let log = std::fs::read_to_string(running.state().join("activity.jsonl")).unwrap();
            let list = raw(&running.address, request(&running, "GET", "/approvals", "")).await;
            assert!(log.contains("resources/read") && list.contains("resources/read"));
            assert!(!log.contains(secret) && !list.contains(secret), "{log}{list}");
        },
    );
}
