//! Held calls whose clients ask for a task: they are answered at once, polled, cancelled and listed.

use std::fs;

use serde_json::{Value, json};
use tapegate_store::approvals::ApprovalOutcome;

use super::setup::{
    answer, answer_in, approvals, call, decide, event, events, held, messages, rules, server_got,
    tapes, waiting,
};
use crate::support::{RunningSession, shim};

fn governed() -> RunningSession {
    shim(&rules(&[("ask*", "approve"), ("no", "deny")]), &["log=log", "serve"]).start()
}

fn task_call(id: u64, tool: &str) -> String {
    let params = json!({ "name": tool, "arguments": {}, "task": { "ttl": 60_000 } });
    line(id, "tools/call", &params)
}

fn line(id: u64, method: &str, params: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
}

fn about(id: u64, verb: &str, task: &str) -> String {
    line(id, &format!("tasks/{verb}"), &json!({ "taskId": task }))
}

/// Makes a call as a task, and returns the id of the task.
fn begin(run: &mut RunningSession, id: u64, tool: &str) -> String {
    run.send(task_call(id, tool).as_bytes());
    let created = answer(run, id)["result"]["task"].clone();
    assert_eq!((&created["status"], &created["pollInterval"]), (&json!("working"), &json!(1000)));
    assert_eq!(created["ttl"], 300_000 + 300_000, "the workflow's timeout and what is kept");
    created["taskId"].as_str().expect("an id").to_owned()
}

/// What `tasks/get` says about a task.
fn state_of(run: &mut RunningSession, id: u64, task: &str) -> Value {
    run.send(about(id, "get", task).as_bytes());
    answer(run, id)["result"].clone()
}

#[test]
fn a_task_is_there_at_once_and_its_call_is_sent_when_a_person_says_yes() {
    let mut run = governed();
    let task = begin(&mut run, 1, "ask");
    let request = held(&run, 1).remove(0);
    let state = state_of(&mut run, 2, &task);
    assert_eq!(state["status"], "working");
    assert_eq!(state["statusMessage"], "waiting for approval (workflow `people`)");
    // The result waits, and nothing else does.
    run.send([about(3, "result", &task), call(4, "other")].concat().as_bytes());
    assert_eq!(answer(&run, 4)["result"]["for"], 4);
    assert!(!server_got(run.folder()).contains("\"ask\""));
    decide(&run, ApprovalOutcome::Approved, &request);
    let result = answer(&run, 3)["result"].clone();
    let related = &result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
    assert_eq!(related, &json!(task));
    // The server has got the call as it was approved, but under an id of ours.
    let got = server_got(run.folder());
    let sent: Value = got
        .lines()
        .filter(|line| line.contains("\"ask\""))
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .next()
        .expect("the call");
    assert_eq!(
        sent["params"],
        json!({ "name": "ask", "arguments": {}, "task": { "ttl": 60_000 } })
    );
    assert_eq!(result["for"], sent["id"]);
    assert_eq!(state_of(&mut run, 5, &task)["status"], "completed");
    // What the client withdraws is its own request, which the server does not know.
    let withdrawn =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    run.send(format!("{withdrawn}\n{}", call(6, "other")).as_bytes());
    answer(&run, 6);
    let end = run.end_of_input().exits(0);
    let got = server_got(end.run.folder());
    assert!(!got.contains("tasks/") && !got.contains("cancelled"), "{got}");
    let tape = fs::read_to_string(tapes(end.run.folder()).remove(0)).expect("a tape");
    let by_us = |part: &str| {
        let line =
            tape.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}"));
        assert!(line.contains("\"by\":\"tapegate\""), "{line}");
    };
    by_us("\"result\":{\"task\":");
    by_us("\"statusMessage\"");
    by_us("\"id\":\"tapegate-call-");
    by_us("related-task");
}

#[test]
fn a_task_that_is_denied_or_not_decided_fails_as_the_plain_call_does() {
    let mut run = governed();
    let task = begin(&mut run, 1, "ask");
    let request = held(&run, 1).remove(0);
    run.send(about(2, "result", &task).as_bytes());
    decide(&run, ApprovalOutcome::Denied, &request);
    assert_eq!(answer(&run, 2)["error"]["code"], -32007);
    let state = state_of(&mut run, 3, &task);
    assert_eq!(state["status"], "failed");
    let why = state["statusMessage"].as_str().expect("a text");
    assert!(why.starts_with("Tapegate: tool `ask` was not approved by a person"), "{why}");
    run.send([about(4, "result", &task), about(5, "cancel", &task)].concat().as_bytes());
    assert_eq!(answer(&run, 4)["error"], answer(&run, 2)["error"]);
    assert_eq!(answer(&run, 5)["error"]["code"], -32602);
    // A call that is denied by a rule has no task.
    run.send(task_call(6, "no").as_bytes());
    assert_eq!(answer(&run, 6)["error"]["code"], -32014);
    run.end_of_input().exits(0);

    let policy = rules(&[("ask", "approve")]).replace("timeout: 5m", "timeout: 5s");
    let mut run = shim(&policy, &["log=log", "serve"]).start();
    run.send(task_call(1, "ask").as_bytes());
    let task = answer(&run, 1)["result"]["task"]["taskId"].as_str().expect("an id").to_owned();
    run.send(about(2, "result", &task).as_bytes());
    assert_eq!(answer(&run, 2)["error"]["code"], -32008);
    assert_eq!(state_of(&mut run, 3, &task)["status"], "failed");
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), "");
}

#[test]
fn a_cancelled_task_no_longer_waits_for_a_person() {
    let mut run = governed();
    let task = begin(&mut run, 1, "ask");
    held(&run, 1);
    run.send([about(2, "result", &task), about(3, "cancel", &task)].concat().as_bytes());
    assert_eq!(answer(&run, 3)["result"]["status"], "cancelled");
    assert_eq!(answer(&run, 2)["error"]["code"], -32006);
    let log = event(run.folder(), &[("governance_decision", "cancelled")]);
    assert_eq!(log["policy_reason"], "the caller cancelled the call");
    assert_eq!(waiting(&run).len(), 0);
    assert_eq!(state_of(&mut run, 4, &task)["status"], "cancelled");
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), "");
}

#[test]
fn a_running_call_is_cancelled_at_the_server_and_its_late_answer_is_for_no_one() {
    let policy = rules(&[("ask", "approve")]);
    let mut run = shim(&policy, &["log=log", "hold=1", "read=1", "release=1", "serve"]).start();
    let task = begin(&mut run, 1, "ask");
    let request = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Approved, &request);
    run.until("the server has the call", |run| server_got(run.folder()).contains("\"ask\""));
    run.send(about(2, "cancel", &task).as_bytes());
    assert_eq!(answer(&run, 2)["result"]["status"], "cancelled");
    run.send(call(3, "other").as_bytes());
    assert_eq!(answer(&run, 3)["result"]["for"], 3);
    let end = run.end_of_input().exits(0);
    let got = server_got(end.run.folder());
    let id =
        serde_json::from_str::<Value>(got.lines().next().expect("a call")).expect("JSON")["id"]
            .clone();
    let cancelled: Value =
        serde_json::from_str(got.lines().nth(1).expect("a cancellation")).expect("JSON");
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], id);
    let all = messages(&end.stdout);
    assert!(all.iter().all(|message| message["id"].is_u64()), "{all:?}");
    let tape = fs::read_to_string(tapes(end.run.folder()).remove(0)).expect("a tape");
    let late = format!("\"result\":{{\"for\":{id}");
    assert!(tape.contains(&late), "the late answer is on the tape: {tape}");
}

#[test]
fn our_tasks_are_listed_with_those_of_the_server_and_pages_go_on() {
    let page =
        r#"{"jsonrpc":"2.0","id":3,"result":{"tasks":[{"taskId":"s1"}],"nextCursor":"more"}}"#;
    let unknown =
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"Method not found"}}"#;
    let (page, unknown) = (format!("say={page}"), format!("say={unknown}"));
    let script = ["log=log", "read=1", &page, "answer=1", "read=1", &unknown, "serve"];
    let mut run = shim(&rules(&[("ask", "approve")]), &script).start();
    let (first, second) = (begin(&mut run, 1, "ask"), begin(&mut run, 2, "ask"));
    run.send(line(3, "tasks/list", &json!({})).as_bytes());
    let listed = answer(&run, 3)["result"].clone();
    let ids: Vec<_> = listed["tasks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["taskId"].clone())
        .collect();
    assert_eq!(ids, [json!(second), json!(first), json!("s1")]);
    assert_eq!(listed["nextCursor"], "more");
    run.send(line(4, "tasks/list", &json!({ "cursor": "more" })).as_bytes());
    assert_eq!(answer(&run, 4)["result"]["for"], 4);
    run.send(line(5, "tasks/list", &json!({})).as_bytes());
    assert_eq!(answer(&run, 5)["result"]["tasks"].as_array().expect("a list").len(), 2);
    run.send(about(6, "get", "s1").as_bytes());
    assert_eq!(answer(&run, 6)["result"]["for"], 6);
    let end = run.end_of_input().exits(0);
    assert!(server_got(end.run.folder()).ends_with(&about(6, "get", "s1")), "byte for byte");
}

#[test]
fn however_many_tasks_wait_their_client_is_still_read_from() {
    let mut run = governed();
    let calls: String = (1..=32).map(|id| task_call(id, &format!("ask-{id}"))).collect();
    run.send(calls.as_bytes());
    assert_eq!(answer(&run, 32)["error"]["code"], -32013);
    let task = answer(&run, 31)["result"]["task"]["taskId"].as_str().expect("an id").to_owned();
    run.send(about(40, "cancel", &task).as_bytes());
    assert_eq!(answer(&run, 40)["result"]["status"], "cancelled");
    begin(&mut run, 41, "ask-41");
    assert_eq!(held(&run, 31).len(), 31);
    run.end_of_input().exits(0);
}

#[test]
fn secrets_in_the_result_of_a_task_are_masked_as_in_any_other() {
    let policy = format!(
        "{}redaction: {{ patterns: [secrets], on_wire: true }}\n",
        rules(&[("ask", "approve")])
    );
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let script = r#"read -r line; id=${line#*\"id\":}; id=${id%%,*}; printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"SECRET"}]}}\n' "$id"; cat"#;
    let mut run = shim(&policy, &[]).sh(&script.replace("SECRET", secret)).start();
    let task = begin(&mut run, 1, "ask");
    let request = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Approved, &request);
    run.send(about(2, "result", &task).as_bytes());
    let text = answer(&run, 2)["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(text.starts_with("[REDACTED:"), "{text}");
    run.end_of_input().exits(0);
}

#[test]
fn a_task_belongs_to_the_client_that_made_it() {
    let mut run = governed();
    let task = begin(&mut run, 1, "ask");
    held(&run, 1);
    // Another client of the same project, with a shim and a server of its own.
    let policy = rules(&[("ask*", "approve")]);
    let mut other = shim(&policy, &["log=log2", "serve"]).within(run.folder()).start();
    let own = begin(&mut other, 1, "ask");
    assert_ne!(own, task);
    other.send(about(2, "get", &task).as_bytes());
    assert_eq!(answer(&other, 2)["result"]["for"], 2, "its server is asked, and knows nothing");
    other.send(about(3, "cancel", &task).as_bytes());
    answer(&other, 3);
    assert_eq!(state_of(&mut run, 4, &task)["status"], "working");
    other.end_of_input().exits(0);
    run.end_of_input().exits(0);
}

#[test]
fn a_client_that_leaves_takes_its_tasks_along() {
    let mut run = governed();
    let task = begin(&mut run, 1, "ask");
    held(&run, 1);
    run.send(about(2, "result", &task).as_bytes());
    let end = run.end_of_input().exits(0);
    assert_eq!(answer_in(&end.stdout, &json!(2))["error"]["code"], -32000);
    assert_eq!(server_got(end.run.folder()), "");
    assert!(approvals(&end.run).pending(0).expect("a list").is_empty());
    let ends = events(end.run.folder());
    assert!(ends.iter().any(|event| event["governance_decision"] == "closed"), "{ends:?}");
}

#[test]
fn clients_that_ask_for_no_task_or_may_be_asked_for_input_wait_as_ever() {
    let mut run = governed();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
        },
    });
    let modern = json!({ "name": "ask", "task": {}, "_meta": meta });
    let odd = json!({ "name": "ask", "task": true });
    run.send([line(1, "tools/call", &modern), line(2, "tools/call", &odd)].concat().as_bytes());
    for id in held(&run, 2) {
        decide(&run, ApprovalOutcome::Approved, &id);
    }
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    run.end_of_input().exits(0);
}
