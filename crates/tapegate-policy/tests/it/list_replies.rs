//! List replies: no hidden item gets through, however it is spelled.

use tapegate_core::gate::{Topic, Verdict};
use tapegate_core::side::Side;
use tapegate_policy::model::Profile;

use crate::gate_harness::{GateHarness, policy, shown};

const POLICY: &str = "
schema: 1
sources:
  - id: fs
    kind: mcp
    expose: {mode: blocklist, tools: [secret*], prompts: [hidden], resources: ['file:///etc/*']}
governance: {defaults: {action: forward}, rules: [{match: denied, action: deny}]}
";

fn harness() -> GateHarness {
    GateHarness::new(Some(policy(POLICY)), Profile::Production)
}

fn reply(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

const TOOLS: &str = r#"{"tools":[{"name":"secret"},{"name":"denied"},{"name":"ls"}]}"#;
const SHOWN: &str = r#"{"tools":[{"name":"denied"},{"name":"ls"}]}"#;

#[test]
fn every_kind_of_list_is_filtered_and_what_rules_deny_stays_listed() {
    for (topic, before, after) in [
        (Topic::Tools, TOOLS, SHOWN),
        (
            Topic::Prompts,
            r#"{"prompts":[{"name":"hidden"},{"name":"p"}]}"#,
            r#"{"prompts":[{"name":"p"}]}"#,
        ),
        (
            Topic::Resources,
            r#"{"resources":[{"uri":"file:///a","name":"a"},{"uri":"file:///etc/b","name":"b"}],"nextCursor":"2"}"#,
            r#"{"resources":[{"uri":"file:///a","name":"a"}],"nextCursor":"2"}"#,
        ),
        (
            Topic::Resources,
            r#"{"resources":[{"uri":"file:///%65tc/b"},{"uri":"file:///a%20b"},{"uri":"file:/etc/b"}]}"#,
            r#"{"resources":[{"uri":"file:///a%20b"}]}"#,
        ),
        (
            Topic::Tools,
            r#"{"tools":[{"name":" secret"},{"name":"ｓecret"},{"name":"ls"}]}"#,
            r#"{"tools":[{"name":"ls"}]}"#,
        ),
        (
            Topic::Templates,
            r#"{"resourceTemplates":[{"uriTemplate":"file:///etc/{x}","name":"b"}]}"#,
            r#"{"resourceTemplates":[]}"#,
        ),
    ] {
        let mut harness = harness();
        let verdict = harness.judge(Side::Server, Some(topic), reply("1", before).as_bytes());
        assert_eq!(shown(&verdict), format!("rewrite {}", reply("1", after)));
        let noted = harness.noted();
        assert!(noted.len() == 1 && noted[0].starts_with("filter filter"), "{noted:?}");
    }
}

#[test]
fn a_list_leaks_by_no_spelling_of_its_id_and_under_no_other_request() {
    for id in ["1", "1.0", "1e0", "\"1\"", "\"\\u0031\"", "null", "[1]"] {
        for topic in [None, Some(Topic::Other), Some(Topic::Call), Some(Topic::Hello)] {
            let text = reply(id, TOOLS);
            let verdict = harness().judge(Side::Server, topic, text.as_bytes());
            assert!(!shown(&verdict).contains("secret"), "{text}");
            assert!(!matches!(verdict, Verdict::Forward), "{text}");
        }
    }
}

#[test]
fn a_list_beside_an_error_is_a_list() {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":null,"result":{TOOLS}}}"#);
    assert!(!shown(&harness().server(&text)).contains("secret"));
    let twice = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{SHOWN},"result":{TOOLS}}}"#);
    assert_eq!(shown(&harness().server(&twice)), "refuse -32600");
    let twin = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{SHOWN},"Result":{TOOLS}}}"#);
    assert_eq!(shown(&harness().server(&twin)), "refuse -32600");
}

#[test]
fn a_list_in_which_nothing_is_hidden_is_sent_on_as_it_is() {
    let mut harness = harness();
    assert_eq!(shown(&harness.server(&reply("1", SHOWN))), "forward");
    assert_eq!(harness.noted(), [""; 0]);
}

#[test]
fn of_an_unknown_server_nothing_is_seen() {
    let other = POLICY.replace("id: fs", "id: other");
    let mut harness = GateHarness::new(Some(policy(&other)), Profile::Production);
    let empty = format!("rewrite {}", reply("1", r#"{"tools":[]}"#));
    assert_eq!(shown(&harness.server(&reply("1", TOOLS))), empty);
    let off = POLICY.replace("kind: mcp", "kind: mcp\n    enabled: false");
    let mut harness = GateHarness::new(Some(policy(&off)), Profile::Production);
    assert_eq!(shown(&harness.server(&reply("1", TOOLS))), empty);
}

#[test]
fn development_only_says_what_would_be_hidden() {
    let mut harness = GateHarness::new(Some(policy(POLICY)), Profile::Development);
    assert_eq!(shown(&harness.server(&reply("1", TOOLS))), "forward");
    assert_eq!(harness.noted(), ["filter WOULD_FILTER "]);
}

#[test]
fn a_change_of_the_list_is_told_without_a_question() {
    for what in ["tools", "prompts", "resources"] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{what}/list_changed"}}"#);
        let mut harness = harness();
        assert_eq!(shown(&harness.server(&text)), "forward");
        assert_eq!(harness.noted(), [""; 0]);
    }
}
