//! A gate on bridges between HTTP and pipes, in both directions.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::net::TcpStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc;

use tapegate_core::gate::HoldEnd;
use tapegate_wire::child::ServerLaunch;
use tapegate_wire::clock::Clock;
use tapegate_wire::http::bridge_in::{InboundBridge, ServerProvider};
use tapegate_wire::http::listener::HttpListener;
use tapegate_wire::http::upstream::HttpUpstream;
use tapegate_wire::http::{SharedSession, bridge_out, serve};
use tapegate_wire::port::StreamPort;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{ClientPorts, ShutdownTimeouts};
use tokio::task::LocalSet;

use crate::http_peers::{self, HttpMessage, HttpTestServer};
use crate::word_gate::{BOTH, GateControl, JSON, call, guarded, refused};

const MODERN: &[&str] = &[
    "content-type: application/json",
    "accept: application/json, text/event-stream",
    "mcp-protocol-version: 2026-07-28",
    "mcp-method: tools/call",
];

pub(crate) fn answer(id: u64, name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"got":"{name}"}}}}"#)
}

/// HTTP clients in front of server processes.
pub(crate) struct InboundHarness {
    pub(crate) port: u16,
    pub(crate) desk: GateControl,
    /// The file in which a server logs everything it receives.
    heard: PathBuf,
}

impl InboundHarness {
    pub(crate) fn open(name: &str) -> Self {
        let (desk, deck) = guarded();
        let (told, port) = mpsc::channel();
        let heard = std::env::temp_dir().join(format!("tapegate-{name}-{}", std::process::id()));
        std::fs::remove_file(&heard).ok();
        // A message must be logged before it is answered, and `tee` passes it on first.
        let script = format!(
            r#"while IFS= read -r line; do
                   printf '%s\n' "$line" >> '{}'; printf '%s\n' "$line"
               done | sed -u -n \
               -e 's/.*"id":\([^,]*\),"method":"initialize".*/{{"jsonrpc":"2.0","id":\1,"result":{{}}}}/p' \
               -e 's/.*"id":\([^,]*\),.*"name":"\([^"]*\)".*/{{"jsonrpc":"2.0","id":\1,"result":{{"got":"\2"}}}}/p'"#,
            heard.display()
        );
        let argv = ["sh", "-c", &script].map(str::to_owned).to_vec();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = HttpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.address().unwrap().port()).unwrap();
                let station = SharedSession::new(deck(Clock::start()), 1 << 20);
                let servers = ServerProvider::Processes(
                    ServerLaunch { argv, ..ServerLaunch::default() },
                    None,
                );
                let bridge =
                    InboundBridge::new(Rc::clone(&station), servers, ShutdownTimeouts::default());
                serve(listener, bridge, &station, Signals::never()).await;
            });
        });
        Self { port: port.recv().unwrap(), desk, heard }
    }

    pub(crate) fn send(&self, headers: &[&str], body: &str) -> BufReader<TcpStream> {
        http_peers::send(self.port, "POST /mcp", headers, body)
    }

    pub(crate) fn post(&self, headers: &[&str], body: &str) -> HttpMessage {
        http_peers::reply(&mut self.send(headers, body))
    }

    /// Opens a session, and returns its session header line.
    pub(crate) fn session(&self) -> String {
        let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#;
        let opened = self.post(JSON, body);
        let id = opened.header("mcp-session-id").unwrap_or_else(|| panic!("{opened:?}"));
        format!("mcp-session-id: {id}")
    }

    /// The names of the tools that were called at a server.
    pub(crate) fn heard(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.heard).unwrap_or_default();
        let names = text.split("\"name\":\"").skip(1);
        names.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    }
}

impl Drop for InboundHarness {
    fn drop(&mut self) {
        std::fs::remove_file(&self.heard).ok();
    }
}

#[test]
fn a_call_by_http_to_a_process_is_judged_both_ways() {
    let bridge = InboundHarness::open("judged");
    let session = bridge.session();
    let headers = [JSON, &[&session]].concat();
    let post = |body: &str| bridge.post(&headers, body);
    let denied = post(&call(1, "deny"));
    assert!(denied.head.starts_with("HTTP/1.1 200"), "{denied:?}");
    assert_eq!(denied.body, refused(1, "denied"));
    assert_eq!(post(&call(2, "x")).body, answer(2, "x"));
    assert_eq!(post(&call(3, "spoil")).body, refused(3, "spoilt"));
    assert_eq!(post(&call(4, "cut")).body, answer(4, "-"));
    assert!(post(r#"{"jsonrpc":"2.0","method":"deny"}"#).head.contains(" 400 "));
    let batch = post(&format!("[{},{}]", call(5, "x"), call(6, "deny")));
    assert_eq!(batch.body, format!("[{},{}]", refused(5, "denied"), refused(6, "denied")));
    let events = [&BOTH[..1], &["accept: text/event-stream", &session]].concat();
    assert_eq!(bridge.post(&events, &call(7, "deny")).message(), refused(7, "denied"));
    assert_eq!(bridge.heard(), ["x", "spoil", "cut"]);
}

#[test]
fn a_held_call_by_http_waits_for_its_process() {
    let bridge = InboundHarness::open("held");
    let session = bridge.session();
    let headers = [JSON, &[&session]].concat();
    let mut one = bridge.send(&headers, &call(1, "hold"));
    let (first, _) = bridge.desk.held();
    let mut two = bridge.send(&headers, &call(2, "hold"));
    let (second, _) = bridge.desk.held();
    assert_eq!(bridge.post(&headers, &call(3, "x")).body, answer(3, "x"));
    bridge.desk.deny(second);
    assert_eq!(http_peers::reply(&mut two).body, refused(2, "rejected"));
    bridge.desk.approve(first);
    assert_eq!(http_peers::reply(&mut one).body, answer(1, "hold"));
    let mut three = bridge.send(&headers, &call(4, "hold"));
    bridge.desk.held();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#;
    assert!(bridge.post(&headers, cancel).head.contains(" 202 "));
    assert!(http_peers::reply(&mut three).head.contains(" 202 "));
    assert_eq!(bridge.heard(), ["x", "hold"]);
}

#[test]
fn a_client_that_leaves_the_bridge_abandons_its_held_call() {
    for headers in [JSON, BOTH] {
        let bridge = InboundHarness::open("left");
        let session = bridge.session();
        let headers = [headers, &[&session]].concat();
        let reader = bridge.send(&headers, &call(1, "hold"));
        let (ticket, _) = bridge.desk.held();
        drop(reader);
        assert_eq!(bridge.desk.wait_ended(), [HoldEnd::Abandoned]);
        bridge.desk.approve(ticket);
        assert!(bridge.post(&headers, &call(2, "x")).message().contains("\"got\":\"x\""));
        assert_eq!(bridge.heard(), ["x"]);
    }
}

#[test]
fn when_a_session_ends_its_held_calls_are_answered() {
    let bridge = InboundHarness::open("ended");
    let session = bridge.session();
    let headers = [JSON, &[&session]].concat();
    let mut one = bridge.send(&headers, &call(1, "hold"));
    bridge.desk.held();
    http_peers::reply(&mut http_peers::send(bridge.port, "DELETE /mcp", &[&session], ""));
    let told = http_peers::reply(&mut one).body;
    assert!(told.contains("\"id\":1,\"error\"") && told.contains("ended the session"), "{told}");
    assert_eq!(bridge.desk.wait_ended(), [HoldEnd::Closed]);
}

#[test]
fn clients_that_share_a_server_are_held_and_answered_apart() {
    let bridge = InboundHarness::open("shared");
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = |name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","_meta":{meta}}}}}"#
        )
    };
    let headers = |name: &'static str| [MODERN, &[name]].concat();
    let mut one = bridge.send(&headers("mcp-name: hold"), &call("hold"));
    let (first, _) = bridge.desk.held();
    let mut two = bridge.send(&headers("mcp-name: hold"), &call("hold"));
    let (second, _) = bridge.desk.held();
    assert_eq!(
        bridge.post(&headers("mcp-name: deny"), &call("deny")).message(),
        refused(1, "denied")
    );
    assert_eq!(bridge.post(&headers("mcp-name: x"), &call("x")).message(), answer(1, "x"));
    bridge.desk.approve(first);
    assert_eq!(http_peers::reply(&mut one).message(), answer(1, "hold"));
    bridge.desk.deny(second);
    assert_eq!(http_peers::reply(&mut two).message(), refused(1, "rejected"));
    assert_eq!(bridge.heard(), ["x", "hold"]);
}

/// A client on pipes in front of a server over HTTP.
pub(crate) struct OutboundHarness {
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    pub(crate) desk: GateControl,
    server: HttpTestServer,
}

impl OutboundHarness {
    pub(crate) fn open() -> Self {
        let server = HttpTestServer::start(|seen| {
            let part = |from: &str| {
                let rest = seen.body.split(from).nth(1)?;
                Some(rest.split(['"', ',', '}']).next()?.to_owned())
            };
            let body = match (part("\"id\":"), part("\"name\":\"")) {
                (Some(id), Some(name)) => answer(id.parse().unwrap(), &name),
                _ => String::new(),
            };
            (String::new(), body)
        });
        let (desk, deck) = guarded();
        let (theirs_in, input) = pipe().unwrap();
        let (output, theirs_out) = pipe().unwrap();
        let url = server.url();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            LocalSet::new().block_on(&runtime, async {
                let client = ClientPorts {
                    input: StreamPort::reader(theirs_in.into()).unwrap(),
                    output: StreamPort::writer(theirs_out.into()).unwrap(),
                };
                let station = SharedSession::new(deck(Clock::start()), 1 << 20);
                let upstream = HttpUpstream::new(&url, &[]).unwrap();
                let (never, patience) = (Signals::never(), ShutdownTimeouts::default());
                bridge_out::run(station, client, upstream, never, patience, Box::new(|_| ())).await;
            });
        });
        Self { input: Some(input), output: BufReader::new(output), desk, server }
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

#[test]
fn a_call_on_pipes_to_a_server_by_http_is_judged_both_ways() {
    let mut bridge = OutboundHarness::open();
    for (id, name, expected) in [
        (1, "deny", refused(1, "denied")),
        (2, "x", answer(2, "x")),
        (3, "spoil", refused(3, "spoilt")),
        (4, "cut", answer(4, "-")),
        (5, "short", refused(5, "timed out")),
    ] {
        bridge.say(&call(id, name));
        assert_eq!(bridge.line(), expected);
    }
    bridge.desk.held();
    bridge.say(r#"{"jsonrpc":"2.0","method":"deny"}"#);
    bridge.say(&call(6, "hold"));
    let (first, _) = bridge.desk.held();
    bridge.say(&call(7, "x"));
    assert_eq!(bridge.line(), answer(7, "x"));
    bridge.desk.approve(first);
    assert_eq!(bridge.line(), answer(6, "hold"));
    bridge.say(&call(8, "hold"));
    bridge.desk.held();
    bridge.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#);
    bridge.say(&call(9, "hold"));
    let (last, _) = bridge.desk.held();
    // A client that has closed its output still gets later decisions.
    bridge.input.take();
    bridge.desk.approve(last);
    assert_eq!(bridge.line(), answer(9, "hold"));
    assert_eq!(bridge.line(), "");
    let expected: Vec<_> = [(2, "x"), (3, "spoil"), (4, "cut"), (7, "x"), (6, "hold"), (9, "hold")]
        .map(|(id, name)| call(id, name))
        .to_vec();
    assert_eq!(bridge.server.bodies(), expected);
}

#[test]
fn headers_must_describe_every_message_of_a_batch_and_each_request_is_answered() {
    let bridge = InboundHarness::open("batch-headers");
    let session = bridge.session();
    let batch = format!("[{},{}]", call(1, "x"), call(2, "y"));
    let ids = |text: &str| [1, 2].map(|id| text.contains(&format!("\"id\":{id},\"error\"")));
    let wrong = [JSON, &[&session, "mcp-name: x"]].concat();
    let refused = bridge.post(&wrong, &batch);
    assert!(refused.head.starts_with("HTTP/1.1 400"), "{refused:?}");
    assert!(ids(&refused.body) == [true, true] && refused.body.starts_with('['), "{refused:?}");
    // A body that is not a message contains two requests.
    let headers = [JSON, &[&session]].concat();
    let two = format!("{}{}", call(1, "deny"), call(2, "deny"));
    assert_eq!(ids(&bridge.post(&headers, &two).body), [true, true]);
    assert_eq!(bridge.heard(), Vec::<String>::new());
    let server = crate::proxy_gate::answering("{}");
    let gate = crate::proxy_gate::GatedProxy::before(&server.url());
    assert_eq!(ids(&gate.post(&two).body), [true, true]);
    let wrong =
        http_peers::reply(&mut gate.send("POST /mcp", &[JSON, &["mcp-name: x"]].concat(), &batch));
    assert_eq!(ids(&wrong.body), [true, true], "{wrong:?}");
    assert!(server.bodies().is_empty());
}

#[test]
fn a_compressed_body_reaches_a_process_as_its_text() {
    let bridge = InboundHarness::open("packed");
    let session = bridge.session();
    let post = |coding: &str, body: &[u8]| {
        let coding = format!("content-encoding: {coding}");
        let headers = [JSON, &[&session, &coding]].concat();
        http_peers::reply(&mut http_peers::send(bridge.port, "POST /mcp", &headers, body))
    };
    assert_eq!(post("gzip", &http_peers::gzip(&call(1, "x"))).body, answer(1, "x"));
    assert_eq!(post("gzip", &http_peers::gzip(&call(2, "deny"))).body, refused(2, "denied"));
    assert!(post("gzip", b"no gzip").head.starts_with("HTTP/1.1 415"));
    assert!(post("br", &http_peers::gzip(&call(3, "x"))).head.starts_with("HTTP/1.1 415"));
    let bomb = http_peers::gzip(&call(4, &"x".repeat(2 << 20)));
    assert!(post("gzip", &bomb).head.starts_with("HTTP/1.1 413"));
    assert_eq!(bridge.heard(), ["x"]);
}
