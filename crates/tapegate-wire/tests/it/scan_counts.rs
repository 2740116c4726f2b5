//! How often a call and its answer are scanned on each way through the wire.
//!
//! The gate notes the scans of the session's thread whenever it is asked about a call, so the
//! difference between two calls is what a call and its answer cost together.

use crate::bridge_gate::{InboundHarness, OutboundHarness, answer};
use crate::proxy_gate::{GatedProxy, answering};
use crate::stdio_gate::GatedPipes;
use crate::word_gate::{GateControl, JSON, call};

/// Calls to make. The first ones may cost more: they open connections and sessions.
const CALLS: u64 = 6;

/// What the last calls cost each, which must be the same.
fn cost(desk: &GateControl) -> u64 {
    let scans = desk.done.lock().unwrap().scans.clone();
    let costs: Vec<u64> = scans.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let last = &costs[costs.len() - 3..];
    assert!(last.iter().all(|one| *one == last[0]), "{costs:?}");
    last[0]
}

#[test]
fn on_pipes_each_message_is_scanned_once() {
    let answers = r#"s/.*"id":\([^,]*\),.*"name":"\([^"]*\)".*/{"jsonrpc":"2.0","id":\1,"result":{"got":"\2"}}/p"#;
    let mut pipes = GatedPipes::before(&["sed", "-u", "-n", answers]);
    for id in 1..=CALLS {
        pipes.say(&call(id, "x"));
        assert_eq!(pipes.line(), answer(id, "x"));
    }
    assert_eq!(cost(&pipes.desk), 2);
}

#[test]
fn through_the_proxy_each_message_is_scanned_once() {
    let server = answering("{}");
    let gate = GatedProxy::before(&server.url());
    for id in 1..=CALLS {
        assert!(gate.post(&call(id, "x")).body.contains("result"));
    }
    assert_eq!(cost(&gate.desk), 2);
}

#[test]
fn from_pipes_to_http_each_message_is_scanned_once() {
    let mut bridge = OutboundHarness::open();
    for id in 1..=CALLS {
        bridge.say(&call(id, "x"));
        assert_eq!(bridge.line(), answer(id, "x"));
    }
    assert_eq!(cost(&bridge.desk), 2);
}

#[test]
fn from_http_to_pipes_each_message_is_scanned_once() {
    let bridge = InboundHarness::open("scans");
    let session = bridge.session();
    let headers = [JSON, &[&session]].concat();
    for id in 1..=CALLS {
        assert_eq!(bridge.post(&headers, &call(id, "x")).body, answer(id, "x"));
    }
    assert_eq!(cost(&bridge.desk), 2);
}
