//! Spellings of names and URIs: a blocklist or a rule that stops calls applies in every spelling,
//! an allowlist or a rule that forwards only to the exact one.

use std::sync::LazyLock;

use proptest::prelude::*;
use tapegate_policy::decide::{CallFacts, DecisionOutcome, PolicyCall, decide};
use tapegate_policy::model::{Policy, Profile};
use unicode_normalization::UnicodeNormalization;

use crate::gate_harness::policy;

const STOPPING: &str = r#"
schema: 1
sources:
  - id: listed
    kind: mcp
    expose:
      mode: blocklist
      tools: ["drop_*", "löschen"]
      prompts: ["secret"]
      resources: ["file:///etc/*", "x://a b", "x://c%2Bd", "x://ü", "http://169.254.169.254/*", "http://a.example/x", "http://münchen.de/*", "*.xn--bcher-kva.example/x"]
  - {id: ruled, kind: mcp}
governance:
  defaults: {action: forward}
  rules:
    - {match: ["drop_*", "löschen", "secret"], source: ruled, action: deny}
    - {match: ["file:///etc/*", "x://a b", "x://c%2Bd", "x://ü"], source: ruled, action: deny}
    - {match: ["http://169.254.169.254/*", "http://a.example/x", "http://münchen.de/*"], source: ruled, action: deny}
    - {match: "*.xn--bcher-kva.example/x", source: ruled, action: deny}
"#;

const PASSING: &str = r#"
schema: 1
sources:
  - id: listed
    kind: mcp
    expose:
      mode: allowlist
      tools: ["read_*", "löschen"]
      resources: ["file:///data/*", "x://a%20b/*", "x://c%2Fd", "https://a.example/s?q=*", "x://ü#*", "file:///c++/*", "x://h/a+b%2Bc/*", "http://münchen.de/*", "https://*.xn--bcher-kva.example/*"]
  - {id: ruled, kind: mcp}
governance:
  defaults: {action: deny}
  rules:
    - {source: listed, action: forward}
    - {match: ["read_*", "löschen"], source: ruled, action: forward}
    - {match: ["file:///data/*", "x://a%20b/*", "x://c%2Fd"], source: ruled, action: forward}
    - {match: ["https://a.example/s[?]q=*", "x://ü#*", "file:///c++/*", "x://h/a+b%2Bc/*"], source: ruled, action: forward}
    - {match: ["http://münchen.de/*", "https://*.xn--bcher-kva.example/*"], source: ruled, action: forward}
"#;

static STOPS: LazyLock<Policy> = LazyLock::new(|| policy(STOPPING));
static PASSES: LazyLock<Policy> = LazyLock::new(|| policy(PASSING));

fn passes(policy: &Policy, source: &str, method: &str, name: &str) -> bool {
    let call = PolicyCall { source, method, name, arguments: None };
    decide(policy, Profile::Production, &call, &CallFacts::default()).outcome
        == DecisionOutcome::Forward
}

fn check(policy: &Policy, method: &str, names: &[&str], expected: bool) {
    for name in names {
        for source in ["listed", "ruled"] {
            assert_eq!(passes(policy, source, method, name), expected, "{source} {name:?}");
        }
    }
}

#[test]
fn no_spelling_of_a_uri_passes_a_blocklist_or_a_deny_rule() {
    let stopped = [
        "file:///etc/passwd",
        "file:///%65tc/passwd",
        "file:///%2565tc/passwd",
        "file:///data/%252e%252e/etc/passwd",
        "file%3A///etc/passwd",
        "FILE:/etc/passwd",
        "file://other.host/etc/passwd",
        "file:///etc%2Fpasswd",
        "file:///\u{ff45}tc/passwd",
        "x://a b",
        "x://a%20b",
        "x://a%2520b",
        "x://a%20b/",
        "x://a%20b?x",
        "x://a b#x",
        "x://c+d",
        "x://c%2bd",
        "x://\u{fc}",
        "x://u\u{308}",
        "x://%C3%BC",
        "x://u%CC%88",
        "http://2852039166/latest",
        "http://0xA9FEA9FE:80/latest",
        "http://[::ffff:a9fe:a9fe]/latest",
        "http://169.254.169.254",
        "http://me@A.Example.:80/x?y#z",
        "http:a.example/x",
        "http://\u{ff21}\u{3002}EXAMPLE/x",
        "http://a.ex\u{ad}ample/x",
        "http://xn--mnchen-3ya.de/",
        "http://XN--MNCHEN-3YA.de/x",
        "http://M\u{dc}NCHEN\u{ff61}de/x",
        "http://mu\u{308}n\u{ad}chen.de",
        "http://m%C3%BCnchen.de:80/x",
        "https://www.b\u{fc}cher.example/x?y",
        "https://www.xn--bcher-kva.example/x/",
        "x://a+b",
        "x://a%u0020b",
        "x://%u0061+b?y",
        "file:///%u0065tc/passwd",
        "file:///data/%25u002e./etc/passwd",
        "x://@a b",
        "x://u:p@a b:",
        "X://@%61%20b",
    ];
    check(&STOPS, "resources/read", &stopped, false);
    check(&STOPS, "resources/subscribe", &stopped, false);
    let open = [
        "file:///data/a%20b",
        "x://a",
        "x://a%20c",
        "http://a.example/xy",
        "x://c/d",
        "http://munchen.de/",
        "http://xn--mnchen-3ya.example/",
        "x://a%u0062",
    ];
    check(&STOPS, "resources/read", &open, true);
}

#[test]
fn no_spelling_of_a_tool_or_prompt_passes_a_blocklist_or_a_deny_rule() {
    let tools = [
        "drop_table",
        " drop_table",
        "\u{feff}drop_table",
        "\u{ff44}rop_table",
        "l\u{f6}schen",
        "lo\u{308}schen",
        "lo\u{308}schen\n",
    ];
    check(&STOPS, "tools/call", &tools, false);
    check(&STOPS, "tools/call", &["read", "loschen", "Drop_x", "x drop_"], true);
    check(&STOPS, "prompts/get", &["secret", "secret ", "\u{ff53}ecret", "secret\0"], false);
}

#[test]
fn what_is_listed_passes_as_it_is_listed_and_in_no_other_spelling() {
    let listed = [
        "file:///data/a%20b.txt",
        "file:///data/%C3%BC",
        "file:///data/u\u{308}",
        "file:///data/",
        "file:///data/a?b#c",
        "x://a%20b/c",
        "x://a%20b/c%20d",
        "x://c%2Fd",
        "https://a.example/s?q=a%20b",
        "x://\u{fc}#a",
        "https://a.example/s?q=a+b",
        "file:///c++/a+b.txt",
        "file:///data/%u00fc",
        "x://h/a+b%2Bc/d",
        "http://m\u{fc}nchen.de/x",
        "https://www.xn--bcher-kva.example/x",
    ];
    check(&PASSES, "resources/read", &listed, true);
    let others = [
        "file:///data/..%2Fetc/passwd",
        "file:///data/%252e%252e/etc",
        "file:///data/x#/../../secret.txt",
        "file:///data/x?/../../secret.txt",
        "file:///data/x?y#/../../secret.txt",
        "file:///data/x%23/../../secret.txt",
        "file:///data/.. /secret.txt",
        "file:///data/..;a/secret.txt",
        "x://a%20b/c?/../../d",
        "x://a%20b/c#/../../d",
        "FILE:///data/a",
        "x://a b/c",
        "x://c/d",
        "x://c%2fd",
        "https://a.example/s?p=q",
        "x://u\u{308}#a",
        "file:///data/%u002e%u002e/etc",
        "file:///data/..+/secret.txt",
        "file:///c  /a",
        "http://xn--mnchen-3ya.de/x",
        "http://M\u{fc}nchen.de/x",
    ];
    check(&PASSES, "resources/read", &others, false);
    check(&PASSES, "tools/call", &["read_a", "l\u{f6}schen"], true);
    check(&PASSES, "tools/call", &["lo\u{308}schen", " read_a", "\u{ff52}ead_a"], false);
}

/// Ways in which servers change a URI before they use it.
fn lenient(uri: &str, way: u8) -> String {
    match way {
        0 => unquoted(uri),
        1 => uri.nfkc().collect(),
        2 => uri.trim().to_owned(),
        3 => uri.replace(['\t', '\n', '\r'], ""),
        4 => uri.split('\0').next().unwrap_or_default().to_owned(),
        5 => uri.replace('\\', "/"),
        6 => unquoted(&uri.replace('+', " ")),
        7 => unescaped(uri),
        _ => by_path(uri),
    }
}

fn unquoted(uri: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), uri.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let hex = hex.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => (out, rest) = ([out, vec![byte]].concat(), &after[2..]),
            None => (out, rest) = ([out, vec![*first]].concat(), after),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Decodes escapes like `%u0065`.
fn unescaped(uri: &str) -> String {
    let mut parts = uri.split("%u");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match code.and_then(char::from_u32) {
            Some(letter) => out = format!("{out}{letter}{}", &part[4..]),
            None => out = format!("{out}%u{part}"),
        }
    }
    out
}

/// The resolved path of a `file:` URI, as a URI again.
fn by_path(uri: &str) -> String {
    let Some(("file", rest)) = uri.split_once(':').map(|(scheme, rest)| {
        (if scheme.eq_ignore_ascii_case("file") { "file" } else { "" }, rest)
    }) else {
        return uri.to_owned();
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match rest.strip_prefix("//") {
        Some(after) => after.find('/').map_or("", |at| &after[at..]),
        None => rest,
    };
    let mut steps = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    format!("file:///{}", steps.join("/"))
}

fn uris() -> impl Strategy<Value = String> {
    let start = prop::sample::select(vec![
        "file:///",
        "FILE:/",
        "file://h/",
        " file:///",
        "file%3A///",
        "file:\\\\\\",
    ]);
    let step = prop::sample::select(vec![
        "data",
        "etc",
        "%65tc",
        "%2565tc",
        "e%74c",
        "\u{ff45}tc",
        "..",
        "%2e%2e",
        "%252e.",
        ".",
        "a b",
        "a%20b",
        "%00",
        "%0a",
        "x%2Fy",
        "x%252fy",
        "..%2f",
        "%5c..%5c",
        "\\",
        "#",
        "%3F",
        "%23a",
        "u\u{308}",
        "%u0065tc",
        "%u002e.",
        "%25u002e%2e",
        "..+",
        "+",
        "",
    ]);
    let steps = prop::collection::vec(step, 1..6);
    let first = prop::sample::select(vec!["data/", ""]);
    (start, first, steps)
        .prop_map(|(start, first, steps)| format!("{start}{first}{}", steps.join("/")))
}

proptest! {
    #[test]
    fn what_any_server_takes_for_a_blocked_uri_is_stopped(
        uri in uris(),
        ways in prop::collection::vec(0_u8..9, 0..6),
    ) {
        let read = ways.iter().fold(uri.clone(), |uri, way| lenient(&uri, *way));
        let blocked = read.starts_with("file:///etc/");
        let inside = read.starts_with("file:///data/");
        for source in ["listed", "ruled"] {
            let passed = passes(&STOPS, source, "resources/read", &uri);
            prop_assert!(!(blocked && passed), "{source} {uri:?} is {read:?}");
            let passed = passes(&PASSES, source, "resources/read", &uri);
            let folder = inside || by_path(&read) == "file:///data" || !read.starts_with("file:///");
            prop_assert!(!passed || folder, "{source} {uri:?} is {read:?}");
        }
    }
}
