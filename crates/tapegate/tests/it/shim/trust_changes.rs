//! A change that only seems to tighten a policy, or another file in its place, is not accepted.

use super::setup::{answer, call, call_with, events};
use crate::support::{RunningSession, SessionSetup, replace_file, shim};

const DENY: &str = "schema: 1\nprofile: production\ngovernance: { defaults: { action: deny } }\n";

/// Whether the server answers a call of `tool`.
fn passes(run: &mut RunningSession, id: u32, tool: &str) -> bool {
    run.send(call(id, tool).as_bytes());
    answer(run, id)["result"].is_object()
}

/// Ends a session after a change of its policy, once it has reported that a person must accept it.
fn ends_unaccepted(run: RunningSession) -> RunningSession {
    run.says("tapegate policy accept");
    run.end_of_input().exits(0).run
}

fn again(run: &RunningSession) -> SessionSetup {
    shim("", &["serve"]).within(run.folder())
}

#[test]
fn a_looser_profile_is_not_taken_from_a_session_that_names_its_own() {
    let mut run = shim(DENY, &["serve"]).flags(&["--profile", "production"]).start();
    assert!(!passes(&mut run, 1, "rm"));
    let policy = run.folder().join("tapegate.yaml");
    replace_file(&policy, &DENY.replace("profile: production", "profile: development"));
    let over = ends_unaccepted(run);
    let mut run = again(&over).start();
    assert!(!passes(&mut run, 1, "rm"), "the next session is started without the flag");
    run.end_of_input().exits(0);
}

#[test]
fn a_variable_in_the_place_of_its_value_is_not_taken() {
    let policy = |path: &str| {
        format!(
            "schema: 1\ngovernance:\n  defaults: {{ action: deny }}\n  rules:\n    - {{ match: read, action: forward, \
             arguments: {{ path: {{ under: \"{path}\" }} }} }}\n"
        )
    };
    let reads = |run: &mut RunningSession| {
        run.send(call_with(1, "read", r#"{"path":"/etc/passwd"}"#).as_bytes());
        answer(run, 1)["result"].is_object()
    };
    let mut run = shim(&policy("/work"), &["serve"]).start();
    assert!(!reads(&mut run));
    replace_file(&run.folder().join("tapegate.yaml"), &policy("${SOME_FOLDER:-/work}"));
    let over = ends_unaccepted(run);
    let mut run = again(&over).env("SOME_FOLDER", "/").start();
    assert!(!reads(&mut run));
    run.end_of_input().exits(0);
}

#[test]
fn a_change_that_the_profile_of_the_session_hides_is_not_taken() {
    let policy = "schema: 1\ngovernance:\n  defaults: { action: deny }\n  rules:\n    - { match: write, action: approve, approval: ops }\n\
                  approval: { ops: { timeout: 5s, on_timeout: deny } }\n\
                  pins: { on_drift: deny }\n\
                  profiles: { development: { pins: { on_drift: ignore } } }\n";
    let run = shim(policy, &["serve"]).flags(&["--profile", "development"]).start();
    run.until("the policy to be accepted", |run| {
        events(run.folder()).iter().any(|event| event["event"] == "accepted")
    });
    let changed = policy.replace("on_drift: deny", "on_drift: ignore");
    replace_file(&run.folder().join("tapegate.yaml"), &changed);
    ends_unaccepted(run);
}
