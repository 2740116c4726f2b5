//! Whatever a gate decides and in whatever order things happen: nothing passes without its
//! permission, no request is left waiting, and none is answered twice.

mod scripted_gate;

use std::collections::BTreeMap;

use proptest::prelude::*;
use scripted_gate::{GateAnswer, ScriptedGate, refusal};
use tapegate_core::frame::Frame;
use tapegate_core::gate::{Approval, HoldId, HoldOutcome, InputQuestion, UserQuestion};
use tapegate_core::relay::{HELD_MAX, HoldsEndedCause, Relay, RelayAction, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{
    Dialect, EntryWriter, EntryWriterOptions, TapeAudit, TapeHeader, TapeReader, TapeSeverity,
};
use tapegate_core::time::Timestamp;

/// A step, with the gate's verdict about it. Numbers choose among what is available.
#[derive(Debug, Clone)]
enum GateStep {
    Ask(Side, GateAnswer),
    Tell(Side, GateAnswer),
    /// Answers a request that was forwarded and not answered.
    Answer(Side, usize, GateAnswer),
    /// Answers any request, forwarded or not.
    Guess(usize),
    Cancel(usize),
    Batch(GateAnswer),
    Garbage(Side, GateAnswer),
    Approve(usize, GateAnswer),
    Deny(usize),
    /// The client's user is asked about a held call, by a request or in its result.
    Question(usize, bool),
    /// The client answers a question, which may be over.
    AnswerQuestion(usize),
    Wait(u64),
    Unheld,
    Gone,
}

fn word() -> impl Strategy<Value = GateAnswer> {
    prop_oneof![
        4 => Just(GateAnswer::Forward),
        1 => Just(GateAnswer::Rewrite),
        2 => Just(GateAnswer::Refuse),
        4 => Just(GateAnswer::Hold),
        1 => Just(GateAnswer::Trust),
    ]
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![3 => Just(Side::Client), 1 => Just(Side::Server)]
}

fn step() -> impl Strategy<Value = GateStep> {
    prop_oneof![
        12 => (side(), word()).prop_map(|(side, word)| GateStep::Ask(side, word)),
        2 => (side(), word()).prop_map(|(side, word)| GateStep::Tell(side, word)),
        6 => (side(), any::<usize>(), word()).prop_map(|(side, at, word)| GateStep::Answer(side, at, word)),
        1 => any::<usize>().prop_map(GateStep::Guess),
        3 => any::<usize>().prop_map(GateStep::Cancel),
        1 => word().prop_map(GateStep::Batch),
        1 => (side(), word()).prop_map(|(side, word)| GateStep::Garbage(side, word)),
        5 => (any::<usize>(), word()).prop_map(|(at, word)| GateStep::Approve(at, word)),
        3 => any::<usize>().prop_map(GateStep::Deny),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(at, inside)| GateStep::Question(at, inside)),
        3 => any::<usize>().prop_map(GateStep::AnswerQuestion),
        3 => (0u64..20_000).prop_map(GateStep::Wait),
        1 => Just(GateStep::Unheld),
        1 => Just(GateStep::Gone),
    ]
}

/// A tape of one dialect, with its anomalies.
struct DialectTape {
    entry_writer: EntryWriter,
    tape: Vec<u8>,
    beside: Vec<u8>,
}

impl DialectTape {
    fn open(dialect: Dialect) -> Self {
        let options = EntryWriterOptions { dialect, raw: false, shared: false };
        let mut entry_writer = EntryWriter::new(options, None, Timestamp::default());
        let (mut tape, beside) = (Vec::new(), Vec::new());
        let header = TapeHeader {
            version: "1.0".into(),
            recorded_at: "2026-01-01T00:00:00.000000Z".into(),
            upstream: "cmd".into(),
            tool_version: "0".into(),
            ..TapeHeader::default()
        };
        entry_writer.open(&header, &mut tape);
        Self { entry_writer, tape, beside }
    }

    /// The errors found in it.
    fn errors(mut self, at: Timestamp) -> Vec<String> {
        self.entry_writer.close(at, &mut self.tape);
        let mut reader = TapeReader::new(self.tape.as_slice());
        let mut audit = TapeAudit::default();
        while let Some(next) = reader.next() {
            audit.line(&next);
        }
        let (findings, _) = audit.finish();
        let errors = findings.into_iter().filter(|one| one.severity == TapeSeverity::Error);
        errors.map(|one| format!("{one:?}")).collect()
    }
}

/// A session under test.
struct GatedSession {
    tapes: [DialectTape; 2],
    relay: Relay,
    gate: ScriptedGate,
    ms: u64,
    serial: u64,
    /// Requests: the sender, whether it was forwarded, how often answered, whether cancelled.
    asked: BTreeMap<u64, TrackedRequest>,
    /// The last serial number that was forwarded at once, to the server and to the client.
    last: [u64; 2],
    /// The questions that were sent, and whether each can still be answered.
    questions: BTreeMap<String, bool>,
}

#[derive(Debug)]
struct TrackedRequest {
    by: Side,
    forwarded: bool,
    answers: usize,
    cancelled: bool,
}

/// The number after `key` in a text.
fn number(text: &str, key: &str) -> Option<u64> {
    let from = text.find(key)? + key.len();
    let digits: String = text[from..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

impl Default for GatedSession {
    fn default() -> Self {
        let tapes = [Dialect::Thoughtjack, Dialect::Overwatch].map(DialectTape::open);
        let (relay, gate, asked) = (Relay::default(), ScriptedGate::default(), BTreeMap::new());
        let questions = BTreeMap::new();
        Self { tapes, relay, gate, ms: 0, serial: 0, asked, last: [0; 2], questions }
    }
}

impl GatedSession {
    fn now(&self) -> Timestamp {
        Timestamp { wall_us: self.ms as i64 * 1000, mono_ns: self.ms * 1_000_000 }
    }

    fn receive(&mut self, from: Side, text: &str, word: GateAnswer) {
        self.gate.word = Some(word);
        // The relay reads what the gate needs, if whoever scanned the message left it out.
        let (lane, bytes) = (Lane::ONLY, text.as_bytes());
        let frame = &match text.len() % 2 {
            0 => Frame::read(bytes),
            _ => Frame::read_without_gate_details(bytes),
        };
        let judged = self.gate.judged;
        self.feed(RelayEvent::Received { lane, from, frame, terminated: true });
        assert_eq!(self.gate.judged, judged + 1, "everything is judged, once");
    }

    fn feed(&mut self, event: RelayEvent<'_>) {
        let at = self.now();
        let tapes = &mut self.tapes;
        let at_once = matches!(event, RelayEvent::Received { .. });
        let mut actions = Vec::new();
        let mut recorded = 0;
        self.relay.handle(at, event, &mut self.gate, &mut |action| match action {
            RelayAction::Record(entry) => {
                recorded += 1;
                for DialectTape { entry_writer: scribe, tape, beside } in tapes.iter_mut() {
                    scribe.write(entry, tape, beside);
                }
            }
            RelayAction::Held { .. } | RelayAction::HeldAgain { .. } | RelayAction::Consumed => {}
            RelayAction::Forward { to, message, .. } => {
                assert!(!at_once || recorded == 1, "recorded, then sent");
                actions.push((to, message.bytes().to_vec(), true));
            }
            RelayAction::Answer { to, message, .. } => {
                assert!(recorded > 0, "recorded, then sent");
                actions.push((to, message.bytes().to_vec(), false));
            }
        });
        for (to, bytes, forwarded) in actions {
            let text = String::from_utf8(bytes.clone()).unwrap();
            match forwarded {
                true => self.forwarded(to, &text, at_once),
                false => self.answered(to, &text),
            }
        }
        let open = self.questions.values().filter(|is_open| **is_open).count();
        assert!(open <= self.relay.held_calls(), "a question outlives its call");
        assert!(self.relay.held_calls() <= HELD_MAX);
        assert_eq!(self.relay.held_calls(), self.gate.held.len(), "the gate knows of every hold");
    }

    fn forwarded(&mut self, to: Side, text: &str, at_once: bool) {
        assert!(self.gate.permitted.remove(text.as_bytes()), "without a permit: {text}");
        if at_once && let Some(serial) = number(text, "\"s\":") {
            let last = &mut self.last[usize::from(to == Side::Client)];
            assert!(*last < serial, "order is kept: {text}");
            *last = serial;
        }
        let id = number(text, "\"id\":");
        if text.contains("method") {
            for id in text.split("\"id\":").skip(1).filter_map(|rest| number(rest, "")) {
                let asked = self.asked.get_mut(&id).expect("asked");
                assert!(!asked.cancelled, "taken back, and sent all the same");
                assert!(!asked.forwarded && asked.answers == 0, "once: {text}");
                asked.forwarded = true;
            }
        } else if let Some(asked) = id.and_then(|id| self.asked.get_mut(&id)) {
            asked.answers += 1;
        }
    }

    fn answered(&mut self, to: Side, text: &str) {
        if text.contains("notifications/progress") {
            return;
        }
        if let Some((_, rest)) = text.split_once("\"question-") {
            let name = rest.split('"').next().unwrap().to_owned();
            assert_eq!(to, Side::Client);
            match text.contains("elicitation/create") {
                true => assert!(self.questions.insert(name, true).is_none(), "asked twice"),
                false => assert_eq!(self.questions.insert(name, false), Some(true), "{text}"),
            }
            return;
        }
        for id in text.split("\"id\":").skip(1).filter_map(|rest| number(rest, "")) {
            let asked = self.asked.get_mut(&id).expect("asked");
            assert_eq!(asked.by, to);
            assert!(!asked.cancelled, "taken back, and answered by us");
            asked.answers += 1;
        }
    }

    fn ask(&mut self, by: Side) -> (u64, String) {
        self.serial += 1;
        let id = self.serial;
        self.asked
            .insert(id, TrackedRequest { by, forwarded: false, answers: 0, cancelled: false });
        let meta = format!("{{\"progressToken\":{id}}}");
        (id, format!(r#"{{"s":{id},"id":{id},"method":"m","params":{{"_meta":{meta}}}}}"#))
    }

    /// One of the requests that satisfy `is`, if there is any.
    fn choose(&self, at: usize, is: impl Fn(&TrackedRequest) -> bool) -> Option<u64> {
        let ids: Vec<u64> = self.asked.iter().filter(|one| is(one.1)).map(|one| *one.0).collect();
        ids.get(at.checked_rem(ids.len())?).copied()
    }

    fn unhold(&mut self) {
        let cause = HoldsEndedCause::SessionEnded;
        self.feed(RelayEvent::HoldsEnded { lane: None, reason: "over", cause, keeps_lists: false });
        assert_eq!(self.relay.held_calls(), 0);
    }

    fn take(&mut self, step: &GateStep) {
        match *step {
            GateStep::Ask(side, word) => {
                let (_, text) = self.ask(side);
                self.receive(side, &text, word);
            }
            GateStep::Tell(side, word) => {
                self.serial += 1;
                self.receive(side, &format!(r#"{{"s":{},"method":"n"}}"#, self.serial), word);
            }
            GateStep::Answer(side, at, word) => {
                let open =
                    |one: &TrackedRequest| one.by != side && one.forwarded && one.answers == 0;
                let Some(id) = self.choose(at, open) else { return };
                self.serial += 1;
                let text = format!(r#"{{"s":{},"result":{{}},"id":{id}}}"#, self.serial);
                self.receive(side, &text, word);
            }
            GateStep::Guess(at) => {
                let held = |one: &TrackedRequest| {
                    one.by == Side::Client && !one.forwarded && one.answers == 0 && !one.cancelled
                };
                let Some(id) = self.choose(at, held) else { return };
                self.receive(
                    Side::Server,
                    &format!(r#"{{"result":{{}},"id":{id}}}"#),
                    GateAnswer::Forward,
                );
            }
            GateStep::Cancel(at) => {
                let open = |one: &TrackedRequest| {
                    one.by == Side::Client && one.answers == 0 && !one.cancelled
                };
                let Some(id) = self.choose(at, open) else { return };
                self.cancel(id);
            }
            GateStep::Batch(word) => {
                let ((_, one), (_, two)) = (self.ask(Side::Client), self.ask(Side::Client));
                self.receive(Side::Client, &format!("[{one},{two}]"), word);
            }
            GateStep::Garbage(side, word) => self.receive(side, "no message", word),
            GateStep::Approve(at, word) => self.settle(at, Some(word)),
            GateStep::Deny(at) => self.settle(at, None),
            GateStep::Question(at, inside) => self.question(at, inside),
            GateStep::AnswerQuestion(at) => self.answer_question(at),
            GateStep::Wait(ms) => {
                self.ms += ms;
                self.feed(RelayEvent::Tick);
                let due = self.relay.next_due_ns();
                assert!(due.is_none_or(|due| due > self.ms * 1_000_000), "nothing is overdue");
            }
            GateStep::Unheld => self.unhold(),
            GateStep::Gone => {
                self.feed(RelayEvent::SideGone {
                    lane: None,
                    side: Side::Server,
                    reason: "gone",
                    error_type: None,
                });
                // The requests of the server are forgotten with it.
                self.asked.retain(|_, one| one.by == Side::Client);
                assert_eq!(
                    (self.relay.held_calls(), self.relay.unanswered_requests(Side::Client)),
                    (0, 0)
                );
            }
        }
    }

    fn cancel(&mut self, id: u64) {
        self.serial += 1;
        let (method, serial) = ("notifications/cancelled", self.serial);
        let text = format!(r#"{{"s":{serial},"method":"{method}","params":{{"requestId":{id}}}}}"#);
        let asked = &self.asked[&id];
        let (sent, before) = (asked.forwarded, self.gate.held.len());
        self.receive(Side::Client, &text, GateAnswer::Forward);
        let swallowed = self.gate.permitted.remove(text.as_bytes());
        assert_eq!(swallowed, !sent, "what was never sent need not be taken back");
        assert_eq!(before - self.gate.held.len(), usize::from(!sent));
        self.asked.get_mut(&id).expect("asked").cancelled = true;
    }

    /// Has the client's user asked about a held call, if there is any.
    fn question(&mut self, at: usize, inside: bool) {
        let tickets: Vec<u64> = self.gate.held.keys().copied().collect();
        let Some(place) = at.checked_rem(tickets.len()) else { return };
        let hold_id = HoldId(tickets[place]);
        self.serial += 1;
        let question = UserQuestion::new(&format!("question-{}", self.serial), "may it?", false);
        let outcome = match inside {
            true => HoldOutcome::AskInResult(Box::new(InputQuestion::new(question, String::new()))),
            false => HoldOutcome::AskUser(Box::new(question)),
        };
        self.feed(RelayEvent::HoldSettled { hold_id, outcome });
    }

    /// Answers a question; only the first answer to an open one is heard, and none is sent on.
    fn answer_question(&mut self, at: usize) {
        let Some(place) = at.checked_rem(self.questions.len()) else { return };
        let (name, is_open) = self.questions.iter().nth(place).unwrap();
        let (name, is_open) = (name.clone(), *is_open);
        let text = format!(r#"{{"result":{{"action":"decline"}},"id":"question-{name}"}}"#);
        let before = (self.gate.judged, self.gate.heard);
        let frame = Frame::read(text.as_bytes());
        self.questions.insert(name, false);
        let (lane, from, terminated) = (Lane::ONLY, Side::Client, true);
        self.feed(RelayEvent::Received { lane, from, frame: &frame, terminated });
        let heard = before.1 + usize::from(is_open);
        assert_eq!((self.gate.judged, self.gate.heard), (before.0, heard));
    }

    fn settle(&mut self, at: usize, word: Option<GateAnswer>) {
        let tickets: Vec<u64> = self.gate.held.keys().copied().collect();
        let Some(place) = at.checked_rem(tickets.len()) else { return };
        let ticket = HoldId(tickets[place]);
        self.gate.word = word;
        let settlement = match word {
            Some(_) => HoldOutcome::Approved(Approval { hold_id: ticket, by: "me".to_owned() }),
            None => {
                self.gate.held.remove(&ticket.0);
                HoldOutcome::Refused(refusal())
            }
        };
        self.feed(RelayEvent::HoldSettled { hold_id: ticket, outcome: settlement });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn nothing_passes_without_a_permit_and_nobody_waits_for_ever(
        steps in proptest::collection::vec(step(), 0..200)
    ) {
        let mut world = GatedSession::default();
        for step in &steps {
            world.take(step);
            for (id, one) in &world.asked {
                prop_assert!(one.answers <= 1, "{id} was answered {} times", one.answers);
            }
        }
        world.take(&GateStep::Gone);
        for (id, one) in &world.asked {
            prop_assert!(one.answers == 1 || one.cancelled, "{id} waits for ever: {one:?}");
        }
        let at = world.now();
        for tape in world.tapes {
            prop_assert_eq!(tape.errors(at), Vec::<String>::new());
        }
    }
}

#[test]
fn the_call_after_the_last_that_can_be_held_is_refused() {
    let mut world = GatedSession::default();
    for _ in 0..=HELD_MAX {
        world.take(&GateStep::Ask(Side::Client, GateAnswer::Hold));
    }
    assert_eq!(world.relay.held_calls(), HELD_MAX);
    let refused: Vec<u64> =
        world.asked.iter().filter(|one| one.1.answers == 1).map(|one| *one.0).collect();
    assert_eq!(refused, [HELD_MAX as u64 + 1]);
}
