//! Random tests of the engine: whatever concurrent clients do, every request that must be answered
//! is answered exactly once, clients do not affect each other, and a shared phase is entered once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;
use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::time::Timestamp;
use tapegate_scenario::engine::{Engine, EngineNote, EngineSetup};

use crate::harness::scenario;

const SCENARIO: &str = r#"
server: {name: s, version: "1", page_size: 3, state_scope: SCOPE}
baseline:
  tools:
    - tool: {name: plain, description: P, inputSchema: {type: object}}
      response: {content: [{type: text, text: "${phase.name}"}]}
    - tool: {name: row, description: R, inputSchema: {type: object}}
      response: {on_exhausted: cycle, sequence: [{content: [{type: text, text: "${phase.name} ${tool.call_count}"}]}, {error: {code: 1, message: x}}]}
    - tool: {name: slow, description: S, inputSchema: {type: object}}
      response: {before: [{wait: 30ms}, {progress: {progress: 1}}], content: [{type: text, text: "${phase.name}"}]}
    - tool: {name: ask, description: A, inputSchema: {type: object}}
      response: {before: [{send_request: {method: roots/list, as: r, timeout: 40ms}}], content: [{type: text, text: "${reply.r.x} ${phase.name}"}]}
    - tool: {name: late, description: L, inputSchema: {type: object}}
      behavior: {delivery: response_delay, delay_ms: 20}
      response: {content: [{type: text, text: "${phase.name}"}]}
    - tool: {name: drip, description: D, inputSchema: {type: object}}
      behavior: {delivery: slow_loris, byte_delay_ms: 1, chunk_size: 20}
      response: {content: [{type: text, text: "${phase.name}"}]}
    - tool: {name: mute, description: M, inputSchema: {type: object}}
      response: {silent: true}
    - tool: {name: web, description: W, inputSchema: {type: object}}
      response: {handler: {type: http, url: "http://x/", timeout_ms: 100}}
phases:
  - {name: p0, on_enter: [{log: "enter p0"}], advance: {on: tools/call, count: 3}}
  - {name: p1, on_enter: [{send_notification: notifications/tools/list_changed}, {wait: 5ms}, {log: "enter p1"}], advance: {on: "tools/call:late", count: 1, timeout: 200ms}}
  - {name: p2, on_enter: [{log: "enter p2"}], advance: {on: "tools/call:drip", after: 500ms}}
  - {name: p3, on_enter: [{log: "enter p3"}], advance: {on: tools/call}}
  - {name: p4, on_enter: [{log: "enter p4"}]}
"#;

/// An operation of a client.
#[derive(Debug, Clone)]
enum ClientStep {
    /// Sends a request.
    Ask(&'static str, bool),
    /// Cancels the request sent this many requests ago.
    Cancel(usize),
    /// Replies to the server's last request.
    Reply,
    /// A handler finishes.
    Handled,
    Initialized,
    /// Sends something that is not a message.
    Garbage,
}

fn steps() -> impl Strategy<Value = ClientStep> {
    let names = vec![
        "plain", "row", "slow", "ask", "late", "drip", "mute", "web", "nosuch", "@list", "@ping",
        "@no",
    ];
    prop_oneof![
        8 => (proptest::sample::select(names), any::<bool>()).prop_map(|(name, modern)| ClientStep::Ask(name, modern)),
        1 => (0..3usize).prop_map(ClientStep::Cancel),
        2 => Just(ClientStep::Reply),
        2 => Just(ClientStep::Handled),
        1 => Just(ClientStep::Initialized),
        1 => Just(ClientStep::Garbage),
    ]
}

/// Operations, each with the client and the time.
type ClientScript = Vec<(u32, u64, ClientStep)>;

fn scripts() -> impl Strategy<Value = ClientScript> {
    proptest::collection::vec((1..4u32, 0..25u64, steps()), 1..60)
}

/// The recorded output.
#[derive(Default)]
struct RecordedOutput {
    /// Everything that was sent to each client, in order.
    said: BTreeMap<u32, Vec<String>>,
    /// The requests of each client, and whether they must be answered.
    asked: BTreeMap<u32, Vec<(String, bool)>>,
    phases: Vec<String>,
    entered: Vec<String>,
}

struct EngineHarness {
    engine: Engine,
    heard: Rc<RefCell<RecordedOutput>>,
    /// Answers that are not complete yet.
    pieces: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    tickets: BTreeMap<u32, Vec<u64>>,
    questions: BTreeMap<u32, Vec<String>>,
    streams: bool,
    ns: u64,
}

impl EngineHarness {
    fn new(scope: &str, streams: bool) -> Self {
        let heard = Rc::new(RefCell::new(RecordedOutput::default()));
        let noted = Rc::clone(&heard);
        let watch = Rc::new(move |_, _, note: EngineNote<'_>| match note {
            EngineNote::Phase { to, .. } => noted.borrow_mut().phases.push(to.to_owned()),
            EngineNote::Log { message: words, .. } if words.starts_with("enter") => {
                noted.borrow_mut().entered.push(words.to_owned());
            }
            _ => {}
        });
        let setup = EngineSetup { handlers: true, watch, ..EngineSetup::default() };
        let engine = Engine::new(scenario(&SCENARIO.replace("SCOPE", scope)), setup);
        let (pieces, tickets, questions) = Default::default();
        Self { engine, heard, pieces, tickets, questions, streams, ns: 0 }
    }

    fn cue(&mut self, seat: u32, cue: ActorEvent<'_>) {
        let at = Timestamp { wall_us: 0, mono_ns: self.ns };
        let Self { engine, heard, pieces, tickets, questions, .. } = self;
        engine.handle(at, ActorSessionId(seat), cue, &mut |act| {
            let line = match act {
                ActorAction::Say(parts) | ActorAction::Tell { parts, .. } => parts.concat(),
                ActorAction::Raw { about, bytes, ends } => {
                    let key = (seat, about.unwrap_or_default().to_vec());
                    pieces.entry(key.clone()).or_default().extend_from_slice(bytes);
                    if !ends {
                        return;
                    }
                    pieces.remove(&key).unwrap()
                }
                ActorAction::Run { call_id: ticket, .. } => {
                    return tickets.entry(seat).or_default().push(ticket);
                }
                _ => return,
            };
            let line = String::from_utf8(line).unwrap();
            // A cancelled answer may have been cut short.
            let value: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            if value.get("method").is_some() && value.get("id").is_some() {
                questions.entry(seat).or_default().push(value["id"].to_string());
            }
            heard.borrow_mut().said.entry(seat).or_default().push(line);
        });
    }

    /// Runs every client that is due, up to a point in time.
    fn pass(&mut self, until_ns: u64, seats: &[u32]) {
        for _ in 0..100_000 {
            let next = seats
                .iter()
                .filter_map(|seat| Some((self.engine.next_wakeup(ActorSessionId(*seat))?, *seat)))
                .min();
            let Some((due, seat)) = next.filter(|(due, _)| *due <= until_ns) else {
                self.ns = self.ns.max(until_ns);
                return;
            };
            self.ns = self.ns.max(due);
            self.cue(seat, ActorEvent::Due);
        }
        panic!("there is no end to it");
    }

    fn step(&mut self, seat: u32, number: usize, step: &ClientStep) {
        let heard = Rc::clone(&self.heard);
        match step {
            ClientStep::Ask(name, modern) => {
                let id = format!("{}", 1000 + number);
                let meta = match modern {
                    true => {
                        r#","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}"#
                    }
                    false => "",
                };
                let (method, params) = match *name {
                    "@list" => ("tools/list", format!("{{\"cursor\":null{meta}}}")),
                    "@ping" => ("ping", "{}".to_owned()),
                    "@no" => ("no/such", format!("{{\"x\":1{meta}}}")),
                    name => ("tools/call", format!("{{\"name\":\"{name}\"{meta}}}")),
                };
                heard
                    .borrow_mut()
                    .asked
                    .entry(seat)
                    .or_default()
                    .push((id.clone(), *name != "mute"));
                let line = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}"
                );
                self.cue(seat, ActorEvent::Said(line.as_bytes()));
            }
            ClientStep::Cancel(back) => {
                let mut heard = heard.borrow_mut();
                let asked = heard.asked.entry(seat).or_default();
                let Some(place) = asked.len().checked_sub(back + 1) else { return };
                // It may have been answered already, or still be answered.
                asked[place].1 = false;
                let id = asked[place].0.clone();
                drop(heard);
                let line = format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}"
                );
                self.cue(seat, ActorEvent::Said(line.as_bytes()));
            }
            ClientStep::Reply => {
                let Some(id) = self.questions.entry(seat).or_default().pop() else { return };
                let line =
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"x\":\"y\"}}}}");
                self.cue(seat, ActorEvent::Said(line.as_bytes()));
            }
            ClientStep::Handled => {
                let Some(ticket) = self.tickets.entry(seat).or_default().pop() else { return };
                self.cue(
                    seat,
                    ActorEvent::Done { call_id: ticket, outcome: Ok(b"{\"text\":\"t\"}") },
                );
            }
            ClientStep::Initialized => {
                self.cue(
                    seat,
                    ActorEvent::Said(
                        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
                    ),
                );
            }
            ClientStep::Garbage => self.cue(seat, ActorEvent::Said(b"{\"jsonrpc\":\"2.0\",")),
        }
    }
}

/// Runs a script for these clients until everything has finished.
fn play(scope: &str, streams: bool, script: &ClientScript, seats: &[u32]) -> EngineHarness {
    let mut room = EngineHarness::new(scope, streams);
    for seat in seats {
        room.cue(*seat, ActorEvent::Taken { shared: false, streams: room.streams });
    }
    let mut ns = 0;
    for (number, (seat, wait_ms, step)) in script.iter().enumerate() {
        ns += wait_ms * 1_000_000;
        room.pass(ns, seats);
        if seats.contains(seat) {
            room.step(*seat, number, step);
        }
    }
    room.pass(ns + 10_000_000_000, seats);
    assert!(room.pieces.is_empty());
    assert!(seats.iter().all(|seat| !room.engine.is_busy(ActorSessionId(*seat))));
    room
}

/// A line without its random parts.
fn bare(line: &str) -> String {
    match line.split_once("\"requestState\":\"") {
        Some((before, after)) => [before, &after[32..]].concat(),
        None => line.to_owned(),
    }
}

/// Every request is answered exactly once, or at most once if it was cancelled.
fn check_answers(room: &EngineHarness) {
    let heard = room.heard.borrow();
    for (seat, asked) in &heard.asked {
        let messages = heard.said.get(seat).cloned().unwrap_or_default();
        for (id, must) in asked {
            let start = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
            let answers = messages.iter().filter(|line| line.starts_with(&start)).count();
            assert!(answers == 1 || (answers == 0 && !must), "{seat} {id}: {answers} answers");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_is_answered_once_and_nobody_notices_anybody_else(script in scripts(), streams in any::<bool>()) {
        let together = play("per_connection", streams, &script, &[1, 2, 3]);
        check_answers(&together);
        for seat in [1, 2, 3] {
            let alone = play("per_connection", streams, &script, &[seat]);
            let (together, alone) = (together.heard.borrow(), alone.heard.borrow());
            let messages = |heard: &RecordedOutput| heard.said.get(&seat).map(|messages| messages.iter().map(|line| bare(line)).collect::<Vec<_>>());
            prop_assert_eq!(messages(&together), messages(&alone));
        }
    }

    #[test]
    fn a_phase_that_all_share_is_entered_once(script in scripts(), streams in any::<bool>()) {
        let room = play("global", streams, &script, &[1, 2, 3]);
        check_answers(&room);
        let heard = room.heard.borrow();
        let names = ["p1", "p2", "p3", "p4"];
        prop_assert_eq!(&heard.phases[..], &names[..heard.phases.len()]);
        for name in &heard.phases {
            let entered = heard.entered.iter().filter(|message| message.ends_with(name.as_str())).count();
            prop_assert_eq!(entered, 1);
        }
    }

    #[test]
    fn any_bytes_are_heard(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..20)) {
        let mut room = EngineHarness::new("per_connection", false);
        room.cue(1, ActorEvent::Taken { shared: true, streams: false });
        for line in &lines {
            room.cue(1, ActorEvent::Said(line));
        }
    }
}
