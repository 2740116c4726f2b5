//! Programs that take over the port of a hub: they get no token, and their policy is not used.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use tapegate_hub::hub_lock::{approver_token_file, token_file};

use super::scripted_hub::{health, token};
use super::{HubProcess, listener_for_later};
use crate::http_peers::{ReceivedRequest, WebServer, json};
use crate::shim::setup::{FORWARD, answer, ask, call, call_with, is_refused, rules, server_got};
use crate::support::shim;

const UNPROVEN: &str = "does not have this hub's token";

/// A hub's answers to a shim, with a policy that forwards everything.
fn welcome(seen: &ReceivedRequest) -> Vec<u8> {
    let config = serde_json::Value::from(FORWARD).to_string();
    let body = match seen.head.contains("/governance/snapshot") {
        true => format!(
            "{{\"version\":\"1\",\"lease_ms\":60000,\"profile\":\"production\",\"config\":{config}}}"
        ),
        false => "{\"shutdown\":false,\"policy_version\":\"1\",\"lease_ms\":60000,\"written\":1}"
            .to_owned(),
    };
    json("", &body)
}

/// Asserts that a program got no token, and no request that needs one.
fn got_no_token(seen: &[ReceivedRequest], token: &str) {
    assert!(!seen.is_empty());
    for ReceivedRequest { head, body } in seen {
        assert!(head.starts_with("GET /healthz "), "{head}");
        let (head, body) = (head.to_lowercase(), String::from_utf8_lossy(body));
        assert!(!head.contains("authorization") && !head.contains(token), "{head}");
        assert!(!body.contains(token), "{body}");
    }
}

#[test]
fn a_program_on_the_port_of_a_hub_that_ended_gets_no_token_and_governs_nothing() {
    use std::io::Write;
    let port = listener_for_later().local_addr().unwrap().port().to_string();
    let mut hub = HubProcess::start(&rules(&[("no", "deny")]), &["--port", &port]);
    // A killed hub leaves its files behind.
    hub.signal(Signal::KILL);
    hub.process.wait().unwrap();
    let secret = fs::read_to_string(token_file(&hub.state(), &hub.state())).unwrap();
    let fake =
        WebServer::start_at(hub.port(), |seen, stream| stream.write_all(&welcome(seen)).is_ok());
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send([ask(1, "initialize"), call(2, "no")].concat().as_bytes());
    let end = run.end().exits(4).complains(UNPROVEN).complains("another program uses the port");
    assert_eq!(server_got(end.run.folder()), "", "no server was started");
    got_no_token(&fake.seen(), secret.trim());
}

#[test]
fn a_program_that_takes_the_port_during_a_session_gets_no_token_and_the_session_ends() {
    use std::io::Write;
    let is_hub = Arc::new(AtomicBool::new(true));
    let proves = Arc::clone(&is_hub);
    // The connections on which the hub has proven its identity, and what arrived on others.
    let proven: Mutex<HashSet<SocketAddr>> = Mutex::default();
    let leaked: Arc<Mutex<Vec<String>>> = Arc::default();
    let leaks = Arc::clone(&leaked);
    let hub = WebServer::start(move |seen, stream| {
        let caller = stream.peer_addr().unwrap();
        let has_token = seen.head.to_lowercase().contains("authorization");
        if has_token && !proven.lock().unwrap().remove(&caller) {
            leaks.lock().unwrap().push(seen.head.clone());
        }
        if seen.head.contains("tapegate-challenge") && proves.load(Ordering::SeqCst) {
            proven.lock().unwrap().insert(caller);
            return stream.write_all(&health(seen)).is_ok();
        }
        // The stream is closed at once, so that the state is learned from heartbeats.
        let is_stream = seen.head.contains("/governance/stream");
        !is_stream && stream.write_all(&welcome(seen)).is_ok()
    });
    let setup = shim("", &["serve"]);
    let file = setup.folder().join("token");
    fs::write(&file, token()).unwrap();
    let place = ["--governance-endpoint", &hub.url(""), "--token-file", file.to_str().unwrap()];
    let mut run = setup.flags(&place).start();
    run.send(call(1, "a").as_bytes());
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    let is_beat = |seen: &ReceivedRequest| seen.head.contains("/governance/heartbeat");
    run.until("a heartbeat", |_| hub.seen().iter().any(is_beat));
    is_hub.store(false, Ordering::SeqCst);
    run.end().complains(UNPROVEN).leaves_no_process();
    assert_eq!(*leaked.lock().unwrap(), [""; 0]);
}

#[test]
fn the_files_of_a_hub_s_tokens_are_our_own_wherever_they_lie() {
    let away = tempfile::tempdir().unwrap();
    let files = ["shims", "approvers"].map(|name| away.path().join(name).display().to_string());
    let hub = HubProcess::start(
        FORWARD,
        &["--token-file", &files[0], "--approver-token-file", &files[1]],
    );
    let state = hub.state();
    assert!(!token_file(&state, &state).exists() && !approver_token_file(&state, &state).exists());
    let setup = shim("", &["log=log", "serve"]).flags(&["--token-file", &files[0]]);
    let mut run = hub.join(setup).start();
    for (id, file) in (1..).zip(&files) {
        run.send(call_with(id, "read", &format!("{{\"path\":\"{file}\"}}")).as_bytes());
        is_refused(&answer(&run, id), -32014, "governance", "read", "governance_rule_denied");
    }
    let other = away.path().join("other").display().to_string();
    run.send(call_with(3, "read", &format!("{{\"path\":\"{other}\"}}")).as_bytes());
    assert_eq!(answer(&run, 3)["result"]["for"], 3);
    run.end_of_input().exits(0);
    // A shim without a hub knows them from its variables.
    let setup = shim(FORWARD, &["serve"]).env("TAPEGATE_TOKEN_FILE", &files[0]);
    let mut run = setup.env("TAPEGATE_APPROVER_TOKEN_FILE", &files[1]).start();
    for (id, file) in (1..).zip(&files) {
        run.send(call_with(id, "read", &format!("{{\"path\":\"{file}\"}}")).as_bytes());
        is_refused(&answer(&run, id), -32014, "governance", "read", "governance_rule_denied");
    }
}
