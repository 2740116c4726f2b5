//! The shim as a sidecar: HTTP on one side or both, with a server that records its requests.

use std::io::Write;
use std::thread;

use serde_json::{Value, json};
use tapegate_store::approvals::ApprovalOutcome;

use super::setup::{
    FORWARD, answer, ask as line, call, decide, event, events, held, is_refused, rules, server_got,
    waiting,
};
use crate::http_peers::{ReceivedReply, ReceivedRequest, STREAM, WebServer, ask, json};
use crate::support::{RunningSession, shim};

pub(super) const JSON: &str = "content-type: application/json";
pub(super) const ACCEPT: &str = "accept: application/json, text/event-stream";

/// A server that answers every request, and lists tools `a` and `x1`.
pub(super) fn upstream() -> WebServer {
    WebServer::start(|seen: &ReceivedRequest, stream| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap_or(Value::Null);
        let reply = |asked: &Value| match asked["method"].as_str() {
            Some("tools/list") => {
                json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": [{"name": "a"}, {"name": "x1"}]}})
            }
            _ => json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"for": asked["id"]}}),
        };
        let text = match &asked {
            Value::Array(all) => Value::from(all.iter().map(reply).collect::<Vec<_>>()).to_string(),
            one => reply(one).to_string(),
        };
        if seen.head.contains("x-stream") {
            let event = format!("event: message\ndata: {text}\n\n");
            let head = String::from_utf8_lossy(STREAM);
            let head = match seen.head.contains("x-stream: whole") {
                // As Node writes a stream that ended before its head was sent.
                true => {
                    head.trim_end().to_owned()
                        + &format!("\r\ncontent-length: {}\r\n\r\n", event.len())
                }
                false => head.into_owned(),
            };
            stream.write_all([head, event].concat().as_bytes()).ok();
            return false;
        }
        stream.write_all(&json("", &text)).is_ok()
    })
}

/// A sidecar in front of it.
pub(super) fn sidecar(policy: &str, upstream: &WebServer) -> RunningSession {
    let setup = shim(policy, &[]).server(&[]).flags(&["--http", "127.0.0.1:0"]);
    setup.flags(&["--upstream-http", &upstream.url("/mcp")]).start()
}

pub(super) fn post(
    run: &RunningSession,
    path: &str,
    headers: &[&str],
    body: &str,
) -> ReceivedReply {
    ask(run.port(), &format!("POST {path}"), headers, body)
}

pub(super) fn said(got: &ReceivedReply) -> Value {
    let text = got.body.trim();
    let text = text.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or(text);
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{got:?}"))
}

fn hidden() -> String {
    let hides = "sources: [{ id: s, kind: mcp, expose: { mode: blocklist, tools: [\"x*\"] } }]\n";
    rules(&[("rm*", "deny"), ("ask*", "approve")])
        .replace("schema: 1\n", &format!("schema: 1\n{hides}"))
}

#[test]
fn a_denied_call_is_a_json_rpc_error_and_never_reaches_the_server() {
    let upstream = upstream();
    let run = sidecar(&hidden(), &upstream);
    let got = post(&run, "/mcp", &[JSON, ACCEPT], call(1, "rm").trim_end());
    assert_eq!(got.status, 200, "{got:?}");
    is_refused(&said(&got), -32014, "governance", "rm", "governance_rule_denied");
    let got = post(&run, "/mcp", &[JSON, ACCEPT], call(2, "ok").trim_end());
    assert_eq!(said(&got)["result"]["for"], 2);
    let seen = upstream.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].body, call(2, "ok").trim_end().as_bytes());
    event(run.folder(), &[("tool", "rm"), ("governance_decision", "deny")]);
}

#[test]
fn what_is_refused_and_has_no_id_is_not_said_to_be_accepted() {
    let upstream = upstream();
    let run = sidecar(&hidden(), &upstream);
    let notice = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"ok"}}"#;
    for (body, code) in [("no message", -32700), (notice, -32600)] {
        let got = post(&run, "/mcp", &[JSON, ACCEPT], body);
        assert_eq!((got.status, &said(&got)["error"]["code"]), (400, &json!(code)), "{got:?}");
    }
    assert_eq!(upstream.seen().len(), 0);
}

#[test]
fn no_path_method_or_content_type_leads_round_the_gate() {
    // The earlier tool executed a denied tool that was posted to another path, or as text/plain.
    let upstream = upstream();
    let run = sidecar(&hidden(), &upstream);
    let body = call(1, "rm");
    let body = body.trim_end();
    for path in
        ["/mcp", "/mcp/", "/mcp/v1", "/", "//mcp", "/elsewhere", "/message?sessionId=1", "/mcp?x=1"]
    {
        for kind in [
            JSON,
            "content-type: text/plain",
            "content-type: application/JSON; charset=utf-8",
            "x-none: 1",
        ] {
            for verb in ["POST", "PUT", "PATCH"] {
                ask(run.port(), &format!("{verb} {path}"), &[kind, ACCEPT], body);
            }
        }
    }
    for body in [
        format!("\u{feff}{body}"),
        format!(" \r\n{body}\r\n"),
        format!("[{body}]"),
        format!("{body}{body}"),
        body.replace("rm", "r\\u006d"),
    ] {
        post(&run, "/mcp", &[JSON, ACCEPT], &body);
        post(&run, "/elsewhere", &["content-type: text/plain"], &body);
    }
    let through: Vec<_> =
        upstream.seen().into_iter().filter(|seen| !seen.body.is_empty()).collect();
    assert!(through.is_empty(), "{through:?}");
}

#[test]
fn a_batch_passes_only_as_a_whole() {
    let upstream = upstream();
    let run = sidecar(&hidden(), &upstream);
    let two =
        |one: &str, two: &str| format!("[{},{}]", call(1, one).trim_end(), call(2, two).trim_end());
    let got = post(&run, "/mcp", &[JSON, ACCEPT], &two("ok", "fine"));
    assert_eq!(got.status, 200, "{got:?}");
    let passed = upstream.seen().len();
    let got = post(&run, "/mcp", &[JSON, ACCEPT], &two("ok", "rm"));
    let errors = said(&got);
    let ids: Vec<&Value> =
        errors.as_array().expect("errors").iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&Value::from(1), &Value::from(2)]);
    assert_eq!(upstream.seen().len(), passed, "nothing of it was sent");
}

#[test]
fn lists_are_filtered_in_bodies_and_in_streams() {
    let upstream = upstream();
    let run = sidecar(&hidden(), &upstream);
    for header in ["x-plain: 1", "x-stream: 1", "x-stream: whole"] {
        let got = post(&run, "/mcp", &[JSON, ACCEPT, header], line(1, "tools/list").trim_end());
        assert_eq!(said(&got)["result"]["tools"], json!([{ "name": "a" }]), "{got:?}");
    }
}

#[test]
fn a_held_post_waits_and_is_answered_when_somebody_has_decided() {
    let upstream = upstream();
    let run = sidecar(&hidden(), &upstream);
    let port = run.port();
    let asks = [1, 2].map(|id| {
        let body = call(id, &format!("ask_{id}")).trim_end().to_owned();
        thread::spawn(move || ask(port, "POST /mcp", &[JSON, ACCEPT], &body))
    });
    held(&run, 2);
    // Other calls are answered in the meantime.
    assert_eq!(
        said(&post(&run, "/mcp", &[JSON, ACCEPT], call(3, "ok").trim_end()))["result"]["for"],
        3
    );
    for request in super::setup::waiting(&run) {
        let yes = request.tool == "ask_1";
        decide(
            &run,
            if yes { ApprovalOutcome::Approved } else { ApprovalOutcome::Denied },
            &request.id,
        );
    }
    let [one, two] = asks.map(|asked| said(&asked.join().unwrap()));
    assert_eq!(one["result"]["for"], 1, "{one}");
    is_refused(&two, -32007, "approval", "ask_2", "approval_rejected");
}

#[test]
fn requests_for_approval_name_their_session_as_the_log_does() {
    let upstream = upstream();
    let run = sidecar(&hidden(), &upstream);
    let port = run.port();
    let asks = ["one", "two"].map(|session| {
        let (header, body) = (format!("mcp-session-id: {session}"), call(1, "ask"));
        thread::spawn(move || ask(port, "POST /mcp", &[JSON, ACCEPT, &header], body.trim_end()))
    });
    held(&run, 2);
    let requests = waiting(&run);
    assert_ne!(requests[0].connection_id, requests[1].connection_id);
    // A request is visible to approvers before its line is in the log.
    run.until("the requests in the log", |run| {
        let logged = events(run.folder());
        requests.iter().all(|request| logged.iter().any(|one| one["approval_id"] == *request.id))
    });
    for request in &requests {
        let opened = event(run.folder(), &[("approval_id", &request.id)]);
        assert_eq!(opened["connection_id"], *request.connection_id, "{opened}");
        decide(&run, ApprovalOutcome::Denied, &request.id);
    }
    for asked in asks {
        let answer = said(&asked.join().unwrap());
        is_refused(&answer, -32007, "approval", "ask", "approval_rejected");
    }
}

#[test]
fn half_a_secret_in_the_name_of_something_hidden_is_not_kept() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    // The name is truncated after 200 characters, in the middle of the secret.
    let name = format!("x {}{secret}", "- ".repeat(84));
    let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": name}]}});
    let upstream = WebServer::start(move |_: &ReceivedRequest, stream| {
        stream.write_all(&json("", &list.to_string())).is_ok()
    });
    let run = sidecar(&format!("{}redaction: {{}}\n", hidden()), &upstream);
    let got = post(&run, "/mcp", &[JSON, ACCEPT], line(1, "tools/list").trim_end());
    assert_eq!(said(&got)["result"]["tools"], json!([]));
    let filtered = event(run.folder(), &[("governance_decision", "filter")]);
    let names = filtered["hidden_names"].to_string();
    assert!(names.contains("x - -") && !names.contains(&secret[..12]), "{names}");
}

#[test]
fn a_call_whose_client_has_gone_away_is_not_run_but_its_approval_lets_the_same_call_pass_once() {
    let upstream = upstream();
    let run = sidecar(&hidden(), &upstream);
    let body = call(1, "ask");
    let stream = crate::http_peers::send(run.port(), "POST /mcp", &[JSON, ACCEPT], body.trim_end());
    let id = held(&run, 1).remove(0);
    drop(stream);
    run.until("the caller is gone", |run| waiting(run)[0].waiting == 0);
    decide(&run, ApprovalOutcome::Approved, &id);
    post(&run, "/mcp", &[JSON, ACCEPT], call(2, "other").trim_end());
    assert_eq!(upstream.seen().len(), 1, "not run for nobody");
    post(&run, "/mcp", &[JSON, ACCEPT], call(3, "ask").trim_end());
    assert_eq!(upstream.seen().len(), 2);
}

#[test]
fn session_and_authorisation_headers_reach_the_server() {
    // The earlier tool dropped them all, so that no conforming server could be used.
    let upstream = upstream();
    let run = sidecar(FORWARD, &upstream);
    let headers = [
        JSON,
        ACCEPT,
        "mcp-session-id: abc",
        "mcp-protocol-version: 2025-11-25",
        "authorization: Bearer t",
    ];
    post(&run, "/mcp", &headers, call(1, "a").trim_end());
    let seen = upstream.seen().remove(0);
    assert_eq!(seen.header("mcp-session-id"), Some("abc"));
    assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(seen.header("authorization"), Some("Bearer t"));
}

#[test]
fn http_in_front_of_a_process_is_governed() {
    let run = shim(&hidden(), &["log=log", "mcp=a,x1"]).flags(&["--http", "127.0.0.1:0"]).start();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let opened = post(&run, "/mcp", &[JSON, ACCEPT], hello);
    let session = opened.header("mcp-session-id").unwrap_or_else(|| panic!("{opened:?}"));
    let session = format!("mcp-session-id: {session}");
    let headers = [JSON, ACCEPT, session.as_str(), "mcp-protocol-version: 2025-11-25"];
    let refused = said(&post(&run, "/mcp", &headers, call(1, "rm").trim_end()));
    is_refused(&refused, -32014, "governance", "rm", "governance_rule_denied");
    let passed = said(&post(&run, "/mcp", &headers, call(2, "ok").trim_end()));
    assert_eq!(passed["id"], 2, "{passed}");
    let listed = said(&post(&run, "/mcp", &headers, line(3, "tools/list").trim_end()));
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(1), "{listed}");
    assert!(!server_got(run.folder()).contains("\"rm\""));
    let notice = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"ok"}}"#;
    let got = post(&run, "/mcp", &[JSON, ACCEPT, &session], notice);
    assert_eq!((got.status, &said(&got)["error"]["code"]), (400, &json!(-32600)), "{got:?}");
}

#[test]
fn stdio_in_front_of_http_is_governed() {
    let upstream = upstream();
    let setup = shim(&hidden(), &[]).server(&[]);
    let mut run = setup.flags(&["--upstream-http", &upstream.url("/mcp")]).start();
    run.send([call(1, "rm"), line(2, "tools/list"), call(3, "ok")].concat().as_bytes());
    is_refused(&answer(&run, 1), -32014, "governance", "rm", "governance_rule_denied");
    assert_eq!(answer(&run, 2)["result"]["tools"], json!([{ "name": "a" }]));
    assert_eq!(answer(&run, 3)["result"]["for"], 3);
    run.end_of_input().exits(0);
    let denied =
        upstream.seen().into_iter().find(|seen| seen.body.windows(4).any(|part| part == b"\"rm\""));
    assert!(denied.is_none(), "{denied:?}");
}

#[test]
fn a_server_that_cannot_be_started_is_answered_for_by_http_too() {
    let setup = shim(FORWARD, &[]).server(&["/no/such/server"]).flags(&["--http", "127.0.0.1:0"]);
    let run = setup.start();
    let error = said(&post(&run, "/mcp", &[JSON, ACCEPT], line(1, "initialize").trim_end()));
    assert_eq!(error["error"]["code"], -32000, "{error}");
}

const SAMPLING: &str =
    r#"{"jsonrpc":"2.0","id":71,"method":"sampling/createMessage","params":{"messages":[]}}"#;

fn approves_sampling() -> String {
    rules(&[]).replace("rules:\n", "rules:\n    - { method: \"sampling/*\", action: approve }\n")
}

#[test]
fn a_request_of_a_server_that_would_be_held_is_refused_by_http_and_nobody_is_asked() {
    let upstream = WebServer::start(|seen: &ReceivedRequest, stream| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap_or(Value::Null);
        if asked["method"] != "tools/call" {
            return stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").is_ok();
        }
        let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
        let events = format!("data: {SAMPLING}\n\ndata: {reply}\n\n");
        stream.write_all(&[STREAM, events.as_bytes()].concat()).ok();
        false
    });
    let run = sidecar(&approves_sampling(), &upstream);
    let got = post(&run, "/mcp", &[JSON, ACCEPT], call(1, "a").trim_end());
    assert!(got.body.contains("\"result\"") && !got.body.contains("sampling"), "{got:?}");
    run.until("an answer to the server", |_| upstream.seen().len() == 2);
    let answer: Value = serde_json::from_slice(&upstream.seen()[1].body).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(71), &json!(-32013)), "{answer}");
    assert_eq!(waiting(&run).len(), 0, "nobody is asked");
}

#[test]
fn a_request_of_a_process_behind_http_that_would_be_held_is_refused_and_nobody_is_asked() {
    let say = format!("say={SAMPLING}");
    let setup = shim(&approves_sampling(), &["log=log", "read=1", &say, "serve"]);
    let run = setup.flags(&["--http", "127.0.0.1:0"]).start();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
    thread::scope(|scope| {
        scope.spawn(|| post(&run, "/mcp", &[JSON, ACCEPT], hello));
        run.until("an answer to the server", |run| server_got(run.folder()).contains("-32013"));
        assert_eq!(waiting(&run).len(), 0, "nobody is asked");
        run.signal(rustix::process::Signal::TERM);
    });
}
