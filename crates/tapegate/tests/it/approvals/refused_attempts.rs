//! Refused attempts to decide leave a trace in the activity log.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::{ID, RequestFolder};
use crate::support::{at_terminal, write_key};

/// The refused attempts in the log.
fn attempts(state: &RequestFolder) -> Vec<Value> {
    let text = std::fs::read_to_string(state.log()).unwrap_or_default();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["governance_decision"] == "refused").collect()
}

/// Runs a command that is refused, and returns the one event that it logged.
#[track_caller]
fn logged(state: &RequestFolder, command: &mut Command, reason: &str) -> Value {
    let before = attempts(state).len();
    let done = command.stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert!(err.contains(reason) && !err.contains("activity log"), "{err}");
    assert!(!done.status.success());
    let mut all = attempts(state);
    assert_eq!(all.len(), before + 1, "{all:?}");
    let event = all.remove(before);
    assert!(event["policy_reason"].as_str().unwrap().contains(reason), "{event}");
    for (key, value) in [("level", "error"), ("component", "cli"), ("event", "refused")] {
        assert_eq!(event[key], value, "{event}");
    }
    event
}

#[test]
fn a_refused_decision_is_logged_with_its_reason() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    let event = logged(&state, &mut state.command(&["approve", ID]), "requires a person");
    assert_eq!((&event["kind"], &event["gate"]), (&"approval".into(), &"approval".into()));
    assert_eq!((&event["approval_id"], &event["forwarded"]), (&ID.into(), &Value::Null));
    assert_eq!(event["command"], format!("approvals approve {ID}"));
    let mut deny = state.command(&["deny", "--all", "--reason", "none"]);
    assert_eq!(logged(&state, &mut deny, "requires a person")["command"], "approvals deny --all");
    let mut export = state.command(&["export-key", "copy"]);
    let event = logged(&state, export.current_dir(state.path()), "requires a person");
    assert_eq!(event["command"], "approvals export-key copy");
    // In an agent's shell, although there is a terminal.
    let mut inside = state.command(&["approve", ID]);
    let (code, _) = at_terminal(inside.env("CLAUDECODE", "1"), "y\n");
    assert_eq!(code, 1);
    let last = attempts(&state).pop().unwrap();
    assert!(last["policy_reason"].as_str().unwrap().contains("CLAUDECODE is set"), "{last}");
    assert_eq!(attempts(&state).len(), 4);
}

#[test]
fn a_wrong_key_and_a_name_that_may_not_decide_are_logged() {
    let state = RequestFolder::new();
    state.ask(ID, |request| request.approvers = vec!["carol".to_owned()]);
    let wrong = state.path().join("wrong");
    write_key(&wrong, &[0; 32]);
    let mut command = state.command(&["approve", ID, "--non-interactive", "--key-file"]);
    let event = logged(&state, command.arg(&wrong), "is not this project's key");
    let expected =
        format!("approvals approve --non-interactive --key-file {} {ID}", wrong.display());
    assert_eq!(event["command"], expected);
    state.says(&["approve", "aaaaaa"], 1);
    let event = attempts(&state).pop().unwrap();
    assert_eq!(event["approval_id"], ID, "{event}");
    assert!(event["policy_reason"].as_str().unwrap().contains("only carol"), "{event}");
}

#[test]
fn a_person_who_says_no_is_not_an_attempt_and_no_state_is_made_for_one() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    let (code, _) = at_terminal(&state.command(&["approve", ID]), "n\n");
    assert_eq!((code, attempts(&state).len()), (1, 0));
    let nowhere = state.path().join("nowhere");
    let mut command = state.command(&["approve", ID]);
    let done = command.env("TAPEGATE_HOME", &nowhere).stdin(Stdio::null()).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(!nowhere.exists());
}
