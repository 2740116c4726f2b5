//! Scripted hubs: one that hangs, and a remote one that accepts no events.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tapegate_hub::proof::Challenge;
use tapegate_hub::token::HubToken;

use crate::http_peers::{ReceivedRequest, WebServer, json};
use crate::shim::setup::{FORWARD, answer, ask, call, server_got};
use crate::support::{GUARD, RunningSession, hang, shim};

/// The token of scripted hubs.
pub(super) fn token() -> String {
    "0".repeat(64)
}

/// The health reply of a scripted hub, with the proof of its token if challenged.
pub(super) fn health(seen: &ReceivedRequest) -> Vec<u8> {
    let challenge = seen.header("tapegate-challenge").map(str::as_bytes);
    let proof = challenge.and_then(Challenge::read).map(|challenge| {
        let address = seen.header("host").unwrap().parse().unwrap();
        challenge.proof(&HubToken::read(&token()).unwrap(), address)
    });
    json(&proof.map(|proof| format!("tapegate-proof: {proof}\r\n")).unwrap_or_default(), "{}")
}

/// A hub that serves a policy and then hangs on every evaluation.
fn hung(policy: &'static str, profile: &'static str) -> WebServer {
    WebServer::start(move |seen: &ReceivedRequest, stream| {
        use std::io::Write;
        let path = seen.head.split(' ').nth(1).unwrap_or_default().to_owned();
        if path == "/healthz" {
            return stream.write_all(&health(seen)).is_ok();
        }
        let quoted = serde_json::Value::from(policy).to_string();
        let body = match path.split('?').next().unwrap_or_default() {
            "/governance/snapshot" => format!(
                "{{\"version\":\"1\",\"lease_ms\":60000,\"profile\":\"{profile}\",\"config\":{quoted},\"config_path\":\"/x/tapegate.yaml\"}}"
            ),
            "/governance/heartbeat" => {
                "{\"shutdown\":false,\"policy_version\":\"1\",\"lease_ms\":60000}".to_owned()
            }
            "/governance/events" => "{\"written\":1}".to_owned(),
            _ => hang(),
        };
        stream.write_all(&json("connection: close\r\n", &body)).ok();
        false
    })
}

/// A hub whose log cannot be reached from here, and which accepts no events for a while.
fn far(takes: Arc<AtomicBool>) -> WebServer {
    WebServer::start(move |seen: &ReceivedRequest, stream| {
        use std::io::Write;
        let path = seen.head.split(' ').nth(1).unwrap_or_default().to_owned();
        if path == "/healthz" {
            return stream.write_all(&health(seen)).is_ok();
        }
        let config = serde_json::Value::from(FORWARD).to_string();
        let snapshot = format!(
            "{{\"version\":\"1\",\"lease_ms\":60000,\"profile\":\"production\",\"config\":{config}}}"
        );
        let body = match path.split('?').next().unwrap_or_default() {
            "/governance/snapshot" => &snapshot,
            "/governance/heartbeat" => {
                "{\"shutdown\":false,\"policy_version\":\"\",\"lease_ms\":60000}"
            }
            "/governance/events" if takes.load(Ordering::SeqCst) => "{\"written\":1}",
            "/governance/events" => {
                stream.write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\n{}").ok();
                return false;
            }
            _ => return false,
        };
        stream.write_all(&json("connection: close\r\n", body)).ok();
        false
    })
}

fn far_shim(hub: &WebServer, steps: &[&str]) -> RunningSession {
    let setup = shim("", steps);
    let token = setup.folder().join("token");
    fs::write(&token, self::token()).unwrap();
    let place = ["--governance-endpoint", &hub.url(""), "--token-file", token.to_str().unwrap()];
    setup.flags(&place).start()
}

/// A hub that asks for approval of every call, is never answered, and requests the end of its shims once
/// this is set.
fn stopping(stops: Arc<AtomicBool>) -> WebServer {
    WebServer::start(move |seen: &ReceivedRequest, stream| {
        use std::io::Write;
        let path = seen.head.split(' ').nth(1).unwrap_or_default().to_owned();
        if path == "/healthz" {
            return stream.write_all(&health(seen)).is_ok();
        }
        let config = serde_json::Value::from(ASKS).to_string();
        let body = match path.split('?').next().unwrap_or_default() {
            "/governance/snapshot" => format!(
                "{{\"version\":\"1\",\"lease_ms\":60000,\"profile\":\"production\",\"config\":{config}}}"
            ),
            "/governance/heartbeat" => format!(
                "{{\"shutdown\":{},\"policy_version\":\"1\",\"lease_ms\":60000}}",
                stops.load(Ordering::SeqCst)
            ),
            "/governance/events" => "{\"written\":1}".to_owned(),
            "/governance/evaluate" => {
                "{\"decision\":\"pending_approval\",\"task_id\":\"ap_k3x9m2q7w4e8r6t0\",\"shutdown\":false}".to_owned()
            }
            _ => hang(),
        };
        stream.write_all(&json("connection: close\r\n", &body)).ok();
        false
    })
}

/// The event batches that a hub received, by name and with their events.
fn batches(hub: &WebServer) -> Vec<(String, Vec<serde_json::Value>)> {
    let posts = hub.seen().into_iter().filter(|seen| seen.head.contains("/governance/events"));
    let read = |seen: ReceivedRequest| {
        let body: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
        (body["batch"].as_str().unwrap().to_owned(), body["events"].as_array().unwrap().clone())
    };
    posts.map(read).collect()
}

#[test]
fn while_a_far_hub_takes_no_events_calls_are_refused_and_then_nothing_was_lost() {
    let takes = Arc::new(AtomicBool::new(false));
    let hub = far(Arc::clone(&takes));
    let mut run = far_shim(&hub, &["log=log", "serve"]);
    let (mut id, mut passed) = (0, 0);
    let mut until = |run: &mut RunningSession, passes: bool| {
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < GUARD, "no call passes: {passes}");
            id += 1;
            run.send(call(id, "a").as_bytes());
            let answer = answer(run, id);
            passed += usize::from(answer["error"].is_null());
            if answer["error"].is_null() == passes {
                return answer;
            }
        }
    };
    let refused = until(&mut run, false);
    assert_eq!(refused["error"]["code"], -32013, "{refused}");
    takes.store(true, Ordering::SeqCst);
    until(&mut run, true);
    run.end_of_input().exits(0);
    let mut taken = batches(&hub);
    taken.dedup_by(|one, other| one == other);
    let names: Vec<&String> = taken.iter().map(|(name, _)| name).collect();
    let once: std::collections::HashSet<&&String> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "what is sent again is the same: {names:?}");
    let told = taken.iter().flat_map(|(_, events)| events);
    let about = told.filter(|event| event["tool"] == "a").count();
    assert_eq!(about, passed, "one event a call that was sent");
}

#[test]
fn what_a_far_hub_is_owed_at_the_end_of_a_session_still_arrives() {
    let takes = Arc::new(AtomicBool::new(false));
    let hub = far(Arc::clone(&takes));
    let mut run = far_shim(&hub, &["serve"]);
    run.send(ask(1, "ping").as_bytes());
    answer(&run, 1);
    run.until("a letter", |_| batches(&hub).len() >= 2);
    run.close_input();
    takes.store(true, Ordering::SeqCst);
    run.end().exits(0);
    let last = batches(&hub).pop().unwrap().1.pop().unwrap();
    assert_eq!(last["kind"], "session", "{last}");
    assert!(last.to_string().contains("ended"), "{last}");
}

#[test]
fn a_far_hub_that_is_gone_at_the_end_is_not_waited_for_without_end_and_what_is_left_is_told() {
    let hub = far(Arc::new(AtomicBool::new(false)));
    let mut run = far_shim(&hub, &["serve"]);
    run.send(ask(1, "ping").as_bytes());
    answer(&run, 1);
    run.end_of_input().exits(0).complains("could not be sent to the hub; they wait in");
}

const ASKS: &str = "schema: 1\ngovernance:\n  defaults: { action: forward }\n  rules:\n    - { match: ask, action: approve }\n";

#[test]
fn ec_stdio_037_a_hub_that_hangs_is_a_no_in_production_and_the_rest_flows_on() {
    let hub = hung(ASKS, "production");
    let setup = shim("", &["log=log", "serve"]);
    let token = setup.folder().join("token");
    fs::write(&token, self::token()).unwrap();
    let mut run = setup
        .flags(&["--governance-endpoint", &hub.url(""), "--token-file", token.to_str().unwrap()])
        .start();
    run.send([call(1, "ask"), call(2, "other")].concat().as_bytes());
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    let error = answer(&run, 1);
    assert_eq!(error["error"]["code"], -32013, "{error}");
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), call(2, "other"));
}

#[test]
fn ec_stdio_037_in_development_it_is_logged_and_sent_on() {
    let hub = hung(ASKS, "development");
    let setup = shim("", &["log=log", "serve"]).flags(&["--log-format", "json"]);
    let token = setup.folder().join("token");
    fs::write(&token, self::token()).unwrap();
    let mut run = setup
        .flags(&["--governance-endpoint", &hub.url(""), "--token-file", token.to_str().unwrap()])
        .start();
    run.send(call(1, "ask").as_bytes());
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    run.end_of_input().exits(0).complains("WOULD_REQUIRE_APPROVAL");
}

#[test]
fn calls_that_wait_when_their_hub_stops_are_told_that_no_approver_is_reachable() {
    let stops = Arc::new(AtomicBool::new(false));
    let hub = stopping(Arc::clone(&stops));
    let mut run = far_shim(&hub, &["log=log", "serve"]);
    run.send(call(1, "ask").as_bytes());
    // The answer to this request never comes: only the end of the session can end the wait.
    run.until("a request for the decision", |_| {
        hub.seen().iter().any(|seen| seen.head.starts_with("GET /governance/task/"))
    });
    stops.store(true, Ordering::SeqCst);
    let error = answer(&run, 1)["error"].clone();
    assert_eq!(error["code"], -32013, "{error}");
    assert_eq!(error["data"]["error_type"], "service_unavailable", "{error}");
    let end = run.end().exits(0);
    assert_eq!(server_got(end.run.folder()), "");
    // It can still be decided, so it is given up and not cancelled.
    let withdrawn = hub.seen().into_iter().find(|seen| seen.head.contains("/cancel"));
    assert!(withdrawn.expect("a withdrawal").head.contains("abandoned=true"));
}
