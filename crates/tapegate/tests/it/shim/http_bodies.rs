//! HTTP bodies: headers that do not match them, compressed ones, and calls that are cancelled.

use std::io::Write;
use std::sync::{Mutex, mpsc};
use std::thread;

use serde_json::{Value, json};
use tapegate_policy::pins::PinLock;

use super::http::{ACCEPT, JSON, post, said, sidecar, upstream};
use super::setup::{FORWARD, answer, call, event, events, rules, server_got};
use crate::http_peers::{ReceivedRequest, WebServer, ask_raw, json as reply};
use crate::support::shim;

const MODERN: &str = "mcp-protocol-version: 2026-07-28";

#[test]
fn what_headers_describe_wrongly_is_in_the_activity_log() {
    let upstream = upstream();
    let process = shim(FORWARD, &["serve"]).flags(&["--http", "127.0.0.1:0"]).start();
    for run in [sidecar(FORWARD, &upstream), process] {
        let wrong = [JSON, ACCEPT, "mcp-method: tools/list", MODERN];
        let got = post(&run, "/mcp", &wrong, call(1, "a").trim_end());
        assert_eq!((got.status, &said(&got)["error"]["code"]), (400, &json!(-32020)));
        let noted = event(run.folder(), &[("governance_decision", "reject"), ("tool", "a")]);
        let reason = "the Mcp-Method header and the body disagree";
        assert_eq!(noted["policy_reason"], reason, "{noted}");
        assert_eq!((&noted["forwarded"], &noted["message_id"]), (&json!(false), &json!("1")));
        // A batch: the header must match each message, and each request has its answer.
        let batch = format!("[{},{}]", call(2, "a").trim_end(), call(3, "b").trim_end());
        let got = post(&run, "/mcp", &[JSON, ACCEPT, "mcp-name: a"], &batch);
        let ids: Vec<Value> = said(&got)
            .as_array()
            .unwrap_or(&Vec::new())
            .iter()
            .map(|one| one["id"].clone())
            .collect();
        assert_eq!((got.status, ids), (400, vec![json!(2), json!(3)]), "{got:?}");
        event(run.folder(), &[("policy_reason", "the Mcp-Name header and the body disagree")]);
    }
}

#[test]
fn a_request_of_a_process_that_lacks_a_header_is_in_the_activity_log() {
    let run = shim(FORWARD, &["serve"]).flags(&["--http", "127.0.0.1:0"]).start();
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","_meta":{meta}}}}}"#
    );
    let got = post(&run, "/mcp", &[JSON, ACCEPT, MODERN, "mcp-method: tools/call"], &body);
    assert_eq!((got.status, &said(&got)["id"]), (400, &json!(1)), "{got:?}");
    let reason = ("policy_reason", "the Mcp-Name header is missing");
    event(run.folder(), &[reason, ("governance_decision", "reject")]);
}

#[test]
fn a_compressed_body_reaches_the_server_as_it_came_unless_a_policy_is_enforced() {
    let text = call(1, "a");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let development = FORWARD.replace("schema: 1\n", "schema: 1\nprofile: development\n");
    for (policy, enforced) in [("", false), (&*development, false), (FORWARD, true)] {
        let upstream = upstream();
        let run = sidecar(policy, &upstream);
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n{JSON}\r\n{ACCEPT}\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
            run.port(),
            packed.len()
        );
        ask_raw(run.port(), &[head.as_bytes(), &packed].concat());
        let seen = upstream.seen().remove(0);
        let expected = if enforced { text.as_bytes() } else { &packed[..] };
        assert_eq!(seen.body, expected, "{policy}");
        assert_eq!(seen.header("content-encoding"), (!enforced).then_some("gzip"), "{policy}");
    }
}

fn cancel(id: u64) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
    )
}

#[test]
fn a_cancellation_of_a_refused_call_does_not_reach_the_server() {
    for (policy, reaches) in [(rules(&[("rm", "deny")]), false), (String::new(), true)] {
        let mut run = shim(&policy, &["log=log", "serve"]).start();
        run.send([call(1, "rm"), cancel(1), call(2, "ok")].concat().as_bytes());
        answer(&run, 2);
        assert_eq!(server_got(run.folder()).contains("cancelled"), reaches, "{policy}");
        run.end_of_input().exits(0);
    }
}

#[test]
fn without_a_session_a_call_that_waits_for_the_list_of_tools_can_be_taken_back() {
    const TOOLS: &str = r#"{"tools":[{"name":"a"}]}"#;
    let (list, listed) = mpsc::channel::<()>();
    let listed = Mutex::new(listed);
    let upstream = WebServer::start(move |seen: &ReceivedRequest, stream| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap_or(Value::Null);
        let id = &asked["id"];
        if asked["method"] == "tools/list" {
            // It is sent once the call that waits for it was cancelled.
            listed.lock().unwrap().recv().ok();
        }
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{TOOLS}}}"#);
        stream.write_all(&reply("", &text)).is_ok()
    });
    let setup = shim(FORWARD, &[]).server(&[]).flags(&["--http", "127.0.0.1:0"]);
    let setup = setup.flags(&["--upstream-http", &upstream.url("/mcp")]);
    let mut lock = PinLock::default();
    lock.learn("s", &[TOOLS.as_bytes()]);
    std::fs::write(setup.folder().join("tapegate.lock"), lock.write()).unwrap();
    let run = setup.start();
    let port = run.port();
    let called = thread::spawn(move || {
        crate::http_peers::ask(
            port,
            "POST /mcp",
            &[JSON, "accept: application/json"],
            call(7, "a").trim_end(),
        )
    });
    upstream.wait(1);
    let taken = post(&run, "/mcp", &[JSON, ACCEPT, MODERN], cancel(7).trim_end());
    assert_eq!(taken.status, 202, "{taken:?}");
    assert_eq!(called.join().unwrap().status, 202);
    drop(list);
    // The next call is sent once the list has arrived, so everything before it was sent too.
    post(&run, "/mcp", &[JSON, ACCEPT], call(8, "a").trim_end());
    let bodies: Vec<String> = upstream
        .seen()
        .iter()
        .map(|seen| String::from_utf8_lossy(&seen.body).into_owned())
        .collect();
    assert!(
        !bodies.iter().any(|body| body.contains("cancelled") || body.contains("\"id\":7")),
        "{bodies:?}"
    );
    assert!(!events(run.folder()).is_empty());
}
