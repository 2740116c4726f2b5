//! What the tests of the shim share: policies, calls, and readers of the state folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, ApprovalStore};

use crate::support::{GUARD, RunningSession, approvals_of, tapegate, within};

/// A policy that permits everything.
pub(crate) const FORWARD: &str = "schema: 1\ngovernance: { defaults: { action: forward } }\n";

/// A policy with rules as `match: action`; everything else passes.
pub(crate) fn rules(rules: &[(&str, &str)]) -> String {
    let line = |(name, action): &(&str, &str)| {
        format!("    - {{ match: \"{name}\", action: {action} }}\n")
    };
    let rules: String = rules.iter().map(line).collect();
    format!(
        "schema: 1\ngovernance:\n  defaults: {{ action: forward }}\n  rules:\n{rules}\
         approval:\n  people: {{ destination: {{ type: cli }}, timeout: 5m }}\n"
    )
}

/// A line that calls a tool.
pub(crate) fn call(id: impl std::fmt::Display, tool: &str) -> String {
    call_with(id, tool, "{}")
}

/// A line that calls a tool with these arguments.
pub(crate) fn call_with(id: impl std::fmt::Display, tool: &str, arguments: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{arguments}}}}}\n"
    )
}

/// A line with another request.
pub(crate) fn ask(id: impl std::fmt::Display, method: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n")
}

/// Waits for the answer to a request.
pub(crate) fn answer(run: &RunningSession, id: impl std::fmt::Display) -> Value {
    serde_json::from_str(&run.line_with(&format!("\"id\":{id},"))).unwrap()
}

/// The messages that a client has received.
pub(crate) fn messages(stdout: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The only message with this id that a client has received.
#[track_caller]
pub(crate) fn answer_in(stdout: &[u8], id: &Value) -> Value {
    let mut found = messages(stdout).into_iter().filter(|message| message["id"] == *id);
    let answer = found.next().unwrap_or_else(|| panic!("{id} was not answered"));
    assert!(found.next().is_none(), "{id} was answered twice");
    answer
}

/// Asserts that an answer is a refusal with this code, by this gate, about this tool, of this type.
#[track_caller]
pub(crate) fn is_refused(answer: &Value, code: i64, gate: &str, tool: &str, sort: &str) {
    let error = &answer["error"];
    assert_eq!(error["code"], code, "{answer}");
    let data = &error["data"];
    assert_eq!(
        (data["gate"].as_str(), data["tool"].as_str()),
        (Some(gate), Some(tool)),
        "{answer}"
    );
    assert_eq!(data["error_type"], sort, "{answer}");
    assert!(data["correlation_id"].as_str().is_some_and(|id| !id.is_empty()), "{answer}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains(tool)), "{answer}");
}

/// The state folder of a run.
pub(crate) fn state(run: &RunningSession) -> PathBuf {
    run.folder().join("state")
}

/// All events in the activity log, without a line that is still being written.
pub(crate) fn events(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("state/activity.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    text[..whole]
        .lines()
        .map(|line| serde_json::from_str(line).expect("an event is JSON"))
        .collect()
}

/// Waits for an event with these members, and returns it. There must be only one.
#[track_caller]
pub(crate) fn event(folder: &Path, members: &[(&str, &str)]) -> Value {
    let has = |event: &&Value| members.iter().all(|(name, value)| event[name] == *value);
    let found = || events(folder).iter().filter(has).cloned().collect::<Vec<_>>();
    let mut found = within(GUARD, || Some(found()).filter(|found| !found.is_empty()));
    let found = found.take().unwrap_or_default();
    let shown = || events(folder).iter().map(|event| format!("{event}\n")).collect::<String>();
    assert_eq!(found.len(), 1, "{members:?} in:\n{}", shown());
    found[0].clone()
}

/// The input of the scripted server, if it was told to log it by `log=log`.
pub(crate) fn server_got(folder: &Path) -> String {
    String::from_utf8_lossy(&fs::read(folder.join("log")).unwrap_or_default()).into_owned()
}

/// Runs a command of ours on the state of a run.
pub(crate) fn tapegate_on(run: &RunningSession, arguments: &[&str]) -> Output {
    let mut command = tapegate();
    command.args(arguments).env("TAPEGATE_HOME", state(run)).current_dir(run.folder());
    command.output().unwrap()
}

/// The approvals of a run.
pub(crate) fn approvals(run: &RunningSession) -> ApprovalStore {
    approvals_of(&state(run))
}

/// The requests that wait for approval.
pub(crate) fn waiting(run: &RunningSession) -> Vec<ApprovalRecord> {
    approvals(run).pending(now_us()).expect("a list of approvals")
}

/// Waits until this many calls wait for approval, and returns the ids of their requests.
pub(crate) fn held(run: &RunningSession, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    run.until("calls that wait for a person", |run| {
        ids = waiting(run).into_iter().map(|request| request.id).collect();
        ids.len() == count
    });
    ids
}

/// Decides a request, as `tapegate approvals` does.
#[track_caller]
pub(crate) fn decide(run: &RunningSession, ruling: ApprovalOutcome, id: &str) {
    let (by, at_us) = ("a person".to_owned(), now_us());
    approvals(run).decide(id, &ApprovalDecision { ruling, by, at_us, reason: None }).unwrap();
}

fn now_us() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_micros() as i64
}

/// The tapes in the state folder.
pub(crate) fn tapes(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("state/tapes/s")).into_iter().flatten().flatten();
    let mut tapes: Vec<_> = entries.map(|entry| entry.path()).collect();
    tapes.retain(|path| !path.to_string_lossy().contains(".anomalies."));
    tapes.sort();
    tapes
}
