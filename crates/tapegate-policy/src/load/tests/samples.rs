//! Whole policies.

use std::time::Duration;

use super::*;
use crate::model::{Exposure, RuleAction};

#[test]
fn a_policy_of_one_rule_loads_and_is_about_every_server() {
    let policy = good(
        "schema: 1
governance:
  defaults: {action: deny}
  rules:
    - {match: read_*, action: forward}
",
    );
    assert_eq!(policy.default, RuleAction::Deny);
    assert_eq!(policy.sources.len(), 1);
    assert_eq!(policy.source("anything").unwrap().id, "*");
    let [rule] = policy.rules.as_slice() else { panic!() };
    assert_eq!((&*rule.name, rule.line), ("rules[0]", 5));
    assert!(rule.matches[0].matches("read_file"));
    assert_eq!(rule.act, RuleAction::Forward);
    assert_eq!(policy.version.len(), 16);
    assert_eq!(policy.workflows.len(), 1);
}

#[test]
fn a_file_as_thoughtgate_documents_it_loads() {
    let policy = good(
        r##"schema: 1
sources:
  - kind: mcp
    id: upstream
    url: http://127.0.0.1:8080/mcp
    description: the company's server
    enabled: true
    expose:
      mode: blocklist
      tools: ["admin_*", "file:///etc/**"]
governance:
  defaults:
    action: approve
  rules:
    - match: "get_*"
      action: forward
      source: upstream
      description: reading is harmless
    - match: "delete_*"
      action: approve
      source: [upstream]
      approval: ops
    - match: "drop_*"
      action: deny
approval:
  ops:
    destination: cli
    timeout: PT10M
    blocking_timeout: 1m 30s
    on_timeout: deny
    redact_fields: [password, user.email]
telemetry:
  enabled: true
  otlp:
    endpoint: http://collector:4318
    protocol: http/protobuf
    headers: {x-key: abc}
  sampling: {strategy: head, success_sample_rate: 0.25}
  batch: {max_queue_size: 4096, max_export_batch_size: 1024, scheduled_delay_ms: 1000, export_timeout_ms: 100}
  resource: {service.name: gate}
"##,
    );
    let source = policy.source("upstream").unwrap();
    assert!(policy.source("other").is_none());
    for kind in [&source.tools, &source.prompts, &source.resources] {
        assert!(matches!(kind, Exposure::Except(_)));
        assert!(
            !kind.is_visible("admin_reset")
                && !kind.is_visible("file:///etc/passwd")
                && kind.is_visible("a")
        );
    }
    // The only workflow applies to every rule that names none.
    assert_eq!(policy.default, RuleAction::Approve { workflow: Some("ops".to_owned()) });
    let ops = &policy.workflows["ops"];
    assert_eq!(
        (ops.timeout, ops.blocking_timeout),
        (Duration::from_secs(600), Duration::from_secs(90))
    );
    assert_eq!(ops.redact_fields, ["password", "user.email"]);
    let telemetry = &policy.telemetry;
    assert_eq!(
        (telemetry.sample_rate, telemetry.queue_max, telemetry.batch_max),
        (0.25, 4096, 1024)
    );
    assert_eq!(telemetry.timeout, Duration::from_millis(100));
    assert!(telemetry.enabled && !telemetry.json);
}
