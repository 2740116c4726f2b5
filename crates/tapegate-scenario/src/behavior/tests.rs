//! Reading behaviours, valid and invalid.

use super::*;
use crate::model::{EffectTrigger, ServerEffect};
use crate::shape;
use crate::test_trees::node_of;

fn read_with(text: &str) -> (Behavior, Vec<String>) {
    let mut findings = Findings::default();
    let how =
        BehaviorContext { limits: GeneratorLimits::default(), interpolate: InterpolationMode::All };
    let node = node_of(text);
    shape::check(&node, &shape::Shape::Table(&language::BEHAVIOR), &mut findings);
    let behavior = read(&node, &how, &mut findings);
    let list = findings.into_list().into_iter();
    (behavior, list.map(|finding| format!("{}: {}", finding.path, finding.message)).collect())
}

fn delivery(text: &str) -> Delivery {
    let (behavior, findings) = read_with(text);
    assert!(findings.is_empty(), "{findings:?}");
    behavior.delivery
}

fn effect(text: &str) -> (EffectTrigger, ServerEffect) {
    let (behavior, findings) = read_with(&format!(r#"{{"side_effects":[{text}]}}"#));
    assert!(findings.is_empty(), "{findings:?}");
    let one = behavior.side_effects.into_iter().next().expect("a side effect");
    (one.trigger, one.effect)
}

#[test]
fn both_shapes_of_a_delivery_mean_the_same() {
    let flat = delivery(r#"{"delivery":"slow_loris","byte_delay_ms":5,"chunk_size":2}"#);
    let nested = delivery(r#"{"delivery":{"type":"slow_loris","byte_delay_ms":5,"chunk_size":2}}"#);
    assert_eq!(flat, Delivery::SlowLoris { delay_ns: 5_000_000, chunk_bytes: 2 });
    assert_eq!(flat, nested);
}

#[test]
fn what_is_not_said_is_as_the_facts_have_it() {
    assert_eq!(delivery("{}"), Delivery::Normal);
    assert_eq!(delivery(r#"{"delivery":"normal"}"#), Delivery::Normal);
    let slow = Delivery::SlowLoris { delay_ns: 100_000_000, chunk_bytes: 1 };
    let endless = Delivery::UnboundedLine { bytes: 0, padding: 'A' };
    let nested = Delivery::NestedJson { depth: 10_000, key: "a".into() };
    let late = Delivery::ResponseDelay { delay_ns: 5_000_000_000 };
    let all = [
        ("slow_loris", slow),
        ("unbounded_line", endless),
        ("nested_json", nested),
        ("response_delay", late),
    ];
    for (name, expected) in all {
        assert_eq!(delivery(&format!(r#"{{"delivery":"{name}"}}"#)), expected);
    }
    let (_, findings) = read_with(r#"{"delivery":"slow"}"#);
    assert!(
        findings.len() == 1 && findings[0].starts_with("delivery: this must be `normal`, "),
        "{findings:?}"
    );
}

#[test]
fn ec_cfg_015_a_drip_may_have_no_delay() {
    let drip = delivery(r#"{"delivery":"slow_loris","byte_delay_ms":0}"#);
    assert_eq!(drip, Delivery::SlowLoris { delay_ns: 0, chunk_bytes: 1 });
}

#[test]
fn side_effects_have_their_defaults() {
    let (trigger, flood) = effect(r#"{"type":"notification_flood"}"#);
    assert_eq!(trigger, EffectTrigger::OnRequest);
    assert!(
        matches!(flood, ServerEffect::NotificationFlood { per_second: 1000, duration_ns: 10_000_000_000, method, params: None } if method == "notifications/message")
    );
    let (trigger, batch) =
        effect(r#"{"type":"batch_amplify","trigger":"on_connect","method":"m"}"#);
    assert_eq!(trigger, EffectTrigger::OnConnect);
    assert!(
        matches!(batch, ServerEffect::BatchAmplify { count: 10_000, method, .. } if method == "m")
    );
    assert!(matches!(
        effect(r#"{"type":"pipe_deadlock"}"#).1,
        ServerEffect::PipeDeadlock { bytes: 1_048_576 }
    ));
    let close = effect(r#"{"type":"close_connection","graceful":false,"delay_ms":7}"#).1;
    assert!(matches!(
        close,
        ServerEffect::CloseConnection { graceful: false, delay_ns: 7_000_000 }
    ));
    let twice = r#"{"type":"duplicate_request_ids","method":"ping","id":"x","params":{"a":1}}"#;
    assert!(
        matches!(effect(twice).1, ServerEffect::DuplicateRequestIds { count: 3, id, params: Some(_), .. } if id == "\"x\"")
    );
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let (behavior, findings) = read_with(
        r#"{"delivery":{"type":"slow_loris","byte_delay_ms":-1,"chunk_size":0},
            "side_effects":[{"type":"batch_amplify","batch_size":0},{"type":"floods"},
                {"type":"duplicate_request_ids"},{"type":"notification_flood","rate_per_sec":0},
                {"type":"pipe_deadlock","trigger":"continuous","fill_bytes":"1gb"}, 7],
            "on_cancel":"never"}"#,
    );
    let mut found = findings.iter();
    for expected in [
        "delivery.byte_delay_ms: this must be a whole number from 0, not -1",
        "delivery.chunk_size: this must be a whole number from 1, not 0",
        "side_effects[0].batch_size: must be at least 1",
        "side_effects[1].type: this must be `notification_flood`, ",
        "side_effects[2]: `method` is missing",
        "side_effects[3].rate_per_sec: must be from 1 to 10000; 1 is used",
        "side_effects[4]: only `notification_flood` can be continuous",
        "side_effects[4].fill_bytes: `1gb` is not a valid size",
        "side_effects[5]: this must be a map, but it is a number",
        "on_cancel: this must be `stop` or `ignore`, not `never`",
    ] {
        let next = found.next().unwrap_or_else(|| panic!("{expected} in {findings:#?}"));
        assert!(next.starts_with(expected), "{expected} in {findings:#?}");
    }
    assert_eq!(found.next(), None);
    assert_eq!(behavior.side_effects.len(), 2);
}

#[test]
fn what_pads_a_line_is_one_character_that_does_not_end_it() {
    for (padding, message) in
        [("AB", "expected one character"), ("", "expected one"), ("\\n", "a line break")]
    {
        let text = format!(r#"{{"delivery":"unbounded_line","padding_char":"{padding}"}}"#);
        let (_, findings) = read_with(&text);
        assert!(findings.len() == 1 && findings[0].contains(message), "{findings:?}");
    }
}

#[test]
fn ec_cfg_006_what_is_over_a_limit_is_refused() {
    let (_, findings) = read_with(r#"{"delivery":"nested_json","depth":100001}"#);
    assert_eq!(findings, ["depth: 100001 is over the limit of 100000"]);
}
