//! Defects of the predecessor tool, which must not recur.

use super::*;
use crate::model::RuleAction;

#[test]
fn keys_that_are_misspelt_inside_of_sources_exposures_and_destinations_were_ignored() {
    finds_in(
        "sources: [{id: a, timeout: 5s, expose: {mode: blocklist, tools: [x], toolz: [y]}}]
approval: {a: {destination: {type: cli, chanel: d}}}
",
        &[
            "3:19 error: sources[0]: there is no key `timeout` here; expected `id`, `kind`, `url`, `enabled`, `expose` or `description`",
            "3:70 error: sources[0].expose: there is no key `toolz` here; did you mean `tools`?",
            "4:41 error: approval.a.destination: there is no key `chanel` here; expected `type`",
        ],
    );
}

#[test]
fn the_section_profiles_was_announced_and_did_not_exist() {
    good(&format!("{HEAD}profiles: {{development: {{}}}}\n"));
}

#[test]
fn only_one_server_could_ever_be_configured() {
    let policy =
        good(&format!("{HEAD}sources: [{{id: a}}, {{id: b}}, {{id: '*', enabled: false}}]\n"));
    assert!(policy.source("b").unwrap().enabled);
    assert!(!policy.source("c").unwrap().enabled);
}

#[test]
fn the_url_of_a_server_was_demanded_and_then_not_used() {
    assert!(good(&format!("{HEAD}sources: [{{id: a}}]\n")).sources[0].url.is_none());
    let policy = good(&format!("{HEAD}sources: [{{id: a, url: 'http://h:1/mcp'}}]\n"));
    assert_eq!(policy.sources[0].url.as_deref(), Some("http://h:1/mcp"));
}

#[test]
fn a_server_had_to_be_called_upstream_or_everything_on_it_was_denied() {
    assert_eq!(good(HEAD).source("files").unwrap().id, "*");
    let policy = good(&format!("{HEAD}sources: [{{id: files}}]\n"));
    assert_eq!(policy.source("files").unwrap().id, "files");
    assert!(policy.source("upstream").is_none());
}

/// A policy with one rule and two workflows.
fn rule(rule: &str) -> String {
    format!(
        "schema: 1\ngovernance:\n  defaults: {{action: deny}}\n  rules:\n  - {rule}\napproval: {{one: {{}}, two: {{}}}}\ncedar: {{inline: 'permit(principal, action, resource);'}}\n"
    )
}

#[test]
fn a_workflow_that_does_not_exist_was_taken_when_cedar_is_asked() {
    finds(
        &rule("{match: a, action: policy, policy_id: p, approval: three}"),
        &[
            "5:56 error: governance.rules[0].approval: there is no workflow `three` in `approval`; available: `one`, `two`",
        ],
    );
}

#[test]
fn a_default_was_not_checked_for_its_workflow_nor_for_its_policy_id() {
    finds(
        "schema: 1\ngovernance: {defaults: {action: approve, approval: x}}\napproval: {one: {}, two: {}}\n",
        &[
            "2:52 error: governance.defaults.approval: there is no workflow `x` in `approval`; available: `one`, `two`",
        ],
    );
    finds(
        "schema: 1\ngovernance: {defaults: {action: approve}}\napproval: {one: {}, two: {}}\n",
        &[
            "2:24 error: governance.defaults: `approval` is missing: there is more than one workflow, `one`, `two`",
        ],
    );
    finds(
        "schema: 1\ngovernance: {defaults: {action: policy}}\ncedar: {inline: 'permit(principal, action, resource);'}\n",
        &["2:24 warning: governance.defaults: `policy_id` is not given; Cedar receives `default`"],
    );
    finds(
        "schema: 1\ngovernance: {defaults: {action: policy, policy_id: p}}\n",
        &[
            "2:33 error: governance.defaults.action: `action: policy` asks Cedar, but there is no `cedar` section with policies",
        ],
    );
}

#[test]
fn the_only_workflow_was_accepted_but_its_settings_were_not_used() {
    let policy = good(
        "schema: 1
governance: {defaults: {action: approve}, rules: [{match: a, action: approve}]}
approval: {ops: {timeout: 7s, on_timeout: approve, redact_fields: [password]}}
",
    );
    let ops = RuleAction::Approve { workflow: Some("ops".to_owned()) };
    assert_eq!((&policy.default, &policy.rules[0].act), (&ops, &ops));
}

#[test]
fn a_rule_that_asks_people_needed_a_channel_of_slack_to_load() {
    let policy = good("schema: 1\ngovernance: {defaults: {action: approve}}\n");
    assert_eq!(policy.default, RuleAction::Approve { workflow: Some("default".to_owned()) });
    let workflow = &policy.workflows["default"];
    assert!(workflow.timeout.as_secs() == 600);
}

#[test]
fn timeouts_under_a_minute_became_a_minute() {
    let policy = good(&format!("{HEAD}approval: {{a: {{timeout: 5s}}}}\n"));
    assert_eq!(policy.workflows["a"].timeout.as_secs(), 5);
    assert_eq!(policy.workflows["a"].blocking_timeout.as_secs(), 5);
}

#[test]
fn on_timeout_approve_was_taken_and_not_honoured() {
    let policy = good(&format!("{HEAD}approval: {{a: {{on_timeout: approve}}}}\n"));
    assert!(policy.workflows["a"].forward_on_timeout);
}

#[test]
fn fields_to_redact_could_not_reach_into_lists() {
    let policy =
        good(&format!("{HEAD}approval: {{a: {{redact_fields: ['cards[*].number', ..pin]}}}}\n"));
    assert_eq!(policy.workflows["a"].redact_fields, ["cards[*].number", "..pin"]);
}

#[test]
fn a_variable_could_write_yaml() {
    let text = format!("{HEAD}principal: {{name: '${{WHO}}'}}\n");
    let evil = "x'}\ngovernance: {defaults: {action: forward}}\nprincipal: {name: 'y";
    let files = MemoryFiles::default().with_file("tapegate.yaml", text).with_variable("WHO", evil);
    let policy = load("tapegate.yaml", &files).policy.unwrap();
    assert_eq!(policy.principal.name, evil);
    assert_eq!(policy.default, RuleAction::Deny);
}

#[test]
fn what_a_variable_held_was_looked_through_again() {
    let text = format!("{HEAD}principal: {{name: '${{A}} ${{B}}'}}\n");
    let files = MemoryFiles::default().with_file("tapegate.yaml", text);
    let files = files.with_variable("A", "${B}").with_variable("B", "secret");
    let policy = load("tapegate.yaml", &files).policy.unwrap();
    assert_eq!(policy.principal.name, "${B} secret");
}

#[test]
fn only_the_first_error_was_told_and_only_the_first_variable_that_is_missing() {
    let loaded = read(
        "schema: 2\nsources: [{id: _x}]\ngovernance: {defaults: {action: '${A}'}, rules: [{match: '${B}', action: alow}]}\n",
    );
    assert_eq!(loaded.findings.len(), 5, "{:?}", told(&loaded));
}

#[test]
fn keys_that_only_its_documentation_had_are_told_what_they_are_called() {
    finds(
        "schema: 1
governance: {defaults: {action: deny}, rules: [{pattern: x, action: deny}]}
approval: {a: {adapter: slack}}
cedar: {policy_path: x}
",
        &[
            "2:49 error: governance.rules[0]: there is no key `pattern` here; use `match`",
            "3:16 error: approval.a: there is no key `adapter` here; use `destination`",
            "4:8 error: Cedar is unused: no rule has `action: policy`",
            "4:9 error: cedar: there is no key `policy_path` here; use `policies`, a list of Cedar files",
        ],
    );
}

#[test]
fn a_file_that_does_not_load_must_not_become_a_policy_that_forwards() {
    for text in ["", "schema: 1", "a: [", "schema: 1\ngovernance: {defaults: {action: forwrad}}"] {
        let loaded = read(text);
        assert!(loaded.policy.is_none() && !loaded.findings.is_empty(), "{text}");
    }
}

#[test]
fn a_field_of_redaction_that_leads_nowhere_in_a_message_is_told() {
    let policy = good(
        "schema: 1\ngovernance: {defaults: {action: deny}}\nredaction: {fields: [a, arguments.b, '$.arguments[0]', result.c, ..d.e]}\n",
    );
    let rules = policy.redaction.rules.unwrap();
    let masked = ["..a", "params.arguments.b", "params.arguments[0]", "result.c", "..d.e"];
    assert_eq!(rules.texts(), masked);
    let loaded = read(
        "schema: 1\ngovernance: {defaults: {action: deny}}\nredaction: {fields: [user.pin]}\n",
    );
    let told = told(&loaded);
    assert!(
        told[0].contains("error: redaction.fields: `user.pin` masks nothing in messages"),
        "{told:?}"
    );
    assert!(told[0].contains("`params.arguments.user.pin`"), "{told:?}");
}

#[test]
fn an_endpoint_of_telemetry_that_is_not_turned_on_is_told() {
    let with = |telemetry: &str| {
        let head = "schema: 1\ngovernance: {defaults: {action: deny}}\n";
        read(&format!("{head}telemetry: {telemetry}\n"))
    };
    let otlp = "otlp: {endpoint: \"http://127.0.0.1:4318\"}";
    let loaded = with(&format!("{{{otlp}}}"));
    let shown = told(&loaded);
    assert!(shown[0].contains("warning: telemetry: nothing is sent"), "{shown:?}");
    assert!(shown[0].contains("`enabled: true`"), "{shown:?}");
    for quiet in [
        format!("{{enabled: true, {otlp}}}"),
        format!("{{enabled: false, {otlp}}}"),
        format!("{{{otlp}}}\nprofiles: {{production: {{telemetry: {{enabled: true}}}}}}"),
    ] {
        let loaded = with(&quiet);
        assert!(loaded.policy.is_some() && loaded.findings.is_empty(), "{:?}", told(&loaded));
    }
}
