//! Cedar policies and lock files that a policy names.

use super::*;

/// A policy that uses Cedar, with this section.
fn asks(cedar: &str) -> String {
    format!(
        "schema: 1
governance:
  defaults: {{action: deny}}
  rules:
    - {{match: 'a*', action: policy, policy_id: p}}
approval: {{ops: {{}}}}
{cedar}"
    )
}

#[test]
fn what_is_wrong_in_a_cedar_file_is_told_where_it_stands_in_it() {
    let files = MemoryFiles::default()
        .with_file("conf/tapegate.yaml", asks("cedar: {policies: [good.cedar, bad.cedar]}\n"))
        .with_file("conf/good.cedar", "permit(principal, action, resource);\n")
        .with_file(
            "conf/bad.cedar",
            "permit(principal, action, resource);\n\n  permit(principal;\n",
        );
    let loaded = load("conf/tapegate.yaml", &files);
    assert!(loaded.policy.is_none());
    let told = told(&loaded);
    assert!(told[0].starts_with("conf/bad.cedar:3:19 error: cedar: "), "{told:?}");
}

#[test]
fn what_is_wrong_in_inline_cedar_is_told_where_it_stands_in_the_policy() {
    for (cedar, place) in [
        (
            "cedar:\n  inline: |\n    permit(principal, action, resource);\n    permit(principal;\n",
            "10:21",
        ),
        ("cedar:\n  inline: |-\n\n    permit(principal;\n", "10:21"),
        ("cedar:\n  inline: 'permit(principal;'\n", "8:28"),
        ("cedar:\n  inline: permit(principal;\n", "8:27"),
    ] {
        let loaded = read(&asks(cedar));
        let told = told(&loaded);
        assert!(told[0].starts_with(&format!("{place} error: cedar: ")), "{cedar} {told:?}");
    }
}

#[test]
fn a_workflow_that_an_annotation_names_is_there() {
    let text = asks(
        "cedar:
  inline: |
    permit(principal, action, resource);
    @id(\"x\")
    @approval(\"opps\")
    permit(principal, action, resource);
",
    );
    finds(
        &text,
        &[
            "11:5 error: cedar: `@approval`: there is no workflow `opps` in `approval`; did you mean `ops`?",
        ],
    );
    good(&text.replace("opps", "ops"));
}

#[test]
fn a_section_without_policies_is_told() {
    finds(
        &asks("cedar: {schema: s}\n"),
        &["7:17 error: cedar.schema: there is no file `s`, relative to the folder of this file"],
    );
    finds(
        &asks("cedar: {}\n"),
        &["7:8 error: cedar: there are no policies here; give `policies` or `inline`"],
    );
}

const LOCK: &str = r#"{"schema": 1, "servers": {}}"#;

#[test]
fn a_lock_file_is_read_from_beside_the_policy_and_belongs_to_its_version() {
    let files = MemoryFiles::default().with_file("c/tapegate.yaml", HEAD);
    let alone = load("c/tapegate.yaml", &files);
    assert!(alone.findings.is_empty());
    let loaded = load("c/tapegate.yaml", &files.with_file("c/tapegate.lock", LOCK));
    assert!(loaded.findings.is_empty());
    assert_ne!(alone.policy.unwrap().version, loaded.policy.unwrap().version);
}

#[test]
fn a_lock_file_that_is_missing_is_told_where_pins_are_spoken_of() {
    finds_in(
        "pins: {lock: a.lock}\n",
        &[
            "3:14 warning: there is no `a.lock` yet, so nothing is pinned; `tapegate policy pin` writes it",
        ],
    );
    good(&format!("{HEAD}pins: {{on_drift: ignore}}\n"));
}

#[test]
fn a_lock_file_that_is_none_is_an_error_in_it() {
    let files = MemoryFiles::default()
        .with_file("tapegate.yaml", HEAD)
        .with_file("tapegate.lock", "{\n\"schema\": 1,\n");
    let loaded = load("tapegate.yaml", &files);
    assert!(loaded.policy.is_none());
    let told = told(&loaded);
    assert!(told[0].starts_with("tapegate.lock:3:1 error: "), "{told:?}");
}
