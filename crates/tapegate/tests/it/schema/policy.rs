//! The schema of policies agrees with the loader on what is allowed where.

use std::fs;

use super::agree;

const HEAD: &str = "schema: 1\ngovernance: {defaults: {action: deny}}\n";

fn with(text: &str) -> String {
    format!("{HEAD}{text}\n")
}

fn rule(rule: &str) -> String {
    format!("schema: 1\ngovernance:\n  defaults: {{action: deny}}\n  rules: [{rule}]\n")
}

#[test]
fn the_schema_of_policies_agrees_with_check() {
    let good = [
        HEAD.to_owned(),
        rule("{action: forward}"),
        rule(
            "{match: [a, 'b*'], source: x, method: ['logging/*'], action: approve, id: i, description: d}",
        ),
        rule(
            "{action: deny, arguments: {a: b, c: 5, d: true, e: {not: {glob: x}}, f: {in: [1, x, null]}}}",
        ),
        rule(
            "{action: deny, arguments: {a: {min: 1, max: 2.5}, b: {exists: false}, c: {regex: '^a'}, d: {equals: null}}}",
        ),
        rule(
            "{action: forward, annotations: {readOnlyHint: true, destructiveHint: [false, unknown], openWorldHint: unknown}}",
        ),
        rule(
            "{action: deny, arguments: {a: {under: /data}, b: {under: [/a, '${NO_SUCH_FOLDER:-/b}']}, c: {not: {under: /}}, d: {under: /d, optional: true}}}",
        ),
        with(
            "sources: [{id: a, kind: mcp, url: 'http://h', enabled: true, expose: all}, {id: '*'}]",
        ),
        with(
            "sources: [{id: a, expose: {mode: allowlist, tools: [], prompts: [x], resources: [y]}}]",
        ),
        with("sources: [{id: a, enabled: '${NO_SUCH_SWITCH:-false}'}]"),
        with(
            "approval: {a: {timeout: 1h 30m, blocking_timeout: PT10S, on_timeout: deny, destination: cli}}",
        ),
        with("approval: {a: {destination: {type: cli}, redact_fields: [a.b]}}"),
        with("redaction: {enabled: true, patterns: [secrets], fields: [a], on_wire: false}"),
        with(
            "pins: {on_drift: warn}\nrecording: {folder: x, retention: 5d}\nactivity: {rotate_bytes: 64kb}",
        ),
        with("activity: {rotate_bytes: 100000}"),
        with(
            "approval: {w: {channels: [c, d]}}\nchannels: {c: {type: ntfy, url: 'http://h/t'}, d: {type: slack, room: C1, secret_env: T, users: {U1: ann}, signing_secret_env: S}}",
        ),
        with("approval: {w: {channels: [c]}}\nchannels: {c: {type: desktop, approve_button: true}}"),
        with(
            "profile: development\nprofiles: {production: {approval: {timeout: 10s}, pins: {on_drift: deny}}}",
        ),
        "schema: 1\ngovernance: {defaults: {action: policy, policy_id: p}}\n\
         cedar: {inline: 'permit(principal, action, resource);'}\nprincipal: {name: n, roles: [a]}\n"
            .to_owned(),
        with(
            "telemetry: {otlp: {endpoint: 'http://h', protocol: http/json, headers: {a: b}}, resource: {a: b}}",
        ),
        with(
            "telemetry: {sampling: {strategy: head, success_sample_rate: 0.5}, batch: {max_queue_size: 600}}",
        ),
    ];
    let bad = [
        "schema: 2\ngovernance: {defaults: {action: deny}}\n".to_owned(),
        "schema: 1\n".to_owned(),
        "schema: 1\ngovernance: {}\n".to_owned(),
        "schema: 1\ngovernance: {defaults: {action: allow}}\n".to_owned(),
        with("surces: []"),
        with("sources: [{kind: mcp}]"),
        with("sources: [{id: _a}]"),
        with("sources: [{id: 'a b'}]"),
        with("sources: [{id: a, url: localhost}]"),
        with("sources: [{id: a, expose: some}]"),
        with("sources: [{id: a, expose: {mode: allowlist, tool: [x]}}]"),
        with("sources: [{id: a, enabled: 1}]"),
        rule("{match: a}"),
        rule("{match: 5, action: deny}"),
        rule("{match: a, action: deny, arguments: {a: [b]}}"),
        rule("{match: a, action: deny, arguments: {a: {min: x}}}"),
        rule("{match: a, action: deny, arguments: {a: {globb: x}}}"),
        rule("{action: deny, annotations: {readOnly: true}}"),
        rule("{action: deny, annotations: {readOnlyHint: maybe}}"),
        rule("{action: deny, annotations: [readOnlyHint]}"),
        rule("{action: deny, arguments: {a: {under: data}}}"),
        rule("{action: deny, arguments: {a: {under: '/data/*'}}}"),
        rule("{action: deny, arguments: {a: {under: 5}}}"),
        with("approval: {a: {timeout: 600}}"),
        with("approval: {a: {on_timeout: allow}}"),
        with("approval: {a: {destination: {type: pager}}}"),
        with("approval: {a: {destination: {channel: x}}}"),
        with("redaction: {patterns: secrets}"),
        with("pins: {on_drift: block}"),
        with("activity: {rotate_bytes: lots}"),
        with("profile: staging"),
        with("profiles: {staging: {}}"),
        with("wrapper: {governance_port: 7000}"),
        with("sources: [{id: a, prefix: p}]"),
        with("approval: {a: {destination: {type: slack, channel: c}}}"),
        with("approval: {a: {destination: {type: webhook, url: 'https://h/x'}}}"),
        with("approval: {a: {elicitation: true}}"),
        with("telemetry: {stdio: {propagate_upstream: true}}"),
        with("telemetry: {prometheus: {}}"),
        with("telemetry: {otlp: {endpoint: 'http://h', protocol: grpc}}"),
        with("telemetry: {otlp: {protocol: udp}}"),
        with("telemetry: {batch: {scheduled_delay_ms: 5}}"),
        with("telemetry: {resource: {a: 5}}"),
        with("channels: {c: {type: pigeon}}"),
        with("channels: {c: {url: 'http://h/t'}}"),
    ];
    agree("policy", "tapegate.yaml", &good, &bad);
}

#[test]
fn the_schema_of_tests_of_policies_agrees_with_check() {
    let suite = |case: &str| format!("cases: [{case}]\n");
    let good = [
        suite("{call: a, expect: forward}"),
        suite("{call: a, arguments: {n: 1.5, x: [null]}, expect: deny, gate: governance, rule: r}"),
        suite("{method: resources/read, uri: 'file:///x', expect: approve, workflow: w}"),
        suite(
            "{method: prompts/get, prompt: p, server: s, principal: me, expect: deny, policy: c}",
        ),
        suite("{name: odd, message: '{}', expect: deny, gate: framing, profile: development}"),
        format!(
            "config: tapegate.yaml\nserver: s\nprofile: production\nat: '2026-03-20T14:22:11Z'\n\
             principal: {{name: ci, roles: [a], client: c}}\n{}",
            suite("{call: a, expect: deny}")
        ),
    ];
    let bad = [
        "config: a\n".to_owned(),
        format!("profil: production\n{}", suite("{call: a, expect: deny}")),
        format!("at: yesterday\n{}", suite("{call: a, expect: deny}")),
        suite("{call: a}"),
        suite("{call: a, expect: forwards}"),
        suite("{call: 5, expect: deny}"),
        suite("{call: a, expect: deny, gate: gates}"),
        suite("{call: a, expect: deny, profile: staging}"),
        suite("{call: a, expect: deny, principal: {roles: a}}"),
        suite("{call: a, expects: deny}"),
    ];
    agree("policy-test", "tapegate.test.yaml", &good, &bad);
}

#[test]
fn the_samples_of_the_page_fit_the_schema_of_policies() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.md");
    let page = fs::read_to_string(page).unwrap();
    let samples = page.split("```yaml policy\n").skip(1);
    let samples: Vec<String> =
        samples.map(|rest| super::as_json(rest.split("```").next().unwrap())).collect();
    assert!(samples.len() >= 9);
    let samples: Vec<&str> = samples.iter().map(String::as_str).collect();
    super::hold("policy", &samples, &["{}"]);
}
