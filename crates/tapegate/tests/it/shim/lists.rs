//! Lists show only what may be used, on every page and at any speed.

use serde_json::{Value, json};

use super::setup::{ask, event, messages, server_got};
use crate::support::{EndedSession, shim};

/// A policy that hides everything whose name starts with `x`.
const HIDES_X: &str = "\
schema: 1
sources:
  - { id: s, kind: mcp, expose: { mode: blocklist, tools: [\"x*\"], prompts: [\"x*\"], resources: [\"x://x*\"] } }
governance: { defaults: { action: forward } }
";

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompts/list", "prompts", "name"),
];

fn listed(end: &EndedSession, id: i64, key: &str, member: &str) -> Vec<String> {
    let all = messages(&end.stdout);
    let reply = all.iter().find(|message| message["id"] == id).expect("an answer");
    let items = reply["result"][key].as_array().expect("a list");
    items.iter().map(|item| item[member].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_kind_of_list_is_filtered_and_its_other_bytes_are_kept() {
    for (id, (method, key, member)) in (1..).zip(LISTS) {
        let end = shim(HIDES_X, &["mcp=a,x1,b,x2"]).run(ask(id, method).as_bytes()).exits(0);
        let names = listed(&end, id, key, member);
        assert_eq!(names.len(), 2, "{method}: {names:?}");
        assert!(names.iter().all(|name| !name.contains("x1") && !name.contains("x2")), "{names:?}");
        let noted = event(end.run.folder(), &[("kind", "filter"), ("method", method)]);
        assert!(noted.to_string().contains('2'), "{noted}");
    }
}

#[test]
fn in_development_lists_stay_as_they_are_and_that_is_logged() {
    let setup = shim(HIDES_X, &["mcp=a,x1"]).flags(&["--profile", "development"]);
    let end = setup.run(ask(1, "tools/list").as_bytes()).exits(0);
    assert_eq!(listed(&end, 1, "tools", "name"), ["a", "x1"]);
    event(end.run.folder(), &[("governance_decision", "WOULD_FILTER")]);
}

#[test]
fn tools_that_a_rule_denies_stay_listed() {
    let policy = "schema: 1\ngovernance:\n  defaults: { action: deny }\n";
    let end = shim(policy, &["mcp=a,b"]).run(ask(1, "tools/list").as_bytes()).exits(0);
    assert_eq!(listed(&end, 1, "tools", "name"), ["a", "b"]);
}

#[test]
fn of_thousands_of_lists_not_one_comes_unfiltered() {
    // The earlier tool noted a request after its bytes had left: 170 of 3000 replies leaked.
    let lines: String = (0..6000).map(|id| ask(id, "tools/list")).collect();
    let end = shim(HIDES_X, &["mcp=a,x1"]).run(lines.as_bytes()).exits(0);
    let replies = messages(&end.stdout);
    assert_eq!(replies.len(), 6000);
    for reply in replies {
        assert_eq!(reply["result"]["tools"].as_array().map(Vec::len), Some(1), "{reply}");
    }
}

#[test]
fn a_list_that_nobody_asked_for_by_that_id_is_filtered_too() {
    // A server may spell the id differently from the client, and clients accept that.
    let list = r#"{"jsonrpc":"2.0","id":1.0,"result":{"tools":[{"name":"x1"},{"name":"a"},{"title":"x2"}]}}"#;
    let setup = shim(HIDES_X, &["read=1", &format!("say={list}"), "eof"]);
    let end = setup.run(ask(1, "tools/list").as_bytes());
    let text = String::from_utf8_lossy(&end.stdout).into_owned();
    assert!(text.contains("\"a\"") && !text.contains("x1") && !text.contains("x2"), "{text}");
}

#[test]
fn a_filtered_list_of_2026_is_not_cached_for_others() {
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[{"name":"x1"},{"name":"a"}],"nextCursor":"c","ttlMs":60000,"cacheScope":"public"}}"#;
    let setup = shim(HIDES_X, &["read=1", &format!("say={list}"), "eof"]);
    let end = setup.run(ask(1, "tools/list").as_bytes()).exits(0);
    let reply: Value = messages(&end.stdout).remove(0);
    assert_eq!(reply["result"]["nextCursor"], "c");
    assert_eq!(reply["result"]["tools"], json!([{ "name": "a" }]));
    // Clients of that revision reject a list without either of them.
    assert_eq!(reply["result"]["ttlMs"], 0, "{reply}");
    assert_eq!(reply["result"]["cacheScope"], "private", "{reply}");
}

#[test]
fn on_a_server_that_the_policy_does_not_know_lists_are_empty() {
    let policy = "schema: 1\nsources: [{ id: other, kind: mcp }]\ngovernance: { defaults: { action: forward } }\n";
    let end = shim(policy, &["log=log", "mcp=a,b"]).run(ask(1, "tools/list").as_bytes()).exits(0);
    assert_eq!(listed(&end, 1, "tools", "name"), Vec::<String>::new());
    assert!(server_got(end.run.folder()).contains("tools/list"));
}

#[test]
fn a_server_that_the_policy_does_not_name_is_warned_of_with_the_name_that_was_meant() {
    let policy = "schema: 1\nsources: [{ id: file }, { id: other }]\n\
                  governance: { defaults: { action: forward } }\n";
    let run = shim(policy, &["serve"]).server_id("fil").start();
    run.says("server `fil` is not in the `sources` of the policy");
    run.says("did you mean `file`?");
    let end = run.end_of_input().exits(0);
    let warned = event(end.run.folder(), &[("event", "unknown_source")]);
    assert_eq!((&warned["level"], &warned["kind"]), (&"warn".into(), &"policy".into()));
}
