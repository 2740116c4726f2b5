//! A backtest agrees with a live shim: the same session, message by message.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use super::{PolicyProject, call};
use crate::support::tapegate;

/// A server that has tools, and answers every request with success.
const SERVER: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *tools/list*) r='{"tools":[{"name":"read_file"},{"name":"admin_reset"},{"name":"write_file"}]}' ;;
    *) r='{"content":[]}' ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
  printf '{"jsonrpc":"2.0","id":"q%s","method":"roots/list"}\n' "$id"
done"#;

/// The messages of an agent, some of which it should not send.
fn session() -> String {
    let mut lines = vec![
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.to_owned(),
    ];
    let tools = ["read_file", "delete_file", "write_file", "admin_reset", "list_x", "unheard"];
    for (index, tool) in tools.iter().cycle().take(24).enumerate() {
        let path = if index % 4 == 0 { "/tmp/x" } else { "/etc/x" };
        let line = call(10 + index as u64, tool, &format!("{{\"path\":\"{path}\"}}"));
        lines.push(line[1..].to_owned());
    }
    lines.extend(
        [
            r#"{"jsonrpc":"2.0","id":60,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}"#,
            r#"{"jsonrpc":"2.0","id":61,"method":"resources/read","params":{"uri":"file:///home/x"}}"#,
            r#"{"jsonrpc":"2.0","id":62,"method":"prompts/get","params":{"name":"secret"}}"#,
            r#"{"jsonrpc":"2.0","id":63,"method":"logging/setLevel","params":{"level":"debug"}}"#,
            r#"{"jsonrpc":"2.0","id":64,"method":"tools/call","params":{"name":"read_file","name":"delete_file"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"delete_file"}}"#,
            r#"{"jsonrpc":"2.0","id":65,"method":"tools/call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":66,"method":"ping"} {}"#,
            r#"[{"jsonrpc":"2.0","id":67,"method":"ping"}]"#,
            "this is no message",
        ]
        .map(str::to_owned),
    );
    // No approver will answer, so held calls are cancelled.
    for id in (10..34).chain([60, 61, 62]) {
        lines.push(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
    }
    lines.join("\n") + "\n"
}

/// Runs the session through a shim; returns its tape and the decisions in the activity log.
fn live(project: &PolicyProject, profile: &str) -> (PathBuf, Vec<String>) {
    let home = project.path("state");
    let mut shim = tapegate()
        .args(["shim", "--server-id", "files", "--profile", profile, "--", "sh", "-c", SERVER])
        .current_dir(project.path(""))
        .env("TAPEGATE_HOME", &home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shim.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(session().as_bytes()).unwrap());
    let done = shim.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let tapes = fs::read_dir(home.join("tapes/files")).unwrap().map(|entry| entry.unwrap().path());
    let tape =
        tapes.into_iter().find(|path| !path.to_str().unwrap().contains("anomalies")).unwrap();
    let log = fs::read_to_string(home.join("activity.jsonl")).unwrap();
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    (tape, events.flat_map(|event| decided(&event)).collect())
}

/// The decisions about a message in an event; empty if it is about something else.
fn decided(event: &Value) -> Vec<String> {
    let text = |key: &str| event[key].as_str().unwrap_or("-").to_owned();
    let word = text("governance_decision");
    let line = |method: String, name: String| {
        format!("{method} {name} {word} {} {}", text("gate"), text("rule"))
    };
    match text("kind").as_str() {
        "filter" => {
            let hidden = event["hidden_names"].as_array().unwrap();
            let hidden = hidden.iter().map(|name| name.as_str().unwrap().to_owned());
            hidden.map(|name| line("tools/list".to_owned(), name)).collect()
        }
        // A tape does not show how a hold ends.
        "approval" if word != "pending_approval" => Vec::new(),
        "decision" | "framing" | "approval" => vec![line(text("method"), text("tool"))],
        _ => Vec::new(),
    }
}

/// The decisions that a backtest of a tape reports.
fn backtested(project: &PolicyProject, tape: &str, profile: &str) -> Vec<String> {
    let show = "deny,hold,reject,drift,filter,redact,forward";
    let arguments = ["backtest", tape, "--profile", profile, "--show", show, "--format", "jsonl"];
    let out = project.policy(&arguments).exits(0).out;
    let findings = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let findings = findings.filter(|finding| finding["type"] == "finding");
    let text = |finding: &Value, key: &str| match finding[key].as_str() {
        None | Some("") => "-".to_owned(),
        Some(text) => text.to_owned(),
    };
    let keys = ["method", "name", "decision", "gate", "rule"];
    findings.map(|finding| keys.map(|key| text(&finding, key)).join(" ")).collect()
}

#[track_caller]
fn agree(profile: &str) -> Vec<String> {
    let project = PolicyProject::new();
    let (tape, mut live) = live(&project, profile);
    let mut backtested = backtested(&project, tape.to_str().unwrap(), profile);
    if profile == "production" {
        // A filtered list is on the tape as the client got it.
        live.retain(|line| !line.contains(" filter "));
    }
    live.sort();
    backtested.sort();
    assert_eq!(backtested, live);
    live
}

#[test]
fn a_backtest_of_a_session_says_what_the_shim_did_in_production() {
    let live = agree("production");
    let count = |word: &str| live.iter().filter(|line| line.contains(word)).count();
    assert!(live.len() > 30, "{live:#?}");
    for word in [" forward ", " deny ", " pending_approval ", " reject ", " drop ", "roots/list"] {
        assert!(count(word) > 0, "{word}: {live:#?}");
    }
}

#[test]
fn a_backtest_of_a_session_says_what_the_shim_would_have_done_in_development() {
    let live = agree("development");
    for word in
        ["WOULD_BLOCK", "WOULD_REQUIRE_APPROVAL", "WOULD_REJECT", "WOULD_DROP", "WOULD_FILTER"]
    {
        assert!(live.iter().any(|line| line.contains(word)), "{word}: {live:#?}");
    }
}
