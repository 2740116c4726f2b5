//! Unsolicited answers, unanswered requests, and the bytes of malformed messages: all are in the
//! activity log.

use std::path::Path;

use serde_json::Value;

use super::setup::{FORWARD, call, events};
use crate::support::shim;

/// The orphans in the activity log: kind, direction and id.
fn orphans(folder: &Path) -> Vec<(String, String, String)> {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let events = events(folder);
    let orphans = events.iter().filter(|event| event["kind"] == "orphan");
    orphans
        .map(|event| (text(event, "orphan"), text(event, "direction"), text(event, "message_id")))
        .collect()
}

fn orphan(what: &str, direction: &str, id: &str) -> (String, String, String) {
    (what.to_owned(), direction.to_owned(), id.to_owned())
}

#[test]
fn an_answer_that_nobody_asked_for_is_logged_whoever_sends_it() {
    let answer = |id: &str| format!(r#"say={{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let steps = ["read=1", &answer("1"), &answer("99"), &answer("1"), "eof"];
    let setup = shim(FORWARD, &steps);
    let lines = [&call(1, "a"), "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n"].concat();
    let end = setup.run(lines.as_bytes()).exits(0);
    let mut found = orphans(end.run.folder());
    found.sort();
    let expected = [
        orphan("reply", "agent_to_server", "x"),
        orphan("reply", "server_to_agent", "1"),
        orphan("reply", "server_to_agent", "99"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_flood_of_orphans_makes_a_bounded_number_of_lines() {
    let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}\n"#.repeat(2000);
    let raw = format!("raw={answer}");
    let end = shim(FORWARD, &["read=1", &raw, "eof"]).run(call(1, "a").as_bytes()).exits(0);
    let found = orphans(end.run.folder());
    let replies = found.iter().filter(|(what, ..)| what == "reply").count();
    assert_eq!(replies, 22, "the first twenty, the hundredth and the thousandth: {found:?}");
}

#[test]
fn requests_that_are_not_answered_before_the_end_are_logged_whoever_asked() {
    let asks = r#"say={"jsonrpc":"2.0","id":"s1","method":"roots/list"}"#;
    let end = shim(FORWARD, &["read=1", asks, "exit=0"]).run(call(1, "a").as_bytes());
    let mut found = orphans(end.run.folder());
    found.sort();
    let expected =
        [orphan("request", "agent_to_server", "1"), orphan("request", "server_to_agent", "s1")];
    assert_eq!(found, expected);
}

#[test]
fn a_request_whose_answer_takes_too_long_is_logged_while_it_waits() {
    let mut run = shim(FORWARD, &["eof"]).flags(&["--answer-timeout", "1"]).start();
    run.send(call(5, "slow").as_bytes());
    run.until("the request is an orphan", |run| !orphans(run.folder()).is_empty());
    assert_eq!(orphans(run.folder()), [orphan("request", "agent_to_server", "5")]);
    let waited = events(run.folder()).iter().find_map(|event| event["waited_ms"].as_u64());
    assert!(waited.is_some_and(|ms| ms >= 1000), "{waited:?}");
    run.end_of_input();
}

#[test]
fn the_bytes_of_what_is_no_message_are_in_the_log_while_nothing_is_recorded() {
    let lines = b"{\"jsonrpc\":\"2.0\",\"method\":\"broken\n\xff\xfe bytes\n";
    let raws = |policy: String| {
        let end = shim(&policy, &["serve"]).run(lines).exits(0);
        let events = events(end.run.folder());
        let framing = events.iter().filter(|event| event["kind"] == "framing");
        framing.map(|event| (event["raw"].clone(), event["raw_hex"].clone())).collect::<Vec<_>>()
    };
    let off = raws(format!("{FORWARD}recording: {{ enabled: false }}\n"));
    let text = Value::from("{\"jsonrpc\":\"2.0\",\"method\":\"broken");
    let hex = Value::from("fffe206279746573");
    assert_eq!(off, [(text, Value::Null), (Value::Null, hex)]);
    let on = raws(format!("{FORWARD}recording: {{ enabled: true }}\n"));
    assert_eq!(on, [(Value::Null, Value::Null), (Value::Null, Value::Null)]);
}

#[test]
fn what_the_log_keeps_of_an_oversized_message_is_bounded_and_without_secrets() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let policy =
        format!("{FORWARD}recording: {{ enabled: false }}\nredaction: {{ enabled: true }}\n");
    let line = call(1, &format!("{secret} {}", "- ".repeat(4000)));
    let setup = shim(&policy, &["serve"]).flags(&["--max-message-bytes", "4KB"]);
    let end = setup.run(line.as_bytes()).exits(0);
    let events = events(end.run.folder());
    let framing = events.iter().find(|event| event["kind"] == "framing").expect("a framing line");
    let raw = framing["raw"].as_str().expect("how it begins");
    assert!(raw.starts_with("{\"jsonrpc\":\"2.0\",\"id\":1,"), "{raw}");
    assert!(raw.chars().count() <= 1024 && !raw.contains(&secret[..20]), "{raw}");
}
