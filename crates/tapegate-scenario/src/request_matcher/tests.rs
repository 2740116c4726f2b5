//! Conditions in both vocabularies, and errors in them.

use std::cell::Cell;

use super::*;
use crate::finding::Findings;
use crate::node::Node;
use crate::pattern::SimpleGlob;
use crate::yaml;

fn node(text: &str) -> Node {
    let mut findings = Findings::default();
    yaml::parse(text, 0, &mut findings).unwrap_or_else(|| panic!("{text}"))
}

fn fits(when: &RequestMatcher, params: &str) -> bool {
    when.matches(&TemplateContext {
        params: params.as_bytes(),
        item: None,
        called: None,
        uri: &[],
        call_count: 1,
        phase: "calm",
        phase_index: 0,
        id: b"1",
        method: "tools/call",
        connection: 1,
        env: &|_| None,
        replies: &[],
        at: Default::default(),
        dice: &Cell::new(0),
    })
}

#[track_caller]
fn check(when: &str, params: &str, wanted: bool) {
    let mut findings = Findings::default();
    let read = RequestMatcher::read(&node(when), &mut findings);
    assert!(!findings.has_errors(), "{when}: {:?}", findings.into_list());
    assert_eq!(fits(&read, params), wanted, "{when} {params}");
}

#[test]
fn both_vocabularies_are_understood() {
    let args = r#"{"name":"t","uri":"a:b","arguments":{"p":"/etc/passwd","n":12,"f":1.0,"b":true,"z":null,"l":["x"]}}"#;
    for (when, wanted) in [
        ("{args.p: /etc/passwd}", true),
        ("{args: {p: /etc/passwd, n: 12}}", true),
        ("{arguments: {p: /etc/passwd, n: 13}}", false),
        ("{args.p: '/etc/*'}", true),
        ("{args.p: '/etc/?asswd'}", true),
        ("{args.p: '/etc'}", false),
        ("{args.p: 'regex:^/etc/.*d$'}", true),
        ("{args.p: {regex: 'ETC'}}", false),
        ("{args.p: {regex: '(?i)ETC'}}", true),
        ("{args.p: {starts_with: /etc, ends_with: wd}}", true),
        ("{args.p: {prefix: /etc, suffix: x}}", false),
        ("{args.p: {contains: passwd}}", true),
        ("{args.p: [a, '/e*']}", true),
        ("{args.p: {any_of: [a, b]}}", false),
        ("{args.n: {any_of: [11, 12]}}", true),
        ("{args.n: '12'}", true),
        ("{args.n: {gt: 11, lt: 13}}", true),
        ("{args.n: {gt: 12}}", false),
        ("{args.f: 1}", true),
        ("{args.b: true}", true),
        ("{args.b: 'true'}", true),
        ("{args.z: null}", true),
        ("{args.none: null}", false),
        ("{args.none: {exists: false}}", true),
        ("{args.none: {exists: false, contains: x}}", false),
        ("{args.none: '*'}", false),
        ("{args.z: {exists: true}}", true),
        ("{'args.l[0]': x, 'args.l[-1]': x}", true),
        ("{args.l: {equals: [x]}}", true),
        ("{args.p: {equals: '/etc/*'}}", false),
        ("{args.p: {glob: '*'}}", true),
        ("{uri: 'a:*', name: t, params.name: t}", true),
        ("{phase.name: calm, request.method: tools/call}", true),
        ("{phase.name: storm}", false),
    ] {
        check(when, args, wanted);
    }
    check("{args.p: x}", "[]", false);
    for (when, wanted) in [
        ("{args: {equals: {a: [1, é], b: {c: null}}}}", true),
        ("{args: {equals: {b: {c: null}, a: [1.0, é]}}}", true),
        ("{args: {equals: {a: [1, é]}}}", false),
        ("{args.a: {equals: [1, é]}}", true),
        ("{args.b: {equals: {c: 0}}}", false),
        ("{phase.name: {equals: calm}}", true),
        ("{phase.name: {equals: 'c*'}}", false),
    ] {
        check(when, r#"{"arguments": { "b": {"c": null}, "a": [1, "\u00e9"] } }"#, wanted);
    }
    check("{args: {equals: {}}}", r#"{"arguments": { }}"#, true);
    check("{args: {equals: {}}}", "{}", true);
    check("{args.a: {equals: {}}}", "{}", false);
    check("{}", "{}", true);
}

#[test]
fn globs_take_the_meaning_of_a_star_away_with_a_backslash() {
    for (glob, text, wanted) in [
        ("a\\*b", "a*b", true),
        ("a\\*b", "axb", false),
        ("\\?", "?", true),
        ("\\\\", "\\", true),
        ("C:\\x*", "C:\\xy", true),
        ("*a*b*", "xxaxxbxx", true),
        ("*a*b*", "xxbxxaxx", false),
        ("**", "", true),
        ("?", "é", true),
        ("?", "", false),
    ] {
        assert_eq!(SimpleGlob::new(glob).matches(text), wanted, "{glob} {text}");
    }
    let text = "a".repeat(100_000);
    assert!(!SimpleGlob::new(&"*a".repeat(20)).matches(&(text.clone() + "b")));
    assert!(SimpleGlob::new(&"*a".repeat(20)).matches(&text));
}

#[test]
fn faults_are_findings_with_their_path() {
    for (when, path, message) in [
        ("[a]", "", "expected a map, found a list"),
        ("{args.p: {regex: '('}}", "args.p.regex", "not a valid regular expression: unclosed"),
        ("{args.p: 'regex:['}", "args.p", "not a valid regular expression"),
        ("{args.p: {contains: 5}}", "args.p.contains", "this must be text, not a number"),
        ("{args.p: {exists: maybe}}", "args.p.exists", "this must be true or false"),
        ("{args.p: {gt: much}}", "args.p.gt", "this must be a number"),
        ("{args.p: {any_of: x}}", "args.p.any_of", "this must be a list"),
        ("{args.p: {contains: a, frefix: b}}", "args.p.frefix", "unknown comparison"),
        ("{args.p: {contain: a}}", "args.p.contain", "did you mean `contains`?"),
        ("{args.p: {}}", "args.p", "there is nothing to compare with"),
        ("{'args..p': x}", "args..p", "not a valid path: a name is missing"),
        ("{'args.p}': x}", "args.p}", "not a valid path"),
    ] {
        let mut findings = Findings::default();
        RequestMatcher::read(&node(when), &mut findings);
        let found = findings.into_list();
        assert!(!found.is_empty(), "{when}");
        assert_eq!(found[0].path, path, "{when}");
        assert!(found[0].message.contains(message), "{when}: {}", found[0].message);
    }
}

proptest::proptest! {
    #[test]
    fn a_glob_of_plain_text_is_that_text(text in "[^*?\\\\]{0,30}", other in ".{0,10}") {
        proptest::prop_assert!(SimpleGlob::new(&text).matches(&text));
        proptest::prop_assert_eq!(SimpleGlob::new(&text).matches(&other), text == other);
    }
}
