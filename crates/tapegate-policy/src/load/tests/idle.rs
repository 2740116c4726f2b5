//! A key that has no effect is an error.

use super::*;
use crate::model::{OnDrift, Profile};

/// The only error in a policy with this text, without its position.
#[track_caller]
fn error(text: &str) -> String {
    let loaded = read(&format!("{HEAD}{text}\n"));
    assert!(loaded.policy.is_none(), "it loads: {text}");
    let found = told(&loaded);
    let errors: Vec<&String> = found.iter().filter(|line| line.contains(" error: ")).collect();
    assert_eq!(errors.len(), 1, "{found:?}");
    errors[0].split_once(" error: ").unwrap().1.to_owned()
}

#[test]
fn development_holds_nothing_and_so_has_no_timeouts() {
    let words = error("profiles: {development: {approval: {timeout: 30s}}}");
    assert!(words.starts_with("profiles.development.approval: "), "{words}");
    assert!(words.contains("does nothing under `development`"), "{words}");
    good(&format!("{HEAD}profiles: {{production: {{approval: {{timeout: 30s}}}}}}\n"));
}

#[test]
fn masking_on_the_wire_needs_something_that_masks() {
    let on_wire = "profiles: {production: {redaction: {on_wire: true}}}";
    for rest in ["", "\nredaction: {enabled: false}"] {
        let words = error(&format!("{on_wire}{rest}"));
        assert!(words.starts_with("profiles.production.redaction: `on_wire` masks nothing"));
    }
    let words = error("redaction: {enabled: false, on_wire: true}");
    assert!(words.contains("`on_wire` does nothing while `enabled` is false"), "{words}");
    good(&format!("{HEAD}{on_wire}\nredaction: {{}}\n"));
    good(&format!("{HEAD}profiles: {{production: {{redaction: {{on_wire: false}}}}}}\n"));
}

#[test]
fn telemetry_of_a_profile_needs_an_endpoint() {
    let words = error("profiles: {production: {telemetry: {enabled: true}}}");
    assert!(words.contains("`telemetry.otlp.endpoint` is missing"), "{words}");
}

#[test]
fn a_workflow_of_pins_needs_somebody_who_asks() {
    let workflow = "approval: {a: {}, b: {}}\n";
    let words = error(&format!("{workflow}pins: {{approval: a}}"));
    assert!(words.starts_with("pins.approval: `approval` does nothing without"), "{words}");
    // A profile may be what asks for approval.
    let profiles = "profiles: {production: {pins: {on_drift: approve}}}\n";
    let lock = crate::pins::Lock::default().write();
    let text = format!("{HEAD}{workflow}{profiles}pins: {{approval: a}}\n");
    let files = Held::default().with("tapegate.yaml", text).with("tapegate.lock", lock);
    let loaded = load("tapegate.yaml", &files);
    let mut policy = loaded.policy.expect("it loads");
    policy.settle(Profile::Production);
    assert_eq!(
        (policy.pins.on_drift, policy.pins.workflow.as_deref()),
        (OnDrift::Approve, Some("a"))
    );
    let words = error(&format!("{workflow}{profiles}"));
    assert!(words.contains("there is more than one workflow"), "{words}");
    let text = format!("{HEAD}{profiles}");
    let policy = load("tapegate.yaml", &Held::default().with("tapegate.yaml", text)).policy;
    assert_eq!(policy.expect("it loads").pins.workflow.as_deref(), Some("default"));
}

#[test]
fn what_only_cedar_reads_needs_a_rule_that_asks_it() {
    for key in ["namespace: n", "service_account: s", "roles: [r]"] {
        let words = error(&format!("principal: {{name: me, {key}}}"));
        assert!(words.contains("is only for Cedar"), "{words}");
    }
    let words = error("cedar: {inline: 'forbid(principal, action, resource);'}");
    assert!(words.contains("Cedar is unused"), "{words}");
    good(&format!("{HEAD}principal: {{name: me}}\n"));
}

#[test]
fn a_workflow_of_a_rule_that_asks_nobody_is_an_error() {
    for action in ["forward", "deny"] {
        let text = format!(
            "schema: 1\ngovernance: {{defaults: {{action: deny}}, rules: [{{match: a, action: {action}, approval: w}}]}}\napproval: {{w: {{}}}}\n"
        );
        let found = told(&read(&text));
        assert!(found[0].contains("error: governance.rules[0].approval: `approval` does nothing"));
    }
}

#[test]
fn lists_of_a_source_that_exposes_everything_are_an_error() {
    let words = error("sources: [{id: a, expose: {mode: all, tools: [x]}}]");
    assert!(words.contains("`tools` does not apply to `mode: all`"), "{words}");
}
