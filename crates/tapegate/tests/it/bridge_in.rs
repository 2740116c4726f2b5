//! `tapegate record` between HTTP clients and a server on pipes.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use crate::http_peers::{ReceivedReply, WebRecorder, ask, send};
use crate::support::wait_until;
use crate::tape_faults::SmallFileSystem;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/bridge_in.py");
const JSON: &str = "Content-Type: application/json";
const BOTH: &str = "Accept: application/json, text/event-stream";
const ONLY_JSON: &str = "Accept: application/json";
const ONLY_EVENTS: &str = "Accept: text/event-stream";
const MODERN: &str = "MCP-Protocol-Version: 2026-07-28";
const OPEN: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;

fn start(more: &[&str]) -> WebRecorder {
    let arguments: Vec<&str> =
        more.iter().copied().chain(["--", "python3", "-u", SERVER]).collect();
    WebRecorder::start(&arguments)
}

/// Opens a session and returns the header that names it.
fn open(recorder: &WebRecorder) -> String {
    let got = ask(recorder.port, "POST /mcp", &[JSON, BOTH], OPEN);
    assert_eq!((got.status, got.header("content-type")), (200, Some("application/json")));
    assert!(got.body.starts_with(r#"{"jsonrpc":"2.0","id":0,"result":{"#), "{}", got.body);
    let id = got.header("mcp-session-id").unwrap().to_owned();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    format!("Mcp-Session-Id: {id}")
}

fn post(recorder: &WebRecorder, session: &str, body: &str) -> ReceivedReply {
    ask(recorder.port, "POST /mcp", &[JSON, BOTH, session], body)
}

fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A request of the protocol revision without sessions.
fn modern(id: &str, method: &str, params: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let params = match params.trim_matches(['{', '}']) {
        "" => format!("{{{meta}}}"),
        rest => format!("{{{rest},{meta}}}"),
    };
    request(id, method, &params)
}

fn send_modern(recorder: &WebRecorder, id: &str, method: &str, params: &str) -> TcpStream {
    let mirror = format!("Mcp-Method: {method}");
    let body = modern(id, method, params);
    send(recorder.port, "POST /mcp", &[JSON, BOTH, MODERN, &mirror], &body)
}

fn ask_modern(recorder: &WebRecorder, id: &str, method: &str, params: &str) -> ReceivedReply {
    let mirror = format!("Mcp-Method: {method}");
    let body = modern(id, method, params);
    ask(recorder.port, "POST /mcp", &[JSON, BOTH, MODERN, &mirror], &body)
}

/// The `data` lines of an event stream.
fn data(body: &str) -> Vec<&str> {
    body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

/// Reads a stream line by line until one starts with `wanted`, and returns what follows it there.
fn until(stream: &mut BufReader<TcpStream>, wanted: &str) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream ends before `{wanted}`");
        if let Some(rest) = line.strip_prefix(wanted) {
            return rest.trim_end().to_owned();
        }
    }
}

fn beside(recorder: &WebRecorder) -> String {
    let path = recorder.tape_path().with_file_name("t.jsonl.anomalies.jsonl");
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_session_lives_from_initialize_to_delete() {
    let recorder = start(&[]);
    let (one, two) = (open(&recorder), open(&recorder));
    assert_ne!(one, two);
    let odd = r#"{ "id": 7.0, "jsonrpc":"2.0", "method":"echo", "params":{"b":1e400,"a":"\u00e9","a":1} }"#;
    let pretty = format!("\n{}\n", odd.replace(", \"method\"", ",\r\n  \"method\""));
    let got = post(&recorder, &one, odd);
    assert!(
        got.status == 200 && got.body.contains(&odd.replace('\\', "\\\\").replace('"', "\\\"")),
        "{}",
        got.body
    );
    assert!(post(&recorder, &two, &pretty).body.contains(r#"{\"id\":7.0,"#));
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let got = post(&recorder, &one, note);
    assert_eq!((got.status, got.body.as_str()), (202, ""));

    let call = request("1", "echo", "{}");
    let got = ask(recorder.port, "POST /mcp", &[JSON, BOTH], &call);
    assert!(got.status == 400 && got.body.contains(r#""id":1,"error""#), "{}", got.body);
    assert_eq!(post(&recorder, "Mcp-Session-Id: 00", &call).status, 404);
    assert_eq!(ask(recorder.port, "DELETE /mcp", &[&one], "").status, 204);
    wait_until("the session ends", || post(&recorder, &one, &call).status == 404);
    assert_eq!(post(&recorder, &two, &call).status, 200);
    let (status, tape) = recorder.end();
    assert_eq!(status.code(), Some(143));
    assert!(tape.contains(&format!("\"msg\":{odd}")), "{tape}");
    assert!(tape.contains("\"session\":\"s2\"") && tape.contains("\"type\":\"footer\""), "{tape}");
}

#[test]
fn a_server_that_is_not_there_is_told_at_once() {
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(["record", "-o", "/dev/null/x", "--http", ":0", "--", "no-such-server"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(4));
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(
        said,
        "error: cannot start `no-such-server`: No such file or directory (os error 2)\n\n\
         hint: check its spelling and `PATH`; a client's `PATH` may be shorter than a shell's\n"
    );
}

#[test]
fn what_comes_before_the_answer_makes_a_stream() {
    let recorder = start(&[]);
    let session = open(&recorder);
    let work = request("5", "work", r#"{"_meta":{"progressToken":"t"}}"#);
    let got = post(&recorder, &session, &work);
    assert_eq!(got.header("content-type"), Some("text/event-stream"));
    let seen = data(&got.body);
    assert_eq!(seen.len(), 3, "{}", got.body);
    assert!(seen[0].contains(r#""progressToken":"t","progress":1"#), "{}", seen[0]);
    assert_eq!(seen[2], r#"{"jsonrpc":"2.0","id":5,"result":{"done":true}}"#);
    assert_eq!(got.body.matches("id: 1-").count(), 3, "{}", got.body);

    // A client that accepts only JSON gets JSON, and the rest on the GET stream.
    let got = ask(recorder.port, "POST /mcp", &[JSON, ONLY_JSON, &session], &work);
    assert_eq!(got.body, r#"{"jsonrpc":"2.0","id":5,"result":{"done":true}}"#);
    let get = send(recorder.port, "GET /mcp", &[ONLY_EVENTS, &session], "");
    let mut get = BufReader::new(get);
    assert!(until(&mut get, "data: ").contains(r#""progress":1"#));
    let got = ask(recorder.port, "GET /mcp", &[ONLY_EVENTS, &session], "");
    assert_eq!(got.status, 409);
    let got = ask(
        recorder.port,
        "POST /mcp",
        &[JSON, ONLY_EVENTS, &session],
        &request("6", "echo", "{}"),
    );
    assert_eq!((got.header("content-type"), data(&got.body).len()), (Some("text/event-stream"), 1));
}

#[test]
fn a_server_asks_its_client_on_the_stream_of_the_request() {
    let recorder = start(&[]);
    let session = open(&recorder);
    let asking =
        send(recorder.port, "POST /mcp", &[JSON, BOTH, &session], &request("1", "ask", "{}"));
    let mut asking = BufReader::new(asking);
    assert!(until(&mut asking, "data: ").contains("roots/list"));
    let reply = r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#;
    assert_eq!(post(&recorder, &session, reply).status, 202);
    assert_eq!(
        until(&mut asking, "data: "),
        r#"{"jsonrpc":"2.0","id":1,"result":{"told":{"roots":[]}}}"#
    );
    let mut rest = String::new();
    asking.read_to_string(&mut rest).unwrap();
    assert!(data(&rest).is_empty(), "{rest}");
}

#[test]
fn an_answer_whose_connection_broke_is_fetched_again() {
    let recorder = start(&[]);
    let session = open(&recorder);
    let work = request("5", "pause", r#"{"_meta":{"progressToken":9}}"#);
    let first = send(recorder.port, "POST /mcp", &[JSON, BOTH, &session], &work);
    let mut first = BufReader::new(first);
    let id = until(&mut first, "id: ");
    drop(first);
    let last = format!("Last-Event-ID: {id}");
    let events = [ONLY_EVENTS, &session, &last];
    let mut second = BufReader::new(send(recorder.port, "GET /mcp", &events, ""));
    let resume = r#"{"jsonrpc":"2.0","method":"resume"}"#;
    assert_eq!(post(&recorder, &session, resume).status, 202);
    let answer = r#"{"jsonrpc":"2.0","id":5,"result":{"done":true}}"#;
    let mut rest = String::new();
    second.read_to_string(&mut rest).unwrap();
    assert_eq!(data(&rest).len(), 2, "{rest}");
    assert_eq!(data(&rest)[1], answer);
    // And again, now that the stream has ended.
    let again = ask(recorder.port, "GET /mcp", &events, "");
    assert_eq!(data(&again.body), data(&rest));
    let got = ask(recorder.port, "GET /mcp", &[ONLY_EVENTS, &session, "Last-Event-ID: x"], "");
    assert_eq!(got.status, 400);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let recorder = start(&["--max-message-bytes", "2KB"]);
    let session = open(&recorder);
    let call = request("1", "echo", "{}");
    let status = |headers: &[&str], body: &str| {
        let got = ask(recorder.port, "POST /mcp", headers, body);
        assert!(got.body.contains(r#""error":{"code""#), "{}", got.body);
        got.status
    };
    assert_eq!(status(&[JSON, &session, "Accept: text/html"], &call), 406);
    assert_eq!(status(&[BOTH, &session, "Content-Type: text/plain"], &call), 415);
    assert_eq!(status(&[JSON, BOTH, &session, "MCP-Protocol-Version: 1999-01-01"], &call), 400);
    assert_eq!(status(&[JSON, BOTH, &session], "{nonsense"), 400);
    assert_eq!(status(&[JSON, BOTH, &session, "Mcp-Method: tools/call"], &call), 400);
    let large = request("77", "echo", &format!("{{\"x\":\"{}\"}}", "x".repeat(4000)));
    let got = post(&recorder, &session, &large);
    assert!(
        got.status == 413 && got.body.contains(r#""id":77,"error":{"code":-32010"#),
        "{}",
        got.body
    );
    assert_eq!(ask(recorder.port, "GET /elsewhere", &[], "").status, 404);
    assert_eq!(ask(recorder.port, "PUT /mcp", &[], "").status, 405);
    assert_eq!(post(&recorder, &session, &call).status, 200);
    let beside = beside(&recorder);
    assert!(beside.contains("nonsense") && beside.contains("message_too_large"), "{beside}");
}

#[test]
fn a_batch_is_answered_by_an_array_or_one_stream() {
    let recorder = start(&[]);
    let session = open(&recorder);
    let (a, b) = (request("1", "log", "{}"), request("2", "spaced", "{}"));
    let got = ask(recorder.port, "POST /mcp", &[JSON, ONLY_JSON, &session], &format!("[{a}, {b}]"));
    let spaced = r#"{ "result" : { "n" : 1.0, "n" : 1e400 } , "id" : 2 }"#;
    assert_eq!(got.body, format!(r#"[{{"jsonrpc":"2.0","id":1,"result":{{}}}},{spaced}]"#));
    let got = post(&recorder, &session, &format!("[{a}, {b}]"));
    assert_eq!(got.header("content-type"), Some("text/event-stream"));
    // The message that waited for a stream, the new one, and two answers.
    assert_eq!(data(&got.body).len(), 4, "{}", got.body);
}

#[test]
fn clients_without_sessions_may_use_the_same_id_at_once() {
    let recorder = start(&[]);
    let hold = |who: &str| {
        let params = format!(r#"{{"who":"{who}"}}"#);
        send_modern(&recorder, "1", "hold", &params)
    };
    let streams = ["a", "b", "c"].map(|who| {
        let stream = hold(who);
        wait_until("the request is on the tape", || {
            recorder.tape().contains(&format!(r#""who":"{who}""#))
        });
        (who, stream)
    });
    let got = ask_modern(&recorder, "1", "release", "{}");
    assert_eq!(got.body, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    for (who, mut stream) in streams {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let expected = format!(r#"{{"jsonrpc": "2.0","id":1,"result":{{"held":"{who}"}}}}"#);
        assert!(text.ends_with(&expected.replace(": ", ":")), "{text}");
    }
    let (_, tape) = recorder.end();
    assert!(!tape.contains("tapegate-1"), "{tape}");
    assert_eq!(tape.matches(r#""msg":{"jsonrpc":"2.0","id":1,"result""#).count(), 4, "{tape}");
}

#[test]
fn the_revision_without_sessions_tells_errors_by_status() {
    let recorder = start(&[]);
    let headers = [JSON, BOTH, MODERN];
    let status = |more: &[&str], body: &str| {
        let headers: Vec<&str> = headers.iter().chain(more).copied().collect();
        ask(recorder.port, "POST /mcp", &headers, body)
    };
    let call = modern("1", "tools/call", r#"{"name":"é"}"#);
    let (method, name) = ("Mcp-Method: tools/call", "Mcp-Name: =?base64?w6k=?=");
    for wrong in [
        &["Mcp-Method: tools/list", name][..],
        &[method, "Mcp-Name: x"],
        &[method],
        &[name],
        &[method, method, name],
    ] {
        let got = status(wrong, &call);
        assert!(
            got.status == 400 && got.body.contains(r#""id":1,"error":{"code":-32020"#),
            "{}",
            got.body
        );
    }
    let got = status(&[method, name], &call);
    assert!(got.status == 404 && got.body.contains("-32601"), "{}", got.body);
    // A request that could belong to the other era does not reach a server that clients share.
    let bare = request("1", "tools/call", r#"{"name":"é"}"#);
    let got = status(&[method, name], &bare);
    assert!(got.status == 400 && got.body.contains("-32602"), "{}", got.body);
    let got = status(&["Mcp-Method: initialize"], &modern("1", "initialize", "{}"));
    assert!(got.status == 404 && got.body.contains("-32601"), "{}", got.body);
    assert_eq!(ask(recorder.port, "GET /mcp", &[ONLY_EVENTS, MODERN], "").status, 405);
    assert_eq!(ask(recorder.port, "DELETE /mcp", &[MODERN], "").status, 405);
    assert_eq!(status(&[], &format!("[{call}]")).status, 400);
}

#[test]
fn closing_the_stream_of_a_request_cancels_it() {
    let recorder = start(&[]);
    let headers = [JSON, BOTH, MODERN];
    let listening = send_modern(&recorder, "7", "subscriptions/listen", "{}");
    let mut listening = BufReader::new(listening);
    assert!(
        until(&mut listening, "data: ").contains(r#""io.modelcontextprotocol/subscriptionId":7"#)
    );
    let second = send_modern(&recorder, "7", "subscriptions/listen", "{}");
    let mut second = BufReader::new(second);
    assert!(until(&mut second, "data: ").contains(r#""io.modelcontextprotocol/subscriptionId":7"#));
    drop((listening, second));
    let cancelled = || ask_modern(&recorder, "1", "cancelled", "{}").body;
    wait_until("both are cancelled", || {
        let body = cancelled();
        body.contains("7") && body.contains(r#""tapegate-1""#)
    });
    // A client may not cancel requests of other clients.
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#;
    assert_eq!(ask(recorder.port, "POST /mcp", &headers, note).status, 202);
    assert!(!cancelled().contains("99"));
    let (_, tape) = recorder.end();
    assert_eq!(tape.matches(r#""params":{"requestId":7,"#).count(), 2, "{tape}");
}

#[test]
fn a_server_that_dies_ends_its_session_and_nobody_waits() {
    let recorder = start(&[]);
    let (session, other) = (open(&recorder), open(&recorder));
    let mut waiting =
        send(recorder.port, "POST /mcp", &[JSON, BOTH, &session], &request("3", "hold", "{}"));
    wait_until("the request is on the tape", || recorder.tape().contains("\"hold\""));
    let got = post(&recorder, &session, &request("4", "die", "{}"));
    assert!(got.body.contains("exit status: 3"), "{}", got.body);
    let mut text = String::new();
    waiting.read_to_string(&mut text).unwrap();
    assert!(text.contains(r#""id":3,"error""#), "{text}");
    assert_eq!(post(&recorder, &session, &request("5", "echo", "{}")).status, 404);
    assert_eq!(post(&recorder, &other, &request("5", "echo", "{}")).status, 200);
    // Without sessions, the next request starts the next server.
    assert!(ask_modern(&recorder, "1", "die", "{}").body.contains("exit status: 3"));
    assert_eq!(ask_modern(&recorder, "1", "echo", "{}").status, 200);
}

#[test]
fn garbage_and_oversize_lines_do_not_break_a_session() {
    let recorder = start(&["--max-message-bytes", "4KB"]);
    let session = open(&recorder);
    assert_eq!(post(&recorder, &session, &request("1", "garbage", "{}")).status, 200);
    let got = post(&recorder, &session, &request("2", "large", r#"{"bytes":5000}"#));
    assert!(got.body.contains(r#""id":2,"error":{"code":-32010"#), "{}", got.body);
    assert_eq!(post(&recorder, &session, &request("3", "echo", "{}")).status, 200);
    let beside = beside(&recorder);
    assert!(beside.contains("this is no JSON") && beside.contains("not_delivered"), "{beside}");
    assert!(beside.contains("message_too_large"), "{beside}");
}

#[test]
fn a_server_that_chats_to_nobody_does_not_hold_up_answers() {
    let recorder = start(&[]);
    let session = open(&recorder);
    let chat = r#"{"jsonrpc":"2.0","method":"quiet/chat","params":{"count":3000}}"#;
    assert_eq!(post(&recorder, &session, chat).status, 202);
    let got =
        ask(recorder.port, "POST /mcp", &[JSON, ONLY_JSON, &session], &request("1", "echo", "{}"));
    assert_eq!(got.status, 200);
    let lost = beside(&recorder).matches("too many messages are queued for it").count();
    assert!((1500..2500).contains(&lost), "{lost}");
    let got = post(&recorder, &session, &request("2", "echo", "{}"));
    assert_eq!(data(&got.body).len(), 3001 - lost);
    assert!(got.body.contains("\"x:2999\""));
}

#[test]
fn a_signal_tells_those_who_wait_and_leaves_nobody() {
    let recorder = start(&[]);
    let session = open(&recorder);
    let mut waiting =
        send(recorder.port, "POST /mcp", &[JSON, BOTH, &session], &request("3", "hold", "{}"));
    let mut get = send(recorder.port, "GET /mcp", &[ONLY_EVENTS, &session], "");
    wait_until("the request is on the tape", || recorder.tape().contains("\"hold\""));
    let (status, tape) = recorder.end();
    assert_eq!(status.code(), Some(143));
    let mut text = String::new();
    waiting.read_to_string(&mut text).unwrap();
    assert!(text.contains(r#""id":3,"error""#) && text.contains("signal 15"), "{text}");
    text.clear();
    get.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("0\r\n\r\n"), "{text}");
    assert!(tape.contains("\"type\":\"footer\"") && tape.contains("signal 15"), "{tape}");
}

#[test]
fn the_old_transport_answers_on_its_stream() {
    let recorder = start(&[]);
    let stream = send(recorder.port, "GET /sse", &[ONLY_EVENTS], "");
    let mut stream = BufReader::new(stream);
    assert_eq!(until(&mut stream, "event: "), "endpoint");
    let endpoint = format!("POST {}", until(&mut stream, "data: "));
    assert!(endpoint.starts_with("POST /messages?sessionId="), "{endpoint}");
    assert_eq!(ask(recorder.port, &endpoint, &[JSON], OPEN).status, 202);
    assert!(until(&mut stream, "data: ").starts_with(r#"{"jsonrpc":"2.0","id":0,"result""#));
    assert_eq!(ask(recorder.port, &endpoint, &[JSON], &request("1", "changed", "{}")).status, 202);
    assert!(until(&mut stream, "data: ").contains("list_changed"));
    assert_eq!(until(&mut stream, "data: "), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    drop(stream);
    wait_until("the session ends", || ask(recorder.port, &endpoint, &[JSON], OPEN).status == 404);
    assert_eq!(ask(recorder.port, "POST /sse", &[JSON], OPEN).status, 405);
    assert_eq!(ask(recorder.port, "POST /messages", &[JSON], OPEN).status, 400);
}

#[test]
fn a_stream_of_the_old_transport_is_not_opened_for_what_cannot_read_it() {
    let recorder = start(&[]);
    for accept in ["Accept: text/html", "Accept: image/*", "Accept: application/json"] {
        let got = ask(recorder.port, "GET /sse", &[accept], "");
        assert_eq!(got.status, 406, "{accept}");
        assert!(got.body.contains("Accept must allow text/event-stream"), "{}", got.body);
    }
    for accept in ["Accept: */*", "Accept: text/*, application/json", ONLY_EVENTS] {
        let stream = send(recorder.port, "GET /sse", &[accept], "");
        assert_eq!(until(&mut BufReader::new(stream), "event: "), "endpoint", "{accept}");
    }
}

#[test]
fn an_answer_of_the_client_over_the_limit_becomes_an_error_for_the_server() {
    let recorder = start(&["--max-message-bytes", "2KB"]);
    let session = open(&recorder);
    let asking =
        send(recorder.port, "POST /mcp", &[JSON, BOTH, &session], &request("1", "ask", "{}"));
    let mut asking = BufReader::new(asking);
    assert!(until(&mut asking, "data: ").contains("roots/list"));
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"roots":"{}"}}}}"#, "x".repeat(4000));
    let got = post(&recorder, &session, &large);
    assert!(got.status == 413 && got.body.contains(r#""id":null"#), "{}", got.body);
    let told = until(&mut asking, "data: ");
    assert!(told.contains(r#""result":{"told":{"code":-32010,"#), "{told}");
}

#[test]
fn a_request_whose_answer_does_not_fit_on_the_disk_gets_an_error_in_its_place() {
    let disk = SmallFileSystem::new("256k");
    let server = ["--", "python3", "-u", SERVER];
    let recorder = WebRecorder::start_at(disk.path().join("t.jsonl"), &server, |_| ());
    let session = open(&recorder);
    let got = post(&recorder, &session, &request("7", "large", r#"{"bytes":900000}"#));
    let expected =
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"recording has stopped""#;
    assert!(got.status == 200 && got.body.starts_with(expected), "{} {}", got.status, got.body);
}
