//! Rules that test the accepted annotations of a tool.

use tapegate_policy::decide::{CallFacts, DecisionOutcome, PolicyCall, decide, explain};
use tapegate_policy::model::{Policy, Profile};
use tapegate_policy::pins::PinLock;

use crate::gate_harness::policy_with;

const PAGE: &str = r#"{"tools":[
    {"name":"read","annotations":{"readOnlyHint":true,"openWorldHint":false}},
    {"name":"append","annotations":{"destructiveHint":false}},
    {"name":"remove"}]}"#;

const RULES: &str = "
    - {id: reading, action: forward, annotations: {readOnlyHint: true}}
    - {id: harmful, action: approve, annotations: {destructiveHint: true}}
    - {id: rest, action: forward}
";

fn policy(rules: &str, on_drift: &str) -> Policy {
    let mut lock = PinLock::default();
    lock.learn("fs", &[PAGE.as_bytes()]);
    let text = format!(
        "schema: 1\ngovernance:\n  defaults: {{action: deny}}\n  rules:{rules}\npins: {{on_drift: {on_drift}}}\n"
    );
    policy_with(&text, &[("tapegate.lock", &lock.write())])
}

fn rule(policy: &Policy, source: &str, name: &str, drift: Option<&str>) -> String {
    let call = PolicyCall { source, method: "tools/call", name, arguments: None };
    let facts = CallFacts { drift, ..CallFacts::default() };
    let decision = decide(policy, Profile::Production, &call, &facts);
    decision.rule.map_or_else(String::new, |rule| rule.to_string())
}

#[test]
fn a_rule_goes_by_what_the_pinned_definition_says() {
    let policy = policy(RULES, "warn");
    assert_eq!(rule(&policy, "fs", "read", None), "reading");
    assert_eq!(rule(&policy, "fs", "append", None), "rest");
    assert_eq!(rule(&policy, "fs", "remove", None), "harmful");
}

#[test]
fn what_is_not_pinned_or_has_drifted_is_not_known_to_be_harmless() {
    let policy = policy(RULES, "warn");
    assert_eq!(rule(&policy, "fs", "read", Some("it has changed")), "harmful");
    assert_eq!(rule(&policy, "fs", "new", Some("it is new")), "harmful");
    assert_eq!(rule(&policy, "other", "read", None), "harmful");
}

#[test]
fn the_reason_says_that_a_tool_is_not_pinned_where_that_is_why_it_is_stopped() {
    let policy = policy(RULES, "warn");
    let reason = |source, name, drift| {
        let call = PolicyCall { source, method: "tools/call", name, arguments: None };
        let facts = CallFacts { drift, ..CallFacts::default() };
        decide(&policy, Profile::Production, &call, &facts).reason.to_string()
    };
    let rule = "rule `harmful` requires approval";
    assert_eq!(reason("fs", "remove", None), rule);
    let unpinned = format!("{rule}: the tool is not pinned, so its `destructiveHint` is unknown");
    assert_eq!(reason("other", "read", None), unpinned);
    let changed = reason("fs", "read", Some("it has changed"));
    assert!(
        changed.ends_with("the tool differs from its pin, so its `destructiveHint` is unknown")
    );
}

#[test]
fn nothing_is_known_where_pins_are_ignored() {
    let policy = policy(RULES, "ignore");
    assert_eq!(rule(&policy, "fs", "read", None), "harmful");
}

#[test]
fn unknown_is_a_value_of_its_own() {
    let rules = "
    - {id: strange, action: deny, annotations: {openWorldHint: unknown}}
    - {id: several, action: forward, annotations: {readOnlyHint: [true, unknown], openWorldHint: false}}
    - {id: open, action: forward, annotations: {openWorldHint: [true]}}
";
    let policy = policy(rules, "warn");
    assert_eq!(rule(&policy, "fs", "read", None), "several");
    assert_eq!(rule(&policy, "fs", "remove", None), "open");
    assert_eq!(rule(&policy, "other", "read", None), "strange");
}

#[test]
fn a_rule_with_annotations_is_about_tools_only() {
    let policy = policy(
        "\n    - {action: forward, annotations: {readOnlyHint: [true, false, unknown]}}\n",
        "warn",
    );
    for (method, outcome) in
        [("tools/call", DecisionOutcome::Forward), ("prompts/get", DecisionOutcome::Deny)]
    {
        let call = PolicyCall { source: "fs", method, name: "read", arguments: None };
        let decision = decide(&policy, Profile::Production, &call, &CallFacts::default());
        assert_eq!(decision.strict, outcome, "{method}");
    }
}

#[test]
fn an_explanation_says_what_is_known() {
    let policy = policy(RULES, "warn");
    let steps = |source: &str, name: &str| {
        let call = PolicyCall { source, method: "tools/call", name, arguments: None };
        explain(&policy, Profile::Production, &call, &CallFacts::default()).steps.join("\n")
    };
    assert!(steps("fs", "remove").contains("does not match: `readOnlyHint` is false, not true"));
    assert!(steps("other", "x").contains("matches, since `destructiveHint` is unknown: approve"));
    assert!(steps("fs", "remove").contains("`harmful` (line 6) matches: approve"));
}
