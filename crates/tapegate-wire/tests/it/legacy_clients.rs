//! Clients of the older transport: one stream, and messages posted separately.

use std::io::BufReader;
use std::net::TcpStream;

use tapegate_core::gate::HoldEnd;

use crate::bridge_gate::{InboundHarness, answer};
use crate::http_peers;
use crate::proxy_gate::{EVENTS, GatedProxy, raw};
use crate::waiting::wait_until;
use crate::word_gate::{GateControl, JSON, call, refused};

/// A client that has opened its stream and received its endpoint.
struct LegacyClient {
    port: u16,
    path: String,
    stream: BufReader<TcpStream>,
}

impl LegacyClient {
    fn join(port: u16) -> Self {
        let mut stream = http_peers::send(port, "GET /sse", &["accept: text/event-stream"], "");
        http_peers::head(&mut stream);
        let event = http_peers::chunk(&mut stream).unwrap();
        let path = event.split("data: ").nth(1).unwrap().trim().to_owned();
        Self { port, path, stream }
    }

    fn post(&self, body: &str) {
        let line = format!("POST {}", self.path);
        let reply = http_peers::reply(&mut http_peers::send(self.port, &line, JSON, body));
        assert!(reply.head.contains(" 202 "), "{reply:?}");
    }

    #[track_caller]
    fn hears(&mut self, text: &str) {
        let event = http_peers::chunk(&mut self.stream).unwrap();
        assert!(event.contains(text), "{event}");
    }

    /// Makes three calls: one denied, one rejected by the approver, one approved.
    fn calls(&mut self, desk: &GateControl) {
        self.post(&call(1, "deny"));
        self.hears(&refused(1, "denied"));
        self.post(&call(2, "hold"));
        desk.deny(desk.held().0);
        self.hears(&refused(2, "rejected"));
        self.post(&call(3, "hold"));
        desk.approve(desk.held().0);
    }
}

/// A gate in front of a server of the older transport that never answers.
fn gate() -> GatedProxy {
    let port = raw(|seen| match seen.head.starts_with("GET") {
        true => format!("{EVENTS}event: endpoint\ndata: /post?s=1\n\n"),
        false => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
    });
    GatedProxy::before(&format!("http://127.0.0.1:{port}/sse"))
}

#[test]
fn by_a_proxy_a_client_is_answered_on_its_stream() {
    let gate = gate();
    LegacyClient::join(gate.port).calls(&gate.desk);
    wait_until("the approved call", || gate.desk.permitted(&call(3, "hold")));
}

#[test]
fn a_client_that_leaves_takes_its_held_calls_back() {
    let gate = gate();
    let client = LegacyClient::join(gate.port);
    client.post(&call(1, "hold"));
    gate.desk.held();
    drop(client);
    assert_eq!(gate.desk.wait_ended(), [HoldEnd::Cancelled]);
}

#[test]
fn in_front_of_a_process_a_client_is_answered_on_its_stream() {
    let bridge = InboundHarness::open("older");
    let mut client = LegacyClient::join(bridge.port);
    client.calls(&bridge.desk);
    client.hears(&answer(3, "hold"));
    client.post(&call(4, "spoil"));
    client.hears(&refused(4, "spoilt"));
    assert_eq!(bridge.heard(), ["hold", "spoil"]);
}
