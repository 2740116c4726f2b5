//! Observes client messages, and reports which expectations hold.

use std::collections::HashMap;

use tapegate_core::actor::ActorSessionId;
use tapegate_core::frame::{Envelope, Frame, FrameBody, MessageKind, elements};
use tapegate_core::json::{member, string};
use tapegate_core::time::Timestamp;

use super::message_pattern::ClientMessage;
use super::{Expectation, ExpectationRule};

/// How many messages are kept as evidence per expectation; further ones are only counted.
const SEEN_MAX: usize = 20;
/// How many characters of a message are kept.
const EXCERPT_MAX: usize = 400;
/// How many requests to clients are remembered.
const ASKED_MAX: usize = 10_000;

/// Observes client messages and judges them by the expectations.
#[derive(Debug)]
pub struct ExpectationJudge {
    watches: Vec<ExpectationWatch>,
    /// The methods of requests sent to clients, by client and id.
    sent_requests: HashMap<(ActorSessionId, Vec<u8>), String>,
    heard: u64,
    unread: u64,
}

/// An expectation, and the evidence about it.
#[derive(Debug)]
struct ExpectationWatch {
    expectation: Expectation,
    /// Whether the message required by `after` has come.
    begun: bool,
    /// Whether the request was sent whose reply it is about, if it is about one.
    put: bool,
    /// Whether a message came in one of its phases; without phases, whether the client did more
    /// than housekeeping.
    reached: bool,
    count: u64,
    seen: Vec<SeenMessage>,
}

/// The results of all expectations.
#[derive(Debug)]
pub struct ExpectationReport {
    /// The result of each expectation, in order.
    pub rulings: Vec<ExpectationResult>,
    /// How many messages clients have sent.
    pub heard: u64,
    /// How many more were over the size limit and not read.
    pub unread: u64,
}

/// The result of one expectation.
#[derive(Debug)]
pub struct ExpectationResult {
    pub expectation: Expectation,
    /// Whether it holds.
    pub outcome: ExpectationOutcome,
    /// How many messages matched.
    pub count: u64,
    /// The first of them.
    pub seen: Vec<SeenMessage>,
}

/// Whether an expectation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectationOutcome {
    /// It holds.
    Kept,
    /// It is violated.
    Broken,
    /// The session never got far enough to tell.
    Untested,
}

/// A message that matched an expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenMessage {
    /// Its number among all client messages, from 1.
    pub number: u64,
    /// The client that sent it.
    pub session: ActorSessionId,
    /// When it came.
    pub at: Timestamp,
    /// The phase in which it came.
    pub phase: String,
    /// Its method, or that of the request it answers.
    pub method: String,
    /// The tool, prompt or resource that it names.
    pub name: Option<String>,
    /// Its beginning.
    pub excerpt: String,
}

impl ExpectationJudge {
    /// Creates a judge for these expectations.
    pub fn new(expectations: &[Expectation]) -> Self {
        let watch = |expectation: &Expectation| ExpectationWatch {
            expectation: expectation.clone(),
            // Without a condition, it applies from the start.
            begun: expectation.after.is_none(),
            put: !expectation.pattern.has_replies(),
            reached: false,
            count: 0,
            seen: Vec::new(),
        };
        let watches = expectations.iter().map(watch).collect();
        Self { watches, sent_requests: HashMap::new(), heard: 0, unread: 0 }
    }

    /// Notes a request to the client. For a sessionless client, `id` is the name of the input
    /// request, as a JSON string.
    pub fn note_client_request(&mut self, session: ActorSessionId, id: &[u8], method: &str) {
        for watch in &mut self.watches {
            watch.put |= watch.expectation.pattern.answers(method);
        }
        // A scenario may flood its client with requests.
        if self.sent_requests.len() < ASKED_MAX {
            // Beyond the limit, replies no longer count as replies to a method; everything else is
            // still judged.
            self.sent_requests.insert((session, id.to_vec()), method.to_owned());
        }
    }

    /// Notes client messages over the size limit: an expected message may be among them.
    pub fn note_oversize(&mut self, messages: u64) {
        self.unread += messages;
    }

    /// Evaluates one line from a client that is in this phase.
    pub fn receive_line(
        &mut self,
        at: Timestamp,
        session: ActorSessionId,
        bytes: &[u8],
        phase: &str,
    ) {
        let frame = Frame::read(bytes);
        match frame.body() {
            FrameBody::Batch => {
                elements(bytes)
                    .iter()
                    .for_each(|frame| self.receive_message(at, session, frame, phase));
            }
            _ => self.receive_message(at, session, &frame, phase),
        }
    }

    fn receive_message(
        &mut self,
        at: Timestamp,
        session: ActorSessionId,
        frame: &Frame<'_>,
        phase: &str,
    ) {
        // Messages of a batch count one by one, as evidence refers to them by number.
        self.heard += 1;
        let envelope = frame.envelope();
        let answer =
            envelope.filter(|it| matches!(it.kind(), MessageKind::Response | MessageKind::Error));
        let id = answer.and_then(|it| it.id);
        // The id stays known, because a test may look for repeated requests or replies.
        let answered = id.and_then(|id| self.sent_requests.get(&(session, id.to_vec())).cloned());
        let answers = answered.as_deref();
        self.evaluate_message(
            at,
            session,
            &ClientMessage { bytes: frame.text(), envelope, phase, answers },
        );
        if let Some(responses) = envelope.and_then(|it| it.params).and_then(input_responses) {
            self.receive_inputs(at, session, responses, phase);
        }
    }

    /// Evaluates the inputs that a sessionless client sends with its request, each as a message of
    /// its own.
    fn receive_inputs(
        &mut self,
        at: Timestamp,
        session: ActorSessionId,
        responses: &[u8],
        phase: &str,
    ) {
        // Copied, because an answered request is removed on the way.
        let open: Vec<(Vec<u8>, String)> = self
            .sent_requests
            .iter()
            .filter(|((who, _), _)| *who == session)
            .map(|((_, name), method)| (name.clone(), method.clone()))
            .collect();
        for (name, method) in open {
            let word = string(&name).map(|word| word.into_owned());
            let Some(result) = word.and_then(|word| member(responses, &word)) else { continue };
            // An input is sent once; a later request with the same name asks again.
            self.sent_requests.remove(&(session, name.clone()));
            let message = [b"{\"id\":", &name[..], b",\"result\":", result, b"}"].concat();
            let frame = Frame::read(&message);
            let envelope: Option<&Envelope<'_>> = frame.envelope();
            let answers = Some(method.as_str());
            self.evaluate_message(
                at,
                session,
                &ClientMessage { bytes: &message, envelope, phase, answers },
            );
        }
    }

    fn evaluate_message(
        &mut self,
        at: Timestamp,
        session: ActorSessionId,
        message: &ClientMessage<'_>,
    ) {
        let number = self.heard;
        for watch in &mut self.watches {
            watch.reached |= watch.expectation.is_reached_by(message);
            if watch.begun && watch.expectation.pattern.matches(message) {
                watch.count += 1;
                // The first ones show how it began.
                if watch.seen.len() < SEEN_MAX {
                    watch.seen.push(SeenMessage::new(number, session, at, message));
                }
            }
            // Only messages after this one count, so this comes last.
            watch.begun |=
                watch.expectation.after.as_ref().is_some_and(|after| after.matches(message));
        }
    }

    /// The results so far.
    pub fn verdict(&self) -> ExpectationReport {
        let all_read = self.unread == 0;
        let rulings = self.watches.iter().map(|watch| watch.outcome(all_read)).collect();
        ExpectationReport { rulings, heard: self.heard, unread: self.unread }
    }
}

impl Expectation {
    /// Whether the expectation counts as tested once this message has come. A client that only
    /// probes the server, as health checks do, was exposed to nothing and is not safe for that
    /// reason.
    fn is_reached_by(&self, message: &ClientMessage<'_>) -> bool {
        let by_itself = self.rule == ExpectationRule::Never && self.after.is_none();
        let open = by_itself && !self.pattern.has_phases();
        self.pattern.is_in(message.phase) && !(open && message.is_housekeeping())
    }
}

impl ExpectationWatch {
    /// The result. If messages went unread, a missing match proves nothing.
    fn outcome(&self, all_read: bool) -> ExpectationResult {
        let Self { expectation, begun, put, reached, count, seen } = self;
        let many = *count >= expectation.count;
        let outcome = match expectation.rule {
            // Before everything else: a violation cannot be undone by a test that ended early.
            ExpectationRule::Never if many => ExpectationOutcome::Broken,
            ExpectationRule::Must if many => ExpectationOutcome::Kept,
            // After the matches above: evidence counts even if the session ended early. Only the
            // lack of evidence needs a full test.
            _ if !begun || !put || !reached || !all_read => ExpectationOutcome::Untested,
            ExpectationRule::Never => ExpectationOutcome::Kept,
            ExpectationRule::Must => ExpectationOutcome::Broken,
        };
        ExpectationResult {
            expectation: expectation.clone(),
            outcome,
            count: *count,
            seen: seen.clone(),
        }
    }
}

impl ExpectationReport {
    /// The overall outcome: broken if any expectation is, untested if all are.
    pub fn outcome(&self) -> ExpectationOutcome {
        let any = |outcome| self.rulings.iter().any(|ruling| ruling.outcome == outcome);
        match (any(ExpectationOutcome::Broken), any(ExpectationOutcome::Kept)) {
            (true, _) => ExpectationOutcome::Broken,
            (false, true) => ExpectationOutcome::Kept,
            (false, false) => ExpectationOutcome::Untested,
        }
    }

    /// How many expectations have this outcome.
    pub fn count(&self, outcome: ExpectationOutcome) -> usize {
        self.rulings.iter().filter(|ruling| ruling.outcome == outcome).count()
    }
}

impl SeenMessage {
    fn new(
        number: u64,
        session: ActorSessionId,
        at: Timestamp,
        message: &ClientMessage<'_>,
    ) -> Self {
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
            session,
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
