//! What this build does not act on is an error, never silently ignored.

use super::*;

#[test]
fn keys_and_values_that_are_not_built_are_errors_at_their_line() {
    finds_in(
        "sources: [{id: a, prefix: p}, {id: b}]
approval:
  chat: {destination: {type: slack, channel: '#x', token_env: T}, timeout: 1m}
  hook: {destination: {type: webhook, url: 'https://h/x', secret_env: S}}
  short: {destination: slack}
  asked: {elicitation: true}
wrapper: {agent_type: cursor}
telemetry:
  otlp: {endpoint: 'http://h', protocol: grpc, tls: {}}
  sampling: {strategy: tail, overrides: []}
  stdio: {propagate_upstream: true}
  prometheus: {}
  metrics: {}
  content_capture: {enabled: false}
",
        &[
            "3:19 error: sources[0].prefix: not implemented yet: `prefix`; remove it (names are never changed)",
            "5:30 error: approval.chat.destination: `destination: slack` is written in another way here: define a channel of `type: slack` in `channels`, and name it in the workflow's `channels`",
            "6:30 error: approval.hook.destination: `destination: webhook` is written in another way here: define a channel of `type: webhook` in `channels`, and name it in the workflow's `channels`",
            "7:24 error: approval.short.destination: `destination: slack` is written in another way here: define a channel of `type: slack` in `channels`, and name it in the workflow's `channels`",
            "8:11 error: approval.asked.elicitation: `elicitation` is written in another way here: list the clients whose users may answer in the workflow's `in_agent`",
            "9:1 error: wrapper: not implemented yet: `wrapper`; remove it",
            "11:3 warning: telemetry: nothing is sent: telemetry is off until `enabled: true` is set; write `enabled: false` if that is meant",
            "11:42 error: telemetry.otlp.protocol: not implemented yet: `protocol: grpc`; remove it",
            "11:48 error: telemetry.otlp.tls: not implemented yet: `tls`; remove it",
            "12:24 error: telemetry.sampling.strategy: not implemented yet: `strategy: tail`; remove it",
            "12:30 error: telemetry.sampling.overrides: not implemented yet: `overrides`; remove it",
            "13:11 error: telemetry.stdio.propagate_upstream: not implemented yet: `propagate_upstream`; remove it",
            "14:3 error: telemetry.prometheus: not implemented yet: `prometheus`; remove it (the hub serves metrics at `/metrics`)",
            "15:3 error: telemetry.metrics: not implemented yet: `metrics`; remove it (the number of label values is always bounded)",
            "16:3 error: telemetry.content_capture: not implemented yet: `content_capture`; remove it (contents are on the tape)",
        ],
    );
}

#[test]
fn an_empty_section_that_is_not_built_and_a_value_from_a_variable_are_errors_too() {
    finds_in(
        "telemetry: {stdio: {}}\napproval: {a: {destination: {type: '${NO_SUCH:-slack}'}}}\n",
        &[
            "3:13 error: telemetry.stdio: not implemented yet: `stdio`; remove it",
            "4:36 error: approval.a.destination: `destination: slack` is written in another way here: define a channel of `type: slack` in `channels`, and name it in the workflow's `channels`",
        ],
    );
}

#[test]
fn what_reads_otherwise_than_it_is_meant_in_a_workflow_is_an_error() {
    super::finds_in(
        "approval:\n  a: {timeout: 10M}\n  b: {approvers: []}\n  c: {redact_fields: [params.arguments.token, params.task]}\n",
        &[
            "4:16 error: approval.a.timeout: `10M`: `M` could mean minutes or months; write `m` or `min` for minutes, `months` for months",
            "5:18 error: approval.b.approvers: `approvers` is empty, so that no user may answer; leave it out if any user may, or deny the calls",
            "6:23 error: approval.c.redact_fields: paths start at the arguments; write `token`",
            "6:47 error: approval.c.redact_fields: paths start at the arguments, and this one is outside them",
        ],
    );
}
