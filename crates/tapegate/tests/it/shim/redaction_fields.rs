//! `redaction.fields` names an argument: it is masked wherever a call is stored, and sent
//! unchanged.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tapegate_store::approvals::ApprovalOutcome;

use super::setup::{answer, call_with, decide, held, rules, server_got, tapes, waiting};
use crate::http_peers;
use crate::support::{RunningSession, shim};

/// No pattern matches it: only the field's name shows that it is a secret.
const SECRET: &str = "correct horse";

/// Calls of `ask` wait for a person, calls of `no` are refused, and the others pass.
fn policy(fields: &str) -> String {
    let rules = rules(&[("ask", "approve"), ("no", "deny")]);
    format!("{rules}redaction: {{ fields: [{fields}] }}\n")
}

fn line(id: u32, tool: &str) -> String {
    call_with(id, tool, &format!("{{\"x\":\"{SECRET}\",\"y\":\"seen\"}}"))
}

/// The messages of the client on the one tape.
fn recorded(run: &RunningSession) -> Vec<Value> {
    let tapes = tapes(run.folder());
    assert_eq!(tapes.len(), 1, "{tapes:?}");
    let text = fs::read_to_string(&tapes[0]).unwrap();
    let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.filter(|entry| entry["dir"] == "c2s").collect()
}

#[track_caller]
fn is_masked(entry: &Value) {
    let arguments = &entry["msg"]["params"]["arguments"];
    let x = arguments["x"].as_str().unwrap();
    assert!(x.starts_with("[REDACTED:path:"), "{entry}");
    assert_eq!(arguments["y"], "seen", "{entry}");
    assert_eq!(entry["redacted"], serde_json::json!(["/params/arguments/x"]), "{entry}");
}

/// Asserts that no file below this folder contains the secret.
#[track_caller]
fn is_kept_nowhere(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            is_kept_nowhere(&path);
        } else {
            let text = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(SECRET), "{}: {text}", path.display());
        }
    }
}

#[test]
fn an_argument_is_masked_on_the_tape_in_the_log_and_for_approvers_and_sent_as_it_is() {
    for fields in ["arguments.x", "\"$.arguments['x']\"", "x", "params.arguments.x"] {
        let mut run = shim(&policy(fields), &["log=log", "serve"]).start();
        run.send([line(1, "other"), line(2, "no"), line(3, "ask")].concat().as_bytes());
        assert_eq!(answer(&run, 1)["result"]["for"], 1);
        assert_eq!(answer(&run, 2)["error"]["code"], -32014);
        let id = held(&run, 1).remove(0);
        let params = waiting(&run).remove(0).params.unwrap();
        assert!(params.contains("[REDACTED:path:") && params.contains("seen"), "{params}");
        assert!(!params.contains(SECRET), "{params}");
        decide(&run, ApprovalOutcome::Approved, &id);
        assert_eq!(answer(&run, 3)["result"]["for"], 3);
        assert_eq!(server_got(run.folder()), [line(1, "other"), line(3, "ask")].concat());
        let end = run.end_of_input().exits(0);
        let entries = recorded(&end.run);
        assert_eq!(entries.len(), 3, "{fields}: {entries:?}");
        entries.iter().for_each(is_masked);
        is_kept_nowhere(&end.run.folder().join("state/tapes"));
        let log = fs::read_to_string(end.run.folder().join("state/activity.jsonl")).unwrap();
        assert!(!log.contains(SECRET) && !end.stderr.contains(SECRET), "{log}");
        is_kept_nowhere(&end.run.folder().join("state/private"));
    }
}

#[test]
fn an_argument_is_masked_on_the_tape_of_a_client_on_http() {
    let setup = shim(&policy("arguments.x"), &["log=log", "serve"]);
    let run = setup.flags(&["--http", "127.0.0.1:0"]).start();
    let headers = ["content-type: application/json", "accept: application/json, text/event-stream"];
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"arguments\":{\"x\":\"correct horse\",\"y\":\"seen\"}}}";
    http_peers::ask(run.port(), "POST /mcp", &headers, body);
    run.until("the message on the tape", |run| !recorded(run).is_empty());
    recorded(&run).iter().for_each(is_masked);
    is_kept_nowhere(&run.folder().join("state"));
}
