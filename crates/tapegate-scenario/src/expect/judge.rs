//! Observes client messages, and reports which expectations hold.

use std::collections::HashMap;

use tapegate_core::actor::Seat;
use tapegate_core::frame::{Body, Envelope, Frame, Kind, elements};
use tapegate_core::json::{member, string};
use tapegate_core::time::At;

use super::sighting::Message;
use super::{Expectation, Rule};

/// How many messages are kept as evidence per expectation; further ones are only counted.
const SEEN_MAX: usize = 20;
/// How many characters of a message are kept.
const EXCERPT_MAX: usize = 400;
/// How many requests to clients are remembered.
const ASKED_MAX: usize = 10_000;

/// Observes client messages and judges them by the expectations.
#[derive(Debug)]
pub struct Judge {
    watches: Vec<Watch>,
    /// The methods of requests sent to clients, by client and id.
    asked: HashMap<(Seat, Vec<u8>), String>,
    heard: u64,
    unread: u64,
}

/// An expectation, and the evidence about it.
#[derive(Debug)]
struct Watch {
    expectation: Expectation,
    /// Whether the message required by `after` has come.
    begun: bool,
    /// Whether the request was sent whose reply it is about, if it is about one.
    put: bool,
    /// Whether a message came in one of its phases; without phases, whether the client did more
    /// than housekeeping.
    reached: bool,
    count: u64,
    seen: Vec<Seen>,
}

/// The results of all expectations.
#[derive(Debug)]
pub struct Verdict {
    /// The result of each expectation, in order.
    pub rulings: Vec<Ruling>,
    /// How many messages clients have sent.
    pub heard: u64,
    /// How many more were over the size limit and not read.
    pub unread: u64,
}

/// The result of one expectation.
#[derive(Debug)]
pub struct Ruling {
    /// The expectation.
    pub expectation: Expectation,
    /// Whether it holds.
    pub outcome: Outcome,
    /// How many messages matched.
    pub count: u64,
    /// The first of them.
    pub seen: Vec<Seen>,
}

/// Whether an expectation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Kept,
    /// It is violated.
    Broken,
    /// The session never got far enough to tell.
    Untested,
}

/// A message that matched an expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its number among all client messages, from 1.
    pub number: u64,
    /// The client that sent it.
    pub seat: Seat,
    /// When it came.
    pub at: At,
    /// The phase in which it came.
    pub phase: String,
    /// Its method, or that of the request it answers.
    pub method: String,
    /// The tool, prompt or resource that it names.
    pub name: Option<String>,
    /// Its beginning.
    pub excerpt: String,
}

impl Judge {
    /// Creates a judge for these expectations.
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

    /// Notes a request to the client. For a sessionless client, `id` is the name of the input
    /// request, as a JSON string.
    pub fn asked(&mut self, seat: Seat, id: &[u8], method: &str) {
        for watch in &mut self.watches {
            watch.put |= watch.expectation.sighting.answers(method);
        }
        if self.asked.len() < ASKED_MAX {
            self.asked.insert((seat, id.to_vec()), method.to_owned());
        }
    }

    /// Notes client messages over the size limit: an expected message may be among them.
    pub fn missed(&mut self, messages: u64) {
        self.unread += messages;
    }

    /// Evaluates one line from a client that is in this phase.
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
        // The id stays known, because a test may look for repeated requests or replies.
        let answered = id.and_then(|id| self.asked.get(&(seat, id.to_vec())).cloned());
        let answers = answered.as_deref();
        self.look(at, seat, &Message { bytes: frame.text(), envelope, phase, answers });
        if let Some(responses) = envelope.and_then(|it| it.params).and_then(input_responses) {
            self.hear_inputs(at, seat, responses, phase);
        }
    }

    /// Evaluates the inputs that a sessionless client sends with its request, each as a message of
    /// its own.
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
            // Only messages after this one count, so this comes last.
            watch.begun |= watch.expectation.after.as_ref().is_some_and(|after| after.is(message));
        }
    }

    /// The results so far.
    pub fn verdict(&self) -> Verdict {
        let all_read = self.unread == 0;
        let rulings = self.watches.iter().map(|watch| watch.ruling(all_read)).collect();
        Verdict { rulings, heard: self.heard, unread: self.unread }
    }
}

impl Expectation {
    /// Whether the expectation counts as tested once this message has come. A client that only
    /// probes the server, as health checks do, was exposed to nothing and is not safe for that
    /// reason.
    fn is_reached_by(&self, message: &Message<'_>) -> bool {
        let by_itself = self.rule == Rule::Never && self.after.is_none();
        let open = by_itself && !self.sighting.has_phases();
        self.sighting.is_in(message.phase) && !(open && message.looks_around())
    }
}

impl Watch {
    /// The result. If messages went unread, a missing match proves nothing.
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
    /// The overall outcome: broken if any expectation is, untested if all are.
    pub fn outcome(&self) -> Outcome {
        let any = |outcome| self.rulings.iter().any(|ruling| ruling.outcome == outcome);
        match (any(Outcome::Broken), any(Outcome::Kept)) {
            (true, _) => Outcome::Broken,
            (false, true) => Outcome::Kept,
            (false, false) => Outcome::Untested,
        }
    }

    /// How many expectations have this outcome.
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

/// The inputs that a sessionless client sends with its request.
fn input_responses(params: &[u8]) -> Option<&[u8]> {
    member(params, "inputResponses")
}
