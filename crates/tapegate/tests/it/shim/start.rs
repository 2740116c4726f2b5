//! Sessions that cannot start: the client's first request is answered with the reason.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use super::setup::{FORWARD, answer, ask, call, event, events, tapegate_on};
use crate::http_peers;
use crate::support::{RunningSession, shim};

/// Sends the first requests of clients of both eras, and returns the error message.
fn told(run: &mut RunningSession) -> String {
    run.send([ask("\"d-1\"", "server/discover"), ask(0, "initialize")].concat().as_bytes());
    let (first, second) = (answer(run, "\"d-1\""), answer(run, 0));
    assert_eq!(first["error"], second["error"]);
    second["error"]["message"].as_str().unwrap_or_else(|| panic!("{second}")).to_owned()
}

#[test]
fn without_a_policy_a_session_that_requires_one_answers_initialize_with_the_reason() {
    for by_flag in [true, false] {
        let setup = shim("", &["log=log", "serve"]);
        let setup = match by_flag {
            true => setup.flags(&["--require-policy"]),
            false => setup.env("TAPEGATE_REQUIRE_POLICY", "1"),
        };
        let mut run = setup.start();
        let text = told(&mut run);
        assert!(text.contains("no policy found") && text.contains("tapegate init"), "{text}");
        assert!(run.lives());
        let end = run.end_of_input().exits(2).complains("no policy found").leaves_no_process();
        assert!(!end.run.folder().join("log").exists(), "no server was started");
        let failed = event(end.run.folder(), &[("event", "start_failed")]);
        assert_eq!((&failed["level"], &failed["kind"]), (&"error".into(), &"policy".into()));
    }
}

#[test]
fn a_policy_that_does_not_load_is_told_in_the_answer_to_initialize() {
    for profile in ["production", "development"] {
        let bad = "schema: 1\ngovernance: { defaults: { action: forwad } }\nsources: [{ id: 1 }]\n";
        let mut run = shim(bad, &["serve"]).flags(&["--profile", profile]).start();
        let text = told(&mut run);
        assert!(text.contains("does not load") && text.contains("forwad"), "{text}");
        assert!(text.contains(": tapegate.yaml:2:") && text.contains("tapegate check"), "{text}");
        let end = run.end_of_input().exits(2).complains("forwad");
        event(end.run.folder(), &[("event", "start_failed"), ("kind", "policy")]);
    }
}

#[test]
fn a_policy_that_cannot_be_opened_is_told_too() {
    let setup = shim("", &["serve"]);
    std::os::unix::fs::symlink("nowhere", setup.folder().join("tapegate.yaml")).unwrap();
    let mut run = setup.start();
    let text = told(&mut run);
    assert!(text.contains("a dangling link"), "{text}");
    run.end_of_input().exits(2);
}

/// Replaces a folder of ours by a link to another one.
fn link(run: &Path, name: &str) {
    fs::create_dir_all(run.join("elsewhere")).unwrap();
    fs::create_dir_all(run.join(name).parent().unwrap()).unwrap();
    symlink(run.join("elsewhere"), run.join(name)).unwrap();
}

#[test]
fn a_folder_that_cannot_be_trusted_is_told_in_the_answer_to_initialize() {
    for name in ["state", "state/tapes", "state/tapes/s"] {
        let setup = shim(FORWARD, &["log=log", "serve"]);
        link(setup.folder(), name);
        let mut run = setup.start();
        let text = told(&mut run);
        assert!(text.contains("it is a symbolic link, not a folder"), "{text}");
        assert!(text.contains(name) && text.contains("remove or rename it"), "{text}");
        let end = run.end_of_input().exits(3).complains("symbolic link").leaves_no_process();
        let end = end.client_got_some("state_folder_refused");
        assert!(!end.run.folder().join("log").exists(), "no server was started");
        if name != "state" {
            event(end.run.folder(), &[("event", "start_failed"), ("kind", "session")]);
        }
    }
}

#[test]
fn a_shim_without_a_home_tells_so() {
    let setup = shim(FORWARD, &["serve"]);
    let setup = ["HOME", "TAPEGATE_HOME", "XDG_STATE_HOME"]
        .iter()
        .fold(setup, |setup, name| setup.env(name, ""));
    let mut run = setup.start();
    let text = told(&mut run);
    assert!(text.contains("HOME is not set") && text.contains("TAPEGATE_HOME"), "{text}");
    run.end_of_input().exits(64);
}

#[test]
fn over_http_every_request_is_answered_with_the_reason() {
    let run = shim("", &["serve"]).flags(&["--require-policy", "--http", "127.0.0.1:0"]).start();
    let port = run.port();
    for id in ["7", "\"x\""] {
        let body = ask(id, "initialize");
        let head =
            ["content-type: application/json", "accept: application/json, text/event-stream"];
        let got = http_peers::ask(port, "POST /mcp", &head, body.trim());
        assert_eq!(got.status, 200, "{}", got.body);
        assert!(got.body.contains("no policy found"), "{}", got.body);
        assert!(got.body.contains(&format!("\"id\":{id}")), "{}", got.body);
    }
}

#[test]
fn a_server_that_ends_before_the_client_asks_is_told_in_the_answer_to_initialize() {
    let mut run = shim(FORWARD, &[]).sh("exit 7").start();
    run.until("the end of the server", |run| {
        events(run.folder()).iter().any(|event| event["event"] == "start_failed")
    });
    let text = told(&mut run);
    assert!(text.contains("ended at once (exit status: 7)"), "{text}");
    let end = run.end_of_input().exits(7);
    let failed = event(end.run.folder(), &[("event", "start_failed")]);
    assert_eq!(failed["kind"], "session");
}

#[test]
fn a_server_that_ends_instead_of_answering_is_told_to_a_client_that_asks_again() {
    // Claude Code sends `server/discover` first, and shows the result of `initialize`.
    let mut run = shim(FORWARD, &[]).sh("echo starting; read line; exit 7").start();
    run.send(ask("\"d-1\"", "server/discover").as_bytes());
    let first = answer(&run, "\"d-1\"");
    let message = first["error"]["message"].as_str().unwrap();
    assert!(message.contains("exit status: 7"), "{first}");
    assert!(message.ends_with("run its command in a terminal to see why"), "{first}");
    assert_eq!(first["error"]["data"]["error_type"], "upstream_connection_failed", "{first}");
    run.send(ask(0, "initialize").as_bytes());
    let second = answer(&run, 0);
    assert_eq!(
        second["error"]["message"],
        "Tapegate: the MCP server ended before it answered anything (exit status: 7). \
         Run the server's command in a terminal to see why"
    );
    assert_eq!(second["error"]["data"]["error_type"], "upstream_connection_failed");
    let end = run.end_of_input().exits(7).complains("before it answered anything");
    event(end.run.folder(), &[("event", "start_failed"), ("kind", "session")]);
    let orphan = event(end.run.folder(), &[("kind", "orphan")]);
    let reason = orphan["policy_reason"].as_str().unwrap();
    assert!(reason.contains("ended before an answer came"), "{orphan}");
}

#[test]
fn a_server_that_cannot_be_started_is_logged() {
    let mut run = shim(FORWARD, &[]).server(&["/no/such/server"]).start();
    let text = told(&mut run);
    assert!(text.starts_with("Tapegate: cannot start `/no/such/server`"), "{text}");
    assert!(text.ends_with("Check the server's command in the client's configuration"), "{text}");
    let end = run.end_of_input().exits(4);
    let failed = event(end.run.folder(), &[("event", "start_failed")]);
    assert!(failed["policy_reason"].as_str().unwrap().contains("/no/such/server"), "{failed}");
}

#[test]
fn without_a_policy_a_session_is_observed_warned_about_and_counted_by_the_log() {
    let mut run = shim("", &["serve"]).start();
    run.send(call(1, "a").as_bytes());
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    let end = run.end_of_input().exits(0).complains("no policy");
    let warned = event(end.run.folder(), &[("event", "no_policy")]);
    assert_eq!(warned["level"], "warn");
    let shown = tapegate_on(&end.run, &["log"]);
    let errors = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(errors.contains("warning: no policy: 1 session today ran ungoverned"), "{errors}");
    let events = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(!events.is_empty() && !events.contains("ran ungoverned"), "{events}");
}

#[test]
fn the_user_s_own_policy_governs_where_a_project_has_none() {
    let setup = shim("", &["serve"]).flags(&["--require-policy"]);
    let folder = setup.folder().join("config/tapegate");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("tapegate.yaml"), super::setup::rules(&[("a", "deny")])).unwrap();
    let mut run = setup.start();
    run.send(call(1, "a").as_bytes());
    let answer: Value = answer(&run, 1);
    assert_eq!(answer["error"]["code"], -32014, "{answer}");
    run.end_of_input().exits(0);
}
