//! Which requests reach the endpoint of a server behind a gate, and at which path.

use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use crate::http_peers::{self, HttpMessage, HttpTestServer};
use crate::proxy_gate::{GatedProxy, answering};
use crate::waiting::wait_until;
use crate::word_gate::{BOTH, JSON, call};

/// Waits until the server has received everything that the gate permitted.
fn wait_for_permitted(gate: &GatedProxy, server: &HttpTestServer) {
    wait_until("what was permitted to be sent", || {
        let permitted = gate.desk.done.lock().unwrap().permitted.clone();
        let bodies = server.bodies();
        permitted.iter().all(|text| bodies.contains(text))
    });
}

/// A server that answers each request with the head that `status` returns for its path.
fn redirecting(status: impl Fn(&str) -> String + Send + 'static) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let paths = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&paths);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let Some(HttpMessage { head, body }) = http_peers::read(&mut reader) else { continue };
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
            let (head, body) = match (status(&path), body.is_empty()) {
                (head, false) if head.is_empty() => {
                    ("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n".to_owned(), answer)
                }
                (head, _) => (head, ""),
            };
            seen.lock().unwrap().push(path);
            let length = body.len();
            let text = format!("{head}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
            stream.write_all(text.as_bytes()).ok();
        }
    });
    (port, paths)
}

#[test]
fn a_login_takes_no_message_and_is_logged_without_its_secrets() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let form = "content-type: application/x-www-form-urlencoded";
    let message = "jsonrpc=2.0&id=1&method=tools%2Fcall&params%5Bname%5D=deny";
    for path in ["/token", "/revoke"] {
        for parameter in ["", "; x=\"application/json\"", "; application/json=1"] {
            let line = format!("{form}{parameter}");
            let reply =
                http_peers::reply(&mut gate.send(&format!("POST {path}"), &[&line], message));
            let refused = reply.head.contains(" 415 ") || reply.head.contains(" 400 ");
            assert!(refused, "{path} {line} {reply:?}");
        }
    }
    assert_eq!(server.bodies(), Vec::<String>::new());
    let grant = "grant_type=refresh_token&refresh_token=s3cret";
    http_peers::reply(&mut gate.send("POST /token?key=s3cret", &[form], grant));
    assert_eq!(server.bodies(), [grant]);
    let plain = gate.desk.done.lock().unwrap().plain.clone();
    assert_eq!(plain, ["POST /token?key=* was answered with 200 OK"]);
}

#[test]
fn the_query_of_the_servers_url_stands_whatever_a_client_asks_for() {
    let server = answering("{}");
    let url = format!("http://127.0.0.1:{}/api/mcp?read_only=true&project=a", server.port);
    let gate = GatedProxy::before(&url);
    for (path, expected) in [
        ("/mcp", Some("/api/mcp?read_only=true&project=a")),
        ("/", Some("/api/mcp?read_only=true&project=a")),
        ("/api/mcp", Some("/api/mcp?read_only=true&project=a")),
        ("/api/mcp?", Some("/api/mcp?read_only=true&project=a")),
        ("/api/mcp?read_only=true&project=a", Some("/api/mcp?read_only=true&project=a")),
        ("/api/mcp?x=1", Some("/api/mcp?read_only=true&project=a&x=1")),
        ("/mcp?x=1", Some("/api/mcp?read_only=true&project=a&x=1")),
        ("/mcp?read_only=false", None),
        ("/api/mcp?read_only=false", None),
        ("/api/mcp?Read-Only=false", None),
        ("/api/mcp?x=1&project%5B%5D=b", None),
    ] {
        let before = server.lines().len();
        let reply = http_peers::reply(&mut gate.send(&format!("POST {path}"), JSON, &call(1, "x")));
        let lines = server.lines();
        let expected: Vec<String> =
            expected.iter().map(|path| format!("POST {path} HTTP/1.1")).collect();
        assert_eq!(lines[before..], expected, "{path}");
        assert_eq!(reply.head.contains(" 400 "), expected.is_empty(), "{path} {reply:?}");
    }
    let plain = gate.desk.done.lock().unwrap().plain.clone();
    assert!(plain.contains(&"POST /mcp?x=* was answered with 200 OK".to_owned()), "{plain:?}");
}

#[test]
fn what_was_let_through_is_sent_also_if_its_client_leaves() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let session = [BOTH, &["mcp-session-id: s"]].concat();
    for id in 0..60 {
        let headers = if id % 2 == 0 { JSON } else { &session };
        drop(gate.send("POST /mcp", headers, &call(id, "x")));
    }
    gate.post(&call(99, "x"));
    wait_for_permitted(&gate, &server);
}

#[test]
fn a_call_that_is_approved_as_its_client_leaves_is_sent() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    for id in 0..30 {
        let headers = if id % 2 == 0 { JSON } else { BOTH };
        let reader = gate.send("POST /mcp", headers, &call(id, "hold"));
        let (ticket, _) = gate.desk.held();
        gate.desk.approve(ticket);
        drop(reader);
    }
    gate.post(&call(99, "x"));
    wait_for_permitted(&gate, &server);
}

#[test]
fn a_redirect_that_clients_cannot_follow_is_followed_for_them() {
    let (port, paths) = redirecting(|path| match path {
        "/mcp/" => "HTTP/1.1 307 Moved\r\nlocation: /mcp\r\n".to_owned(),
        _ => String::new(),
    });
    let gate = GatedProxy::before(&format!("http://127.0.0.1:{port}/mcp/"));
    for _ in 0..2 {
        let reply = gate.post(&call(1, "x"));
        assert_eq!(reply.body, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "{reply:?}");
    }
    assert_eq!(*paths.lock().unwrap(), ["/mcp/", "/mcp", "/mcp"]);
}

#[test]
fn redirects_in_a_circle_come_to_an_end() {
    let (port, paths) = redirecting(|_| "HTTP/1.1 307 Moved\r\nlocation: /mcp\r\n".to_owned());
    let gate = GatedProxy::before(&format!("http://127.0.0.1:{port}/mcp/"));
    assert!(gate.post(&call(1, "x")).head.contains(" 307 "));
    assert!(paths.lock().unwrap().len() < 9);
}

#[test]
fn whatever_an_endpoint_says_is_judged_and_another_protocol_is_an_error() {
    let spoilt = r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":["spoil"]}"#;
    let server = HttpTestServer::start(move |_| (String::new(), spoilt.to_owned()));
    let gate = GatedProxy::before(&server.url());
    for line in ["POST /mcp", "DELETE /mcp", "OPTIONS /mcp"] {
        let reply = http_peers::reply(&mut gate.send(line, &["accept: application/json"], ""));
        assert!(!reply.body.contains("sampling"), "{line} {reply:?}");
    }
    assert_eq!(gate.desk.done.lock().unwrap().plain.len(), 3);
    let (port, _) = redirecting(|_| "HTTP/1.1 101 Switch\r\nupgrade: x\r\n".to_owned());
    let gate = GatedProxy::before(&format!("http://127.0.0.1:{port}/mcp"));
    let reply = gate.post(&call(1, "x"));
    assert!(reply.head.contains(" 502 ") && reply.body.contains("\"id\":1,"), "{reply:?}");
}

#[test]
fn an_approved_call_that_the_server_does_not_answer_gets_an_error() {
    let server = HttpTestServer::start(|_| (String::new(), String::new()));
    let gate = GatedProxy::before(&server.url());
    let mut reader = gate.send("POST /mcp", BOTH, &call(1, "hold"));
    let (ticket, _) = gate.desk.held();
    http_peers::head(&mut reader);
    gate.desk.approve(ticket);
    let event = http_peers::chunk(&mut reader).unwrap();
    assert!(event.contains("\"id\":1,\"error\""), "{event}");
}

#[test]
fn a_header_that_contradicts_the_argument_it_repeats_is_refused() {
    let server = answering(
        r#"{"tools":[{"name":"x","inputSchema":{"properties":{"path":{"x-mcp-header":"Path"}}}}]}"#,
    );
    let gate = GatedProxy::before(&server.url());
    gate.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{"path":"/data"}}}"#;
    for (line, status) in
        [("mcp-param-path: /data", 200), ("x-other: 1", 200), ("mcp-param-path: /etc", 400)]
    {
        let headers = [JSON, &[line]].concat();
        let reply = http_peers::reply(&mut gate.send("POST /mcp", &headers, call));
        assert!(reply.head.contains(&format!(" {status} ")), "{line} {reply:?}");
    }
}
