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
    let message = error("profiles: {development: {approval: {timeout: 30s}}}");
    assert!(message.starts_with("profiles.development.approval: "), "{message}");
    assert!(message.contains("does nothing under `development`"), "{message}");
    good(&format!("{HEAD}profiles: {{production: {{approval: {{timeout: 30s}}}}}}\n"));
}

#[test]
fn masking_on_the_wire_needs_something_that_masks() {
    let on_wire = "profiles: {production: {redaction: {on_wire: true}}}";
    for rest in ["", "\nredaction: {enabled: false}"] {
        let message = error(&format!("{on_wire}{rest}"));
        assert!(message.starts_with("profiles.production.redaction: `on_wire` masks nothing"));
    }
    let message = error("redaction: {enabled: false, on_wire: true}");
    assert!(message.contains("`on_wire` does nothing while `enabled` is false"), "{message}");
    good(&format!("{HEAD}{on_wire}\nredaction: {{}}\n"));
    good(&format!("{HEAD}profiles: {{production: {{redaction: {{on_wire: false}}}}}}\n"));
}

#[test]
fn telemetry_of_a_profile_needs_an_endpoint() {
    let message = error("profiles: {production: {telemetry: {enabled: true}}}");
    assert!(message.contains("`telemetry.otlp.endpoint` is missing"), "{message}");
}

#[test]
fn a_workflow_of_pins_needs_somebody_who_asks() {
    let workflow = "approval: {a: {}, b: {}}\n";
    let message = error(&format!("{workflow}pins: {{approval: a}}"));
    assert!(message.starts_with("pins.approval: `approval` does nothing without"), "{message}");
    // A profile may be what asks for approval.
    let profiles = "profiles: {production: {pins: {on_drift: approve}}}\n";
    let lock = crate::pins::PinLock::default().write();
    let text = format!("{HEAD}{workflow}{profiles}pins: {{approval: a}}\n");
    let files =
        MemoryFiles::default().with_file("tapegate.yaml", text).with_file("tapegate.lock", lock);
    let loaded = load("tapegate.yaml", &files);
    let mut policy = loaded.policy.expect("it loads");
    policy.settle(Profile::Production);
    assert_eq!(
        (policy.pins.on_drift, policy.pins.workflow.as_deref()),
        (OnDrift::Approve, Some("a"))
    );
    let message = error(&format!("{workflow}{profiles}"));
    assert!(message.contains("there is more than one workflow"), "{message}");
    let text = format!("{HEAD}{profiles}");
    let policy =
        load("tapegate.yaml", &MemoryFiles::default().with_file("tapegate.yaml", text)).policy;
    assert_eq!(policy.expect("it loads").pins.workflow.as_deref(), Some("default"));
}

#[test]
fn what_only_cedar_reads_needs_a_rule_that_asks_it() {
    for key in ["namespace: n", "service_account: s", "roles: [r]"] {
        let message = error(&format!("principal: {{name: me, {key}}}"));
        assert!(message.contains("is only for Cedar"), "{message}");
    }
    let message = error("cedar: {inline: 'forbid(principal, action, resource);'}");
    assert!(message.contains("Cedar is unused"), "{message}");
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
    let message = error("sources: [{id: a, expose: {mode: all, tools: [x]}}]");
    assert!(message.contains("`tools` does not apply to `mode: all`"), "{message}");
}
