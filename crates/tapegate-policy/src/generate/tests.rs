//! Observed calls pass, and calls that differ do not.

mod sample;

use proptest::prelude::*;
use tapegate_core::side::Side;

use super::*;
use sample::{call, heard, sample};

fn wish(cedar: bool) -> GenerateOptions {
    let head = vec!["A test.".to_owned()];
    GenerateOptions { head, cedar: cedar.then(|| "observed.cedar".to_owned()), home: None }
}

/// The decision of a generated policy about a call of a tool of `source`.
fn outcome(
    made: &GeneratedPolicy,
    wish: &GenerateOptions,
    source: &str,
    name: &str,
    arguments: &str,
) -> DecisionOutcome {
    of_policy(&reload(made, wish).unwrap(), source, name, arguments)
}

fn of_policy(policy: &Policy, source: &str, name: &str, arguments: &str) -> DecisionOutcome {
    let arguments = Some(arguments.as_bytes());
    let call = PolicyCall { source, method: "tools/call", name, arguments };
    decide(policy, Profile::Production, &call, &CallFacts::default()).strict
}

/// Asserts whether each call passes, under rules and under Cedar.
fn assert_passes(traffic: &RecordedTraffic, expected: bool, calls: &[(&str, &str)]) {
    for cedar in [false, true] {
        let wish = wish(cedar);
        let made = generate(traffic, &wish).unwrap();
        let policy = reload(&made, &wish).unwrap();
        for (name, arguments) in calls {
            let passes = of_policy(&policy, "files", name, arguments) == DecisionOutcome::Forward;
            assert_eq!(passes, expected, "cedar {cedar}: {name} {arguments}\n{}", made.policy);
        }
    }
}

#[test]
fn work_like_what_was_observed_passes() {
    assert_passes(
        &sample(),
        true,
        &[
            ("read", r#"{"path":"/srv/a.txt","limit":20}"#),
            ("read", r#"{"path":"/srv/deep/er/c.txt","limit":9999}"#),
            ("read", r#"{"path":"/srv/b.txt","limit":10,"mode":"text"}"#),
            ("ping", "{}"),
            ("write", r#"{"path":"/srv/out/77/y","content":"anything\n at all","size":3.25}"#),
            ("fetch", r#"{"url":"https://docs.example/other#x"}"#),
            ("open", r#"{"file":"src/lib.rs"}"#),
            ("open", r#"{"file":"./src/.hidden/lib.rs"}"#),
            ("pay", r#"{"amount":50,"currency":"EUR","dry_run":true}"#),
            ("run", r#"{"command":"make some"}"#),
        ],
    );
}

#[test]
fn arguments_that_were_never_used_do_not_pass_whatever_they_are_called() {
    let used = r#""path":"/srv/repo","remote":"origin","branch":"main""#;
    let mut traffic = heard(&[call("git_push", &format!("{{{used}}}"))]);
    let list = r#"{"jsonrpc":"2.0","id":"l","result":{"tools":[{"name":"git_push","inputSchema":{"properties":{"path":{"type":"string"},"remote":{"type":"string"},"branch":{"type":"string"},"remoteBranch":{"type":"string"},"confirmed":{"type":"boolean"},"dryRun":{"type":"boolean"},"depth":{"type":"integer"},"refs":{"type":"string"}}}}]}}"#;
    traffic.observe("files", b"", Side::Server, list.as_bytes());
    assert_passes(&traffic, true, &[("git_push", &format!("{{{used}}}"))]);
    for more in [
        r#""remoteBranch":"production""#,
        r#""remoteBranch":"production","confirmed":true"#,
        r#""confirmed":false"#,
        r#""dryRun":true"#,
        r#""depth":1"#,
        r#""refs":"x""#,
    ] {
        assert_passes(&traffic, false, &[("git_push", &format!("{{{used},{more}}}"))]);
    }
}

#[test]
fn attacks_do_not_pass() {
    assert_passes(
        &sample(),
        false,
        &[
            ("rm", "{}"),
            // In the schema, but never used.
            ("read", r#"{"path":"/srv/b.txt","head":3}"#),
            ("reads", r#"{"path":"/srv/a.txt"}"#),
            ("read", "{}"),
            ("read", r#"{"Path":"/etc/passwd"}"#),
            ("read", r#"{"path":"/etc/passwd"}"#),
            ("read", r#"{"path":"/srv/../etc/passwd"}"#),
            ("read", r#"{"path":"/srv/%2e%2e/etc/passwd"}"#),
            ("read", r#"{"path":"/srv/..%2fetc/passwd"}"#),
            ("read", r#"{"path":"/srv\\..\\..\\etc"}"#),
            ("read", r#"{"path":"/srvs/a.txt"}"#),
            ("read", r#"{"path":["/srv/a.txt"]}"#),
            ("read", r#"{"path":"[\"/srv/a.txt\"]"}"#),
            ("read", r#"{"path":"/srv/a.txt","mode":"raw"}"#),
            ("read", r#"{"path":"/srv/a.txt","mode":["text"]}"#),
            ("read", r#"{"path":"/srv/a.txt","follow":true}"#),
            ("read", r#"{"path":"/srv/a.txt","follow":"true"}"#),
            ("read", r#"{"path":"/srv/a.txt","follow":1}"#),
            ("read", r#"{"path":"/srv/a.txt","cwd":"/"}"#),
            ("write", r#"{"path":"/srv/out/../../etc/passwd","content":"x"}"#),
            ("write", r#"{"path":"/srv/a","content":"x"}"#),
            ("fetch", r#"{"url":"https://evil.example/"}"#),
            ("fetch", r#"{"url":"https://docs.example@evil.example/"}"#),
            ("fetch", r#"{"url":"https://docs.example.evil.example/"}"#),
            ("fetch", r#"{"url":"https://docs.example\\@evil.example/"}"#),
            ("open", r#"{"file":"/etc/passwd"}"#),
            ("open", r#"{"file":"../etc/passwd"}"#),
            ("open", r#"{"file":"src/../../etc/passwd"}"#),
            ("open", r#"{"file":"~/x"}"#),
            ("open", r#"{"file":"docs/x"}"#),
            ("read", r#"{"path":"/srv/a.txt","Mode":"raw"}"#),
            ("read", r#"{"path":"/srv/a.txt","FOLLOW":true}"#),
            ("read", r#"{"path":"/srv/a.txt","Cwd":"/"}"#),
            ("list", r#"{"dirs":["/srv/a","/etc"],"opts":{"deep":true,"force":false}}"#),
            ("list", r#"{"dirs":"/etc","opts":{"deep":true,"force":false}}"#),
            ("list", r#"{"dirs":"[\"/etc\"]","opts":{"deep":true,"force":false}}"#),
            ("list", r#"{"dirs":["/srv/a"],"opts":{"force":true}}"#),
            ("list", r#"{"dirs":["/srv/a"],"opts":"{\"force\":true}"}"#),
            ("pay", r#"{"amount":51,"currency":"EUR","dry_run":true}"#),
            ("pay", r#"{"amount":"30","currency":"EUR","dry_run":true}"#),
            ("pay", r#"{"amount":30,"currency":"EUR"}"#),
            ("pay", r#"{"amount":30,"currency":"EUR","dry_run":false}"#),
            ("pay", r#"{"amount":30,"currency":"XXX","dry_run":true}"#),
        ],
    );
    let made = generate(&sample(), &wish(false)).unwrap();
    for (name, arguments) in [
        ("ping", r#"{"x":1}"#),
        ("write", r#"{"path":"/srv/out/1","content":"x","force":true}"#),
        ("read", r#"{"path":"/srv/a.txt","paths":["/etc/passwd"]}"#),
        ("list", r#"{"dirs":["/srv/a"],"opts":{"deep":true,"force":false,"cwd":"/"}}"#),
        ("read", r#"{"path":"/srv/a.txt","Mode":"raw"}"#),
        ("read", r#"{"path":"/srv/a.txt","FOLLOW":true}"#),
        ("read", r#"{"path":"/srv/a.txt","Cwd":"/"}"#),
        ("list", r#"{"dirs":["/srv/a","/etc"],"opts":{"deep":true}}"#),
        ("list", r#"{"dirs":"/etc","opts":{"deep":true}}"#),
        ("list", r#"{"dirs":"[\"/etc\"]","opts":{"deep":true}}"#),
        ("list", r#"{"dirs":["/srv/a"],"opts":{"force":true}}"#),
        ("list", r#"{"dirs":["/srv/a"],"opts":"{\"force\":true}"}"#),
    ] {
        let found = outcome(&made, &wish(false), "files", name, arguments);
        assert_eq!(found, DecisionOutcome::Deny, "{name} {arguments}\n{}", made.policy);
    }
    let elsewhere = outcome(&made, &wish(false), "other", "ping", "{}");
    assert_eq!(elsewhere, DecisionOutcome::Deny);
}

#[test]
fn each_tool_has_one_rule_and_the_same_tapes_make_the_same_text() {
    let made = generate(&sample(), &wish(false)).unwrap();
    for name in ["read", "list", "ping", "write", "fetch", "open", "pay", "run"] {
        assert_eq!(made.policy.matches(&format!("    - match: {name}\n")).count(), 1, "{name}");
    }
    assert_eq!(made, generate(&sample(), &wish(false)).unwrap());
}

#[test]
fn calls_that_the_server_refused_do_not_count() {
    let mut traffic = RecordedTraffic::default();
    let mut say = |from, message: &str| traffic.observe("files", b"", from, message.as_bytes());
    for (id, path) in [(1, "/srv/a"), (2, "/etc/passwd"), (3, "/var/x"), (4, "/srv/b")] {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"read","arguments":{{"path":"{path}"}}}}}}"#
        );
        say(Side::Client, &message);
    }
    say(Side::Server, r#"{"jsonrpc":"2.0","id":3,"result":{"isError":true,"content":[]}}"#);
    say(Side::Server, r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}"#);
    say(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{"isError":false,"content":[]}}"#);
    // The fourth is never answered; the other session uses the same ids.
    traffic.observe("files", b"2", Side::Server, br#"{"jsonrpc":"2.0","id":4,"error":{}}"#);
    traffic.end_tape();
    assert_eq!((traffic.count(), traffic.refused_count()), (2, 2));
    let made = generate(&traffic, &wish(false)).unwrap();
    assert!(made.policy.contains("path: { under: /srv }"), "{}", made.policy);
}

#[test]
fn what_cedar_cannot_say_and_what_is_run_are_warned_about() {
    let rules = generate(&sample(), &wish(false)).unwrap();
    let expected = [
        "`opts.deep` of `list` may be anything: it had only one value, and the tape does not show its effect",
        "`command` of `run` may be anything: it is executed, so any value is possible",
    ];
    assert_eq!(rules.warnings, expected);
    let cedar = generate(&sample(), &wish(true)).unwrap();
    let told = cedar.warnings.join("\n");
    assert!(told.contains("Cedar does not test `*` of `ping`"), "{told}");
    let text = cedar.cedar.unwrap();
    assert!(text.contains("// `*` is not tested:"), "{text}");
    assert!(text.contains("context.folders.dirs.contains(\"/srv\")"), "{text}");
}

#[test]
fn free_text_ids_and_counts_stay_open() {
    let messages: Vec<String> = (0..3)
        .map(|n| {
            let arguments = format!(
                r#"{{"query":"q{n}","issue_number":{n},"id":"x{n}","verbose":true,"tags":["t{n}"],"cursor":null}}"#
            );
            call("search", &arguments)
        })
        .collect();
    let made = generate(&heard(&messages), &wish(false)).unwrap();
    assert!(!made.policy.contains("  arguments:"), "{}", made.policy);
    assert!(made.policy.contains("# May be anything: "), "{}", made.policy);
}

#[test]
fn an_argument_that_may_be_null_or_left_out_stays_optional() {
    let messages = [
        call("read", r#"{"path":"/srv/a","root":null}"#),
        call("read", r#"{"path":"/srv/c","root":"/srv/x/y"}"#),
    ];
    assert_passes(
        &heard(&messages),
        true,
        &[("read", r#"{"path":"/srv/b"}"#), ("read", r#"{"path":"/srv/b","root":null}"#)],
    );
    assert_passes(&heard(&messages), false, &[("read", r#"{"path":"/srv/b","root":"/"}"#)]);
}

#[test]
fn secrets_and_their_placeholders_are_not_written_down() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6");
    let messages = [
        call("login", &format!(r#"{{"token":"{token}"}}"#)),
        call("login", r#"{"token":"[REDACTED:github-token:0123456789abcdef]"}"#),
    ];
    for cedar in [false, true] {
        let wish = wish(cedar);
        let made = generate(&heard(&messages), &wish).unwrap();
        let all = format!("{}{:?}", made.policy, made.cedar);
        assert!(!all.contains("ghp_") && !all.contains("REDACTED"), "{all}");
        let other = outcome(&made, &wish, "files", "login", r#"{"token":"other"}"#);
        assert_eq!(other, DecisionOutcome::Forward);
    }
}

#[test]
fn many_uris_become_a_folder_that_nothing_leads_out_of() {
    let mut traffic = RecordedTraffic::default();
    for n in 0..30 {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"file:///srv/{n}"}}}}"#
        );
        traffic.observe("files", b"", Side::Client, message.as_bytes());
    }
    traffic.end_tape();
    for cedar in [false, true] {
        let wish = wish(cedar);
        let made = generate(&traffic, &wish).unwrap();
        let policy = reload(&made, &wish).unwrap();
        let passes = |uri: &str| {
            let call = PolicyCall {
                source: "files",
                method: "resources/read",
                name: uri,
                arguments: None,
            };
            decide(&policy, Profile::Production, &call, &CallFacts::default()).strict
                == DecisionOutcome::Forward
        };
        assert!(passes("file:///srv/31"));
        for bad in ["file:///etc/x", "file:///srv/../etc/x", "file:///srv/%2E%2e/etc/x"] {
            assert!(!passes(bad), "{bad}");
        }
    }
}

/// Values of all kinds, some of them unusual.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|one| one.to_string()),
        any::<i64>().prop_map(|one| one.to_string()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,6})?(e-?[0-9]{1,2})?",
        "\"[ -!#-\\[\\]-~é*$\\{\\}]{0,12}\"",
        "\"/[a-c/.]{0,8}\"",
        Just("\"\\ud800\\u0000\\n\"".to_owned()),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        // No blanks: some servers ignore blanks in keys, so keys that differ only in blanks never
        // pass.
        let key = "[a-c'.\\[\\]*$]{0,3}";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|all| format!("[{}]", all.join(","))),
            prop::collection::btree_map(key, inner, 0..4).prop_map(object),
        ]
    })
}

fn object(members: std::collections::BTreeMap<String, String>) -> String {
    let members = members.iter().map(|(key, value)| format!("\"{key}\":{value}"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_observed_passes(
        calls in prop::collection::vec(("[a-b*?$]{1,2}", prop::collection::btree_map("[a-d]", json(), 0..4)), 1..12)
    ) {
        let messages: Vec<String> =
            calls.into_iter().map(|(name, members)| call(&name, &object(members))).collect();
        let traffic = heard(&messages);
        prop_assert!(!traffic.is_empty());
        let made = generate(&traffic, &wish(false)).map_err(TestCaseError::fail)?;
        let stranger = outcome(&made, &wish(false), "files", "stranger", "{}");
        prop_assert_eq!(stranger, DecisionOutcome::Deny);
        generate(&traffic, &wish(true)).map_err(TestCaseError::fail)?;
    }
}
