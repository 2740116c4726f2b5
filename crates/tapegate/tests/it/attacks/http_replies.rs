//! Replies that a client could read differently from the gate and so see hidden items.

use std::io::Write;

use serde_json::{Value, json};

use super::target_server::{ACCEPT, JSON};
use crate::http_peers::{ReceivedReply, ReceivedRequest, WebServer, ask, json as json_reply};
use crate::shim::setup::{ask as line, events};
use crate::support::{RunningSession, shim};

const POLICY: &str = "schema: 1\nsources: [{ id: s, kind: mcp, expose: { mode: blocklist, tools: [\"hidden\"] } }]\ngovernance: { defaults: { action: forward } }\n";

fn list() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "hidden"}]}}).to_string()
}

/// A shim in front of a server that replies with these header lines and this body.
fn before(lines: &str, body: Vec<u8>) -> (WebServer, RunningSession) {
    let head = format!("HTTP/1.1 200 OK\r\n{lines}content-length: {}\r\n\r\n", body.len());
    let reply = [head.into_bytes(), body].concat();
    let server =
        WebServer::start(move |_: &ReceivedRequest, stream| stream.write_all(&reply).is_ok());
    let setup = shim(POLICY, &[]).server(&[]).flags(&["--http", "127.0.0.1:0"]);
    let run = setup.flags(&["--upstream-http", &server.url("/mcp")]).start();
    (server, run)
}

/// Asks for a list and asserts that the reply does not reach the client.
fn is_stopped(request: &str, lines: &str, body: Vec<u8>) {
    let (server, run) = before(lines, body);
    let text = if request.starts_with("POST") { line(1, "tools/list") } else { String::new() };
    let got: ReceivedReply = ask(run.port(), request, &[JSON, ACCEPT], text.trim_end());
    assert_eq!(got.status, 502, "{lines} {got:?}");
    assert!(got.body.contains("\"error\""), "{lines} {got:?}");
    assert_eq!(server.seen()[0].header("accept-encoding"), Some("identity"));
    let refused = events(run.folder()).into_iter().filter(|event| event["forwarded"] == false);
    assert_eq!(refused.count(), 1, "{lines}");
}

#[test]
fn a_reply_in_another_charset_or_coding_does_not_reach_the_client() {
    let list = list();
    let wide: Vec<u8> = list.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let hidden = list.replace("hidden", "+AGgAaQBkAGQAZQBu-");
    let event = format!("event: message\ndata: {hidden}\n\n");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(event.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    for (lines, body) in [
        ("content-type: application/json; charset=utf-16le\r\n", wide.clone()),
        ("content-type: application/json\r\n", wide.clone()),
        ("content-type: application/json; charset=utf-7\r\n", hidden.clone().into_bytes()),
        ("content-type: text/event-stream; charset=utf-7\r\n", event.clone().into_bytes()),
        (
            "content-type: text/plain\r\ncontent-type: text/event-stream\r\n",
            event.clone().into_bytes(),
        ),
        ("content-type: application/jsonx\r\n", list.clone().into_bytes()),
        ("content-type: text/plain; a=text/event-stream\r\n", event.clone().into_bytes()),
        ("content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", packed.clone()),
        ("content-type: application/json\r\ncontent-encoding: br\r\n", packed.clone()),
        ("content-type: text/plain\r\n", wide),
    ] {
        is_stopped("POST /mcp", lines, body);
    }
    // Some clients read events from any reply to a GET.
    for lines in ["content-type: text/plain\r\n", "content-type: application/json\r\n", ""] {
        is_stopped("GET /mcp", lines, event.clone().into_bytes());
    }
}

/// A shim in front of a server that replies with the status and body given in the request's params.
fn echo() -> (WebServer, RunningSession) {
    let server = WebServer::start(|seen: &ReceivedRequest, stream| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        let (status, body) = (&asked["params"]["status"], asked["params"]["body"].as_str());
        let body = body.unwrap_or_default();
        let length = body.len();
        let reply = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(reply.as_bytes()).is_ok()
    });
    let setup = shim(POLICY, &[]).server(&[]).flags(&["--http", "127.0.0.1:0"]);
    let run = setup.flags(&["--upstream-http", &server.url("/mcp")]).start();
    (server, run)
}

#[test]
fn a_reply_whose_members_are_spelled_otherwise_is_judged_as_a_message() {
    let (_server, run) = echo();
    let list = list();
    for body in [
        list.replace("\"result\"", "\"Result\""),
        list.replace("\"result\"", "\"RESULT\""),
        list.replace("\"result\"", "\"re\u{17f}ult\""),
        list.replace("\"id\"", "\"Id\""),
        list.replace("\"result\"", "\"Result\"").replace("\"jsonrpc\"", "\"JsonRpc\""),
        list.replace("\"id\":1", "\"id\":\"1\""),
        format!("[{}]", list.replace("\"result\"", "\"Result\"")),
        format!("[[{list}]]"),
        r#"{"jsonrpc":"2.0","id":"s","Method":"sampling/createMessage","Params":{"x":"hidden"}}"#
            .to_owned(),
    ] {
        for status in [200, 400] {
            let before = events(run.folder()).len();
            let params = json!({"status": status, "body": body});
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
            let got = ask(run.port(), "POST /mcp", &[JSON, ACCEPT], &call.to_string());
            assert!(!got.body.contains("hidden"), "{status} {body} {got:?}");
            assert_eq!(got.body.matches("\"error\"").count(), 1, "{status} {body} {got:?}");
            assert!(events(run.folder()).len() > before, "{status} {body}");
        }
    }
}

#[test]
fn a_reply_that_is_not_a_message_reaches_the_client_where_none_is_waited_for() {
    let (_server, run) = echo();
    let request = |id: Value, status: u16, body: &str| {
        let params = json!({"status": status, "body": body});
        let mut call = json!({"jsonrpc": "2.0", "method": "x", "params": params});
        if !id.is_null() {
            call["id"] = id;
        }
        ask(run.port(), "POST /mcp", &[JSON, ACCEPT], &call.to_string())
    };
    for (status, body) in [
        (401, r#"{"error":"invalid_token","error_description":"expired"}"#),
        (401, r#"{"Error":"unauthorized","Message":"log in"}"#),
        (404, r#"{"detail":"Not Found"}"#),
        (429, r#"{"message":"slow down","id":"r-1"}"#),
    ] {
        let got = request(json!(1), status, body);
        assert_eq!((got.status, &*got.body), (status, body));
    }
    for (status, body) in [(200, "{}"), (202, r#"{"status":"accepted"}"#)] {
        let got = request(Value::Null, status, body);
        assert_eq!((got.status, &*got.body), (status, body));
    }
    // A client that waits for an answer gets one.
    let got = request(json!(1), 200, r#"{"status":"ok"}"#);
    assert_eq!(got.status, 502, "{got:?}");
    assert!(got.body.contains("\"error\""), "{got:?}");
}

#[test]
fn a_compressed_reply_is_read_and_sent_on_uncompressed() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(list().replace("hidden", "shown").as_bytes()).unwrap();
    let lines = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    let (_server, run) = before(lines, packer.finish().unwrap());
    let got = ask(run.port(), "POST /mcp", &[JSON, ACCEPT], line(1, "tools/list").trim_end());
    assert_eq!(got.header("content-encoding"), None, "{got:?}");
    assert!(got.body.contains("\"shown\""), "{got:?}");
}

#[test]
fn the_steps_of_a_login_pass_and_hold_no_message() {
    let lines = "content-type: application/json\r\n";
    let (server, run) = before(lines, br#"{"issuer":"http://127.0.0.1/"}"#.to_vec());
    let form = "content-type: application/x-www-form-urlencoded";
    for (request, header, body) in [
        ("GET /.well-known/oauth-protected-resource", "x: y", ""),
        ("GET /.well-known/oauth-protected-resource/mcp", JSON, ""),
        ("GET /.well-known/oauth-authorization-server", "x: y", ""),
        ("POST /register", JSON, r#"{"client_name":"c","redirect_uris":["http://127.0.0.1/"]}"#),
        ("GET /authorize?response_type=code&client_id=1&state=x", "x: y", ""),
        ("POST /token", form, "grant_type=authorization_code&code=1%2F2"),
        ("POST /revoke", form, "token=abc"),
    ] {
        let got = ask(run.port(), request, &[header], body);
        assert_eq!(got.status, 200, "{request} {got:?}");
    }
    let passed = server.seen().len();
    assert_eq!(passed, 7);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hidden"}}"#;
    for (request, header) in [
        ("POST /register", JSON),
        ("POST /token", form),
        ("POST /token", JSON),
        ("POST /authorize", JSON),
        ("POST /.well-known/oauth-protected-resource", JSON),
        ("GET /.well-known/x", JSON),
    ] {
        let got = ask(run.port(), request, &[header], call);
        assert!(matches!(got.status, 400 | 405 | 415), "{request} {got:?}");
    }
    assert_eq!(server.seen().len(), passed);
    let refused = events(run.folder()).into_iter().filter(|event| event["forwarded"] == false);
    assert_eq!(refused.count(), 6);
}

#[test]
fn a_redirect_of_the_endpoint_stays_behind_the_gate() {
    let server = WebServer::start(|seen: &ReceivedRequest, stream| {
        if seen.head.starts_with("POST /deep/mcp/ ") {
            return stream
                .write_all(&json_reply("", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#))
                .is_ok();
        }
        let to = seen.header("x-to").unwrap_or_default();
        let reply = format!("HTTP/1.1 307 There\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(reply.as_bytes()).is_ok()
    });
    let setup = shim(POLICY, &[]).server(&[]).flags(&["--http", "127.0.0.1:0"]);
    let run = setup.flags(&["--upstream-http", &server.url("/deep/mcp")]).start();
    let call = |tool: &str| crate::shim::setup::call(1, tool).trim_end().to_owned();
    let post = |path: &str, to: &str, tool: &str| {
        ask(
            run.port(),
            &format!("POST {path}"),
            &[JSON, ACCEPT, &format!("x-to: {to}")],
            &call(tool),
        )
    };
    assert_eq!(post("/deep/mcp/", "", "a").status, 404);
    for to in ["/deep/mcp/", "mcp/", &server.url("/deep/mcp/")] {
        let got = post("/mcp", to, "a");
        assert_eq!((got.status, got.header("location")), (307, Some("/deep/mcp/")), "{got:?}");
    }
    assert!(post("/deep/mcp/", "", "a").body.contains("\"result\""));
    assert!(post("/deep/mcp/", "", "hidden").body.contains("-32015"));
    for to in [
        "http://evil.test/",
        "//evil.test/mcp",
        "/\\evil.test/mcp",
        "https:evil.test",
        "\\\\evil.test",
    ] {
        let got = post("/mcp", to, "a");
        assert_eq!((got.status, got.header("location")), (502, None), "{got:?}");
        let header = format!("x-to: {to}");
        let got = ask(run.port(), "GET /mcp", &["accept: text/event-stream", &header], "");
        assert_eq!((got.status, got.header("location")), (502, None), "{got:?}");
    }
}
