//! Held calls of clients of revision 2026-07-28 that accept tasks, which are an extension there.

use std::fs;

use serde_json::{Value, json};
use tapegate_store::approvals::ApprovalOutcome;

use super::http::upstream;
use super::setup::{answer, decide, event, held, rules, server_got, tapes, waiting};
use crate::support::{RunningSession, shim};

fn governed(steps: &[&str]) -> RunningSession {
    shim(&rules(&[("ask*", "approve"), ("no", "deny")]), steps).start()
}

/// A request of a client with these capabilities.
fn line(id: u64, method: &str, mut params: Value, capabilities: &Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
}

fn accepting() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

fn call(id: u64, tool: &str) -> String {
    line(id, "tools/call", json!({ "name": tool, "arguments": {} }), &accepting())
}

fn about(id: u64, verb: &str, task: &str) -> String {
    line(id, &format!("tasks/{verb}"), json!({ "taskId": task }), &accepting())
}

/// Makes a call, which becomes a task, and returns the id of the task.
fn begin(run: &mut RunningSession, id: u64, tool: &str) -> String {
    run.send(call(id, tool).as_bytes());
    let created = answer(run, id)["result"].clone();
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert_eq!((&created["ttlMs"], &created["pollIntervalMs"]), (&json!(600_000), &json!(1000)));
    for absent in ["task", "result", "error", "ttl"] {
        assert!(created[absent].is_null(), "{created}");
    }
    created["taskId"].as_str().expect("an id").to_owned()
}

/// What `tasks/get` says about a task.
fn state_of(run: &mut RunningSession, id: u64, task: &str) -> Value {
    run.send(about(id, "get", task).as_bytes());
    let state = answer(run, id)["result"].clone();
    assert_eq!(state["resultType"], "complete", "{state}");
    state
}

/// Polls a task until it has this status.
fn until(run: &mut RunningSession, from_id: u64, task: &str, status: &str) -> Value {
    (from_id..from_id + 10_000)
        .map(|id| state_of(run, id, task))
        .find(|state| state["status"] == status)
        .expect("an end")
}

#[test]
fn a_held_call_is_a_task_at_once_and_its_result_is_in_the_task() {
    let mut run = governed(&["log=log", "serve"]);
    let task = begin(&mut run, 1, "ask");
    let request = held(&run, 1).remove(0);
    let state = state_of(&mut run, 2, &task);
    assert_eq!(state["status"], "working");
    assert_eq!(state["statusMessage"], "waiting for approval (workflow `people`)");
    assert_eq!(server_got(run.folder()), "");
    decide(&run, ApprovalOutcome::Approved, &request);
    let state = until(&mut run, 100, &task, "completed");
    let sent: Value = serde_json::from_str(server_got(run.folder()).trim()).expect("one call");
    assert_eq!(state["result"]["for"], sent["id"], "{state}");
    let params: Value = serde_json::from_str(&call(1, "ask")).expect("JSON");
    assert_eq!(sent["params"], params["params"]);
    // A cancellation that comes too late is acknowledged, and changes nothing.
    run.send(about(3, "cancel", &task).as_bytes());
    assert_eq!(answer(&run, 3)["result"], json!({ "resultType": "complete" }));
    assert_eq!(state_of(&mut run, 4, &task)["status"], "completed");
    let end = run.end_of_input().exits(0);
    assert!(!server_got(end.run.folder()).contains("tasks/"), "the server knows of no task");
    let tape = fs::read_to_string(tapes(end.run.folder()).remove(0)).expect("a tape");
    for part in ["\"resultType\":\"task\"", "\"id\":\"tapegate-call-"] {
        let line = tape.lines().find(|line| line.contains(part)).expect(part);
        assert!(line.contains("\"by\":\"tapegate\""), "{line}");
    }
}

#[test]
fn a_call_that_is_denied_fails_and_one_that_is_cancelled_is_not_asked_about_any_more() {
    let mut run = governed(&["log=log", "serve"]);
    let task = begin(&mut run, 1, "ask");
    let request = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Denied, &request);
    let state = until(&mut run, 100, &task, "failed");
    assert_eq!(state["error"]["code"], -32007, "{state}");
    let cancelled = begin(&mut run, 2, "ask-2");
    held(&run, 1);
    run.send(about(3, "cancel", &cancelled).as_bytes());
    assert_eq!(answer(&run, 3)["result"], json!({ "resultType": "complete" }));
    let state = state_of(&mut run, 4, &cancelled);
    assert_eq!(state["status"], "cancelled");
    assert!(state["error"].is_null() && state["result"].is_null(), "{state}");
    event(run.folder(), &[("governance_decision", "cancelled")]);
    assert_eq!(waiting(&run).len(), 0);
    // What a rule denies is no task.
    run.send(call(5, "no").as_bytes());
    assert_eq!(answer(&run, 5)["error"]["code"], -32014);
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), "");
}

#[test]
fn only_clients_that_say_so_have_tasks() {
    let mut run = governed(&["log=log", "serve"]);
    let task = begin(&mut run, 1, "ask");
    let request = held(&run, 1).remove(0);
    for (id, verb) in [(2, "get"), (3, "cancel"), (4, "update")] {
        let plain = line(id, &format!("tasks/{verb}"), json!({ "taskId": task }), &json!({}));
        run.send(plain.as_bytes());
        let error = answer(&run, id)["error"].clone();
        assert_eq!(error["code"], -32021, "{error}");
        let required = &error["data"]["requiredCapabilities"]["extensions"];
        assert!(required["io.modelcontextprotocol/tasks"].is_object(), "{error}");
    }
    run.send(about(5, "result", &task).as_bytes());
    assert_eq!(answer(&run, 5)["error"]["code"], -32601);
    run.send(about(6, "update", &task).as_bytes());
    assert_eq!(answer(&run, 6)["result"], json!({ "resultType": "complete" }));
    decide(&run, ApprovalOutcome::Approved, &request);
    until(&mut run, 100, &task, "completed");
    run.end_of_input().exits(0);
}

#[test]
fn a_task_that_the_server_makes_of_the_call_is_polled_through_ours() {
    // The server answers the call with a task of its own, and then each request about it.
    let script = r#"
        reply() { id=${1#*\"id\":}; id=${id%%,*}; printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"%s","taskId":"theirs","status":"%s"}}\n' "$id" "$2" "$3"; }
        read -r line; reply "$line" task working
        read -r line; printf '%s\n' "$line" > got; reply "$line" complete input_required
        read -r line; printf '%s\n' "$line" >> got; reply "$line" complete completed
        cat"#;
    let mut run = shim(&rules(&[("ask", "approve")]), &[]).sh(script).start();
    let task = begin(&mut run, 1, "ask");
    let request = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Approved, &request);
    let state = until(&mut run, 100, &task, "input_required");
    assert_eq!(state["taskId"], json!(task));
    run.send(about(3, "update", &task).as_bytes());
    let done = answer(&run, 3)["result"].clone();
    assert_eq!((&done["taskId"], &done["status"]), (&json!(task), &json!("completed")));
    let got = fs::read_to_string(run.folder().join("got")).expect("what the server got");
    assert!(got.lines().count() == 2 && !got.contains(&task), "{got}");
    assert!(got.lines().all(|line| line.contains("\"taskId\":\"theirs\"")), "{got}");
    run.end_of_input().exits(0);
}

#[test]
fn a_held_call_is_a_task_in_front_of_a_server_over_http_too() {
    let upstream = upstream();
    let setup = shim(&rules(&[("ask", "approve")]), &[]).server(&[]);
    let mut run = setup.flags(&["--upstream-http", &upstream.url("/mcp")]).start();
    let task = begin(&mut run, 1, "ask");
    let request = held(&run, 1).remove(0);
    assert!(upstream.seen().is_empty());
    decide(&run, ApprovalOutcome::Approved, &request);
    let state = until(&mut run, 100, &task, "completed");
    let sent = upstream.wait(1).remove(0);
    let body: Value = serde_json::from_slice(&sent.body).expect("JSON");
    assert_eq!(state["result"]["for"], body["id"], "{state}");
    assert_eq!(
        (sent.header("mcp-method"), sent.header("mcp-name")),
        (Some("tools/call"), Some("ask"))
    );
    run.end_of_input().exits(0);
    assert_eq!(upstream.seen().len(), 1, "once");
}
