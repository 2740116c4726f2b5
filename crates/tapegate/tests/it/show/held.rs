//! Held calls: a later line of the log has the decision, and may name only the request.

use std::fs;

use super::{command, out, shown};

#[test]
fn what_became_of_a_held_call_is_shown_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let session = "2026-03-20T14-22-11-804Z-0123456789abcdef";
    let call = |seq: u64, id: u64| {
        format!(
            r#"{{"type":"message","seq":{seq},"ts":"2026-03-20T14:22:1{id}.000000Z","dir":"c2s","msg":{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"call-{id}"}}}},"held":true}}"#
        )
    };
    let error = |seq: u64, id: u64, code: i64| {
        format!(
            r#"{{"type":"message","seq":{seq},"ts":"2026-03-20T14:22:1{id}.500000Z","dir":"s2c","msg":{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"}}}},"by":"tapegate"}}"#
        )
    };
    let list = r#"{"type":"message","seq":5,"ts":"2026-03-20T14:22:13.000000Z","dir":"c2s","msg":{"jsonrpc":"2.0","id":"tapegate:list:1","method":"tools/list"},"by":"tapegate"}"#;
    let header = r#"{"type":"header","version":"1.0","name":"files","recorded_at":"2026-03-20T14:22:11.000000Z","upstream":"x","thoughtjack_version":"0.1.0"}"#;
    let tape = [
        header.to_owned(),
        call(1, 1),
        error(2, 1, -32007),
        call(3, 2),
        error(4, 2, -32008),
        list.to_owned(),
    ];
    let logged = |rest: &str| {
        format!(
            r#"{{"timestamp":"2026-03-20T14:22:12.000000Z","kind":"approval","component":"shim","tape_session_id":"{session}",{rest},"seq":1,"prev":"0","hash":"1"}}"#
        )
    };
    let log = [
        logged(r#""governance_decision":"pending_approval","request_id":"c-1","tape_seq":1"#),
        logged(r#""governance_decision":"deny","decided_by":"ada","request_id":"c-1""#),
        logged(r#""governance_decision":"pending_approval","request_id":"c-2","tape_seq":3"#),
        logged(r#""governance_decision":"approval_timeout","request_id":"c-2","tape_seq":3"#),
    ];
    let file = folder.path().join(format!("{session}.jsonl"));
    fs::write(&file, tape.join("\n") + "\n").unwrap();
    fs::write(folder.path().join("activity.jsonl"), log.join("\n") + "\n").unwrap();
    let file = file.to_str().unwrap();

    let text = shown(&["--state", folder.path().to_str().unwrap(), file]);
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(row("call-1").contains("denied by ada"), "{text}");
    assert!(row("call-2").contains("timed out"), "{text}");
    assert!(row("tools/list").contains("tapegate: tools/list"), "{text}");
    let stats = out(&command("120").args(["stats", file]).output().unwrap());
    assert!(stats.contains("2 denied"), "{stats}");
}

#[test]
fn a_held_call_that_was_answered_with_a_task_still_waits() {
    let folder = tempfile::tempdir().unwrap();
    let tape = [
        r#"{"type":"header","version":"1.0","name":"files","recorded_at":"2026-03-20T14:22:11.000000Z","upstream":"x","thoughtjack_version":"0.1.0"}"#,
        r#"{"type":"message","seq":1,"ts":"2026-03-20T14:22:11.000000Z","dir":"c2s","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","task":{}}},"held":true}"#,
        r#"{"type":"message","seq":2,"ts":"2026-03-20T14:22:11.000000Z","dir":"s2c","msg":{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t"}}},"by":"tapegate"}"#,
    ];
    let file = folder.path().join("tape.jsonl");
    fs::write(&file, tape.join("\n") + "\n").unwrap();
    let text = shown(&[file.to_str().unwrap()]);
    let row = text.lines().find(|line| line.contains("write")).unwrap();
    assert!(row.contains("waits for a person"), "{text}");
}
