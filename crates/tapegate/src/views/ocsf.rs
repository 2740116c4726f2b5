//! Formats activity log events for security systems: OCSF 1.3 API Activity (class 6003) with the
//! profile for security controls. docs/activity-log.md has the mapping.

use std::borrow::Cow;

use tapegate_core::hex;
use tapegate_core::json::compact;
use tapegate_core::time::read_rfc3339;
use tapegate_store::activity::LoggedEvent;

use super::json::JsonWriter;

const VERSION: &str = "1.3.0";
const CLASS: u64 = 6003;

/// Keys with a place in OCSF; the others go into `unmapped`.
const MAPPED: &[&str] = &[
    "timestamp",
    "level",
    "component",
    "server_id",
    "method",
    "tool",
    "message_id",
    "governance_decision",
    "rule",
    "policies",
    "policy_reason",
    "policy_version",
    "latency_us",
    "principal",
    "connection_id",
    "request_id",
    "seq",
    "hash",
];

/// An event as one line of JSON, without a line ending.
pub(crate) fn event(logged: &LoggedEvent) -> Vec<u8> {
    let text = |key: &str| logged.str(key).filter(|text| !text.is_empty());
    let (operation, activity) = operation(logged);
    let object = JsonWriter::object(|json| {
        json.number("class_uid", CLASS);
        json.text("class_name", "API Activity");
        json.number("category_uid", 6);
        json.text("category_name", "Application Activity");
        json.number("activity_id", activity);
        json.text("activity_name", if activity == 2 { "Read" } else { &operation });
        json.number("type_uid", CLASS * 100 + activity);
        json.number("time", time_ms(logged));
        severity(json, logged);
        outcome(json, logged);
        text("policy_reason").iter().for_each(|reason| json.text("message", reason));
        logged.number("latency_us").iter().for_each(|us| json.number("duration", us / 1000));
        metadata(json, logged);
        json.object_member("actor", |json| {
            let user = text("principal").unwrap_or(Cow::Borrowed("unknown"));
            json.object_member("user", |json| json.text("name", &user));
            text("connection_id").iter().for_each(|id| {
                json.object_member("session", |json| json.text("uid", id));
            });
        });
        json.object_member("api", |json| {
            json.text("operation", &operation);
            text("server_id").iter().for_each(|name| {
                json.object_member("service", |json| json.text("name", name));
            });
            text("message_id").iter().for_each(|id| {
                json.object_member("request", |json| json.text("uid", id));
            });
        });
        json.object_member("src_endpoint", |json| {
            json.text("svc_name", &text("component").unwrap_or(Cow::Borrowed("tapegate")));
        });
        text("server_id").iter().for_each(|name| {
            json.object_member("dst_endpoint", |json| json.text("svc_name", name));
        });
        text("tool").iter().for_each(|tool| {
            json.list("resources", [tool], |json, tool| json.text("name", tool));
        });
        policy(json, logged);
        unmapped(json, logged);
    });
    compact(&object).into_owned()
}

/// The operation and its number: reading is known, calls may be anything.
fn operation(logged: &LoggedEvent) -> (String, u64) {
    let text = |key: &str| logged.str(key).unwrap_or_default();
    let method = text("method");
    match method.as_ref() {
        "" => (format!("tapegate/{}", text("kind")), 99),
        "resources/read" | "prompts/get" | "completion/complete" => (method.into_owned(), 2),
        _ => (method.into_owned(), 99),
    }
}

fn time_ms(logged: &LoggedEvent) -> u64 {
    let us = logged.str("timestamp").and_then(|text| read_rfc3339(&text)).unwrap_or(0);
    u64::try_from(us / 1000).unwrap_or(0)
}

fn severity(json: &mut JsonWriter, logged: &LoggedEvent) {
    let (id, word) = match logged.str("level").as_deref() {
        Some("error") => (4, "High"),
        Some("warn") => (3, "Medium"),
        _ => (1, "Informational"),
    };
    json.number("severity_id", id);
    json.text("severity", word);
}

/// The outcome, as a status and as the action of a control.
fn outcome(json: &mut JsonWriter, logged: &LoggedEvent) {
    let decision = logged.str("governance_decision").unwrap_or_default().to_lowercase();
    let (action, disposition) = match decision.as_str() {
        "forward" => (1, (1, "Allowed")),
        "approved" => (1, (8, "Approved")),
        "pending_approval" => (0, (14, "Delayed")),
        "drop" | "dropped" => (2, (6, "Dropped")),
        "denied" | "rejected" => (2, (25, "Rejected")),
        "" => (0, (17, "Logged")),
        "warn" => (1, (17, "Logged")),
        would if would.starts_with("would_") => (1, (17, "Logged")),
        "redact" | "filter" | "redacted" | "filtered" => (1, (11, "Corrected")),
        // A decision that this table does not know yet: what happened to the message is certain.
        _ if logged.bool_value("forwarded") == Some(true) => (1, (1, "Allowed")),
        _ => (2, (2, "Blocked")),
    };
    // A held call has no outcome yet.
    let forwarded = logged.bool_value("forwarded").or(Some(action == 1)).filter(|_| action > 0);
    let status = match forwarded {
        Some(true) => (1, "Success"),
        Some(false) => (2, "Failure"),
        None => (0, "Unknown"),
    };
    json.number("status_id", status.0);
    json.text("status", status.1);
    json.number("action_id", action);
    json.text("action", ["Unknown", "Allowed", "Denied"][action as usize]);
    json.number("disposition_id", disposition.0);
    json.text("disposition", disposition.1);
}

fn metadata(json: &mut JsonWriter, logged: &LoggedEvent) {
    json.object_member("metadata", |json| {
        json.text("version", VERSION);
        json.object_member("product", |json| {
            json.text("name", "Tapegate");
            json.text("vendor_name", "Tapegate");
            json.text("version", env!("CARGO_PKG_VERSION"));
        });
        json.texts("profiles", &["security_control".to_owned()]);
        json.text("log_name", "activity");
        for (key, ours) in [
            ("log_level", "level"),
            ("event_code", "kind"),
            ("original_time", "timestamp"),
            ("correlation_uid", "request_id"),
        ] {
            logged.str(ours).iter().for_each(|text| json.text(key, text));
        }
        json.text("uid", &hex::encode(&logged.uid()));
        logged.number("seq").iter().for_each(|seq| json.number("sequence", *seq));
    });
}

fn policy(json: &mut JsonWriter, logged: &LoggedEvent) {
    let keys = [("name", "rule"), ("version", "policy_version")];
    let found: Vec<(&str, Cow<'_, str>)> =
        keys.iter().filter_map(|(key, ours)| Some((*key, logged.str(ours)?))).collect();
    let policies = logged.raw("policies");
    if found.is_empty() && policies.is_none() {
        return;
    }
    json.object_member("policy", |json| {
        found.iter().for_each(|(key, text)| json.text(key, text));
        policies.iter().for_each(|raw| json.raw("uid", &quoted_list(raw)));
    });
}

/// OCSF has a single policy, so several names are joined in one text.
fn quoted_list(raw: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(raw);
    let names = text.trim_matches(['[', ']']).replace('"', "");
    super::json::quoted(&names)
}

fn unmapped(json: &mut JsonWriter, logged: &LoggedEvent) {
    json.object_member("unmapped", |json| {
        for (key, raw) in logged.members().filter(|(key, _)| !MAPPED.contains(key)) {
            json.raw(key, raw);
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn of(event: &str) -> Value {
        let line = super::event(&LoggedEvent::read(1, event.as_bytes()).unwrap());
        assert!(!line.contains(&b'\n'));
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn a_denied_call_is_a_blocked_activity() {
        let event = of(
            r#"{"timestamp":"2026-03-20T14:22:11.804012Z","level":"warn","kind":"decision","component":"shim","server_id":"files","method":"tools/call","tool":"rm","message_id":"7","governance_decision":"deny","rule":"no-rm","policies":["a","b"],"policy_reason":"because","profile":"production","forwarded":false,"latency_us":2500,"principal":"me","connection_id":"c","request_id":"r","odd":{"x":1},"seq":5,"prev":"00","hash":"ff"}"#,
        );
        assert_eq!(event["class_uid"], 6003);
        assert_eq!(event["type_uid"], 600_399);
        assert_eq!(event["time"], 1_774_016_531_804u64);
        assert_eq!((&event["action_id"], &event["disposition_id"]), (&2.into(), &2.into()));
        assert_eq!((&event["status_id"], &event["severity_id"]), (&2.into(), &3.into()));
        assert_eq!(event["metadata"]["sequence"], 5);
        let uid = "35b99335176962caaaa7c51ea1714e9856976ecd6afb858555509c7b47c38607";
        assert_eq!(event["metadata"]["uid"], uid);
        assert_eq!(event["api"]["operation"], "tools/call");
        assert_eq!(event["api"]["service"]["name"], "files");
        assert_eq!(event["actor"]["user"]["name"], "me");
        assert_eq!(event["resources"][0]["name"], "rm");
        assert_eq!(event["policy"]["uid"], "a,b");
        assert_eq!(event["duration"], 2);
        assert_eq!(event["unmapped"]["odd"]["x"], 1);
        assert_eq!(event["unmapped"]["profile"], "production");
    }

    #[test]
    fn every_event_has_what_the_class_requires() {
        let base = ["class_uid", "category_uid", "activity_id", "type_uid", "time", "severity_id"];
        for event in ["{}", r#"{"kind":"session"}"#, r#"{"kind":"log","event":"torn_tail"}"#] {
            let event = of(event);
            for key in base.iter().chain(&["metadata", "actor", "api", "src_endpoint"]) {
                assert!(!event[key].is_null(), "{key}");
            }
            assert!(event["api"]["operation"].is_string());
            assert!(event["metadata"]["product"]["name"].is_string());
        }
    }

    #[test]
    fn what_became_of_a_call_is_told_by_its_disposition() {
        for (decision, action, disposition) in [
            ("forward", 1, 1),
            ("deny", 2, 2),
            ("approved", 1, 8),
            ("denied", 2, 25),
            ("pending_approval", 0, 14),
            ("WOULD_BLOCK", 1, 17),
            ("warn", 1, 17),
            ("drop", 2, 6),
        ] {
            let event = of(&format!("{{\"governance_decision\":\"{decision}\"}}"));
            let status = match action {
                0 => 0,
                1 => 1,
                _ => 2,
            };
            assert_eq!(event["status_id"], status, "{decision}");
            let found = (event["action_id"].as_u64(), event["disposition_id"].as_u64());
            assert_eq!(found, (Some(action), Some(disposition)), "{decision}");
        }
    }
}
