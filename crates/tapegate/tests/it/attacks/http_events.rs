//! Event streams that a client could read differently from the gate and so see hidden items.

use std::io::Write;

use serde_json::{Value, json};

use super::target_server::{ACCEPT, JSON};
use crate::http_peers::{ReceivedRequest, WebServer, ask, json as json_reply};
use crate::peers;
use crate::shim::setup::{ask as line, events, messages};
use crate::support::{RunningSession, shim};

pub(super) const POLICY: &str = "schema: 1\nsources: [{ id: s, kind: mcp, expose: { mode: blocklist, tools: [\"hidden\"] } }]\ngovernance: { defaults: { action: forward }, rules: [{ id: no-sampling, method: sampling/createMessage, action: deny }] }\n";
const HELLO: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}"#;
/// What eventsource-parser takes for a byte order mark: the mark, decoded as Latin-1.
const LATIN1_MARK: &str = "\u{ef}\u{bb}\u{bf}";
/// Characters that some readers take for the end of a line.
const ENDS: [char; 6] = ['\u{85}', '\u{2028}', '\u{2029}', '\x0b', '\x0c', '\x1c'];

fn list(id: &Value) -> String {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    json!({"jsonrpc": "2.0", "id": id, "result": {"tools": [tool("shown"), tool("hidden")]}})
        .to_string()
}

fn stream_reply(stream: &str) -> Vec<u8> {
    let length = stream.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n{stream}").into_bytes()
}

/// A server that answers lists and calls with the streams that `stream` makes of the request.
pub(super) fn server(stream: impl Fn(&Value) -> String + Send + Sync + 'static) -> WebServer {
    WebServer::start(move |seen: &ReceivedRequest, to| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        let reply = match asked["method"].as_str() {
            Some("initialize") => {
                let id = &asked["id"];
                json_reply("", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{HELLO}}}"#))
            }
            Some("tools/list" | "tools/call") => stream_reply(&stream(&asked)),
            _ if seen.head.starts_with("GET") => {
                b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n".to_vec()
            }
            _ => b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_vec(),
        };
        to.write_all(&reply).is_ok()
    })
}

pub(super) fn before(server: &WebServer, policy: &str) -> RunningSession {
    let setup = shim(policy, &[]).server(&[]).flags(&["--http", "127.0.0.1:0"]);
    setup.flags(&["--upstream-http", &server.url("/mcp")]).start()
}

fn refusals(run: &RunningSession) -> usize {
    events(run.folder()).iter().filter(|event| event["forwarded"] == false).count()
}

/// Streams in which some readers find a list and the gate does not, or the reverse. Dropped parts
/// are logged, and a waiting client gets an error.
fn odd_streams(list: &str) -> Vec<String> {
    let mut streams = vec![
        format!("DATA: {list}\n\n"),
        format!("data : {list}\n\n"),
        format!("{LATIN1_MARK}data: {list}\n\n"),
        format!("\u{feff}\u{feff}data: {list}\n\n"),
        format!("\u{feff}{LATIN1_MARK}data: {list}\n\n"),
        format!("event: ping\ndata: {list}\n\n"),
        format!("event: Message\ndata: {list}\n\n"),
        format!("event: message \ndata: {list}\n\n"),
        format!("data: [[{list}]]\n\n"),
        "data: []\n\n".to_owned(),
    ];
    streams.extend(ENDS.map(|end| format!("x: {end}data: {list}{end}{end}\n\n")));
    streams
}

/// The same where the odd part is a value that no client misses.
fn odd_values(list: &str) -> Vec<String> {
    let mut streams = vec![
        format!("event: x\u{2028}data: {list}\u{2028}\u{2028}\ndata: 1\n\n"),
        format!("event: endpoint\ndata: /x\u{2028}\u{2028}data:{list}\u{2028}\u{2028}\n\n"),
        format!("id: 1\u{2028}data: {list}\u{2028}\u{2028}\n\n"),
    ];
    streams.extend(ENDS.map(|end| format!(": {end}data: {list}{end}{end}\n\n")));
    streams
}

#[test]
fn the_typescript_sdk_is_shown_nothing_that_was_not_judged() {
    for mark in [LATIN1_MARK, "\u{feff}\u{ef}\u{bb}\u{bf}", "\u{feff}", ""] {
        let server = server(move |asked| {
            let id = &asked["id"];
            if asked["method"] == "tools/list" {
                return format!("{mark}data: {}\n\n", list(id));
            }
            let sampling = r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}"#;
            format!(
                "{mark}data: {sampling}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n\n"
            )
        });
        let run = before(&server, POLICY);
        let mut client = peers::bounded("600");
        let url = format!("http://127.0.0.1:{}/mcp", run.port());
        client.args([&peers::node(), &peers::peer("attack-client.mjs"), &url]);
        let output = client.output().unwrap();
        let shown: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{mark:?} {output:?}"));
        assert_eq!(shown["asked"], json!([]), "{mark:?} {shown}");
        assert_eq!(shown["call"], "answered", "{mark:?} {shown}");
        match mark {
            // A list after no mark or a real one is read, and filtered.
            "" | "\u{feff}" => assert_eq!(shown["tools"], json!(["shown"]), "{mark:?}"),
            _ => assert!(shown["tools"].as_str().unwrap().contains("no answer"), "{shown}"),
        }
    }
}

#[test]
fn odd_lines_and_names_of_a_stream_do_not_reach_the_client_which_gets_one_answer() {
    let all = |list: &str| [odd_streams(list), odd_values(list)].concat();
    let noticed = odd_streams("").len();
    let server = server(move |asked| {
        let case = asked["params"]["case"].as_u64().unwrap_or_default();
        all(&list(&asked["id"]))[case as usize].clone()
    });
    let run = before(&server, POLICY);
    for (case, stream) in all(&list(&json!(1))).iter().enumerate() {
        let before = refusals(&run);
        let params = json!({ "case": case });
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
        let got = ask(run.port(), "POST /mcp", &[JSON, ACCEPT], &asked.to_string());
        assert!(!got.body.contains("hidden"), "{stream:?} {got:?}");
        let answers = got.body.matches("\"id\":1").count();
        let odd = case < noticed;
        assert_eq!(
            (answers, refusals(&run) > before),
            (usize::from(odd), odd),
            "{stream:?} {got:?}"
        );
    }
}

#[test]
fn without_a_policy_a_stream_passes_byte_for_byte() {
    let list = list(&json!(1));
    let values = odd_values(&list).concat().replace("event: endpoint", "event: other");
    let tail = ": ping\r\n\r\nid: 7\rdata: {}\r\rdata: [";
    let streams = [odd_streams(&list).concat(), values, tail.to_owned()].concat();
    let sent = streams.clone();
    let server = server(move |_| sent.clone());
    let run = before(&server, "");
    let got = ask(run.port(), "POST /mcp", &[JSON, ACCEPT], line(1, "tools/list").trim_end());
    assert_eq!(got.body, streams);
}

#[test]
fn an_answer_in_an_odd_place_or_under_another_id_gives_a_client_on_stdio_one_error() {
    for stream in [
        format!("data: [[{}]]\n\n", list(&json!(1))),
        "data: []\n\n".to_owned(),
        format!("data: {}\n\n", list(&json!("1"))),
        format!("data: {}\n\n", list(&json!("0x1"))),
        format!("event: Message\ndata: {}\n\n", list(&json!(1))),
    ] {
        let sent = stream.clone();
        let server = server(move |_| sent.clone());
        let setup = shim(POLICY, &[]).server(&[]);
        let mut run = setup.flags(&["--upstream-http", &server.url("/mcp")]).start();
        run.send(line(1, "tools/list").as_bytes());
        // It ends by itself, whatever the server sent; if nothing, with the code for no server.
        let end = run.end_of_input();
        assert!(matches!(end.status.code(), Some(0 | 4)), "{stream} {}", end.stderr);
        let answers = messages(&end.stdout);
        assert_eq!(answers.len(), 1, "{stream} {answers:?}");
        assert_eq!(answers[0]["id"], 1, "{stream}");
        assert!(answers[0]["error"]["code"].is_i64(), "{stream} {answers:?}");
    }
}
