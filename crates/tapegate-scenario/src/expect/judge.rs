//! Hears what clients say, and says in the end which expectations hold.

use std::collections::HashMap;

use tapegate_core::actor::Seat;
use tapegate_core::frame::{Body, Envelope, Frame, Kind, elements};
use tapegate_core::json::{member, string};
use tapegate_core::time::At;

use super::sighting::Message;
use super::{Expectation, Rule};

/// How many messages are kept of each expectation; the rest is counted.
const SEEN_MAX: usize = 20;
/// How many letters of a message are kept.
const EXCERPT_MAX: usize = 400;
/// How many open requests of ours are remembered.
const ASKED_MAX: usize = 10_000;

/// Hears what clients say.
#[derive(Debug)]
pub struct Judge {
    watches: Vec<Watch>,
    /// What we have asked at a seat, by id.
    asked: HashMap<(Seat, Vec<u8>), String>,
    heard: u64,
    unread: u64,
}

/// An expectation, and what was heard about it.
#[derive(Debug)]
struct Watch {
    expectation: Expectation,
    /// Whether what must come before has come.
    begun: bool,
    /// Whether the question was put that it is about, if it is about one.
    put: bool,
    /// Whether a message came in a phase that it is about; without phases, whether it came to more
    /// than a look around.
    reached: bool,
    count: u64,
    seen: Vec<Seen>,
}

/// What came of everything.
#[derive(Debug)]
pub struct Verdict {
    /// What came of each expectation, in their order.
    pub rulings: Vec<Ruling>,
    /// How many messages clients have sent.
    pub heard: u64,
    /// How many besides were over the limit, so that nobody has read them.
    pub unread: u64,
}

/// What came of one expectation.
#[derive(Debug)]
pub struct Ruling {
    /// The expectation.
    pub expectation: Expectation,
    /// Whether it holds.
    pub outcome: Outcome,
    /// How many messages it is about.
    pub count: u64,
    /// The first of them.
    pub seen: Vec<Seen>,
}

/// Whether something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Kept,
    /// It does not.
    Broken,
    /// It did not come to that: it was not tested.
    Untested,
}

/// A message that an expectation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Which of all the messages of clients, from 1.
    pub number: u64,
    /// Who sent it.
    pub seat: Seat,
    /// When it came.
    pub at: At,
    /// The phase it came in.
    pub phase: String,
    /// Its method, or that of the request it answers.
    pub method: String,
    /// The tool, prompt or resource that it is about.
    pub name: Option<String>,
    /// How it begins.
    pub excerpt: String,
}

impl Judge {
    /// A judge that goes by these expectations.
    pub fn new(expectations: &[Expectation]) -> Self {
        let watch = |expectation: &Expectation| Watch {
            expectation: expectation.clone(),
            begun: expectation.after.is_none(),
            put: !expectation.sighting.has_replies(),
            reached: false,
            count: 0,
            seen: Vec::new(),
        };
        let watches = expectations.iter().map(watch).collect();
        Self { watches, asked: HashMap::new(), heard: 0, unread: 0 }
    }

    /// Notes that the client was asked something: by a request with this id, or, where it has no
    /// session, by an input request of this name, which is a string in JSON too.
    pub fn asked(&mut self, seat: Seat, id: &[u8], method: &str) {
        for watch in &mut self.watches {
            watch.put |= watch.expectation.sighting.answers(method);
        }
        if self.asked.len() < ASKED_MAX {
            self.asked.insert((seat, id.to_vec()), method.to_owned());
        }
    }

    /// Notes that messages of clients were over the limit: what is expected may be in them.
    pub fn missed(&mut self, messages: u64) {
        self.unread += messages;
    }

    /// Hears one line of a client, who is in this phase.
    pub fn hear(&mut self, at: At, seat: Seat, bytes: &[u8], phase: &str) {
        let frame = Frame::read(bytes);
        match frame.body() {
            Body::Batch => {
                elements(bytes).iter().for_each(|frame| self.hear_one(at, seat, frame, phase));
            }
            _ => self.hear_one(at, seat, &frame, phase),
        }
    }

    fn hear_one(&mut self, at: At, seat: Seat, frame: &Frame<'_>, phase: &str) {
        self.heard += 1;
        let envelope = frame.envelope();
        let answer = envelope.filter(|it| matches!(it.kind(), Kind::Response | Kind::Error));
        let id = answer.and_then(|it| it.id);
        // An id may be asked and answered more than once, which may be what is looked for.
        let answered = id.and_then(|id| self.asked.get(&(seat, id.to_vec())).cloned());
        let answers = answered.as_deref();
        self.look(at, seat, &Message { bytes: frame.text(), envelope, phase, answers });
        if let Some(responses) = envelope.and_then(|it| it.params).and_then(input_responses) {
            self.hear_inputs(at, seat, responses, phase);
        }
    }

    /// Hears the answers that a client without sessions sends with its request, each as if it
    /// were a message.
    fn hear_inputs(&mut self, at: At, seat: Seat, responses: &[u8], phase: &str) {
        let open: Vec<(Vec<u8>, String)> = self
            .asked
            .iter()
            .filter(|((who, _), _)| *who == seat)
            .map(|((_, name), method)| (name.clone(), method.clone()))
            .collect();
        for (name, method) in open {
            let word = string(&name).map(|word| word.into_owned());
            let Some(result) = word.and_then(|word| member(responses, &word)) else { continue };
            self.asked.remove(&(seat, name.clone()));
            let message = [b"{\"id\":", &name[..], b",\"result\":", result, b"}"].concat();
            let frame = Frame::read(&message);
            let envelope: Option<&Envelope<'_>> = frame.envelope();
            let answers = Some(method.as_str());
            self.look(at, seat, &Message { bytes: &message, envelope, phase, answers });
        }
    }

    fn look(&mut self, at: At, seat: Seat, message: &Message<'_>) {
        let number = self.heard;
        for watch in &mut self.watches {
            watch.reached |= watch.expectation.is_reached_by(message);
            if watch.begun && watch.expectation.sighting.is(message) {
                watch.count += 1;
                if watch.seen.len() < SEEN_MAX {
                    watch.seen.push(Seen::new(number, seat, at, message));
                }
            }
            // What comes before is not what comes after.
            watch.begun |= watch.expectation.after.as_ref().is_some_and(|after| after.is(message));
        }
    }

    /// What came of everything, so far.
    pub fn verdict(&self) -> Verdict {
        let all_read = self.unread == 0;
        let rulings = self.watches.iter().map(|watch| watch.ruling(all_read)).collect();
        Verdict { rulings, heard: self.heard, unread: self.unread }
    }
}

impl Expectation {
    /// Whether something can be said once this message has come. Who only looks around, as clients
    /// do to see whether a server is well, has been tempted by nothing and is not safe for that.
    fn is_reached_by(&self, message: &Message<'_>) -> bool {
        let by_itself = self.rule == Rule::Never && self.after.is_none();
        let open = by_itself && !self.sighting.has_phases();
        self.sighting.is_in(message.phase) && !(open && message.looks_around())
    }
}

impl Watch {
    /// What came of it. What was not seen may be in a message that nobody has read.
    fn ruling(&self, all_read: bool) -> Ruling {
        let Self { expectation, begun, put, reached, count, seen } = self;
        let many = *count >= expectation.count;
        let outcome = match expectation.rule {
            Rule::Never if many => Outcome::Broken,
            Rule::Must if many => Outcome::Kept,
            _ if !begun || !put || !reached || !all_read => Outcome::Untested,
            Rule::Never => Outcome::Kept,
            Rule::Must => Outcome::Broken,
        };
        Ruling { expectation: expectation.clone(), outcome, count: *count, seen: seen.clone() }
    }
}

impl Verdict {
    /// What came of all of them together: broken if one is, untested if all are.
    pub fn outcome(&self) -> Outcome {
        let any = |outcome| self.rulings.iter().any(|ruling| ruling.outcome == outcome);
        match (any(Outcome::Broken), any(Outcome::Kept)) {
            (true, _) => Outcome::Broken,
            (false, true) => Outcome::Kept,
            (false, false) => Outcome::Untested,
        }
    }

    /// How many have this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.rulings.iter().filter(|ruling| ruling.outcome == outcome).count()
    }
}

impl Seen {
    fn new(number: u64, seat: Seat, at: At, message: &Message<'_>) -> Self {
        let envelope = message.envelope;
        let method = envelope.and_then(|it| it.method).map(|method| method.decode().into_owned());
        let answers = message.answers.map(|method| format!("reply to {method}"));
        let name = envelope.and_then(|it| it.name.or(it.uri));
        let text = String::from_utf8_lossy(message.bytes);
        let mut excerpt: String = text.chars().take(EXCERPT_MAX).collect();
        if excerpt.len() < text.len() {
            excerpt.push('…');
        }
        Self {
            number,
            seat,
            at,
            phase: message.phase.to_owned(),
            method: method.or(answers).unwrap_or_else(|| "no method".to_owned()),
            name: name.map(|name| name.decode().into_owned()),
            excerpt,
        }
    }
}

/// The answers that a client without sessions sends with its request.
fn input_responses(params: &[u8]) -> Option<&[u8]> {
    member(params, "inputResponses")
}
