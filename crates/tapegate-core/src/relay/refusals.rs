//! Refused messages: how they are recorded, and who gets an error.
//!
//! The sender of a refused request gets one error; the sender of anything that expects no answer is not
//! told. Refused requests and notifications of the client keep their numbers on the tape, so that an
//! answer can refer to them; everything else is recorded as not delivered.

use std::borrow::Cow;

use super::holds::Held;
use super::own_message::OwnMessage;
use super::{Action, CODE_GONE, CODE_TOO_LARGE, Emit, Relay, Way, answer, answer_with};
use crate::frame::{self, Body, Envelope, Frame, Kind};
use crate::gate::Refusal;
use crate::lines::Oversize;
use crate::side::Side;
use crate::tape::{Element, Fate, Reply, UNDELIVERED, What};
use crate::time::At;

impl Relay {
    /// Records a refused message, and sends an error to the side that waits for an answer because of
    /// it.
    pub(super) fn refuse(
        &mut self,
        way: Way,
        frame: &Frame<'_>,
        refusal: &Refusal,
        emit: &mut Emit<'_, '_>,
    ) {
        match frame.body() {
            Body::Message(said) => self.refuse_message(way, frame.bytes(), said, refusal, emit),
            Body::Batch => self.refuse_batch(way, frame.bytes(), refusal, emit),
            Body::Garbage(_) => self.refuse_garbage(way, frame.bytes(), refusal, emit),
        }
    }

    /// Refuses bytes that are not a message. Each message that can be found in them may expect an
    /// answer.
    fn refuse_garbage(
        &mut self,
        way: Way,
        bytes: &[u8],
        refusal: &Refusal,
        emit: &mut Emit<'_, '_>,
    ) {
        undelivered(way, bytes, &refusal.why, emit);
        let mut denied: Vec<Vec<u8>> = Vec::new();
        for said in frame::skim_messages(bytes) {
            let Some(id) = said.id else { continue };
            let asked = said.method.is_some() || (!said.answer && way.from == Side::Client);
            match asked {
                // A request gets one answer, however often its id occurs.
                true if denied.contains(&id) => {}
                true => {
                    self.deny(way, &id, None, refusal, emit);
                    denied.push(id);
                }
                false => self.deny_asker(way, &id, refusal, emit),
            }
        }
    }

    /// Refuses a message that arrives when it can no longer be judged.
    pub(super) fn turn_away(
        &mut self,
        way: Way,
        frame: &Frame<'_>,
        why: &str,
        emit: &mut Emit<'_, '_>,
    ) {
        let (message, data) = (why.to_owned(), "{\"by\":\"tapegate\"}".to_owned());
        let refusal = Refusal { code: CODE_GONE, message, data, why: why.to_owned() };
        self.refuse(way, frame, &refusal, emit);
    }

    fn refuse_message(
        &mut self,
        way: Way,
        bytes: &[u8],
        said: &Envelope<'_>,
        refusal: &Refusal,
        emit: &mut Emit<'_, '_>,
    ) {
        let says = matches!(said.kind(), Kind::Request | Kind::Notification);
        let n = (says && way.from == Side::Client).then(|| {
            self.count += 1;
            self.count
        });
        match n {
            Some(n) => {
                let what = What::Message(Element { n, reply: None });
                let fate = Fate::Refused(refusal.why.clone());
                emit(Action::Record(&way.entry(Cow::Borrowed(bytes), what, fate)));
            }
            None => undelivered(way, bytes, &refusal.why, emit),
        }
        let Some(id) = said.id else { return };
        match said.kind() {
            Kind::Request => self.deny(way, id, n, refusal, emit),
            Kind::Other if self.asks_of(way.from.other()).find(way.lane, id).is_none() => {
                if way.from == Side::Client {
                    self.deny(way, id, None, refusal, emit);
                }
            }
            _ => self.deny_asker(way, id, refusal, emit),
        }
    }

    /// Refuses a batch as a whole: one batch with an error for each request. A batch that is too long
    /// gets a single error, because errors for all its requests would be many times its size.
    fn refuse_batch(&mut self, way: Way, bytes: &[u8], refusal: &Refusal, emit: &mut Emit<'_, '_>) {
        undelivered(way, bytes, &refusal.why, emit);
        let is_long = frame::is_long_batch(bytes);
        let mut errors = Vec::new();
        for element in frame::each_element(bytes) {
            let Some(said) = element.envelope() else { continue };
            match (said.kind(), said.id) {
                (Kind::Request, Some(_)) if is_long && !errors.is_empty() => {}
                (Kind::Request, Some(_)) if is_long => errors.push(error(b"null", refusal)),
                (Kind::Request, Some(id)) => {
                    self.unsent.put(way.lane, way.from, id);
                    errors.push(error(id, refusal));
                }
                (Kind::Response | Kind::Error, Some(id)) => {
                    self.deny_asker(way, id, refusal, emit);
                }
                _ => {}
            }
        }
        if is_long && let Some(error) = errors.pop() {
            self.count += 1;
            let element = Element { n: self.count, reply: None };
            return answer(way.at, way.lane, way.from, element, error, emit);
        }
        if errors.is_empty() {
            return;
        }
        let numbers = errors.iter().map(|_| {
            self.count += 1;
            Some(Element { n: self.count, reply: None })
        });
        let what = What::Batch(numbers.collect());
        let message = OwnMessage::batch(&errors);
        answer_with((way.at, way.lane, way.from), what, message, None, emit);
    }

    /// Tells the sender of a request that it was refused. `n` is its number, if it has one.
    fn deny(
        &mut self,
        way: Way,
        id: &[u8],
        n: Option<u64>,
        refusal: &Refusal,
        emit: &mut Emit<'_, '_>,
    ) {
        self.unsent.put(way.lane, way.from, id);
        self.count += 1;
        let reply = n.map(|to| Reply { to, latency_ms: 0 });
        let element = Element { n: self.count, reply };
        answer(way.at, way.lane, way.from, element, error(id, refusal), emit);
    }

    /// Sends the side that waits for a refused answer an error in its place.
    pub(super) fn deny_asker(
        &mut self,
        way: Way,
        id: &[u8],
        refusal: &Refusal,
        emit: &mut Emit<'_, '_>,
    ) {
        let asker = way.from.other();
        let Some(asked) = self.asked_by(asker).answer(way.lane, id) else { return };
        if asked.cancelled {
            return;
        }
        self.count += 1;
        let reply = Reply { to: asked.n, latency_ms: way.at.ms_since(asked.at) };
        let element = Element { n: self.count, reply: Some(reply) };
        answer(way.at, way.lane, asker, element, error(id, refusal), emit);
    }

    /// Tells the caller of a held call that it was refused.
    pub(super) fn refuse_held(
        &mut self,
        at: At,
        held: Held,
        refusal: &Refusal,
        emit: &mut Emit<'_, '_>,
    ) {
        self.unsent.put(held.lane, held.from, &held.id);
        self.count += 1;
        let reply = Reply { to: held.n, latency_ms: at.ms_since(held.at) };
        let what = What::Message(Element { n: self.count, reply: Some(reply) });
        let text = error(&held.id, refusal);
        answer_with((at, held.lane, held.from), what, text, Some(held.ticket), emit);
    }

    /// Records a message over the limit, and sends an error to the side that would wait for an answer.
    pub(super) fn refuse_large(
        &mut self,
        way: Way,
        message: Oversize,
        bytes_max: usize,
        emit: &mut Emit<'_, '_>,
    ) {
        let Oversize { head, bytes_total, said } = message;
        let Way { at, lane, from, .. } = way;
        let batch = head.trim_ascii_start().starts_with(b"[");
        let what = What::TooLarge { bytes_total };
        emit(Action::Record(&way.entry(Cow::Owned(head), what, Fate::Sent)));
        let request = said.method.is_some() || batch;
        // The requests of an oversize batch are unknown, so it gets one error with a null id.
        let Some(id) = said.id.or_else(|| batch.then(|| b"null".to_vec())) else { return };
        let words = format!(
            "message of {bytes_total} bytes refused: the limit is {bytes_max} bytes (--max-message-bytes)"
        );
        let data = format!("{{\"bytes\":{bytes_total},\"limit\":{bytes_max}}}");
        let text = OwnMessage::error_with(&id, CODE_TOO_LARGE, &words, &data);
        if request {
            // It was a request: tell its sender that it was not sent.
            self.count += 1;
            let element = Element { n: self.count, reply: None };
            answer(at, lane, from, element, text, emit);
        } else if let Some(asked) = self.asked_by(from.other()).answer(lane, &id) {
            // It was an answer: tell the side that waits for it why it does not come.
            self.count += 1;
            let reply = Reply { to: asked.n, latency_ms: at.ms_since(asked.at) };
            let element = Element { n: self.count, reply: Some(reply) };
            answer(at, lane, from.other(), element, text, emit);
        }
    }
}

/// Records something that is not delivered.
fn undelivered(way: Way, bytes: &[u8], why: &str, emit: &mut Emit<'_, '_>) {
    let what = What::Garbage(format!("{UNDELIVERED}: {why}"));
    let way = Way { terminated: true, ..way };
    emit(Action::Record(&way.entry(Cow::Borrowed(bytes), what, Fate::Sent)));
}

/// The error reply for a refusal.
fn error(id: &[u8], refusal: &Refusal) -> OwnMessage {
    OwnMessage::error_with(id, refusal.code, &refusal.message, &refusal.data)
}
