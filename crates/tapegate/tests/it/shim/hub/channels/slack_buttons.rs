//! Buttons in Slack: whose press counts, and what is refused.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;
use serde_json::{Value, json};
use tapegate_store::approvals::ApprovalOutcome;

use super::super::super::setup::{answer, call, call_with};
use super::slack_fake::FakeSlack;
use super::{HubProcess, SIGNING_SECRET, TOKEN, policy, start_accepted};
use crate::http_peers;

const FORM: &str = "content-type: application/x-www-form-urlencoded";

fn slack(server: &FakeSlack) -> String {
    format!(
        "  c: {{ type: slack, url: \"{}\", room: C1, secret_env: SLACK_TOKEN, users: {{ U1: ann }}, signing_secret_env: SIGNING_SECRET }}\n",
        server.url()
    )
}

pub(super) fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed()
}

/// The form that Slack sends.
pub(super) fn form(payload: &Value) -> String {
    let encoded = payload.to_string();
    let encoded = encoded.bytes().map(|byte| format!("%{byte:02X}"));
    format!("payload={}", encoded.collect::<String>())
}

/// The headers by which Slack proves that it has sent a body.
pub(super) fn signed(secret: &str, at_s: i64, body: &str) -> [String; 2] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let code = hmac::sign(&key, format!("v0:{at_s}:{body}").as_bytes());
    let digits: String = code.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    [format!("X-Slack-Request-Timestamp: {at_s}"), format!("X-Slack-Signature: v0={digits}")]
}

fn post(hub: &HubProcess, channel: &str, headers: &[String], body: &str) -> u16 {
    let mut lines: Vec<&str> = headers.iter().map(String::as_str).collect();
    lines.push(FORM);
    http_peers::ask(hub.port(), &format!("POST /approvals/channels/{channel}"), &lines, body).status
}

/// Sends what Slack sends, to the channel `c`.
pub(super) fn post_signed(hub: &HubProcess, payload: &Value) -> u16 {
    let body = form(payload);
    post(hub, "c", &signed(SIGNING_SECRET, now_s(), &body), &body)
}

#[test]
fn a_press_that_slack_has_not_signed_now_decides_nothing() {
    let fake = FakeSlack::start(TOKEN);
    let hub = start_accepted(&policy("channels: [c]", &slack(&fake)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let pressed = fake.about("ask").press("Approve", "U1").unwrap();
    let (id, now) = (hub.pending(1).remove(0), now_s());
    hub.has_told("c", &id);
    let body = form(&pressed);
    let refused = |headers: &[String], body: &str| assert_eq!(post(&hub, "c", headers, body), 403);
    let good = signed(SIGNING_SECRET, now, &body);
    refused(&[], &body);
    refused(&good[..1], &body);
    refused(&good[1..], &body);
    refused(&signed("other-secret", now, &body), &body);
    refused(&signed(TOKEN, now, &body), &body);
    refused(&signed(SIGNING_SECRET, now - 400, &body), &body);
    refused(&signed(SIGNING_SECRET, now + 400, &body), &body);
    refused(&good, &body.replace("%41%70%70", "%44%70%70"));
    refused(&[good.to_vec(), vec![good[1].clone()]].concat(), &body);
    assert_eq!(post(&hub, "other", &good, &body), 403, "another channel");
    for (header, status) in [
        ("host: gate.example.invalid", 403),
        ("origin: https://evil.example.invalid", 403),
        ("sec-fetch-site: cross-site", 403),
        ("content-type: application/json", 415),
        ("content-encoding: gzip", 415),
    ] {
        let lines = [good[0].as_str(), &good[1], header, FORM];
        let lines = if header.starts_with("content-type") { &lines[..3] } else { &lines };
        let line = "POST /approvals/channels/c";
        assert_eq!(http_peers::ask(hub.port(), line, lines, &body).status, status, "{header}");
    }
    for method in ["GET", "HEAD", "PUT"] {
        let status =
            http_peers::ask(hub.port(), &format!("{method} /approvals/channels/c"), &[], "").status;
        assert_eq!(status, 401, "{method}");
    }
    assert_eq!(hub.ruling(&id), None);
    assert_eq!(post(&hub, "c", &good, &body), 200);
    assert_eq!(post(&hub, "c", &good, &body), 403, "a copy");
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert_eq!(hub.ruling(&id), Some((ApprovalOutcome::Approved, "ann".to_owned())));
    let log = fs::read_to_string(hub.state().join("activity.jsonl")).unwrap();
    assert!(
        log.contains("\"channel\":\"c\"") && log.contains("its signature is not Slack's"),
        "{log}"
    );
    assert!(!log.contains(SIGNING_SECRET) && !hub.errors().contains(SIGNING_SECRET));
}

#[test]
fn a_press_is_only_about_the_message_that_this_hub_has_sent() {
    let fake = FakeSlack::start(TOKEN);
    let hub = start_accepted(&policy("channels: [c], approvers: [ann]", &slack(&fake)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask_a").as_bytes());
    run.send(call(2, "ask_b").as_bytes());
    let (one, two) = (fake.about("ask_a"), fake.about("ask_b"));
    hub.pending(2).iter().for_each(|id| hub.has_told("c", id));
    let pressed = one.press("Approve", "U1").unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut payload = pressed.clone();
        change(&mut payload);
        let status = post_signed(&hub, &payload);
        assert!(matches!(status, 403 | 404), "{status}: {payload}");
    };
    // The message of the other call, another channel, or no message at all.
    changed(&|payload| payload["container"]["message_ts"] = json!(two.ts));
    changed(&|payload| payload["container"]["channel_id"] = json!("C2"));
    changed(&|payload| payload["container"] = json!(null));
    for id in ["ap_0000000000000000", "../../key", "", "."] {
        changed(&|payload| payload["actions"][0]["value"] = json!(id));
    }
    changed(&|payload| payload["actions"][0]["action_id"] = json!("approve"));
    changed(&|payload| payload["actions"] = json!([]));
    changed(&|payload| payload["actions"] = json!([payload["actions"][0], payload["actions"][0]]));
    changed(&|payload| payload["type"] = json!("shortcut"));
    // Somebody who is not among the approvers, or has taken the name of one.
    changed(&|payload| payload["user"]["id"] = json!("U2"));
    changed(&|payload| payload["user"] = json!({"id": "U2", "name": "ann", "username": "ann"}));
    hub.says("the answer of `slack:U2` about ");
    assert_eq!(hub.pending(2).len(), 2);
    assert_eq!(post_signed(&hub, &two.press("Deny", "U1").unwrap()), 200);
    assert_eq!(answer(&run, 2)["error"]["code"], -32007);
    assert_eq!(post_signed(&hub, &pressed), 200);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    fake.updated(&one.ts, "approved: s ask_a");
    fake.updated(&two.ts, "denied: s ask_b");
}

#[test]
fn a_call_that_does_not_fit_has_no_button_that_approves() {
    let fake = FakeSlack::start(TOKEN);
    let hub = start_accepted(&policy("channels: [c]", &slack(&fake)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    let long = format!("{{\"content\":\"{}\"}}", "0123456789 ".repeat(2000));
    run.send(call_with(1, "ask", &long).as_bytes());
    let message = fake.about("ask");
    hub.has_told("c", &hub.pending(1)[0]);
    assert!(message.press("Approve", "U1").is_none());
    let mut pressed = message.press("Deny", "U1").unwrap();
    pressed["actions"][0]["action_id"] = json!("tapegate_approve");
    assert_eq!(post_signed(&hub, &pressed), 403);
    assert_eq!(post_signed(&hub, &message.press("Deny", "U1").unwrap()), 200);
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
}

#[test]
fn without_a_signing_secret_there_are_no_buttons() {
    let fake = FakeSlack::start(TOKEN);
    let section = slack(&fake).replace(", signing_secret_env: SIGNING_SECRET", "");
    let hub = start_accepted(&policy("channels: [c]", &section));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let message = fake.about("ask");
    assert!(message.press("Deny", "U1").is_none());
    let id = hub.pending(1).remove(0);
    let action = json!({"type": "button", "action_id": "tapegate_approve", "value": id});
    let payload = json!({"type": "block_actions", "user": {"id": "U1"}, "actions": [action],
        "container": {"channel_id": "C1", "message_ts": message.ts}});
    for secret in [SIGNING_SECRET, "", TOKEN] {
        let body = form(&payload);
        if !secret.is_empty() {
            assert_eq!(post(&hub, "c", &signed(secret, now_s(), &body), &body), 403);
        }
    }
    fake.react(&message.ts, "-1", "U1");
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
}
