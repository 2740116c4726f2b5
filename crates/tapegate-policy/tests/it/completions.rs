//! Rules on arguments apply to completions: the values typed so far can stop one, but never permit
//! it.

use tapegate_core::gate::Verdict;
use tapegate_policy::model::Profile;

use crate::gate_harness::{GateHarness, policy_with, request};

const RULES: &str = "
schema: 1
governance:
  defaults: {action: DEFAULT}
  rules:
    - {match: review, action: ACTION, arguments: {path: {under: /etc}}}
    - {match: pick, action: ACTION, arguments: {topic: secret}}
";

fn harness(text: &str, cedar: &str) -> GateHarness {
    GateHarness::new(Some(policy_with(text, &[("p.cedar", cedar)])), Profile::Production)
}

fn ruled(action: &str, default: &str) -> GateHarness {
    harness(&RULES.replace("ACTION", action).replace("DEFAULT", default), "")
}

/// Whether a completion for a prompt is forwarded.
fn passes(harness: &mut GateHarness, prompt: &str, rest: &str) -> bool {
    let params = format!(r#"{{"ref":{{"type":"ref/prompt","name":"{prompt}"}},{rest}}}"#);
    let text = request("completion/complete", &params);
    matches!(harness.client(&text), Verdict::Forward)
}

#[test]
fn a_rule_that_stops_an_argument_stops_its_completion() {
    let stopped = [
        ("review", r#""argument":{"name":"path","value":"/etc/pas"}"#),
        ("review", r#""argument":{"name":"Path","value":"/etc/pas"}"#),
        ("review", r#""argument":{"name":"path","value":"/data/../etc"}"#),
        ("review", r#""argument":{"Name":"path","Value":"/etc/"}"#),
        (
            "review",
            r#""argument":{"name":"x","value":""},"context":{"arguments":{"path":"/etc/a"}}"#,
        ),
        ("review", r#""argument":"path""#),
        ("review", r#""argument":{"name":"path"}"#),
        ("pick", r#""argument":{"name":"topic","value":"secret"}"#),
        ("pick", r#""argument":{"name":"topic","value":" s%65cret"}"#),
        (
            "pick",
            r#""argument":{"name":"a","value":"b"},"context":{"arguments":{"topic":["secret"]}}"#,
        ),
    ];
    let passed = [
        ("review", r#""argument":{"name":"path","value":"/data/a"}"#),
        ("review", r#""argument":{"name":"mode","value":"/etc/a"}"#),
        (
            "review",
            r#""argument":{"name":"x","value":""},"context":{"arguments":{"path":"/data"}}"#,
        ),
        ("pick", r#""argument":{"name":"topic","value":""}"#),
        ("other", r#""argument":{"name":"path","value":"/etc/a"}"#),
    ];
    for action in ["deny", "approve"] {
        for (prompt, rest) in stopped {
            assert!(!passes(&mut ruled(action, "forward"), prompt, rest), "{action} {rest}");
        }
        for (prompt, rest) in passed {
            assert!(passes(&mut ruled(action, "forward"), prompt, rest), "{action} {rest}");
        }
    }
    // The decision about one is not reused for the next.
    let mut harness = ruled("deny", "forward");
    for (prompt, rest) in [passed[0], stopped[0], passed[0], passed[3], stopped[7]] {
        assert_eq!(
            passes(&mut harness, prompt, rest),
            !stopped.contains(&(prompt, rest)),
            "{rest}"
        );
    }
}

#[test]
fn what_is_typed_lets_no_completion_pass() {
    for rest in [
        r#""argument":{"name":"path","value":"/etc/pas"}"#,
        r#""argument":{"name":"topic","value":"secret"}"#,
        r#""arguments":{"topic":"secret"},"argument":{"name":"a","value":"b"}"#,
    ] {
        for prompt in ["review", "pick"] {
            assert!(!passes(&mut ruled("forward", "deny"), prompt, rest), "{prompt} {rest}");
        }
    }
}

#[test]
fn a_rule_that_stops_may_be_about_completions_alone() {
    let text = "
schema: 1
governance:
  defaults: {action: forward}
  rules:
    - {method: completion/complete, action: deny, arguments: {path: {under: /etc}}}
";
    let etc = r#""argument":{"name":"path","value":"/etc/pas"}"#;
    assert!(!passes(&mut harness(text, ""), "any", etc));
    assert!(passes(&mut harness(text, ""), "any", r#""argument":{"name":"path","value":"/srv"}"#));
}

#[test]
fn a_forbid_is_held_against_what_is_typed_and_a_permit_is_not() {
    let text = "
schema: 1
governance: {defaults: {action: policy, policy_id: p}}
cedar: {policies: [p.cedar]}
";
    let forbid = "permit(principal, action, resource);\n\
                  forbid(principal, action, resource) when { \
                  context.arguments has topic && context.arguments.topic == \"secret\" };";
    let permit = "permit(principal, action, resource) when { \
                  context.arguments has topic && context.arguments.topic == \"open\" };";
    let typed = |value: &str| format!(r#""argument":{{"name":"topic","value":"{value}"}}"#);
    assert!(!passes(&mut harness(text, forbid), "pick", &typed("secret")));
    assert!(!passes(&mut harness(text, forbid), "pick", &typed("s%65cret")));
    assert!(passes(&mut harness(text, forbid), "pick", &typed("open")));
    assert!(!passes(&mut harness(text, permit), "pick", &typed("open")));
}

#[test]
fn a_completion_does_not_name_our_own_files() {
    let mut harness = ruled("deny", "forward");
    assert!(passes(&mut harness, "other", r#""argument":{"name":"file","value":"a.yaml"}"#));
    assert!(!passes(
        &mut harness,
        "other",
        r#""argument":{"name":"file","value":"tapegate.yaml"}"#
    ));
}
