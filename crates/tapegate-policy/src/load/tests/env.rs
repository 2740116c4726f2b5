//! Variables stay in their values.

use super::*;
use crate::model::RuleAction;

fn with(variables: &[(&str, &str)], text: &str) -> PolicyLoadResult {
    let files = MemoryFiles::default().with_file("tapegate.yaml", text);
    let files =
        variables.iter().fold(files, |files, (name, value)| files.with_variable(name, value));
    load("tapegate.yaml", &files)
}

#[test]
fn variables_are_put_into_values_and_defaults_where_there_are_none() {
    let loaded = with(
        &[("TOOL", "read_*"), ("EMPTY", "")],
        "schema: 1
governance:
  defaults: {action: '${ACTION:-deny}'}
  rules:
    - {match: \"${TOOL}\", action: forward, description: 'a ${EMPTY:-x} b ${NONE:-} $${NOT}'}
",
    );
    assert_eq!(told(&loaded), [""; 0]);
    let policy = loaded.policy.unwrap();
    assert_eq!(policy.default, RuleAction::Deny);
    assert!(policy.rules[0].matches[0].matches("read_file"));
    // A variable with an empty value is set.
    assert_eq!(policy.rules[0].description.as_deref(), Some("a  b  ${NOT}"));
}

#[test]
fn a_value_is_a_number_or_a_yes_or_no_only_where_one_is_wanted() {
    let loaded = with(
        &[("N", "42"), ("YES", "true")],
        &format!(
            "{HEAD}sources: [{{id: '${{N}}', enabled: '${{YES}}', description: '${{YES}}'}}]
telemetry: {{enabled: false, resource: {{n: '${{N}}'}}, batch: {{max_queue_size: '${{N}}'}}}}
"
        ),
    );
    assert_eq!(told(&loaded), [""; 0]);
    let policy = loaded.policy.unwrap();
    assert_eq!(policy.sources[0].id, "42");
    assert_eq!(policy.telemetry.queue_max, 42);
    assert_eq!(policy.telemetry.resource, [("n".to_owned(), "42".to_owned())]);
    let text =
        format!("{HEAD}telemetry: {{enabled: false, batch: {{max_queue_size: '${{N}}'}}}}\n");
    let loaded = with(&[("N", "many")], &text);
    assert_eq!(
        told(&loaded),
        ["3:53 error: telemetry.batch.max_queue_size: this must be a whole number, but it is text"]
    );
}

#[test]
fn every_variable_that_is_missing_is_told_and_comments_are_left_alone() {
    finds(
        "# ${COMMENT}
schema: 1
governance:
  defaults: {action: '${A}'} # ${B}
  rules:
    - {match: '${C} ${D}', action: deny}
activity: {rotate_bytes: '${E}'}
",
        &[
            "4:22 error: governance.defaults.action: the variable `A` is not set; give it a value, or a default: `${A:-…}`",
            "6:15 error: governance.rules[0].match: the variable `C` is not set; give it a value, or a default: `${C:-…}`",
            "6:15 error: governance.rules[0].match: the variable `D` is not set; give it a value, or a default: `${D:-…}`",
            "7:26 error: activity.rotate_bytes: the variable `E` is not set; give it a value, or a default: `${E:-…}`",
        ],
    );
}

#[test]
fn keys_are_no_values() {
    let text = format!("{HEAD}telemetry: {{resource: {{'${{K}}': v}}}}\n");
    let loaded = with(&[("K", "key")], &text);
    assert_eq!(loaded.policy.unwrap().telemetry.resource[0].0, "${K}");
}

#[test]
fn what_is_no_variable_is_told() {
    finds_in(
        "principal: {name: '${', namespace: '${1A}', service_account: '${A:-${B}}'}\n",
        &[
            "3:19 error: principal.name: a `${` has no `}`; write `$${` for a literal `${`",
            "3:36 error: principal.namespace: `${1A}` is not a valid variable; write `$${` for a literal `${`",
            "3:62 error: principal.service_account: the default of `A` contains a variable; variables cannot be nested",
        ],
    );
}

#[test]
fn a_variable_without_quotes_in_brackets_gets_a_hint() {
    let loaded = with(&[("T", "x")], &format!("{HEAD}sources: [{{id: ${{T}}}}]\n"));
    let told = told(&loaded);
    assert!(told[0].contains("a variable must be in quotes"), "{told:?}");
    assert!(told[1].contains("this is not valid YAML"), "{told:?}");
}

#[test]
fn variables_of_telemetry_that_is_not_sent_are_not_read_and_leave_the_version_alone() {
    let text = format!(
        "{HEAD}principal: {{name: '${{N}}'}}\ntelemetry: {{enabled: true, otlp: {{endpoint: '${{URL}}'}}}}\n"
    );
    let files = |variables: &[(&str, &str)]| {
        variables.iter().fold(
            MemoryFiles::default().with_file("p.yaml", text.as_bytes()),
            |held, (name, value)| held.with_variable(name, value),
        )
    };
    let without = load_without_telemetry("p.yaml", &files(&[("N", "me")]));
    assert_eq!(told(&without), [""; 0]);
    assert_eq!(without.variables.iter().collect::<Vec<_>>(), ["${N}"]);
    let without = without.policy.unwrap();
    assert!(without.telemetry.enabled && without.telemetry.endpoint.is_none());
    let sent = |url: &str| load("p.yaml", &files(&[("N", "me"), ("URL", url)])).policy.unwrap();
    assert_eq!(sent("http://one").telemetry.endpoint.as_deref(), Some("http://one"));
    assert_eq!(sent("http://one").version, without.version);
    assert!(load("p.yaml", &files(&[("N", "me")])).policy.is_none(), "it is missed if it is sent");
    let plain = format!("{HEAD}telemetry: {{enabled: yes please}}\n");
    let plain = MemoryFiles::default().with_file("p.yaml", plain.as_bytes());
    assert!(load_without_telemetry("p.yaml", &plain).policy.is_none(), "what has none is checked");
}
