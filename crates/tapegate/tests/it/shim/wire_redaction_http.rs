//! `redaction.on_wire` for HTTP replies that are not messages: errors, headers, event streams.

use std::io::Write;

use serde_json::{Value, json};

use super::setup::{event, events};
use crate::http_peers::{ReceivedReply, ReceivedRequest, STREAM, WebServer, ask};
use crate::support::{RunningSession, shim};

pub(super) const SECRET: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
const JWT: &str =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N";
const JSON: &str = "content-type: application/json";
const ACCEPT: &str = "accept: application/json, text/event-stream";

/// A policy that masks on the wire, in this profile.
pub(super) fn policy(profile: &str, fields: &str) -> String {
    format!(
        "schema: 1\nprofile: {profile}\ngovernance: {{ defaults: {{ action: forward }} }}\n\
         redaction: {{ patterns: [secrets], fields: [{fields}], on_wire: true }}\n"
    )
}

fn before(server: &WebServer, policy: &str) -> RunningSession {
    let setup = shim(policy, &[]).server(&[]).flags(&["--http", "127.0.0.1:0"]);
    setup.flags(&["--upstream-http", &server.url("/mcp")]).start()
}

/// A server that replies to everything with these bytes.
fn replying(status: &str, lines: &str, body: &[u8]) -> WebServer {
    let head = format!("HTTP/1.1 {status}\r\n{lines}content-length: {}\r\n\r\n", body.len());
    let reply = [head.as_bytes(), body].concat();
    WebServer::start(move |_: &ReceivedRequest, stream| stream.write_all(&reply).is_ok())
}

fn call(run: &RunningSession) -> ReceivedReply {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}});
    ask(run.port(), "POST /mcp", &[JSON, ACCEPT], &call.to_string())
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

/// Asserts that what the client got is complete and without the secret.
#[track_caller]
fn is_masked(got: &ReceivedReply) {
    let all = format!("{}{}", got.head, got.body);
    assert!(!all.contains(&SECRET[4..]), "{got:?}");
    assert!(all.contains("[REDACTED:github:"), "{got:?}");
    if let Some(length) = got.header("content-length") {
        assert_eq!(length, got.body.len().to_string(), "{got:?}");
    }
}

#[test]
fn an_error_of_http_reaches_the_client_without_its_secrets() {
    for (status, lines, body) in [
        ("500 Oops", "content-type: text/html\r\n", format!("<h1>cannot use {SECRET}</h1>")),
        ("500 Oops", "content-type: text/plain\r\netag: \"1\"\r\n", format!("no {SECRET} here")),
        ("502 Oops", "", format!("no {SECRET}")),
        ("400 Oops", "content-type: application/json\r\n", json!({"detail": SECRET}).to_string()),
        ("400 Oops", "content-type: application/json\r\n", json!({"id": SECRET}).to_string()),
        ("400 Oops", "content-type: application/problem+json\r\n", format!("{{\"title\":\"{SECRET}\"}}")),
        (
            "400 Oops",
            "content-type: application/json\r\n",
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": format!("bad {SECRET}")}}).to_string(),
        ),
    ] {
        let server = replying(status, lines, body.as_bytes());
        let run = before(&server, &policy("production", ""));
        let got = call(&run);
        assert_eq!(got.status.to_string(), status[..3]);
        is_masked(&got);
        assert_eq!(got.header("etag"), None);
        event(run.folder(), &[("governance_decision", "redact")]);
    }
}

#[test]
fn a_compressed_error_is_unpacked_and_masked_or_refused() {
    let page = format!("<h1>{SECRET}</h1>");
    let lines = "content-type: text/html\r\ncontent-encoding: gzip\r\n";
    let server = replying("500 Oops", lines, &gzipped(&page));
    let run = before(&server, &policy("production", ""));
    let got = call(&run);
    is_masked(&got);
    assert_eq!((got.status, got.header("content-encoding")), (500, None));
    for coding in ["br", "gzip, gzip", "gzip\r\ncontent-encoding: identity", "zstd"] {
        let lines = format!("content-type: text/html\r\ncontent-encoding: {coding}\r\n");
        let server = replying("500 Oops", &lines, page.as_bytes());
        let run = before(&server, &policy("production", ""));
        let got = call(&run);
        assert_eq!(got.status, 502, "{coding} {got:?}");
        assert!(!got.body.contains(SECRET), "{coding} {got:?}");
        assert!(got.body.contains("compress"), "{coding} {got:?}");
    }
}

#[test]
fn the_head_of_a_reply_is_masked_too() {
    let challenge = format!("Bearer realm=\"x\", error_description=\"{SECRET} has expired\"");
    let lines = format!(
        "www-authenticate: {challenge}\r\nx-debug: {SECRET}\r\nwarning: 199 - \"{SECRET}\"\r\n\
         x-{SECRET}: 1\r\nx-plain: kept\r\nmcp-session-id: {JWT}\r\n"
    );
    let server = replying(&format!("401 no {SECRET}"), &lines, b"");
    let run = before(&server, &policy("production", ""));
    let got = call(&run);
    is_masked(&got);
    assert_eq!(got.status, 401);
    let shown = got.header("www-authenticate").unwrap();
    assert!(shown.starts_with("Bearer realm=\"x\", error_description=\"[REDACTED:"), "{shown}");
    assert_eq!(got.header("x-plain"), Some("kept"));
    // A client must return its session id unchanged.
    assert_eq!(got.header("mcp-session-id"), Some(JWT));
}

#[test]
fn fields_are_masked_outside_of_messages_too() {
    for (lines, body, shown) in [
        (
            "content-type: application/json\r\n",
            r#"{"a":{"password":"hunter2"}}"#,
            "[REDACTED:path:",
        ),
        ("content-type: text/plain\r\n", "login failed: Password=hunter2", "[REDACTED:withheld-"),
        (
            "content-type: text/html\r\n",
            "<input name='password' value='hunter2'>",
            "[REDACTED:withheld-",
        ),
        ("password: hunter2\r\n", "a wrong password", "a wrong password"),
    ] {
        let server = replying("500 Oops", lines, body.as_bytes());
        let run = before(&server, &policy("production", "password"));
        let got = call(&run);
        assert!(!format!("{}{}", got.head, got.body).contains("hunter2"), "{got:?}");
        assert!(got.body.contains(shown), "{got:?}");
        event(run.folder(), &[("governance_decision", "redact")]);
    }
}

#[test]
fn development_notes_what_it_would_mask_and_passes_it() {
    let body = format!("cannot use {SECRET}");
    let lines = format!("content-type: text/plain\r\nx-debug: {SECRET}\r\n");
    let server = replying("500 Oops", &lines, body.as_bytes());
    let run = before(&server, &policy("development", ""));
    for path in ["/mcp", "/elsewhere", "/.well-known/oauth-protected-resource"] {
        let noted = events(run.folder()).len();
        let line = if path == "/mcp" { "POST /mcp" } else { &format!("GET {path}") };
        let got = match path {
            "/mcp" => call(&run),
            _ => ask(run.port(), line, &[], ""),
        };
        assert_eq!((got.status, &*got.body), (500, &*body), "{path}");
        assert_eq!(got.header("x-debug"), Some(SECRET), "{path}");
        run.until("two notes", |run| {
            let would = |event: &Value| event["governance_decision"] == "WOULD_REDACT";
            let new = events(run.folder()).into_iter().skip(noted).filter(would);
            let reasons: Vec<_> = new.map(|event| event["policy_reason"].clone()).collect();
            reasons == ["the header `x-debug`", "the body of HTTP status 500"]
        });
    }
}

#[test]
fn a_login_gets_its_tokens_and_its_errors_are_masked() {
    let server = WebServer::start(|seen: &ReceivedRequest, stream| {
        let (status, body) = match seen.head.contains("/.well-known/fails") {
            true => ("404 Not Found", format!("no {SECRET}")),
            false => ("200 OK", json!({"access_token": JWT}).to_string()),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
        stream.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).is_ok()
    });
    let run = before(&server, &policy("production", ""));
    let got = ask(run.port(), "GET /.well-known/fails", &[], "");
    assert_eq!(got.status, 404);
    is_masked(&got);
    let form = "content-type: application/x-www-form-urlencoded";
    let body = "grant_type=authorization_code&code=x&client_id=c&redirect_uri=http%3A%2F%2Flocalhost%2Fcb&code_verifier=v";
    let got = ask(run.port(), "POST /token", &[form], body);
    assert!(got.body.contains(JWT), "{got:?}");
}

#[test]
fn the_ids_of_events_are_masked_and_a_client_comes_back_by_what_it_got() {
    let server = WebServer::start(|seen: &ReceivedRequest, stream| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        let result = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
        let text = format!(
            ": {SECRET}\n\nid: {SECRET}\nretry: 5\nevent: message\ndata: {result}\n\n\
             event: {SECRET}\ndata: x\n\n: end {SECRET}\n\n"
        );
        let is_get = seen.head.starts_with("GET");
        let events = if is_get { String::from(": none\n\n") } else { text };
        stream.write_all(&[STREAM, events.as_bytes()].concat()).ok();
        false
    });
    let run = before(&server, &policy("production", ""));
    let got = call(&run);
    is_masked(&got);
    assert!(got.body.contains("\"result\":{}"), "{got:?}");
    let id = got.body.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    assert!(id.starts_with("[REDACTED:github:"), "{id}");
    let back = format!("last-event-id: {id}");
    ask(run.port(), "GET /mcp", &["accept: text/event-stream", &back], "");
    assert_eq!(server.wait(2)[1].header("last-event-id"), Some(SECRET));
    // In development the stream passes unchanged.
    let run = before(&server, &policy("development", ""));
    let got = call(&run);
    assert_eq!(got.body.matches(SECRET).count(), 4, "{got:?}");
    event(run.folder(), &[("governance_decision", "WOULD_REDACT")]);
}
