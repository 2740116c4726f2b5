//! What was observed passes, and what differs from it does not.

mod sample;

use proptest::prelude::*;
use tapegate_core::side::Side;

use super::*;
use sample::{call, heard, sample};

fn wish(cedar: bool) -> Wish {
    let head = vec!["A test.".to_owned()];
    Wish { head, cedar: cedar.then(|| "observed.cedar".to_owned()) }
}

/// What a policy that was made says of a call of a tool of `files`.
fn outcome(made: &Generated, wish: &Wish, source: &str, name: &str, arguments: &str) -> Outcome {
    let policy = tried(made, wish).unwrap();
    let arguments = Some(arguments.as_bytes());
    let call = Call { source, method: "tools/call", name, arguments };
    decide(&policy, Profile::Production, &call, &Facts::default()).strict
}

#[test]
fn what_was_observed_passes_and_what_was_not_does_not() {
    for cedar in [false, true] {
        let wish = wish(cedar);
        let made = generate(&sample(), &wish).unwrap();
        let passes = |name: &str, arguments: &str| {
            outcome(&made, &wish, "files", name, arguments) == Outcome::Forward
        };
        for (name, good) in [
            ("read", r#"{"path":"/srv/a.txt","limit":20}"#),
            ("read", r#"{"path":"/srv/b.txt","limit":10,"mode":"text"}"#),
            ("ping", "{}"),
            ("write", r#"{"path":"/srv/out/77/y","size":3.25}"#),
        ] {
            assert!(passes(name, good), "cedar {cedar}: {name} {good}");
        }
        for (name, bad) in [
            ("rm", "{}"),
            ("reads", r#"{"path":"/srv/a.txt","limit":20}"#),
            ("read", "{}"),
            ("read", r#"{"path":"/srv/c.txt","limit":20}"#),
            ("read", r#"{"path":["/srv/a.txt"],"limit":20}"#),
            ("read", r#"{"path":"/srv/a.txt","limit":21}"#),
            ("read", r#"{"path":"/srv/a.txt","limit":20,"mode":"raw"}"#),
            ("read", r#"{"path":"/srv/a.txt","limit":20,"mode":7}"#),
            ("read", r#"{"path":"/srv/a.txt","limit":20,"follow":true}"#),
            ("write", r#"{"path":"/etc/passwd","size":3.5}"#),
            ("write", r#"{"path":"/srv/out/../../etc/passwd","size":3.5}"#),
            ("write", r#"{"path":"/srv/out/1/x","size":10}"#),
            ("write", r#"{"path":"/srv/out/1/x"}"#),
            ("list", r#"{"dirs":["/srv","/etc"],"opts":{"deep":true}}"#),
        ] {
            assert!(!passes(name, bad), "cedar {cedar}: {name} {bad}");
        }
        let elsewhere = outcome(&made, &wish, "other", "ping", "{}");
        assert_eq!(elsewhere, Outcome::Deny);
    }
}

#[test]
fn paths_that_share_nothing_but_the_root_are_any_text() {
    for start in ["/", "https://"] {
        let messages: Vec<String> =
            (0..9).map(|n| call("read", &format!(r#"{{"path":"{start}{n}/x"}}"#))).collect();
        let made = generate(&heard(&messages), &wish(false)).unwrap();
        assert!(made.policy.contains("path: { glob: \"*\" }"), "{}", made.policy);
    }
}

#[test]
fn a_list_may_be_empty_and_is_never_text() {
    let messages = [call("list", r#"{"dirs":["/a"]}"#), call("list", r#"{"dirs":[]}"#)];
    let made = generate(&heard(&messages), &wish(false)).unwrap();
    let passes = |arguments: &str| {
        outcome(&made, &wish(false), "files", "list", arguments) == Outcome::Forward
    };
    assert!(passes(r#"{"dirs":[]}"#));
    assert!(!passes(r#"{"dirs":"/b"}"#));
    assert!(!passes(r#"{"dirs":["/a","/b"]}"#));
}

#[test]
fn numbers_that_cedar_has_no_type_for_pass_all_the_same() {
    for numbers in
        [&["1", "5.5", "10", "7"][..], &["0.5", "3.14159", "9.5", "1"], &["1e5", "1", "2", "3"]]
    {
        let messages: Vec<String> =
            numbers.iter().map(|one| call("sum", &format!(r#"{{"n":{one}}}"#))).collect();
        for cedar in [false, true] {
            generate(&heard(&messages), &wish(cedar)).unwrap();
        }
    }
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
        assert_eq!(other, Outcome::Forward);
        assert_eq!(outcome(&made, &wish, "files", "login", r#"{"token":7}"#), Outcome::Deny);
    }
}

#[test]
fn many_uris_become_a_folder_that_nothing_leads_out_of() {
    let mut traffic = Traffic::default();
    for n in 0..30 {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"file:///srv/{n}"}}}}"#
        );
        traffic.hear("files", Side::Client, message.as_bytes());
    }
    for cedar in [false, true] {
        let wish = wish(cedar);
        let made = generate(&traffic, &wish).unwrap();
        let policy = tried(&made, &wish).unwrap();
        let passes = |uri: &str| {
            let call =
                Call { source: "files", method: "resources/read", name: uri, arguments: None };
            decide(&policy, Profile::Production, &call, &Facts::default()).strict
                == Outcome::Forward
        };
        assert!(passes("file:///srv/31"));
        for bad in ["file:///etc/x", "file:///srv/../etc/x", "file:///srv/%2E%2e/etc/x"] {
            assert!(!passes(bad), "{bad}");
        }
    }
}

/// Values of all kinds, some of them odd.
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
        // No blanks: keys that differ in blanks only are one to some servers, and never pass.
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
        prop_assert_eq!(stranger, Outcome::Deny);
        generate(&traffic, &wish(true)).map_err(TestCaseError::fail)?;
    }
}
