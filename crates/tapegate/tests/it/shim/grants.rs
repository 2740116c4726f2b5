//! Approvals for more than one call: who passes by one, until it expires or is revoked.

use serde_json::Value;

use super::setup::{answer, call_with, events, held, rules, server_got, tapegate_on};
use crate::support::{RunningSession, key_flags, shim};

fn governed() -> RunningSession {
    shim(&rules(&[("ask*", "approve")]), &["log=log", "serve"]).start()
}

/// Approves a held call with these options, as a script with the key.
fn approve(run: &RunningSession, id: &str, options: &[&str]) -> String {
    let flags = key_flags(&run.folder().join("state"));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    run_on(run, &[&["approvals", "approve", id], options, &flags].concat())
}

/// What a command prints that must succeed.
fn run_on(run: &RunningSession, arguments: &[&str]) -> String {
    let done = tapegate_on(run, arguments);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn grants(run: &RunningSession, options: &[&str]) -> Vec<Value> {
    let text = run_on(run, &[&["approvals", "grants", "--format", "jsonl"], options].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_same_call_passes_again_until_its_grant_is_revoked() {
    let mut run = governed();
    run.send(call_with(1, "ask", r#"{"path":"/a"}"#).as_bytes());
    let id = held(&run, 1).remove(0);
    approve(&run, &id, &["--for", "30m"]);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    let grant = grants(&run, &[]).remove(0);
    assert_eq!(
        (grant["state"].as_str(), grant["request"].as_str()),
        (Some("active"), Some(id.as_str()))
    );
    for number in 2..4 {
        run.send(call_with(number, "ask", r#"{ "path" : "/a" }"#).as_bytes());
        assert_eq!(answer(&run, number)["result"]["for"], number);
    }
    // Another call waits.
    run.send(call_with(4, "ask", r#"{"path":"/b"}"#).as_bytes());
    let other = held(&run, 1).remove(0);
    let grant_id = grant["id"].as_str().unwrap();
    let said = run_on(&run, &["approvals", "grants", "revoke", grant_id]);
    assert!(said.contains(&format!("revoked {grant_id}: s ask: the same call")), "{said}");
    assert!(grants(&run, &[]).is_empty());
    assert_eq!(grants(&run, &["--all"])[0]["state"], "revoked");
    run.send(call_with(5, "ask", r#"{"path":"/a"}"#).as_bytes());
    held(&run, 2);
    approve(&run, &other, &[]);
    assert_eq!(answer(&run, 4)["result"]["for"], 4);
    let log = events(run.folder());
    let by_grant = log.iter().filter(|event| event["approval_id"] == grant_id);
    let passed = by_grant.clone().filter(|event| event["decided_by"].is_string()).count();
    assert!(passed >= 2, "{log:?}");
    for word in ["granted", "revoked"] {
        assert!(by_grant.clone().any(|event| event["event"] == word), "{word}: {log:?}");
    }
}

#[test]
fn a_workflow_that_takes_longer_than_its_client_waits_is_warned_of_once() {
    let mut run = governed();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"cline","version":"1"}}}"#;
    run.send(format!("{hello}\n").as_bytes());
    answer(&run, 0);
    run.send([call_with(1, "ask", "{}"), call_with(2, "ask", r#"{"n":1}"#)].concat().as_bytes());
    held(&run, 2);
    let end = run.end_of_input();
    let warning =
        "`cline` gives up on a call after 60 s by default, but the workflow `people` holds it";
    assert_eq!(end.stderr.matches(warning).count(), 1, "{}", end.stderr);
}

#[test]
fn nobody_approves_their_own_call_where_the_policy_names_the_caller() {
    let policy = format!("{}principal: {{ name: agent }}\n", rules(&[("ask*", "approve")]));
    let mut run = shim(&policy, &["serve"]).start();
    run.send(call_with(1, "ask", "{}").as_bytes());
    let id = held(&run, 1).remove(0);
    let flags = key_flags(&run.folder().join("state"));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let decide = |verb: &str, by: &str| {
        tapegate_on(&run, &[&["approvals", verb, &id, "--by", by], &flags[..]].concat())
    };
    let own = decide("approve", "agent");
    let text = String::from_utf8_lossy(&own.stderr).into_owned();
    assert!(
        own.status.code() == Some(1) && text.contains("may not approve their own call"),
        "{text}"
    );
    assert!(decide("approve", "ann").status.success());
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
}

#[test]
fn a_grant_with_a_pattern_covers_what_differs_in_that_argument_alone() {
    let mut run = governed();
    let send = |run: &mut RunningSession, number: u64, path: &str, mode: &str| {
        let arguments = format!(r#"{{"path":"{path}","mode":"{mode}"}}"#);
        run.send(call_with(number, "ask", &arguments).as_bytes());
    };
    send(&mut run, 1, "/srv/a/x", "new");
    let id = held(&run, 1).remove(0);
    approve(&run, &id, &["--session", "--under", "path=/srv/a"]);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    let grant = grants(&run, &[]).remove(0);
    assert_eq!(grant["arguments"]["path"]["under"], "/srv/a");
    send(&mut run, 2, "/srv/a/deep/y", "new");
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    for (at, (path, mode)) in
        [("/srv/b", "new"), ("/srv/a/../b", "new"), ("/srv/a/x", "old")].into_iter().enumerate()
    {
        send(&mut run, 10 + at as u64, path, mode);
        held(&run, at + 1);
    }
    let got = server_got(run.folder());
    assert!(!got.contains("/srv/b") && !got.contains("..") && !got.contains("old"), "{got}");
}
