//! `tapegate approvals show --reveal`: masked values are shown at a terminal while a call waits.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tapegate_store::approvals::ApprovalOutcome;

use super::setup::{
    answer, approvals, call_with, decide, event, events, held, rules, state, waiting,
};
use crate::support::{RunningSession, at_terminal, shim, tapegate};

const SECRET: &str = "correct horse";

/// A session whose only call waits for approval, with a masked argument.
fn holding(timeout: &str) -> (RunningSession, String) {
    let rules = rules(&[("ask", "approve")]).replace("5m", timeout);
    let policy = format!("{rules}redaction: {{ fields: [arguments.x] }}\n");
    let mut run = shim(&policy, &["log=log", "serve"]).start();
    let arguments = format!("{{\"x\":\"{SECRET}\",\"y\":\"seen\"}}");
    run.send(call_with(1, "ask", &arguments).as_bytes());
    let id = held(&run, 1).remove(0);
    (run, id)
}

fn reveal(run: &RunningSession, id: &str) -> Command {
    let mut command = tapegate();
    command.args(["approvals", "show", id, "--reveal", "--by", "alice"]);
    command.env("TAPEGATE_HOME", state(run)).current_dir(run.folder());
    command
}

fn kept(run: &RunningSession, id: &str) -> PathBuf {
    approvals(run).path().join("unmasked").join(id)
}

fn is_logged(run: &RunningSession) -> bool {
    events(run.folder()).iter().any(|event| event["event"] == "revealed")
}

#[test]
fn a_person_at_a_terminal_is_shown_what_is_masked_until_it_is_decided() {
    let (run, id) = holding("5m");
    let mut show = tapegate();
    show.args(["approvals", "show", &id]).env("TAPEGATE_HOME", state(&run));
    let shown = String::from_utf8(show.output().unwrap().stdout).unwrap();
    assert!(shown.contains(&format!("show {id} --reveal")) && !shown.contains(SECRET), "{shown}");
    let (code, said) = at_terminal(&reveal(&run, &id), "n\n");
    assert!(code == 1 && said.contains("nothing was shown"), "{said}");
    assert!(!said.contains(SECRET) && !is_logged(&run), "{said}");
    let (code, said) = at_terminal(&reveal(&run, &id), "y\n");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(&format!("{{\"x\":\"{SECRET}\",\"y\":\"seen\"}}")), "{said}");
    let logged = event(run.folder(), &[("event", "revealed"), ("approval_id", &id)]);
    assert_eq!((&logged["kind"], &logged["revealed_to"]), (&"approval".into(), &"alice".into()));
    assert!(!logged.to_string().contains(SECRET), "{logged}");
    decide(&run, ApprovalOutcome::Approved, &id);
    assert!(answer(&run, 1)["result"].is_object());
    assert!(!kept(&run, &id).exists());
    let (code, said) = at_terminal(&reveal(&run, &id), "y\n");
    assert!(code == 1 && said.contains("was already approved") && !said.contains(SECRET), "{said}");
    run.end_of_input().exits(0);
}

#[test]
fn it_goes_to_the_terminal_alone_wherever_standard_output_leads() {
    let (run, id) = holding("5m");
    let inner = reveal(&run, &id);
    let mut command = Command::new("sh");
    command.args(["-c", "\"$@\" > out", "sh"]).arg(inner.get_program()).args(inner.get_args());
    command.env("TAPEGATE_HOME", state(&run)).current_dir(run.folder());
    let (code, said) = at_terminal(&command, "y\n");
    assert!(code == 0 && said.contains(SECRET), "{said}");
    assert_eq!(fs::read_to_string(run.folder().join("out")).unwrap(), "");
    for flags in [&["--format", "json"][..], &["--wait"]] {
        let (code, said) = at_terminal(reveal(&run, &id).args(flags), "y\n");
        assert!(code == 64 && !said.contains(SECRET), "{said}");
    }
}

#[test]
fn without_a_person_nothing_is_revealed_and_the_attempt_is_logged() {
    let (run, id) = holding("5m");
    let done = reveal(&run, &id).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.code() == Some(1) && !said.contains(SECRET), "{said}");
    assert!(said.contains("requires a person at a terminal"), "{said}");
    event(run.folder(), &[("event", "refused"), ("governance_decision", "refused")]);
    let (code, said) = at_terminal(reveal(&run, &id).env("CLAUDECODE", "1"), "y\n");
    assert!(code == 1 && said.contains("coding agent") && !said.contains(SECRET), "{said}");
    assert!(!is_logged(&run));
}

#[test]
fn what_cannot_be_logged_is_not_shown() {
    let (run, id) = holding("5m");
    // A shim that cannot log gives up held calls: it has logged this one, and is stopped before
    // logging more.
    event(run.folder(), &[("governance_decision", "pending_approval"), ("approval_id", &id)]);
    run.signal(Signal::STOP);
    let log = state(&run).join("activity.jsonl");
    fs::rename(&log, run.folder().join("moved")).unwrap();
    std::os::unix::fs::symlink("/dev/null", &log).unwrap();
    let (code, said) = at_terminal(&reveal(&run, &id), "y\n");
    assert!(code == 3 && said.contains("cannot be logged"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
}

#[test]
fn other_params_than_those_of_the_request_are_not_shown() {
    let (run, id) = holding("5m");
    fs::write(kept(&run, &id), "{\"name\":\"ask\",\"arguments\":{\"x\":\"harmless\"}}").unwrap();
    let (code, said) = at_terminal(&reveal(&run, &id), "y\n");
    assert!(code == 1 && said.contains("do not match its request"), "{said}");
    assert!(!said.contains("harmless") && !is_logged(&run), "{said}");
    event(run.folder(), &[("event", "refused"), ("approval_id", &id)]);
    let (code, said) = at_terminal(&reveal(&run, &id), "y\n");
    assert!(code == 1 && said.contains("were not stored"), "{said}");
}

#[test]
fn what_a_killed_shim_has_left_is_removed_at_the_next_start_once_it_has_expired() {
    let (run, id) = holding("5s");
    run.signal(Signal::KILL);
    let run = run.end().run;
    assert!(kept(&run, &id).exists());
    run.until("the request to expire", |run| waiting(run).is_empty());
    shim("", &[]).within(run.folder()).run(b"");
    assert!(!kept(&run, &id).exists());
}
