//! Approval files that were forged, copied or edited.

use std::fs;

use super::setup::{
    answer, approvals, ask, call, call_with, decide, events, held, rules, server_got, state,
    tapegate_on, waiting,
};
use crate::support::{RunningSession, shim};
use tapegate_store::approvals::ApprovalOutcome;

fn governed() -> RunningSession {
    shim(&rules(&[("ask*", "approve")]), &["log=log", "serve"]).start()
}

/// The events about refused approval files.
fn forgeries(run: &RunningSession) -> Vec<serde_json::Value> {
    let all = events(run.folder());
    all.into_iter().filter(|event| event["governance_decision"] == "forged").collect()
}

#[test]
fn a_decision_that_nobody_with_the_key_has_made_lets_nothing_pass_and_is_logged_once() {
    let mut run = governed();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    let decision =
        format!("{{\"ruling\":\"approved\",\"by\":\"root\",\"at_us\":{}}}", i64::MAX / 2);
    // Where earlier versions looked: in the project.
    let old = state(&run).join("approvals");
    fs::create_dir_all(&old).unwrap();
    fs::write(old.join(format!("{id}.decision.json")), &decision).unwrap();
    // Where this version looks, by a process that can write there but does not use the key.
    fs::write(approvals(&run).path().join(format!("{id}.decision.json")), &decision).unwrap();
    run.until("the attempt is logged", |run| !forgeries(run).is_empty());
    run.send(ask(2, "ping").as_bytes());
    answer(&run, 2);
    assert!(!server_got(run.folder()).contains("\"ask\""));
    let shown = tapegate_on(&run, &["log"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("forged"), "{shown:?}");
    assert_eq!(held(&run, 1), [id.as_str()], "it still waits for a person");
    decide(&run, ApprovalOutcome::Approved, &id);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    let end = run.end_of_input().exits(0);
    assert_eq!(forgeries(&end.run).len(), 1);
}

#[test]
fn a_decision_for_another_call_or_used_before_lets_nothing_pass() {
    let mut run = governed();
    run.send(
        [call_with(1, "ask", r#"{"n":1}"#), call_with(2, "ask", r#"{"n":2}"#)].concat().as_bytes(),
    );
    held(&run, 2);
    let of = |n: &str| {
        let waits = waiting(&run);
        waits.into_iter().find(|one| one.arguments() == Some(n)).unwrap().id
    };
    let (one, two) = (of("{\"n\":1}"), of("{\"n\":2}"));
    decide(&run, ApprovalOutcome::Approved, &one);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    let folder = approvals(&run).path().to_owned();
    let file = |id: &str| folder.join(format!("{id}.decision.json"));
    fs::copy(file(&one), file(&two)).unwrap();
    run.until("the attempt is logged", |run| forgeries(run).len() == 1);
    // The same call again: its approval is used up, although its files are still there.
    run.send(call_with(3, "ask", r#"{"n":1}"#).as_bytes());
    held(&run, 2);
    run.end_of_input();
}

#[test]
fn an_edited_request_is_put_back_and_the_person_sees_what_will_be_sent() {
    let mut run = governed();
    run.send(call_with(1, "ask", r#"{"path":"/etc/shadow"}"#).as_bytes());
    let id = held(&run, 1).remove(0);
    let path = approvals(&run).path().join(format!("{id}.request.json"));
    let edited = fs::read_to_string(&path).unwrap().replace("/etc/shadow", "/tmp/harmless");
    // Like an editor: write under another name first.
    fs::write(path.with_extension("new"), edited).unwrap();
    fs::rename(path.with_extension("new"), &path).unwrap();
    run.until("the attempt is logged", |run| forgeries(run).len() == 1);
    assert_eq!(held(&run, 1), [id.as_str()]);
    assert_eq!(waiting(&run)[0].arguments(), Some("{\"path\":\"/etc/shadow\"}"));
    decide(&run, ApprovalOutcome::Approved, &id);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
}
