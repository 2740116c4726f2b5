//! Hostile policy texts.

use proptest::prelude::*;

use super::*;

#[test]
fn a_key_that_comes_twice_is_an_error_since_the_first_may_be_the_one_that_protects() {
    finds(
        "schema: 1\ngovernance:\n  defaults: {action: deny, action: forward}\ngovernance:\n  defaults: {action: deny}\n",
        &[
            "3:28 error: the key `action` is already on line 3",
            "4:1 error: the key `governance` is already on line 2",
        ],
    );
}

#[test]
fn depth_and_aliases_have_an_end() {
    let deep = format!("schema: {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x]\n");
    for at in 1..40 {
        let last = format!("*a{}, ", at - 1).repeat(8);
        laughs += &format!("a{at}: &a{at} [{last}]\n");
    }
    for text in [deep, laughs] {
        let loaded = read(&text);
        assert!(loaded.policy.is_none() && !loaded.findings.is_empty());
    }
}

#[test]
fn long_words_and_many_faults_are_told_in_few() {
    let long = "x".repeat(1 << 20);
    let loaded = read(&format!("{HEAD}{long}: 1\nprofile: {long}\n"));
    assert!(loaded.findings.iter().all(|finding| finding.message.len() < 1_100));
    let many: String = (0..20_000).map(|at| format!("k{at}: 1\n")).collect();
    let loaded = read(&format!("{HEAD}{many}"));
    assert_eq!(loaded.findings.len(), 1_001);
}

#[test]
fn a_file_that_is_too_large_or_no_text_is_refused() {
    let loaded = read(&"#".repeat(5 << 20));
    assert_eq!(
        told(&loaded),
        ["0:0 error: the file cannot be read: it has more than 4194304 bytes"]
    );
    let files =
        MemoryFiles::default().with_file("tapegate.yaml", b"schema: 1\na: \xff\n".as_slice());
    assert_eq!(told(&load("tapegate.yaml", &files)), ["2:1 error: this line is not UTF-8"]);
}

#[test]
fn a_byte_order_mark_is_no_key() {
    good(&format!("\u{feff}{HEAD}"));
}

#[test]
fn an_expression_that_grows_too_large_is_refused() {
    let loaded = read(&format!(
        "schema: 1\ngovernance: {{defaults: {{action: deny}}, rules: [{{action: deny, arguments: {{a: {{regex: '{}'}}}}}}]}}\n",
        "(a{1000}){1000}"
    ));
    assert!(loaded.policy.is_none(), "{:?}", told(&loaded));
}

#[test]
fn rules_servers_and_expressions_have_an_end() {
    let many = |one: &str, times: usize| vec![one; times].join(", ");
    let rules = many("{action: deny}", 10_001);
    finds(
        &format!("schema: 1\ngovernance: {{defaults: {{action: deny}}, rules: [{rules}]}}\n"),
        &["2:47 error: governance.rules: there are 10001 rules; the maximum is 10000"],
    );
    finds_in(
        &format!("sources: [{}]\n", many("{id: a}", 1_001)),
        &["3:10 error: sources: there are 1001 servers; the maximum is 1000"],
    );
    let rules = many("{action: deny, arguments: {a: {regex: x}}}", 1_001);
    let text = format!("schema: 1\ngovernance: {{defaults: {{action: deny}}, rules: [{rules}]}}\n");
    let told = told(&read(&text));
    assert!(
        told[0].ends_with("arguments.a: a policy may have at most 1000 regular expressions"),
        "{told:?}"
    );
    assert_eq!(told.len(), 1);
}

#[test]
fn as_many_rules_as_there_may_be_load() {
    let rules: String =
        (0..10_000).map(|at| format!("  - {{match: 'tool_{at}_*', action: forward}}\n")).collect();
    let policy =
        good(&format!("schema: 1\ngovernance:\n  defaults: {{action: deny}}\n  rules:\n{rules}"));
    assert_eq!(policy.rules.len(), 10_000);
}

/// Fragments of policies, and some that never occur in one.
fn piece() -> impl Strategy<Value = String> {
    let message = [
        "schema: 1",
        "governance:",
        "defaults:",
        "action: forward",
        "action: approve",
        "rules:",
        "match: 'a*'",
        "match: ['[x', b]",
        "arguments: {a: {not: {min: 5}}}",
        "sources:",
        "id: '*'",
        "expose: {mode: allowlist, tools: [x]}",
        "approval: {a: {timeout: 5s}}",
        "cedar: {inline: x}",
        "redaction: {fields: [..a]}",
        "telemetry: {otlp: {}}",
        "- ",
        "  ",
        "\n",
        "\n  ",
        "${A}",
        "&a ",
        "*a",
        "<<: *a",
        "{",
        "}",
        "[",
        "]",
        "'",
        "\"",
        ": ",
        "|\n",
        "profiles: {development: {}}",
    ];
    prop_oneof![
        4 => proptest::sample::select(message.to_vec()).prop_map(str::to_owned),
        1 => ".{0,4}",
    ]
}

/// Asserts that there is either a policy or an error, and that every position is valid.
fn check(text: &str) {
    let loaded = read(text);
    let bad = loaded.findings.iter().any(|finding| finding.severity == Severity::Error);
    assert_eq!(loaded.policy.is_none(), bad, "{text}");
    for finding in &loaded.findings {
        assert!(usize::from(finding.spot.file) < loaded.sources.len());
    }
}

/// A policy with nearly every feature, as a base for mutations.
const WHOLE: &str = r#"schema: 1
profile: development
sources:
  - {id: files, url: 'http://h:1/mcp', expose: {mode: allowlist, tools: ['read_*'], prompts: [x], resources: ['file:///*']}}
  - {id: '*', enabled: '${ON:-true}', expose: {mode: blocklist, tools: ['[a-c]*']}}
governance:
  defaults: {action: approve, approval: ops}
  rules:
    - {id: one, match: ['a*', b?], source: 'f*', method: ['tools/*'], action: forward, description: d}
    - {match: c, action: policy, policy_id: p, approval: ops}
    - match: pay
      action: deny
      arguments:
        a.b[0]: 'x*'
        ..c: {not: {regex: '^a(b|c)+$'}}
        d: {min: 1, max: 2.5e3}
        e: {in: [1, x, null, true], exists: true}
        f: {equals: 5}
approval:
  ops: {destination: {type: cli}, timeout: 1h 30m, redact_fields: [a.b, '..c'], on_timeout: approve}
  web: {destination: cli, blocking_timeout: PT1M}
cedar:
  inline: |
    @id("a") @approval("web")
    permit(principal, action, resource) when { context.policy_id == "p" };
redaction: {patterns: [aws], fields: [password, 'params.a[*].b'], on_wire: true}
pins: {on_drift: approve, approval: web, lock: l.lock}
recording: {folder: x, retention: 5d}
activity: {rotate_bytes: 1mb, retention: P2W}
principal: {name: '${USER:-n}', roles: [r]}
profiles: {production: {approval: {timeout: 10s}, telemetry: {enabled: true}}}
telemetry:
  enabled: true
  otlp: {endpoint: 'http://h', headers: {a: b}, protocol: http/json}
  sampling: {success_sample_rate: 0.5}
  batch: {max_queue_size: 10, max_export_batch_size: 5}
  resource: {a: b}
"#;

/// The text with some lines and words moved.
fn shuffled(text: &str, edits: &[(usize, usize, u8)]) -> String {
    let mut words: Vec<&str> = text.split_inclusive([' ', '\n', ',', ':', '{', '[']).collect();
    for (one, two, how) in edits {
        let (one, two) = (one % words.len(), two % words.len());
        match how % 4 {
            0 => words.swap(one, two),
            1 => words[one] = words[two],
            2 => words.insert(one, words[two]),
            _ => drop(words.remove(one)),
        }
        if words.is_empty() {
            break;
        }
    }
    words.concat()
}

#[test]
fn the_policy_that_others_are_made_from_loads() {
    let loaded = read(WHOLE);
    assert!(loaded.policy.is_some(), "{:#?}", told(&loaded));
}

proptest! {
    #[test]
    fn any_text_loads_or_is_refused_with_a_reason(
        pieces in proptest::collection::vec(piece(), 0..40),
    ) {
        check(&pieces.concat());
    }

    #[test]
    fn any_text_that_is_nearly_a_policy_loads_or_is_refused_with_a_reason(
        edits in proptest::collection::vec(any::<(usize, usize, u8)>(), 0..6),
    ) {
        check(&shuffled(WHOLE, &edits));
    }
}
