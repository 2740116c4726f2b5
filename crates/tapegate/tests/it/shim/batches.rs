//! Batches of the revision 2025-03-26 through a governed listener.

use std::io::Write;

use serde_json::{Value, json};

use super::setup::{ask as line, call, rules, server_got};
use crate::http_peers::{ReceivedReply, ReceivedRequest, STREAM, WebServer, ask, json};
use crate::support::{RunningSession, shim};

const JSON: &str = "content-type: application/json";
const ACCEPT: &str = "accept: application/json, text/event-stream";
const ONLY_JSON: &str = "accept: application/json";
const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A policy that hides tools whose names start with `x`, and denies `rm`.
fn policy() -> String {
    let hides = "sources: [{ id: s, kind: mcp, expose: { mode: blocklist, tools: [\"x*\"] } }]\n";
    rules(&[("rm*", "deny")]).replace("schema: 1\n", &format!("schema: 1\n{hides}"))
}

fn batch(messages: &[String]) -> String {
    let messages: Vec<&str> = messages.iter().map(|one| one.trim_end()).collect();
    format!("[{}]", messages.join(","))
}

fn listing_and_ping() -> String {
    batch(&[line(1, "tools/list"), line("\"p\"", "ping")])
}

/// Every message in a reply, whether it is a single body or an event stream.
fn messages(got: &ReceivedReply) -> Vec<Value> {
    let texts: Vec<&str> = match got.header("content-type") {
        Some(kind) if kind.starts_with("text/event-stream") => {
            let data = got.body.lines().filter_map(|line| line.strip_prefix("data:"));
            data.filter(|data| !data.trim().is_empty()).collect()
        }
        _ => vec![&got.body],
    };
    let read = |text: &&str| serde_json::from_str(text).unwrap_or_else(|_| panic!("{got:?}"));
    let values: Vec<Value> = texts.iter().map(read).collect();
    values
        .into_iter()
        .flat_map(|value| match value {
            Value::Array(all) => all,
            one => vec![one],
        })
        .collect()
}

#[track_caller]
fn by_id<'a>(messages: &'a [Value], id: &Value) -> &'a Value {
    let found: Vec<&Value> = messages.iter().filter(|one| one["id"] == *id).collect();
    assert_eq!(found.len(), 1, "{id} in {messages:?}");
    found[0]
}

/// An HTTP server that answers a batch with `reply`.
fn upstream(reply: &'static str) -> WebServer {
    WebServer::start(move |seen: &ReceivedRequest, stream| {
        if seen.head.contains("x-stream") {
            let event = format!("event: message\ndata: {reply}\n\n");
            stream.write_all(&[STREAM, event.as_bytes()].concat()).ok();
            return false;
        }
        stream.write_all(&json("", reply)).is_ok()
    })
}

fn sidecar(upstream: &WebServer) -> RunningSession {
    let setup = shim(&policy(), &[]).server(&[]).flags(&["--http", "127.0.0.1:0"]);
    setup.flags(&["--upstream-http", &upstream.url("/mcp")]).start()
}

#[test]
fn a_list_in_a_batch_is_filtered_and_the_reply_is_one_array() {
    let upstream = upstream(
        r#"[{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"x1"}]}},{"jsonrpc":"2.0","id":"p","result":{}}]"#,
    );
    let run = sidecar(&upstream);
    for header in ["x-plain: 1", "x-stream: 1"] {
        let got = ask(run.port(), "POST /mcp", &[JSON, ACCEPT, header], &listing_and_ping());
        let messages = messages(&got);
        assert_eq!(messages.len(), 2, "{got:?}");
        assert_eq!(by_id(&messages, &json!(1))["result"]["tools"], json!([{ "name": "a" }]));
        assert_eq!(by_id(&messages, &json!("p"))["result"], json!({}));
    }
}

#[test]
fn a_refused_reply_to_a_batch_is_an_error_for_each_request_in_valid_json() {
    // Two ids in one answer: which one a client reads is unknown.
    let upstream = upstream(
        r#"[{"jsonrpc":"2.0","id":1,"id":2,"result":{}},{"jsonrpc":"2.0","id":"p","result":{}}]"#,
    );
    let run = sidecar(&upstream);
    for header in ["x-plain: 1", "x-stream: 1"] {
        let body = batch(&[call(2, "ok"), line("\"p\"", "ping")]);
        let got = ask(run.port(), "POST /mcp", &[JSON, ACCEPT, header], &body);
        let messages = messages(&got);
        for id in [json!(2), json!("p")] {
            assert!(by_id(&messages, &id)["error"]["code"].is_i64(), "{got:?}");
        }
    }
}

#[test]
fn in_front_of_a_process_a_batch_is_split_into_lines_and_its_answers_are_gathered() {
    let run = shim(&policy(), &["log=log", "mcp=a,x1"]).flags(&["--http", "127.0.0.1:0"]).start();
    let got = ask(run.port(), "POST /mcp", &[JSON, ACCEPT], HELLO);
    let session = format!("mcp-session-id: {}", got.header("mcp-session-id").unwrap());
    let body = batch(&[
        line(1, "tools/list"),
        line("\"p\"", "ping"),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
    ]);
    let got = ask(run.port(), "POST /mcp", &[JSON, ONLY_JSON, &session], &body);
    let array: Value = serde_json::from_str(&got.body).unwrap_or_else(|_| panic!("{got:?}"));
    assert_eq!(array.as_array().map(Vec::len), Some(2), "{got:?}");
    let both = ask(run.port(), "POST /mcp", &[JSON, ACCEPT, &session], &listing_and_ping());
    for answers in [messages(&got), messages(&both)] {
        let tools = by_id(&answers, &json!(1))["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), [&json!("a")]);
        assert!(by_id(&answers, &json!("p"))["result"].is_object());
    }
    let denied = batch(&[call(3, "rm"), line(4, "ping")]);
    let got = ask(run.port(), "POST /mcp", &[JSON, ACCEPT, &session], &denied);
    for id in [json!(3), json!(4)] {
        assert!(by_id(&messages(&got), &id)["error"]["code"].is_i64(), "{got:?}");
    }
    let lines = server_got(run.folder());
    assert!(lines.lines().all(|line| line.starts_with('{')), "{lines}");
    assert!(!lines.contains("\"rm\""), "{lines}");
}
