//! Cedar policies in a policy: a forbid applies to every spelling that a stopping rule applies to.

use tapegate_policy::decide::{CallFacts, DecisionOutcome, PolicyCall, decide};
use tapegate_policy::model::Profile;

use crate::gate_harness::policy_with;

const POLICY: &str = "
schema: 1
governance: {defaults: {action: policy, policy_id: p}}
cedar: {policies: [p.cedar]}
";

/// Whether a call with these arguments is forwarded under a permit for all and this forbid.
fn passes(condition: &str, arguments: &str) -> bool {
    let cedar = format!(
        "permit(principal, action, resource);\n\
         forbid(principal, action, resource) when {{ {condition} }};"
    );
    let policy = policy_with(POLICY, &[("p.cedar", &cedar)]);
    let arguments = Some(arguments.as_bytes());
    let call = PolicyCall { source: "fs", method: "tools/call", name: "fetch", arguments };
    decide(&policy, Profile::Production, &call, &CallFacts::default()).strict
        == DecisionOutcome::Forward
}

#[test]
fn a_forbid_stops_a_url_in_every_spelling() {
    let like =
        "context.arguments has url && context.arguments.url like \"http://169.254.169.254/*\"";
    let same = "context.arguments has url && context.arguments.url == \"http://169.254.169.254/x\"";
    for url in [
        "http://169.254.169.254/x",
        "HTTP://169.254.169.254/x",
        "http://169.254.169.254:80/x",
        "http://me@169.254.169.254/x",
        "http://2852039166/x",
        "http://0xa9.0376.43518/x",
        "http://[::ffff:169.254.169.254]/x",
        " http:\\\\\\\\169.254.169.254/%78",
    ] {
        let arguments = format!("{{\"url\":\"{url}\"}}");
        assert!(!passes(like, &arguments), "{url}");
        assert!(!passes(same, &arguments), "{url}");
    }
    for url in ["http://169.254.169.25/x", "https://docs.example/a%20b"] {
        assert!(passes(like, &format!("{{\"url\":\"{url}\"}}")), "{url}");
    }
}

#[test]
fn a_forbid_stops_what_it_says_in_escapes_and_in_both_scripts() {
    let has = "context.arguments has url && context.arguments.url";
    for (test, urls) in [
        (
            "== \"file:///data/a%20b\"",
            &[
                "file:///data/a%20b",
                "file:///data/a b",
                "file:///data/a+b",
                "file:///data/a%2520b",
                "file://localhost/data/a b",
                "FILE:/data/x/../a%20b",
                "file:///data//a%u0020b",
            ][..],
        ),
        (
            "like \"file:///data/a%20b/*.txt\"",
            &[
                "file:///data/a%20b/c.txt",
                "file:///data/a b/c.txt",
                "file://localhost/data/a+b/c.txt",
                "file:///data/x/../a b/c.txt",
            ],
        ),
        (
            "== \"http://münchen.de/x\"",
            &["http://xn--mnchen-3ya.de/x", "http://MÜNCHEN.de:80/x", "http://mün\u{ad}chen。de/x"],
        ),
        ("like \"http://*.münchen.de/*\"", &["http://a.xn--mnchen-3ya.de/x"]),
        ("like \"http://xn--mnchen-3ya.de/*\"", &["http://münchen.de/x"]),
    ] {
        for url in urls {
            assert!(
                !passes(&format!("{has} {test}"), &format!("{{\"url\":\"{url}\"}}")),
                "{test} {url}"
            );
        }
        for url in ["file:///data/ab", "file:///data/a b/c.md", "http://munchen.de/x"] {
            assert!(
                passes(&format!("{has} {test}"), &format!("{{\"url\":\"{url}\"}}")),
                "{test} {url}"
            );
        }
    }
}

#[test]
fn folders_are_the_same_to_cedar_and_to_rules() {
    let under = "context.folders.path.contains(\"/etc\")";
    for path in ["/etc/passwd", "/x/../etc", "file:///etc/x", "etc/x", "/%65tc/x"] {
        assert!(!passes(under, &format!("{{\"path\":\"{path}\"}}")), "{path}");
    }
    assert!(passes(under, r#"{"path":"/data/x"}"#) && passes(under, "{}"));
}

#[test]
fn a_forbid_stops_a_uri_with_a_query_a_fragment_or_a_slash_at_its_end() {
    let cedar = "permit(principal, action, resource);\n\
                 forbid(principal, action, resource) when { resource.name == \"note://secret/a\" };";
    let policy = policy_with(POLICY, &[("p.cedar", cedar)]);
    let passes = |name: &str| {
        let call = PolicyCall { source: "fs", method: "resources/read", name, arguments: None };
        decide(&policy, Profile::Production, &call, &CallFacts::default()).strict
            == DecisionOutcome::Forward
    };
    for uri in [
        "note://secret/a",
        "note://secret/a?x",
        "note://secret/a#x",
        "note://secret/a/",
        "note://secret/%61",
    ] {
        assert!(!passes(uri), "{uri}");
    }
    assert!(passes("note://secret/b?x") && passes("note://secret/a/b"));
}

#[test]
fn a_forbid_that_names_a_uri_by_its_escapes_stops_it_without_them() {
    let cedar = "permit(principal, action, resource);\n\
                 forbid(principal, action, resource) when { resource.name like \"file:///a%20b/*\" };\n\
                 forbid(principal, action, resource) when { resource.name == \"note://%C3%BC\" };";
    let policy = policy_with(POLICY, &[("p.cedar", cedar)]);
    let passes = |name: &str| {
        let call = PolicyCall { source: "fs", method: "resources/read", name, arguments: None };
        decide(&policy, Profile::Production, &call, &CallFacts::default()).strict
            == DecisionOutcome::Forward
    };
    for uri in [
        "file:///a%20b/c",
        "file:///a b/c",
        "file:///%61%20b/c",
        "file:///a b/c?d",
        "note://%C3%BC",
        "note://\u{fc}",
    ] {
        assert!(!passes(uri), "{uri}");
    }
    for uri in ["file:///ab/c", "file:///a c/b", "note://u"] {
        assert!(passes(uri), "{uri}");
    }
}
