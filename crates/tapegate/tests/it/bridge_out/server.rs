//! An HTTP server scripted by a test, byte by byte.

use std::io::Write;
use std::net::TcpStream;

use crate::http_peers::{ReceivedRequest, WebServer};

/// A request of a client.
#[derive(Debug, Clone)]
pub(super) struct ServerRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: String,
    seen: ReceivedRequest,
}

pub(super) struct ScriptedServer {
    pub(super) origin: String,
    web: WebServer,
}

impl ServerRequest {
    fn of(seen: &ReceivedRequest) -> Self {
        let mut words = seen.head.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let body = String::from_utf8(seen.body.clone()).unwrap();
        Self { method, path, body, seen: seen.clone() }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.seen.header(name)
    }

    /// Whether the body is a message with this method.
    pub(super) fn says(&self, method: &str) -> bool {
        self.method == "POST" && self.body.contains(&format!("\"method\":\"{method}\""))
    }

    /// The raw id of the message, as these tests write it.
    pub(super) fn id(&self) -> &str {
        let rest = self.body.split("\"id\":").nth(1).unwrap_or("null");
        rest.split([',', '}']).next().unwrap()
    }
}

impl ScriptedServer {
    /// Serves every request with `answer` until the test ends.
    pub(super) fn start(
        answer: impl Fn(&ServerRequest, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let web = WebServer::start(move |seen, stream| {
            stream.set_nodelay(true).unwrap();
            answer(&ServerRequest::of(seen), stream);
            true
        });
        Self { origin: web.url(""), web }
    }

    /// All requests so far.
    pub(super) fn asked(&self) -> Vec<ServerRequest> {
        self.web.seen().iter().map(ServerRequest::of).collect()
    }

    /// How many requests match `test`.
    pub(super) fn count(&self, test: impl Fn(&ServerRequest) -> bool) -> usize {
        self.asked().iter().filter(|asked| test(asked)).count()
    }
}

/// Replies with a complete body.
pub(super) fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).ok();
}

/// Replies with JSON.
pub(super) fn json(stream: &mut TcpStream, body: &str) {
    reply(stream, "200 OK", "Content-Type: application/json\r\n", body);
}

/// Replies that a message was accepted.
pub(super) fn accepted(stream: &mut TcpStream) {
    reply(stream, "202 Accepted", "", "");
}

/// Begins an event stream.
pub(super) fn stream(stream: &mut TcpStream) {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).ok();
}

/// Sends one piece of a stream.
pub(super) fn piece(stream: &mut TcpStream, bytes: &[u8]) {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk).ok();
}

/// Ends a stream properly.
pub(super) fn end(stream: &mut TcpStream) {
    stream.write_all(b"0\r\n\r\n").ok();
}

/// Answers `initialize` and the messages that belong to it; true if it was one of them.
pub(super) fn opens(asked: &ServerRequest, stream: &mut TcpStream) -> bool {
    if asked.says("initialize") {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"2025-06-18","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#,
            asked.id()
        );
        let headers = "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n";
        reply(stream, "200 OK", headers, &body);
    } else if asked.method == "GET" && asked.header("last-event-id").is_none() {
        reply(stream, "405 Method Not Allowed", "", "");
    } else if asked.method == "DELETE" {
        reply(stream, "200 OK", "", "");
    } else if asked.method == "POST" && !asked.body.contains("\"id\":") {
        accepted(stream);
    } else {
        return false;
    }
    true
}
