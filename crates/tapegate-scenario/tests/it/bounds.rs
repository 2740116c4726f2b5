//! Every queue is bounded, whatever a client does: requests over a limit are refused, and later
//! ones are answered as before.

use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::time::Timestamp;
use tapegate_scenario::engine::{Engine, EngineSetup};

use crate::harness::scenario;

const SEAT: ActorSessionId = ActorSessionId(1);
const TERMS: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

const SCENARIO: &str = r#"
server: {name: s, version: "1"}
baseline:
  tools:
    - tool: {name: plain, description: P, inputSchema: {type: object}}
      response: {content: [{type: text, text: "${phase.name} ${tool.call_count}"}]}
    - tool: {name: slow, description: S, inputSchema: {type: object}}
      response: {before: [{wait: 1s}], content: []}
    - tool: {name: ask, description: A, inputSchema: {type: object}}
      response: {before: [{send_request: {method: elicitation/create, as: who}}], content: [{type: text, text: "${reply.who.x}"}]}
    - tool: {name: lead, description: L, inputSchema: {type: object}}
      behavior: {delivery: response_delay, delay_ms: 1000}
      response: {content: []}
phases:
  - {name: one, advance: {on: "tools/call:lead"}}
  - {name: two}
"#;

struct EngineFixture {
    engine: Engine,
    ns: u64,
}

impl EngineFixture {
    fn new() -> Self {
        let mut room =
            Self { engine: Engine::new(scenario(SCENARIO), EngineSetup::default()), ns: 0 };
        room.cue(ActorEvent::Taken { shared: false, streams: false });
        room
    }

    fn cue(&mut self, cue: ActorEvent<'_>) -> Vec<String> {
        let at = Timestamp { wall_us: 0, mono_ns: self.ns };
        let mut said = Vec::new();
        self.engine.handle(at, SEAT, cue, &mut |act| match act {
            ActorAction::Say(parts) | ActorAction::Tell { parts, .. } => {
                said.push(String::from_utf8(parts.concat()).unwrap());
            }
            act => panic!("{act:?}"),
        });
        said
    }

    fn call(&mut self, id: usize, name: &str, more: &str) -> Vec<String> {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\"{more}}}}}"
        );
        self.cue(ActorEvent::Said(line.as_bytes()))
    }
}

#[test]
fn requests_under_way_are_counted() {
    let mut room = EngineFixture::new();
    for id in 0..1024 {
        assert!(room.call(id, "slow", "").is_empty());
    }
    assert!(room.call(1024, "slow", "")[0].contains("too many requests are under way"));
    assert!(room.call(1025, "plain", "")[0].contains("one 1"));
    room.ns += 1_000_000_000;
    assert_eq!(room.cue(ActorEvent::Due).len(), 1024);
    assert!(room.call(1026, "slow", "").is_empty());
}

#[test]
fn requests_under_way_are_weighed() {
    let mut room = EngineFixture::new();
    let heavy = format!(",\"arguments\":{{\"x\":\"{}\"}}", "x".repeat(8 << 20));
    let answers: Vec<_> = (0..5).map(|id| room.call(id, "slow", &heavy)).collect();
    assert!(answers[..3].iter().all(Vec::is_empty));
    assert!(answers[4][0].contains("too many requests are under way"));
}

#[test]
fn requests_that_wait_for_a_phase_are_counted() {
    let mut room = EngineFixture::new();
    assert!(room.call(0, "lead", "").is_empty());
    for id in 1..=1024 {
        assert!(room.call(id, "plain", "").is_empty());
    }
    assert!(room.call(1025, "plain", "")[0].contains("too many requests wait"));
    room.ns += 1_000_000_000;
    let said = room.cue(ActorEvent::Due);
    assert_eq!(said.len(), 1025);
    assert!(said[1].contains("two 1") && said[1024].contains("two 1024"));
}

#[test]
fn names_that_nobody_knows_do_not_keep_others_from_being_counted() {
    let mut room = EngineFixture::new();
    for id in 0..20_000 {
        assert!(room.call(id, &format!("junk{id}"), "")[0].contains("Unknown tool"));
    }
    assert!(room.call(1, "plain", "")[0].contains("one 1"));
    assert!(room.call(2, "plain", "")[0].contains("one 2"));
}

#[test]
fn operations_that_wait_for_their_client_are_counted() {
    let mut room = EngineFixture::new();
    let state = |said: &[String]| {
        let (_, rest) = said[0].split_once("\"requestState\":\"").unwrap();
        rest[..32].to_owned()
    };
    let states: Vec<String> =
        (0..300).map(|id| state(&room.call(id, "ask", &format!(",{TERMS}")))).collect();
    let mut retry = |state: &str| {
        let more =
            format!(r#","inputResponses":{{"who":{{"x":"y"}}}},"requestState":"{state}",{TERMS}"#);
        room.call(1000, "ask", &more).remove(0)
    };
    assert!(retry(&states[0]).contains("unknown requestState"));
    assert!(retry(&states[299]).contains("\"text\":\"y\""));
    assert!(retry(&states[299]).contains("unknown requestState"));
}

#[test]
fn those_who_listen_are_counted() {
    let mut room = EngineFixture::new();
    let mut listen = |id: usize| {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{TERMS}}}}}"#
        );
        room.cue(ActorEvent::Said(line.as_bytes())).remove(0)
    };
    assert!((0..1024).all(|id| listen(id).contains("acknowledged")));
    assert!(listen(1024).contains("too many subscriptions are open"));
}
