//! Subscriptions and other ways to reach resources: none passes without a decision.

use tapegate_policy::model::Profile;

use crate::bypasses::{harness, stopped};
use crate::gate_harness::{GateHarness, policy, request, shown};

#[test]
fn a_subscription_that_names_nothing_is_logged_and_can_be_denied_by_its_method() {
    let text = |rules: &str| {
        format!("schema: 1\ngovernance: {{defaults: {{action: deny}}, rules: [{rules}]}}\n")
    };
    for (method, params) in [
        ("subscriptions/listen", "{}"),
        ("subscriptions/listen", r#"{"notifications":null}"#),
        ("subscriptions/listen", r#"{"notifications":{}}"#),
        ("subscriptions/listen", r#"{"notifications":{"toolsListChanged":true}}"#),
        ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":[]}}"#),
        ("resources/subscribe", r#"{"_meta":{}}"#),
    ] {
        let message = request(method, params);
        let rule = format!("{{method: {method}, action: deny}}");
        let mut denied = GateHarness::new(Some(policy(&text(&rule))), Profile::Production);
        assert_eq!(shown(&denied.client(&message)), "refuse -32014", "{message}");
        assert_eq!(denied.noted(), [format!("decision deny {method}")], "{message}");
        let mut passed = GateHarness::new(Some(policy(&text(""))), Profile::Production);
        assert_eq!(shown(&passed.client(&message)), "forward", "{message}");
        assert_eq!(passed.noted(), [format!("decision forward {method}")], "{message}");
        let off = "schema: 1\nsources: [{id: fs, kind: mcp, enabled: false}]\n";
        let off = format!("{off}governance: {{defaults: {{action: forward}}}}\n");
        let mut off = GateHarness::new(Some(policy(&off)), Profile::Production);
        assert_eq!(shown(&off.client(&message)), "refuse -32015", "{message}");
    }
}

#[test]
fn subscriptions_in_another_form_are_not_taken_for_none() {
    for wanted in [
        r#""{\"resourceSubscriptions\":[\"file:///etc/a\"]}""#,
        r#"[{"resourceSubscriptions":["file:///etc/a"]}]"#,
        r#"["resourceSubscriptions"]"#,
        "true",
        r#"{"resourceSubscriptions":{"0":"file:///etc/a"}}"#,
    ] {
        let params = format!(r#"{{"notifications":{wanted}}}"#);
        stopped(request("subscriptions/listen", &params).as_bytes(), -32602);
    }
}

#[test]
fn what_is_listened_to_hides_behind_no_other_spelling() {
    for (odd, code) in [
        (r#"{"notifications":{"ResourceSubscriptions":["file:///etc/a"]}}"#, -32600),
        (r#"{"notifications":{"resource_subscriptions":["file:///etc/a"]}}"#, -32600),
        (r#"{"notifications":{"resource\u0053ubscription\u017f":["file:///etc/a"]}}"#, -32600),
        (r#"[{"resourceSubscriptions":["file:///etc/a"]}]"#, -32602),
    ] {
        stopped(request("subscriptions/listen", odd).as_bytes(), code);
    }
}

#[test]
fn a_uri_that_can_be_read_in_many_ways_comes_with_no_large_arguments() {
    let read = |bytes: usize| {
        let uri = r"FiLe:\\\\%2e\\x%2Fy/..//%62%20%2520c?q#z";
        let text = "a".repeat(bytes);
        request("resources/read", &format!(r#"{{"uri":"{uri}","arguments":{{"x":"{text}"}}}}"#))
    };
    assert_eq!(shown(&harness().client(&read(1))), "forward");
    assert_eq!(shown(&harness().client(&read(10 << 20))), "refuse -32015");
}
