//! An approval is valid only in its project, and only with a key that a person exported.

use std::process::Output;

use tapegate_store::approvals::ApprovalOutcome;
use tapegate_store::user_state::PrivateDir;

use super::setup::{FORWARD, answer, call, decide, held, rules, state, tapegate_on, waiting};
use crate::support::{RunningSession, key_flags, shim, tapegate};

const GIVEN_UP: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1,\"reason\":\"MCP error -32001: Request timed out\"}}\n";

fn asking() -> String {
    rules(&[("ask", "approve, approval: people")])
}

#[test]
fn a_late_approval_does_not_reach_the_same_call_of_another_project() {
    let mut run = shim(&asking(), &["serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    run.send(GIVEN_UP);
    let over = run.end_of_input().exits(0).run;
    decide(&over, ApprovalOutcome::Approved, &id);
    // Another project with the same state folder.
    let home = state(&over).display().to_string();
    let mut other = shim(&asking(), &["serve"]).env("TAPEGATE_HOME", &home).start();
    other.send(call(1, "ask").as_bytes());
    over.until("the call to be held", |over| waiting(over).iter().any(|one| one.id != id));
    let mut same = shim("", &["serve"]).within(over.folder()).start();
    same.send(call(1, "ask").as_bytes());
    assert!(answer(&same, 1)["result"].is_object(), "in the same project it is used");
    same.end_of_input().exits(0);
}

/// Runs a command on the state of a session, with one more variable.
fn with_variable(run: &RunningSession, arguments: &[&str], variable: Option<&str>) -> Output {
    let mut command = tapegate();
    command.args(arguments).env("TAPEGATE_HOME", state(run)).current_dir(run.folder());
    variable.iter().for_each(|name| _ = command.env(name, "1"));
    command.output().unwrap()
}

#[test]
fn neither_our_own_key_nor_any_key_inside_an_agent_stands_in_for_a_person() {
    let mut run = shim(&asking(), &["serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    std::fs::write(run.folder().join("tapegate.yaml"), FORWARD).unwrap();
    let home = state(&run);
    let own = PrivateDir::path_of(&home, &home).join("key").display().to_string();
    let linked = home.join("link").display().to_string();
    std::fs::hard_link(&own, &linked).unwrap();
    let [_, _, copy] = key_flags(&home);
    for (key, variable, reason) in [
        (&own, None, "export-key"),
        (&linked, None, "export-key"),
        (&copy, Some("CLAUDECODE"), "coding agent"),
    ] {
        for command in [&["approvals", "approve", &id][..], &["policy", "accept"]] {
            let flags = ["--non-interactive", "--key-file", key];
            let done = with_variable(&run, &[command, &flags].concat(), variable);
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(1), "{command:?} {key}: {said}");
            assert!(said.contains(reason), "{command:?} {key}: {said}");
        }
    }
    let flags = ["--non-interactive", "--key-file", &copy];
    let done = with_variable(&run, &[&["approvals", "approve", &id], &flags[..]].concat(), None);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(answer(&run, 1)["result"].is_object());
    run.end_of_input().exits(0);
}

#[test]
fn approving_all_is_about_the_calls_of_this_project() {
    let mut run = shim(&asking(), &["serve"]).start();
    run.send(call(1, "ask").as_bytes());
    held(&run, 1);
    // Another project with the same state folder.
    let home = state(&run).display().to_string();
    let mut other = shim(&asking(), &["serve"]).env("TAPEGATE_HOME", &home).start();
    other.send(call(1, "ask").as_bytes());
    let ids = held(&run, 2);
    let [flag, file, copy] = key_flags(&state(&run));
    let decide = |verb: &str| {
        let done = tapegate_on(&run, &["approvals", verb, "--all", &flag, &file, &copy]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(0), "{said}");
        (String::from_utf8_lossy(&done.stdout).into_owned(), said)
    };
    let (out, said) = decide("approve");
    assert_eq!(out.matches("approved ap_").count(), 1, "{out}");
    assert!(said.contains("1 call of other projects waits too"), "{said}");
    assert!(answer(&run, 1)["result"].is_object());
    let left = waiting(&run);
    assert_eq!(left.len(), 1, "{ids:?}");
    assert_eq!(left[0].folder, other.folder().to_string_lossy());
    let (out, said) = decide("deny");
    assert!(out.is_empty() && said.contains("nothing waits"), "{out} {said}");
    assert_eq!(waiting(&run).len(), 1);
    // Naming the folder covers everything in it.
    let done =
        tapegate_on(&run, &["approvals", "deny", "--all", "--state", &home, &flag, &file, &copy]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(answer(&other, 1)["error"].is_object());
    // The state of both is in the folder of the first.
    other.end_of_input().exits(0);
    run.end_of_input().exits(0);
}
