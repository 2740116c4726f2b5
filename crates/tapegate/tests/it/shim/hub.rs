//! Shims that have joined a hub: it supplies the policy and handles approvals, and they end with
//! it.

mod channels;
mod concurrent_approvals;
mod event_upload;
mod impostor;
mod in_agent;
mod lost_callers;
mod progress;
mod scripted_hub;
mod shared_grants;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tapegate_hub::hub_lock::{approver_token_file, token_file};
use tapegate_store::approvals::ApprovalOutcome;
use tempfile::TempDir;

use super::setup::{
    FORWARD, answer, answer_in, ask, call, call_with, decide, event, events, held, is_refused,
    messages, rules, server_got,
};
use crate::http_peers;
use crate::support::{
    RunningSession, SessionSetup, approvals_of, at_terminal, key_flags, replace_file, shim,
    tapegate, wait_for,
};

/// A hub that is always ended, however the test ends.
struct HubProcess {
    process: Child,
    folder: TempDir,
    url: String,
}

impl HubProcess {
    /// A hub with this policy, on its own port.
    fn start(policy: &str, flags: &[&str]) -> Self {
        Self::start_at(tempfile::tempdir().unwrap(), policy, flags)
    }

    /// A hub that accepts decisions.
    fn start_deciding(policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags = key_flags(&folder.path().join("state"));
        Self::start_at(folder, policy, &flags.each_ref().map(String::as_str))
    }

    fn start_at(folder: TempDir, policy: &str, flags: &[&str]) -> Self {
        let config = folder.path().join("tapegate.yaml");
        fs::write(config, policy).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
        command.arg("hub").arg("--state").arg(folder.path().join("state")).args(flags);
        command.env("TAPEGATE_HOME", folder.path().join("state"));
        command.env("XDG_CONFIG_HOME", folder.path());
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.stderr(Stdio::null()).spawn().unwrap();
        let endpoint = folder.path().join("state/hub/endpoint");
        let url = wait_for("the hub", || endpoint_in(&endpoint));
        Self { process, folder, url }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The approvers' token, which allows everything.
    fn token(&self) -> String {
        let path = approver_token_file(&self.state(), &self.state());
        fs::read_to_string(path).unwrap().trim().to_owned()
    }

    /// A shim that joins it; its own state folder is the hub's.
    fn shim(&self, steps: &[&str]) -> SessionSetup {
        self.join(shim("", steps))
    }

    fn join(&self, setup: SessionSetup) -> SessionSetup {
        setup
            .flags(&["--governance-endpoint", &self.url])
            .env("TAPEGATE_HOME", self.state().to_str().unwrap())
    }

    fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }

    fn ask(&self, request_line: &str, body: &str) -> http_peers::ReceivedReply {
        let token = format!("authorization: Bearer {}", self.token());
        http_peers::ask(
            self.port(),
            request_line,
            &[&token, "content-type: application/json"],
            body,
        )
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A listener on a free port outside the range from which the kernel assigns ports.
fn listener_for_later() -> TcpListener {
    let first = 20_000 + (std::process::id() % 6_000) as u16;
    let bind = |port| TcpListener::bind(("127.0.0.1", port)).ok();
    (first..first + 6_000).find_map(bind).expect("a free port")
}

/// The address that a hub has written to its state folder.
fn endpoint_in(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.starts_with("http://").then(|| text.trim().to_owned())
}

/// Waits until an event is in the hub's log.
fn until_logged(
    run: &RunningSession,
    folder: &Path,
    what: &str,
    holds: impl Fn(&serde_json::Value) -> bool,
) {
    run.until(what, |_| events(folder).iter().any(&holds));
}

#[test]
fn the_hub_s_policy_holds_and_its_log_has_every_decision() {
    let hub = HubProcess::start(&rules(&[("no", "deny")]), &[]);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send([call(1, "no"), call(2, "yes")].concat().as_bytes());
    is_refused(&answer(&run, 1), -32014, "governance", "no", "governance_rule_denied");
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    let end = run.end_of_input().exits(0).leaves_no_process();
    assert_eq!(server_got(end.run.folder()), call(2, "yes"));
    event(hub.folder.path(), &[("tool", "no"), ("component", "shim"), ("server_id", "s")]);
    event(hub.folder.path(), &[("tool", "yes"), ("governance_decision", "forward")]);
}

#[test]
fn what_shims_count_is_among_the_hub_s_metrics() {
    let hub = HubProcess::start(&rules(&[("no", "deny")]), &[]);
    let mut run = hub.shim(&["serve"]).start();
    run.send([call(1, "no"), call(2, "yes"), "garbage\n".to_owned()].concat().as_bytes());
    answer(&run, 2);
    run.end_of_input().exits(0);
    let text = hub.ask("GET /metrics", "").body;
    for line in [
        "thoughtgate_stdio_governance_decisions_total{server_id=\"s\",decision=\"deny\",profile=\"production\"} 1",
        "thoughtgate_stdio_governance_decisions_total{server_id=\"s\",decision=\"forward\",profile=\"production\"} 1",
        "thoughtgate_stdio_messages_total{server_id=\"s\",direction=\"agent_to_server\",method=\"tools/call\"} 2",
        "thoughtgate_stdio_framing_errors_total{server_id=\"s\",error_type=\"malformed_json\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn what_is_masked_in_a_call_held_at_the_hub_is_revealed_there() {
    let policy =
        format!("{}redaction: {{ fields: [arguments.x] }}\n", rules(&[("ask", "approve")]));
    let hub = HubProcess::start_deciding(&policy);
    let mut run = hub.shim(&["serve"]).start();
    run.send(call_with(1, "ask", "{\"x\":\"correct horse\"}").as_bytes());
    let approvals = approvals_of(&hub.state());
    let pending = || approvals.pending(0).unwrap();
    run.until("a request for approval", |_| pending().len() == 1);
    let request = pending().remove(0);
    assert!(!request.params.unwrap().contains("horse"));
    let kept = approvals.path().join("unmasked").join(&request.id);
    let mut reveal = tapegate();
    reveal.args(["approvals", "show", &request.id, "--reveal"]);
    reveal.env("TAPEGATE_HOME", hub.state()).current_dir(hub.folder.path());
    let (code, said) = at_terminal(&reveal, "y\n");
    assert!(code == 0 && said.contains("correct horse"), "{said}");
    event(hub.folder.path(), &[("event", "revealed"), ("approval_id", &request.id)]);
    let path = format!("POST /approvals/{}/deny", request.id);
    assert_eq!(hub.ask(&path, r#"{"by":"a person"}"#).status, 200);
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
    assert!(!kept.exists());
}

#[test]
fn people_are_asked_through_the_hub_and_a_yes_or_no_reaches_the_caller() {
    let hub = HubProcess::start_deciding(&rules(&[("ask*", "approve")]));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    for (id, verb) in [(1, "approve"), (2, "deny")] {
        run.send(call(id, &format!("ask_{id}")).as_bytes());
        let mut list = serde_json::Value::Null;
        run.until("a request for approval", |_| {
            let body = hub.ask("GET /approvals", "").body;
            list = serde_json::from_str(&body).unwrap();
            list["approvals"].as_array().is_some_and(|list| list.len() == 1)
        });
        let name = list["approvals"][0]["id"].as_str().unwrap().to_owned();
        let done = hub.ask(&format!("POST /approvals/{name}/{verb}"), r#"{"by":"a person"}"#);
        assert_eq!(done.status, 200, "{}", done.body);
        match verb {
            "approve" => assert_eq!(answer(&run, id)["result"]["for"], id),
            _ => is_refused(&answer(&run, id), -32007, "approval", "ask_2", "approval_rejected"),
        }
    }
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), call(1, "ask_1"));
}

#[test]
fn what_is_logged_of_a_held_call_names_the_request_for_approval() {
    let hub = HubProcess::start(&rules(&[("*", "approve")]), &[]);
    let mut run = hub.shim(&["serve"]).start();
    run.send(call(1, "a").as_bytes());
    let mut body = String::new();
    run.until("a question", |_| {
        body = hub.ask("GET /approvals", "").body;
        body.contains("\"server_id\"")
    });
    let held = event(hub.folder.path(), &[("governance_decision", "pending_approval")]);
    let id = held["approval_id"].as_str().expect("a name");
    assert!(body.contains(&format!("\"id\":\"{id}\"")), "{id} is not in {body}");
}

#[test]
fn a_call_that_is_taken_back_is_not_asked_about_any_more() {
    let hub = HubProcess::start(&rules(&[("*", "approve")]), &[]);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "a").as_bytes());
    let waits = |count: usize| {
        move |hub: &HubProcess| {
            let body = hub.ask("GET /approvals", "").body;
            body.matches("\"server_id\"").count() == count
        }
    };
    run.until("a question", |_| waits(1)(&hub));
    run.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
    run.until("no question", |_| waits(0)(&hub));
    run.end_of_input().exits(0);
}

#[test]
fn a_policy_that_changes_at_the_hub_holds_at_its_shims_at_once() {
    let hub = HubProcess::start(FORWARD, &[]);
    let mut run = hub.shim(&["serve"]).start();
    run.send(call(1, "a").as_bytes());
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    replace_file(&hub.folder.path().join("tapegate.yaml"), &rules(&[("a", "deny")]));
    until_logged(&run, hub.folder.path(), "the new policy at the shim", |event| {
        event["kind"] == "policy" && event["component"] == "shim" && event["event"] == "reloaded"
    });
    run.send(call(2, "a").as_bytes());
    is_refused(&answer(&run, 2), -32014, "governance", "a", "governance_rule_denied");
}

#[test]
fn a_shim_cannot_be_laxer_than_its_hub() {
    let hub = HubProcess::start(&rules(&[("no", "deny")]), &["--profile", "production"]);
    let mut run = hub.join(shim("", &["serve"]).flags(&["--profile", "development"])).start();
    run.send(call(1, "no").as_bytes());
    assert_eq!(answer(&run, 1)["error"]["code"], -32014);
}

#[test]
fn ec_stdio_036_a_hub_that_is_late_is_waited_for() {
    let listener = listener_for_later();
    let port = listener.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let token = token_file(&state, &state);
    let mut run = shim("", &["serve"])
        .flags(&["--governance-endpoint", &format!("http://127.0.0.1:{port}")])
        .flags(&["--token-file", token.to_str().unwrap()])
        .start();
    run.send(call(1, "a").as_bytes());
    // It is there a few attempts later.
    (0..3).for_each(|_| drop(listener.accept().unwrap()));
    drop(listener);
    let hub = HubProcess::start_at(folder, FORWARD, &["--port", &port.to_string()]);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    run.end_of_input().exits(0);
    drop(hub);
}

#[test]
fn a_token_in_the_project_is_not_used_and_that_is_said() {
    let hub = HubProcess::start(FORWARD, &[]);
    let old = hub.state().join("hub/token");
    fs::rename(token_file(&hub.state(), &hub.state()), &old).unwrap();
    let mut run = hub.shim(&["serve"]).start();
    run.send(ask(1, "initialize").as_bytes());
    let said = format!("`{}` is not read", old.display());
    run.end().exits(4).complains(&said).client_got_some("service_unavailable");
}

#[test]
fn ec_stdio_036_without_a_hub_what_was_asked_is_answered_and_the_shim_exits() {
    let mut run = shim("", &["log=log", "serve"])
        .flags(&["--governance-endpoint", "http://127.0.0.1:1"])
        .start();
    run.send(ask(1, "initialize").as_bytes());
    let end = run.end().exits(4).complains("governance service").complains("tapegate hub");
    let error = answer_in(&end.stdout, &1.into());
    assert_eq!(error["error"]["code"], -32000);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("Tapegate: the governance service"), "{message}");
    assert!(message.contains("Start one with `tapegate hub`"), "{message}");
    assert_eq!(server_got(end.run.folder()), "", "no server was started");
    event(end.run.folder(), &[("event", "start_failed"), ("kind", "session")]);
}

#[test]
fn without_the_token_nothing_is_governed_and_nothing_passes() {
    let hub = HubProcess::start(FORWARD, &[]);
    let wrong = hub.folder.path().join("wrong");
    fs::write(&wrong, "0".repeat(64)).unwrap();
    for token in [wrong.to_str().unwrap(), "/no/such/file"] {
        let mut run = shim("", &["log=log", "serve"])
            .flags(&["--governance-endpoint", &hub.url, "--token-file", token])
            .start();
        run.send(call(1, "a").as_bytes());
        let end = run.end().exits(4);
        assert_eq!(server_got(end.run.folder()), "");
        let error = answer_in(&end.stdout, &1.into());
        assert_eq!(error["error"]["data"]["error_type"], "service_unavailable", "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("token"), "{error}");
        event(end.run.folder(), &[("event", "start_failed"), ("kind", "session")]);
    }
}

#[test]
fn a_folder_of_the_hub_that_cannot_be_trusted_is_told_in_the_answer_to_initialize() {
    let hub = HubProcess::start(FORWARD, &[]);
    let elsewhere = hub.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, hub.state().join("tapes")).unwrap();
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(ask(1, "initialize").as_bytes());
    let error = answer(&run, 1);
    assert_eq!(error["error"]["data"]["error_type"], "state_folder_refused", "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("symbolic link"), "{error}");
    let end = run.end_of_input().exits(3);
    assert_eq!(server_got(end.run.folder()), "");
}

#[test]
fn ec_stdio_041_an_idle_shim_ends_in_order_when_the_hub_is_told_to() {
    let hub = HubProcess::start(FORWARD, &[]);
    let mut run = hub.shim(&["serve"]).start();
    run.send(ask(1, "ping").as_bytes());
    answer(&run, 1);
    assert_eq!(hub.ask("POST /governance/shutdown", "{}").status, 200);
    run.end().exits(0).leaves_no_process();
}

#[test]
fn ec_stdio_041_what_is_under_way_is_finished_and_what_is_held_is_answered() {
    let hub = HubProcess::start(&rules(&[("ask", "approve")]), &[]);
    let mut run = hub.shim(&["hold=1", "eof", "release=1"]).start();
    run.send([call(1, "slow"), call(2, "ask")].concat().as_bytes());
    run.until("a question", |_| hub.ask("GET /approvals", "").body.contains("\"server_id\""));
    hub.signal(Signal::TERM);
    let end = run.end().exits(0).leaves_no_process();
    assert_eq!(answer_in(&end.stdout, &1.into())["result"]["for"], 1);
    assert!(answer_in(&end.stdout, &2.into())["error"]["code"].is_i64());
}

#[test]
fn ec_stdio_042_when_the_hub_is_killed_the_shim_ends_at_once_and_its_server_with_it() {
    let mut hub = HubProcess::start(FORWARD, &[]);
    let mut run = hub.shim(&["serve"]).start();
    run.send(ask(1, "ping").as_bytes());
    answer(&run, 1);
    hub.process.kill().unwrap();
    hub.process.wait().unwrap();
    let end = run.end().leaves_no_process();
    assert!(end.stderr.contains("hub"), "{}", end.stderr);
    assert_eq!(messages(&end.stdout).len(), 1);
}

#[test]
fn the_folder_of_approvals_is_one_for_shims_with_and_without_a_hub() {
    let hub = HubProcess::start(&rules(&[("*", "approve")]), &[]);
    let setup = shim("", &["serve"]);
    // The helpers of other tests look in the test's own folder.
    std::os::unix::fs::symlink(hub.state(), setup.folder().join("state")).unwrap();
    let mut run = hub.join(setup).start();
    run.send(call(1, "a").as_bytes());
    let id = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Approved, &id);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
}
