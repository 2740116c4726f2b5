//! The documented JSON shapes, and deviations from them.

use tapegate_core::activity::{
    ActivityEvent, ActivityKind, EventComponent, EventLevel, GateName, Profile,
};
use tapegate_core::side::Side;
use tapegate_store::activity::{LoggedEvent, event_json};

use super::*;

fn read(text: &str) -> Result<GovernanceEvaluateRequest, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn the_documented_request_is_understood_and_kept_to_the_byte() {
    let text = r#"{"server_id":"fs","direction":"agent_to_server","method":"tools/call","id":1.0,"params":{"b":1, "a":1e400},"message_type":"request","profile":"production"}"#;
    let request = read(text).unwrap();
    assert_eq!(request.params.as_ref().unwrap().get(), r#"{"b":1, "a":1e400}"#);
    assert_eq!(serde_json::to_string(&request).unwrap(), text);
}

#[test]
fn unknown_fields_are_ignored_and_missing_ones_named() {
    let text = r#"{"server_id":"fs","direction":"server_to_agent","method":"x","message_type":"notification","profile":"development","later":[1]}"#;
    assert!(read(text).unwrap().id.is_none());
    for field in ["server_id", "direction", "method", "message_type", "profile"] {
        let without = text.replace(&format!("\"{field}\""), "\"other\"");
        assert!(read(&without).unwrap_err().contains(&format!("missing field `{field}`")));
    }
    assert!(read(&text.replace("development", "Development")).unwrap_err().contains("production"));
}

#[test]
fn an_answer_says_all_that_is_documented_also_where_there_is_nothing_to_say() {
    let answer = GovernanceEvaluateResponse {
        decision: GovernanceDecision::PendingApproval,
        task_id: None,
        policy_id: None,
        reason: None,
        poll_interval_ms: None,
        shutdown: false,
        gate: None,
        error: None,
        would: None,
        auto_approved: false,
        timeout_ms: None,
        forward_on_timeout: false,
        request_id: None,
        policy_version: None,
    };
    assert_eq!(
        serde_json::to_string(&answer).unwrap(),
        r#"{"decision":"pending_approval","task_id":null,"policy_id":null,"reason":null,"poll_interval_ms":null,"shutdown":false}"#
    );
}

#[test]
fn an_event_that_is_sent_and_read_is_the_same_event() {
    let event = ActivityEvent {
        wall_us: 1_700_000_000_123_456,
        level: EventLevel::Warn,
        kind: ActivityKind::Decision,
        component: Some(EventComponent::Shim),
        server_id: "fs".into(),
        direction: Some(Side::Client),
        gate: Some(GateName::Policy),
        profile: Some(Profile::Production),
        forwarded: Some(false),
        extra: r#""a":1,"b":{"c":2}"#.into(),
        ..Default::default()
    };
    let line = LoggedEvent::read(1, event_json(&event).as_bytes()).unwrap();
    let text = upload_object(&line, Some(7)).get().to_owned();
    let read = |text: &str| {
        let object: Box<RawValue> = serde_json::from_str(text).unwrap();
        UploadedEvent::read(&object)
    };
    assert_eq!(read(&text).unwrap(), UploadedEvent { event, shipped_seq: Some(7) });
    let message = read(&text.replace("\"warn\"", "\"loud\"")).unwrap_err().to_string();
    assert_eq!(message, "`level` may not be `loud`; expected info, warn, error");
    // Keys of the log itself would forge its chain, or where a shipped log has come to.
    for key in ["shipped_seq", "shipped_from", "seq", "hash", "kind", "decided_by"] {
        let forged = text.replace("\"a\":1", &format!("\"{key}\":1"));
        assert_ne!(forged, text);
        assert!(read(&forged).unwrap_err().to_string().contains(key), "{key}");
    }
}
