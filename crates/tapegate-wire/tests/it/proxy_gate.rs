//! A gate on every path that a message can take over HTTP. The server logs everything it receives.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::mpsc;

use tapegate_core::gate::HoldEnd;
use tapegate_core::relay::HELD_MAX;
use tapegate_wire::clock::Clock;
use tapegate_wire::http::listener::HttpListener;
use tapegate_wire::http::proxy::Proxy;
use tapegate_wire::http::upstream::HttpUpstream;
use tapegate_wire::http::{SharedSession, serve};
use tapegate_wire::signals::Signals;

use crate::http_peers::{self, HttpMessage, HttpTestServer};
use crate::word_gate::{BOTH, GateControl, JSON, call, guarded, refused};

/// A proxy with a gate.
pub(crate) struct GatedProxy {
    pub(crate) port: u16,
    pub(crate) desk: GateControl,
}

impl GatedProxy {
    pub(crate) fn before(url: &str) -> Self {
        let (desk, deck) = guarded();
        let (told, port) = mpsc::channel();
        let url = url.to_owned();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = HttpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.address().unwrap().port()).unwrap();
                let station = SharedSession::new(deck(Clock::start()), 1 << 20);
                let proxy = Proxy::new(Rc::clone(&station), HttpUpstream::new(&url, &[]).unwrap());
                serve(listener, proxy, &station, Signals::never()).await;
            });
        });
        Self { port: port.recv().unwrap(), desk }
    }

    pub(crate) fn send(&self, line: &str, headers: &[&str], body: &str) -> BufReader<TcpStream> {
        http_peers::send(self.port, line, headers, body)
    }

    pub(crate) fn post(&self, body: &str) -> HttpMessage {
        http_peers::reply(&mut self.send("POST /mcp", JSON, body))
    }
}

/// Answers everything that has an id with `result`, and logs all requests.
pub(crate) fn answering(result: &'static str) -> HttpTestServer {
    HttpTestServer::start(move |seen| {
        let id = seen.body.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
        let body = id.map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
        (String::new(), body.unwrap_or_default())
    })
}

#[test]
fn a_refused_call_is_an_error_of_the_protocol_and_the_server_hears_nothing() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let denied = gate.post(&call(1, "deny"));
    assert!(denied.head.starts_with("HTTP/1.1 200"), "{denied:?}");
    assert_eq!(denied.body, refused(1, "denied"));
    // The protocol requires an error status for a notification that is not accepted.
    assert!(gate.post(r#"{"jsonrpc":"2.0","method":"deny"}"#).head.contains(" 400 "));
    let events = &["content-type: application/json", "accept: text/event-stream"];
    let denied = http_peers::reply(&mut gate.send("POST /mcp", events, &call(3, "deny")));
    assert_eq!(denied.header("content-type"), Some("text/event-stream"));
    assert_eq!(denied.message(), refused(3, "denied"));
    let batch = format!("[{},{}]", call(4, "x"), call(5, "deny"));
    let denied = gate.post(&batch);
    assert_eq!(denied.body, format!("[{},{}]", refused(4, "denied"), refused(5, "denied")));
    assert_eq!(gate.post(&call(2, "x")).body, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert_eq!(server.bodies(), [call(2, "x")]);
}

#[test]
fn no_path_method_or_content_type_leads_around_the_gate() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let denied = call(1, "deny");
    let go = |line: &str, kind: &str, body: &str| {
        let kind = format!("content-type: {kind}");
        http_peers::reply(&mut gate.send(line, &[&kind, "accept: application/json"], body))
    };
    for (line, status) in [
        ("POST /mcp/", 404),
        ("POST /MCP", 404),
        ("POST /other?x=1", 404),
        ("DELETE /x", 404),
        ("PUT /mcp", 405),
        ("GET /mcp", 400),
        ("POST /mcp?_method=PUT", 400),
        ("POST /", 415),
    ] {
        for kind in
            ["application/json; charset=utf-7", "text/plain", "application/x-www-form-urlencoded"]
        {
            let reply = go(line, kind, &denied);
            assert!(reply.head.contains(&format!(" {status} ")), "{line} {kind} {reply:?}");
            assert!(reply.body.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":"#), "{reply:?}");
        }
    }
    for line in ["POST /", "POST /mcp?x=1"] {
        assert_eq!(go(line, "application/json", &denied).body, refused(1, "denied"), "{line}");
    }
    // Some parsers ignore how `method` is spelled, or whether the version is given.
    for text in [
        r#"{"id":1,"Method":"tools/call","params":{"name":"deny"}}"#,
        r#"{"id":1,"\u006dETHOD":"tools/call","params":{"name":"deny"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"deny"}}"#,
        r#"[{"id":1,"METHOD":"tools/call","params":{"name":"deny"}}]"#,
        "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"deny\"},}",
        "/* */ {\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"deny\"}}",
        "\u{feff}{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"deny\"}}",
    ] {
        go("POST /elsewhere", "application/json", text);
        go("POST /register", "application/json", text);
        go("POST /token", "application/x-www-form-urlencoded", text);
    }
    assert_eq!(server.bodies(), Vec::<String>::new());
    // The steps of a login are not messages.
    let form = "grant_type=deny&x=%22deny%22";
    go("POST /token", "application/x-www-form-urlencoded", form);
    go("POST /register", "application/json", r#"{"redirect_uris":["deny"]}"#);
    assert_eq!(server.bodies().len(), 2);
}

#[test]
fn what_cannot_be_read_is_refused_and_what_was_judged_is_what_is_sent() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let post = |encoding: &[&str], body: &[u8]| {
        let lines: Vec<String> =
            encoding.iter().map(|one| format!("content-encoding: {one}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let headers = [&["content-type: application/json"], &lines[..]].concat();
        http_peers::reply(&mut http_peers::send(gate.port, "POST /mcp", &headers, body))
    };
    for encoding in [&["br"][..], &["gzip, gzip"], &["identity", "gzip"], &["zstd"]] {
        let reply = post(encoding, &http_peers::gzip(&call(1, "deny")));
        assert!(reply.head.starts_with("HTTP/1.1 415"), "{encoding:?} {reply:?}");
    }
    assert_eq!(post(&["gzip"], &http_peers::gzip(&call(1, "deny"))).body, refused(1, "denied"));
    assert!(post(&["gzip"], &http_peers::gzip(&call(2, "x"))).body.contains("result"));
    let seen = server.wait("POST");
    assert_eq!((seen.body.as_str(), seen.header("content-encoding")), (&*call(2, "x"), None));
    // Chunked encoding hides nothing.
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    let text = call(3, "deny");
    let (one, two) = text.split_at(30);
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        gate.port,
        one.len(),
        two.len()
    )
    .unwrap();
    assert_eq!(http_peers::reply(&mut BufReader::new(stream)).body, refused(3, "denied"));
    assert_eq!(server.bodies().len(), 1);
}

#[test]
fn headers_that_do_not_say_what_the_body_says_are_refused() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let post = |headers: &[&str], body: &str| {
        http_peers::reply(&mut gate.send("POST /mcp", &[JSON, headers].concat(), body))
    };
    for headers in
        [&["mcp-method: tools/list"][..], &["mcp-name: y"], &["mcp-name: x", "mcp-name: y"]]
    {
        let reply = post(headers, &call(1, "x"));
        assert!(reply.head.starts_with("HTTP/1.1 400"), "{reply:?}");
    }
    let batch = format!("[{}]", call(1, "x"));
    assert!(post(&["mcp-name: y"], &batch).head.starts_with("HTTP/1.1 400"));
    assert!(server.bodies().is_empty());
    assert!(
        post(&["mcp-method: tools/call", "mcp-name: x"], &call(1, "x")).body.contains("result")
    );
}

#[test]
fn replies_are_judged_and_rewritten_replies_have_their_own_length() {
    let server = answering(r#"{"tools":["a","cut"]}"#);
    let gate = GatedProxy::before(&server.url());
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    let expected = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":["a","-"]}}"#;
    assert_eq!(gate.post(list).body, expected);
    let server = answering(r#"{"content":"spoil"}"#);
    let gate = GatedProxy::before(&server.url());
    assert_eq!(gate.post(&call(1, "x")).body, refused(1, "spoilt"));
}

/// A server that answers each request with these bytes, and then waits for a disconnect.
pub(crate) fn raw(reply: impl Fn(&HttpMessage) -> String + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reply = std::sync::Arc::new(reply);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let reply = std::sync::Arc::clone(&reply);
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Some(seen) = http_peers::read(&mut reader) {
                    stream.write_all(reply(&seen).as_bytes()).unwrap();
                }
            });
        }
    });
    port
}

pub(crate) const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

#[test]
fn events_are_judged_one_by_one_and_keep_their_ids() {
    let port = raw(|_| {
        let events = [
            "id: e1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[\"cut\"]}\n\n",
            "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[\"spoil\"]}\n\n",
            "event: other\nid: e3\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\",\"x\":\"spoil\"}\n\n",
            ": a remark\n\n",
            "id: e4\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{\"tools\":[\"cut\"]}}\n\n",
        ];
        format!("{EVENTS}{}", events.concat())
    });
    let gate = GatedProxy::before(&format!("http://127.0.0.1:{port}/mcp"));
    let mut reader =
        gate.send("POST /mcp", BOTH, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    http_peers::head(&mut reader);
    let mut body = String::new();
    while !body.contains("tools") {
        body.push_str(&http_peers::chunk(&mut reader).expect("more"));
    }
    assert_eq!(
        body,
        concat!(
            "id: e1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[\"-\"]}\n\n",
            "id: e2\ndata: \n\n",
            "id: e3\ndata: \n\n",
            ":\n\n",
            "id: e4\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{\"tools\":[\"-\"]}}\n\n",
        )
    );
}

#[test]
fn a_held_post_waits_in_its_exchange() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let mut one = gate.send("POST /mcp", JSON, &call(1, "hold"));
    let (first, _) = gate.desk.held();
    let mut two = gate.send("POST /mcp", JSON, &call(2, "hold"));
    let (second, _) = gate.desk.held();
    assert_eq!(gate.post(&call(3, "x")).body, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    gate.desk.deny(second);
    assert_eq!(http_peers::reply(&mut two).body, refused(2, "rejected"));
    gate.desk.approve(first);
    assert_eq!(http_peers::reply(&mut one).body, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(server.bodies(), [call(3, "x"), call(1, "hold")]);
    assert_eq!(gate.post(&call(4, "short")).body, refused(4, "timed out"));
}

#[test]
fn a_client_that_takes_events_sees_that_its_held_call_is_not_forgotten() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let mut reader = gate.send("POST /mcp", BOTH, &call(1, "hold"));
    let (ticket, _) = gate.desk.held();
    // The reply begins before a decision is made.
    let head = http_peers::head(&mut reader);
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    gate.desk.approve(ticket);
    let event = http_peers::chunk(&mut reader).unwrap();
    assert_eq!(event, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
    assert_eq!(http_peers::chunk(&mut reader), None);
    let mut reader = gate.send("POST /mcp", BOTH, &call(2, "hold"));
    let (ticket, _) = gate.desk.held();
    http_peers::head(&mut reader);
    gate.desk.deny(ticket);
    assert!(http_peers::chunk(&mut reader).unwrap().contains(&refused(2, "rejected")));
}

#[test]
fn a_client_that_leaves_abandons_its_held_call() {
    let server = answering("{}");
    for headers in [JSON, BOTH] {
        let gate = GatedProxy::before(&server.url());
        let mut reader = gate.send("POST /mcp", headers, &call(1, "hold"));
        let (ticket, _) = gate.desk.held();
        if headers == BOTH {
            http_peers::head(&mut reader);
        }
        drop(reader);
        assert_eq!(gate.desk.wait_ended(), [HoldEnd::Abandoned]);
        gate.desk.approve(ticket);
        gate.post(&call(2, "x"));
    }
    assert_eq!(server.bodies(), [call(2, "x"), call(2, "x")]);
}

#[test]
fn a_held_call_of_a_session_can_be_taken_back_by_a_message() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let headers = [JSON, &["mcp-session-id: s"]].concat();
    let mut reader = gate.send("POST /mcp", &headers, &call(1, "hold"));
    gate.desk.held();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let taken = http_peers::reply(&mut gate.send("POST /mcp", &headers, cancel));
    assert!(taken.head.starts_with("HTTP/1.1 202"), "{taken:?}");
    assert!(http_peers::reply(&mut reader).head.starts_with("HTTP/1.1 202"));
    assert!(server.bodies().is_empty(), "what was never sent need not be taken back");
}

#[test]
fn when_too_many_calls_are_held_further_requests_wait_and_the_rest_passes() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let open: Vec<_> =
        (0..HELD_MAX as u64).map(|id| gate.send("POST /mcp", JSON, &call(id, "hold"))).collect();
    let first = (0..HELD_MAX).map(|_| gate.desk.held().0).next().unwrap();
    let mut late = gate.send("POST /mcp", JSON, &call(99, "x"));
    // A notification is not delayed.
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    gate.post(told);
    assert_eq!(server.bodies(), [told]);
    // Nor is another session.
    let other = [JSON, &["mcp-session-id: other"]].concat();
    let reply = http_peers::reply(&mut gate.send("POST /mcp", &other, &call(98, "x")));
    assert_eq!(reply.body, r#"{"jsonrpc":"2.0","id":98,"result":{}}"#);
    gate.desk.deny(first);
    assert_eq!(http_peers::reply(&mut late).body, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    drop(open);
}

#[test]
fn a_server_cannot_send_its_client_past_the_gate() {
    let port = raw(|seen| {
        match seen.head.starts_with("GET") {
        true => format!("{EVENTS}event: endpoint\ndata: http://elsewhere.test/post\n\nid: end\n\n"),
        false => "HTTP/1.1 307 There\r\nlocation: //elsewhere.test/mcp\r\nalt-svc: h3=\":1\"\r\ncontent-length: 0\r\n\r\n".to_owned(),
    }
    });
    let gate = GatedProxy::before(&format!("http://127.0.0.1:{port}/mcp"));
    let moved = gate.post(&call(1, "x"));
    assert!(
        moved.head.starts_with("HTTP/1.1 502") && moved.body.contains("past the gate"),
        "{moved:?}"
    );
    let mut stream = gate.send("GET /mcp", &["accept: text/event-stream"], "");
    http_peers::head(&mut stream);
    let mut seen = String::new();
    while !seen.contains("id: end") {
        seen.push_str(&http_peers::chunk(&mut stream).unwrap());
    }
    assert!(!seen.contains("elsewhere"), "{seen}");
}

#[test]
fn in_any_storm_of_posts_the_server_gets_only_what_was_let_through() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    let names = ["x", "deny", "short", "x-y", "deny-more"];
    let paths = ["/mcp", "/", "/mcp?x=1", "/?y"];
    std::thread::scope(|scope| {
        for client in 0..4usize {
            let port = gate.port;
            scope.spawn(move || {
                for round in 0..50usize {
                    let id = (client * 1000 + round) as u64;
                    let name = names[(client + round * 7) % names.len()];
                    let line = format!("POST {}", paths[(client * 3 + round) % paths.len()]);
                    let headers = if round % 2 == 0 { JSON } else { BOTH };
                    let reply = http_peers::reply(&mut http_peers::send(
                        port,
                        &line,
                        headers,
                        &call(id, name),
                    ));
                    let denied = !name.starts_with('x');
                    assert_eq!(reply.body.contains("\"error\""), denied, "{name} {reply:?}");
                    assert!(reply.body.contains(&format!("\"id\":{id},")), "{reply:?}");
                }
            });
        }
    });
    let bodies = server.bodies();
    assert!(bodies.iter().all(|body| gate.desk.permitted(body)), "{bodies:?}");
    assert_eq!(bodies.iter().filter(|body| body.contains("\"x")).count(), bodies.len());
}
