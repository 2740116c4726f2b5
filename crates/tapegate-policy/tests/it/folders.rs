//! `under` compared with servers that read a text differently: what a rule forwards is in the
//! folder for all of them, and what is in the folder for one of them is stopped.

use std::sync::LazyLock;

use proptest::prelude::*;
use tapegate_core::side::Side;
use tapegate_policy::decide::{CallFacts, DecisionOutcome, PolicyCall, decide};
use tapegate_policy::model::{Policy, Profile};
use unicode_normalization::UnicodeNormalization;

use crate::gate_harness::{GateHarness, policy, refused};

fn forwarding(folder: &str) -> Policy {
    policy(&format!(
        "schema: 1\ngovernance:\n  defaults: {{action: deny}}\n  rules:\n    - {{match: read, action: forward, arguments: {{path: {{under: '{folder}'}}}}}}\n"
    ))
}

fn stopping(test: &str) -> Policy {
    policy(&format!(
        "schema: 1\ngovernance:\n  defaults: {{action: forward}}\n  rules:\n    - {{match: read, action: deny, arguments: {{{test}}}}}\n"
    ))
}

static PATHS: LazyLock<Policy> = LazyLock::new(|| forwarding("/data"));
static URIS: LazyLock<Policy> = LazyLock::new(|| forwarding("file:///data"));
static NOT_UNDER: LazyLock<Policy> = LazyLock::new(|| stopping("path: {not: {under: /data}}"));
static UNDER: LazyLock<Policy> = LazyLock::new(|| stopping("path: {under: /etc}"));
static UNDER_URI: LazyLock<Policy> = LazyLock::new(|| stopping("path: {under: 'file:///etc'}"));

fn passes_with(policy: &Policy, arguments: &str) -> bool {
    let arguments = Some(arguments.as_bytes());
    let call = PolicyCall { source: "s", method: "tools/call", name: "read", arguments };
    decide(policy, Profile::Production, &call, &CallFacts::default()).outcome
        == DecisionOutcome::Forward
}

fn passes(policy: &Policy, path: &str) -> bool {
    let mut text = Vec::new();
    tapegate_core::json::write_str(&mut text, path);
    passes_with(policy, &format!("{{\"path\":{}}}", String::from_utf8_lossy(&text)))
}

/// What servers do to a text before they open it.
const WAYS: [fn(&str) -> String; 13] = [
    unquoted,
    |text| text.replace('\\', "/"),
    |text| text.trim().to_owned(),
    |text| text.split('\0').next().unwrap_or_default().to_owned(),
    |text| text.replace(['\t', '\n', '\r'], ""),
    |text| text.nfkc().collect(),
    |text| text.strip_prefix("file://").unwrap_or(text).to_owned(),
    |text| text.replace("file://", ""),
    trimmed_steps,
    whatwg,
    urlparse,
    |text| unquoted(&unquoted(text)),
    |text| text.replace('+', " "),
];

/// Conversions of servers that recognise URIs: they never open one unchanged.
const URI_READERS: [fn(&str) -> String; 5] = [
    whatwg,
    |text| unquoted(&whatwg(text)),
    urlparse,
    |text| unquoted(&urlparse(text)),
    // One that accepts nothing else.
    |text| text.strip_prefix("file://").unwrap_or("/").to_owned(),
];

fn unquoted(text: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let hex = hex.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => (out.push(byte), rest = &after[2..]),
            None => (out.push(*first), rest = after),
        };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A file system that ignores blanks at the ends of a name.
fn trimmed_steps(text: &str) -> String {
    text.split('/').map(str::trim).collect::<Vec<_>>().join("/")
}

/// The path that a URL parser finds, with a folder as its base.
fn whatwg(text: &str) -> String {
    let text = text.trim_matches(|letter: char| letter <= ' ').replace(['\t', '\n', '\r'], "");
    let text = text.split('#').next().unwrap_or_default();
    let text = text.split('?').next().unwrap_or_default().replace('\\', "/");
    let file = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    let rest = if file { &text[5..] } else { &text };
    let path = match rest.strip_prefix("//") {
        Some(place) => place.find('/').map_or("/", |at| &place[at..]).to_owned(),
        None if file => format!("/{}", rest.trim_start_matches('/')),
        None => rest.to_owned(),
    };
    path.replace("%2e", ".").replace("%2E", ".")
}

/// The path that Python's `urlparse` finds.
fn urlparse(text: &str) -> String {
    let scheme = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let rest = text.split_once(':').filter(|(start, _)| scheme(start) && !start.is_empty());
    let with_params = rest.is_none();
    let rest = rest.map_or(text, |(_, rest)| rest);
    let place = match rest.strip_prefix("//") {
        Some(place) => &place[place.find(['/', '?', '#']).unwrap_or(place.len())..],
        None => rest,
    };
    let place = place.split('#').next().unwrap_or_default();
    let place = place.split('?').next().unwrap_or_default();
    match place.rsplit_once('/') {
        Some((start, last)) if with_params => {
            format!("{start}/{}", last.split(';').next().unwrap_or_default())
        }
        _ => place.to_owned(),
    }
}

/// The path that a server with this working directory opens.
fn opened(text: &str, folder: &str) -> String {
    let text = if text.starts_with('/') { text.to_owned() } else { format!("{folder}/{text}") };
    let mut steps = Vec::new();
    for step in text.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

fn is_under(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn texts() -> impl Strategy<Value = String> {
    let start = prop::sample::select(vec![
        "/",
        "/",
        "/",
        "file:///",
        "file:///",
        "file:/",
        "file:",
        "FILE:///",
        "file://h/",
        "//",
        "file://localhost/",
        " /",
        "\\",
        "",
        "%2F",
        "file:////",
        "/x/../",
    ]);
    let step = prop::sample::select(vec![
        "data",
        "data",
        "etc",
        "..",
        "..",
        "a",
        "x#",
        "x?",
        "#",
        "?",
        "%2e%2e",
        "%252e%252e",
        ".",
        "%2e",
        "..;",
        "..;a",
        "a;b",
        ".. ",
        "..+",
        "..%20",
        "..%00",
        "..\0",
        "..\t",
        ".\n.",
        "...",
        "..%2f",
        "..%5c",
        "..\\..",
        "\\",
        "%23",
        "%3F",
        "\u{2024}\u{2024}",
        "\u{ff05}2e.",
        ".file://.",
        "a%20b",
        "a b",
        "",
        "\u{200b}..",
        "e\u{301}",
    ]);
    let first = prop::sample::select(vec!["data/", "data/", "data/", ""]);
    (start, first, prop::collection::vec(step, 0..7))
        .prop_map(|(start, first, steps)| format!("{start}{first}{}", steps.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn what_is_forwarded_lies_in_the_folder_whoever_reads_it(
        text in texts(),
        ways in prop::collection::vec(0..WAYS.len(), 0..5),
        cwd in prop::sample::select(vec!["/", "/data", "/srv/app/deep"]),
    ) {
        let plain = passes(&PATHS, &text);
        // Stopping what is not in the folder must permit exactly what is.
        prop_assert_eq!(passes(&NOT_UNDER, &text), plain, "{:?}", text);
        if plain {
            let mut read = text.clone();
            for way in ways {
                read = WAYS[way](&read);
                let place = opened(&read, cwd);
                prop_assert!(is_under(&place, "/data"), "{:?} -> {:?} -> {}", text, read, place);
            }
        }
        if passes(&URIS, &text) {
            for reader in URI_READERS {
                let place = opened(&reader(&text), cwd);
                prop_assert!(is_under(&place, "/data"), "{:?} -> {}", text, place);
            }
        }
    }

    #[test]
    fn what_lies_in_the_folder_for_one_reader_is_stopped(
        text in texts(),
        ways in prop::collection::vec(0..WAYS.len(), 0..4),
        cwd in prop::sample::select(vec!["/", "/etc", "/srv/app/deep"]),
    ) {
        let mut read = text.clone();
        for way in ways {
            // Each of these changes a text in a way of its own, or drops a part inside the text.
            if matches!(way, 7 | 8 | 10 | 12) {
                continue;
            }
            read = WAYS[way](&read);
        }
        if is_under(&opened(&read, cwd), "/etc") {
            prop_assert!(!passes(&UNDER, &text), "{:?} -> {:?}", text, read);
        }
        for reader in URI_READERS {
            if is_under(&opened(&reader(&text), cwd), "/etc") {
                prop_assert!(!passes(&UNDER_URI, &text), "{:?}", text);
            }
        }
    }
}

#[test]
fn no_uri_passes_where_a_path_is_wanted() {
    for text in [
        "file:///data/x#/../../../../etc/passwd",
        "file:///data/x?/../../../../etc/passwd",
        "file:/data/x",
        "file:///../data/x",
        "file:///data/n",
        "file://localhost/data/n",
    ] {
        assert!(!passes(&PATHS, text), "{text}");
        assert!(!passes(&NOT_UNDER, text), "{text}");
    }
    assert!(passes(&PATHS, "/data/n") && passes(&NOT_UNDER, "/data/n"));
    assert!(passes(&URIS, "file:///data/n") && !passes(&URIS, "/data/n"));
}

#[test]
fn a_path_in_json_that_is_a_text_is_held_to_the_same_folder() {
    let anywhere = policy(
        "schema: 1\ngovernance:\n  defaults: {action: deny}\n  rules:\n    - {match: read, action: forward, arguments: {..path: {under: /data}}}\n    - {match: read, action: forward, arguments: {'items[*].path': {under: /data}}}\n",
    );
    for good in [
        r#"{"path":"/data/a"}"#,
        r#"{"path":"/data/a","more":"{\"path\":\"/data/b\"}"}"#,
        r#"{"items":[{"path":"/data/a"},{"path":"/data/b"}]}"#,
    ] {
        assert!(passes_with(&anywhere, good), "{good}");
    }
    for bad in [
        r#"{"path":"/data/a","more":"{\"path\":\"/etc/b\"}"}"#,
        r#"{"path":"/data/a","more":{"path":["/data/b"]}}"#,
        r#"{"items":[{"path":"/data/a"},"{\"path\":\"/etc/b\"}"]}"#,
        r#"{"items":[{"path":"/data/a"},[{"path":"/etc/b"}]]}"#,
    ] {
        assert!(!passes_with(&anywhere, bad), "{bad}");
    }
}

#[test]
fn a_rule_that_stops_what_is_not_in_the_folder_finds_it_in_lists_and_texts() {
    let each = stopping("'paths[*]': {not: {under: /data}}");
    for bad in [
        r#"{"paths":["/data/a","/etc/b"]}"#,
        r#"{"paths":"/etc/b"}"#,
        r#"{"paths":"[\"/etc/b\"]"}"#,
        r#"{"paths":[["/etc/b"]]}"#,
        r#"{"paths":["file:///data/a#/../../etc"]}"#,
        r#"{"Paths":["/etc/b"]}"#,
    ] {
        assert!(!passes_with(&each, bad), "{bad}");
    }
    assert!(passes_with(&each, r#"{"paths":["/data/a","/data"]}"#));
}

#[test]
fn a_refusal_of_a_relative_path_says_that_an_absolute_one_is_wanted() {
    let rule = |action: &str, test: &str| {
        let default = if action == "deny" { "forward" } else { "deny" };
        format!(
            "schema: 1\ngovernance:\n  defaults: {{ action: {default} }}\n  rules:\n    \
             - {{ match: read, action: {action}, arguments: {{ path: {test} }} }}\n"
        )
    };
    let said = |text: &str, path: &str| {
        let mut harness = GateHarness::new(Some(policy(text)), Profile::Production);
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"read","arguments":{{"path":"{path}"}}}}}}"#
        );
        refused(harness.judge(Side::Client, None, line.as_bytes())).message
    };
    for (action, test, absolute) in [
        ("forward", "{ under: /data }", "/etc/a"),
        ("deny", "{ under: /etc }", "/etc/a"),
        ("deny", "{ not: { under: /data } }", "/etc/a"),
        ("forward", "{ not: { under: /etc } }", "/etc/a"),
    ] {
        let text = rule(action, test);
        let output_text = said(&text, "../etc/a");
        assert!(output_text.contains("not with these arguments"), "{action} {test}: {output_text}");
        assert!(output_text.contains("Use an absolute path"), "{action} {test}: {output_text}");
        assert!(
            !output_text.contains("/data") && !output_text.contains("/etc"),
            "no pattern: {output_text}"
        );
        let output_text = said(&text, absolute);
        assert!(!output_text.contains("absolute path"), "{action} {test}: {output_text}");
    }
}
