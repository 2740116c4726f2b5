//! `redaction.on_wire` where one end is a process: errors of an HTTP server quoted by a shim, and
//! errors without an id.

use std::io::Write;

use serde_json::{Value, json};

use super::setup::{FORWARD, ask, call, event, events};
use super::wire_redaction_http::{SECRET, policy};
use crate::http_peers::{self, ReceivedRequest, WebServer};
use crate::support::{EndedSession, accept_policy, shim, tapegate};

/// A server that replies to every POST with this status, type and body.
fn replying(status: &'static str, kind: &'static str, body: Vec<u8>) -> WebServer {
    WebServer::start(move |_: &ReceivedRequest, stream| {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), &body].concat()).is_ok()
    })
}

/// The output of a session on stdio with such a server.
fn through(server: &WebServer, profile: &str, lines: &str) -> EndedSession {
    let setup = shim(&policy(profile, "password"), &[]).server(&[]);
    let run = setup.flags(&["--upstream-http", &server.url("/mcp")]);
    run.run(lines.as_bytes())
}

/// Whether an event is about an HTTP error that was quoted.
fn is_quoted(event: &Value) -> bool {
    event["policy_reason"].as_str().is_some_and(|reason| reason.ends_with("quoted"))
}

#[test]
fn what_a_shim_quotes_of_an_http_error_is_masked() {
    let far = format!("{}{SECRET} end", "x ".repeat(140));
    let rpc = |id: Value| {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -7, "message": "no", "data": SECRET}})
            .to_string()
    };
    for (status, kind, body) in [
        ("500 Oops", "text/plain", format!("cannot use {SECRET}")),
        ("500 Oops", "text/plain", far),
        ("500 Oops", "text/plain", "login with password=ghp_a1 failed".to_owned()),
        ("401 Oops", "application/json", json!({"detail": SECRET}).to_string()),
        ("404 Oops", "application/json", rpc(Value::Null)),
        ("500 Oops", "application/json", rpc(Value::Null)),
        ("500 Oops", "application/json", rpc(json!(1))),
        ("200 OK", "text/ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "not JSON".to_owned()),
    ] {
        let server = replying(status, kind, body.clone().into_bytes());
        let ended = through(&server, "production", &call(1, "t"));
        let got = String::from_utf8_lossy(&ended.stdout).into_owned();
        let answer: Value = serde_json::from_str(got.trim()).unwrap();
        assert!(answer["error"].is_object(), "{body} {got}");
        let all = format!("{got}{}", ended.stderr);
        assert!(!all.contains("ghp_a1"), "{body} {all}");
        assert!(got.contains("[REDACTED:"), "{body} {got}");
        let masked = |event: &Value| event["governance_decision"] == "redact";
        let noted = events(ended.run.folder());
        assert!(noted.iter().any(masked), "{body}");
        let quoted = noted.iter().filter(|event| masked(event) && is_quoted(event)).count();
        assert!(quoted <= 1, "{body} is masked once, and counted once: {quoted}");
    }
}

#[test]
fn a_notification_that_is_not_accepted_is_told_of_without_secrets() {
    let server = replying("500 Oops", "text/plain", format!("cannot use {SECRET}").into_bytes());
    let line = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    let ended = through(&server, "production", line);
    assert!(ended.stderr.contains("cannot use [REDACTED:github:"), "{}", ended.stderr);
    assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
}

#[test]
fn development_quotes_an_http_error_as_it_is_and_notes_it() {
    let server = replying("500 Oops", "text/plain", format!("cannot use {SECRET}").into_bytes());
    let ended = through(&server, "development", &call(1, "t"));
    assert!(String::from_utf8_lossy(&ended.stdout).contains(SECRET));
    let all = events(ended.run.folder());
    let mut noted = all.iter().filter(|event| event["governance_decision"] == "WOULD_REDACT");
    assert_eq!(noted.next().unwrap()["policy_reason"], "the body of HTTP status 500, quoted");
    assert_eq!(noted.next(), None, "it is quoted, and noted, once");
}

/// A server on stdio that sends an error without an id, text that is not JSON, and an answer.
const LEAKS: &str = r#"read -r line
echo '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"SECRET"}}'
echo 'debug: SECRET'
echo '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no SECRET"}}'
cat >/dev/null"#;

#[test]
fn a_process_says_no_secrets_to_a_client_on_stdio_or_http() {
    let script = LEAKS.replace("SECRET", SECRET);
    for method in ["tools/call", "tools/list", "initialize"] {
        let run = shim(&policy("production", ""), &[]).sh(&script).start();
        let ended = {
            let mut run = run;
            run.send(ask(1, method).as_bytes());
            run.gets("\"id\":1");
            run.end_of_input()
        };
        let got = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(!got.contains(SECRET), "{method} {got}");
        assert!(got.contains("no [REDACTED:github:"), "{method} {got}");
    }
    let setup = shim(&policy("production", ""), &[]).sh(&script);
    let run = setup.flags(&["--http", "127.0.0.1:0"]).start();
    let lines = ["content-type: application/json", "accept: application/json, text/event-stream"];
    let got = http_peers::ask(run.port(), "POST /mcp", &lines, ask(1, "initialize").trim_end());
    assert!(!got.body.contains(SECRET), "{got:?}");
    assert!(got.body.contains("no [REDACTED:github:"), "{got:?}");
    let masked = events(run.folder()).into_iter().filter(|e| e["governance_decision"] == "redact");
    assert!(masked.count() >= 1);
}

#[test]
fn telemetry_without_a_hub_is_warned_of() {
    let otlp = "telemetry: { enabled: true, otlp: { endpoint: \"http://127.0.0.1:1\" } }\n";
    let policy = format!("{FORWARD}{otlp}");
    let unaccepted = shim(&policy, &[]).run(b"");
    let setup = shim(&policy, &[]);
    let done = accept_policy(setup.folder(), &setup.folder().join("state"), &[]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let ended = setup.run(b"");
    // Accepting the policy would change nothing.
    for ended in [&unaccepted, &ended] {
        let said = &ended.stderr;
        assert_eq!(said.matches("which only a hub sends").count(), 1, "{said}");
        assert!(!said.contains("telemetry is off") && !said.contains("policy accept"), "{said}");
        let warned = event(ended.run.folder(), &[("event", "unsent_telemetry")]);
        assert_eq!((&warned["kind"], &warned["level"]), (&"session".into(), &"warn".into()));
    }
    let check = || {
        let mut check = tapegate();
        check.arg("check").arg(ended.run.folder().join("tapegate.yaml"));
        check
    };
    let shown = String::from_utf8(check().output().unwrap().stdout).unwrap();
    assert!(shown.contains("only a hub sends telemetry"), "{shown}");
    let joined = check().env("TAPEGATE_GOVERNANCE_ENDPOINT", "http://127.0.0.1:1").output();
    assert!(!String::from_utf8(joined.unwrap().stdout).unwrap().contains("only a hub"));
}

#[test]
fn telemetry_that_is_not_turned_on_is_warned_of() {
    let otlp = "telemetry: { otlp: { endpoint: \"http://127.0.0.1:1\" } }\n";
    let ended = shim(&format!("{FORWARD}{otlp}"), &[]).run(b"");
    assert_eq!(ended.stderr.matches("telemetry is off").count(), 1, "{}", ended.stderr);
    let checked = tapegate().arg("check").arg(ended.run.folder().join("tapegate.yaml")).output();
    let shown = String::from_utf8(checked.unwrap().stdout).unwrap();
    assert!(shown.contains("telemetry is off until `enabled: true`"), "{shown}");
    assert!(!shown.contains("only a hub sends"), "{shown}");
}
