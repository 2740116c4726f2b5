//! The state of a live session: who waits for what, and what is recorded before it is sent.
//!
//! The relay does no I/O and reads no clock: the wire feeds it [`Event`]s and carries out the
//! [`Action`]s it returns, in order. Three things hold here and nowhere else: an entry is recorded
//! before its frame is sent; a request is known as pending before its bytes leave; and a request
//! that can no longer be answered gets an error from us, once, where somebody still listens.

mod event;

use std::borrow::Cow;

use crate::frame::{self, Body, Envelope, Frame, Kind};
use crate::lines::Oversize;
use crate::pending::{Pending, Unanswered};
use crate::side::{Lane, Side};
use crate::tape::{Element, Entry, Reply, UNDELIVERED, What};
use crate::time::At;

pub use event::{Action, Event};

/// The error code of an answer we give because the other side is gone.
pub const CODE_GONE: i32 = -32000;
/// The error code of an answer we give to or for a message over the size limit.
pub const CODE_TOO_LARGE: i32 = -32010;

/// The state machine of a session, or of all sessions of one recording.
#[derive(Debug, Default)]
pub struct Relay {
    /// Requests of the client that the server has not answered.
    from_client: Pending,
    /// Requests of the server that the client has not answered.
    from_server: Pending,
    /// How many messages have been recorded; the number of the last one.
    count: u64,
}

impl Relay {
    /// Feeds one event that happened at `at` and emits what must be done, in order.
    pub fn handle(&mut self, at: At, event: Event<'_>, emit: &mut dyn FnMut(Action<'_>)) {
        match event {
            Event::Received { lane, from, bytes, terminated } => {
                self.pass(at, (lane, from), bytes, (terminated, false), emit);
            }
            Event::Resumed { lane, bytes, terminated } => {
                self.pass(at, (lane, Side::Server), bytes, (terminated, true), emit);
            }
            Event::TooLarge { lane, from, message, bytes_max } => {
                self.refuse(at, lane, from, message, bytes_max, emit);
            }
            Event::Ours { lane, to, bytes } => self.say(at, lane, to, bytes, emit),
            Event::Marked { lane, from, bytes, why, delivered } => {
                let reason =
                    if delivered { why.to_owned() } else { format!("{UNDELIVERED}: {why}") };
                let what = What::Garbage(reason);
                let (bytes, terminated) = (Cow::Borrowed(bytes), true);
                emit(Action::Record(Entry {
                    at,
                    lane,
                    from,
                    bytes,
                    what,
                    terminated,
                    ours: false,
                    resumed: false,
                }));
            }
            Event::Dismissed { lane, asker, bytes, why } => {
                self.dismiss(at, lane, asker, bytes, why, emit);
            }
            Event::Failed { lane, asker, id, error } => self.fail(at, lane, asker, id, error, emit),
            Event::Gone { lane, side, why } => self.give_up(at, lane, side, why, emit),
        }
    }

    /// How many requests of `asker` wait for an answer that somebody still wants.
    pub fn wanted(&self, asker: Side) -> usize {
        match asker {
            Side::Client => self.from_client.wanted(),
            Side::Server => self.from_server.wanted(),
        }
    }

    /// Has a message recorded, and then sent on.
    fn pass(
        &mut self,
        at: At,
        (lane, from): (Lane, Side),
        bytes: &[u8],
        (terminated, resumed): (bool, bool),
        emit: &mut dyn FnMut(Action<'_>),
    ) {
        let frame = Frame::read(bytes);
        let what = self.note(at, lane, from, &frame);
        let bytes = Cow::Borrowed(bytes);
        let entry = Entry { at, lane, from, bytes, what, terminated, ours: false, resumed };
        emit(Action::Record(entry));
        emit(Action::Forward { lane, to: from.other(), frame: &frame });
    }

    /// Updates who waits for what, and says how the frame stands on the tape.
    fn note(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>) -> What {
        match frame.body() {
            Body::Message(envelope) => What::Message(self.note_message(at, lane, from, envelope)),
            Body::Batch => {
                let elements = frame::elements(frame.bytes());
                What::Batch(elements.iter().map(|e| self.note_element(at, lane, from, e)).collect())
            }
            Body::Garbage(garbage) => What::Garbage(garbage.reason()),
        }
    }

    fn note_element(
        &mut self,
        at: At,
        lane: Lane,
        from: Side,
        element: &Frame<'_>,
    ) -> Option<Element> {
        element.envelope().map(|envelope| self.note_message(at, lane, from, envelope))
    }

    fn note_message(&mut self, at: At, lane: Lane, from: Side, said: &Envelope<'_>) -> Element {
        self.count += 1;
        let n = self.count;
        let mut reply = None;
        match (said.kind(), said.id) {
            (Kind::Request, Some(id)) => drop(self.asked_by(from).ask(lane, id, at, n)),
            (Kind::Response | Kind::Error, Some(id)) => {
                let asked = self.asked_by(from.other()).answer(lane, id);
                reply = asked.map(|asked| Reply { to: asked.n, latency_ms: at.ms_since(asked.at) });
            }
            (Kind::Notification, _) if said.is_method("notifications/cancelled") => {
                if let Some(id) = said.request_id {
                    self.asked_by(from).cancel(lane, id);
                }
            }
            _ => {}
        }
        Element { n, reply }
    }

    /// Marks a message over the limit on the tape, and answers it or for it, so that nobody waits.
    fn refuse(
        &mut self,
        at: At,
        lane: Lane,
        from: Side,
        message: Oversize,
        bytes_max: usize,
        emit: &mut dyn FnMut(Action<'_>),
    ) {
        let Oversize { head, bytes_total, said } = message;
        let batch = head.trim_ascii_start().starts_with(b"[");
        emit(Action::Record(Entry {
            at,
            lane,
            from,
            bytes: Cow::Owned(head),
            what: What::TooLarge { bytes_total },
            terminated: true,
            ours: false,
            resumed: false,
        }));
        let request = said.method.is_some() || batch;
        // The requests of a batch are not told apart; it is answered as a whole, for nobody.
        let Some(id) = said.id.or_else(|| batch.then(|| b"null".to_vec())) else { return };
        let words = format!(
            "message of {bytes_total} bytes refused: the limit is {bytes_max} bytes (--max-message-bytes)"
        );
        let data = format!("{{\"bytes\":{bytes_total},\"limit\":{bytes_max}}}");
        let text = frame::error_reply(&id, CODE_TOO_LARGE, &words, &data);
        if request {
            // It was a request: its sender learns that it went nowhere.
            self.count += 1;
            let element = Element { n: self.count, reply: None };
            answer(at, lane, from, element, text, emit);
        } else if let Some(asked) = self.asked_by(from.other()).answer(lane, &id) {
            // It was an answer: who asked learns why it does not come.
            self.count += 1;
            let reply = Reply { to: asked.n, latency_ms: at.ms_since(asked.at) };
            let element = Element { n: self.count, reply: Some(reply) };
            answer(at, lane, from.other(), element, text, emit);
        }
    }

    /// Records a message of our own as if the other side had sent it, and sends it.
    fn say(
        &mut self,
        at: At,
        lane: Lane,
        to: Side,
        bytes: &[u8],
        emit: &mut dyn FnMut(Action<'_>),
    ) {
        if let Some(envelope) = Frame::read(bytes).envelope() {
            let element = self.note_message(at, lane, to.other(), envelope);
            answer(at, lane, to, element, bytes.to_vec(), emit);
        }
    }

    /// Forgets requests, and answers them where there is something to say.
    fn dismiss(
        &mut self,
        at: At,
        lane: Lane,
        asker: Side,
        bytes: Option<&[u8]>,
        why: Option<&str>,
        emit: &mut dyn FnMut(Action<'_>),
    ) {
        let pending = self.asked_by(asker);
        let dismissed = match bytes {
            None => pending.take(Some(lane)),
            Some(bytes) => {
                let frame = Frame::read(bytes);
                let frames = match frame.body() {
                    Body::Batch => frame::elements(bytes),
                    _ => vec![frame],
                };
                let ids = frames.iter().filter_map(|frame| frame.envelope()?.id);
                let take = |id: &[u8]| {
                    Some(Unanswered { lane, id: id.to_vec(), asked: pending.answer(lane, id)? })
                };
                ids.filter_map(take).collect()
            }
        };
        if let Some(why) = why {
            dismissed.into_iter().for_each(|one| self.answer_for(at, asker, one, why, emit));
        }
    }

    /// Answers a request with an error that somebody else has worded.
    fn fail(
        &mut self,
        at: At,
        lane: Lane,
        asker: Side,
        id: &[u8],
        error: &[u8],
        emit: &mut dyn FnMut(Action<'_>),
    ) {
        let Some(asked) = self.asked_by(asker).answer(lane, id) else { return };
        if asked.cancelled {
            return;
        }
        self.count += 1;
        let reply = Reply { to: asked.n, latency_ms: at.ms_since(asked.at) };
        let element = Element { n: self.count, reply: Some(reply) };
        let text = [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"error\":", error, b"}"].concat();
        answer(at, lane, asker, element, text, emit);
    }

    /// Answers, in place of a side that is gone, everything the other side still wants to know.
    fn give_up(
        &mut self,
        at: At,
        lane: Option<Lane>,
        side: Side,
        why: &str,
        emit: &mut dyn FnMut(Action<'_>),
    ) {
        for unanswered in self.asked_by(side.other()).take(lane) {
            self.answer_for(at, side.other(), unanswered, why, emit);
        }
        self.asked_by(side).take(lane);
    }

    fn answer_for(
        &mut self,
        at: At,
        asker: Side,
        unanswered: Unanswered,
        why: &str,
        emit: &mut dyn FnMut(Action<'_>),
    ) {
        let Unanswered { lane, id, asked } = unanswered;
        if asked.cancelled {
            return;
        }
        self.count += 1;
        let reply = Reply { to: asked.n, latency_ms: at.ms_since(asked.at) };
        let element = Element { n: self.count, reply: Some(reply) };
        let text = frame::error_reply(&id, CODE_GONE, why, "{\"by\":\"tapegate\"}");
        answer(at, lane, asker, element, text, emit);
    }

    fn asked_by(&mut self, side: Side) -> &mut Pending {
        match side {
            Side::Client => &mut self.from_client,
            Side::Server => &mut self.from_server,
        }
    }
}

/// Records a message of our own and sends it to `to`, as if from the other side.
fn answer(
    at: At,
    lane: Lane,
    to: Side,
    element: Element,
    text: Vec<u8>,
    emit: &mut dyn FnMut(Action<'_>),
) {
    emit(Action::Record(Entry {
        at,
        lane,
        from: to.other(),
        bytes: Cow::Owned(text.clone()),
        what: What::Message(element),
        terminated: true,
        ours: true,
        resumed: false,
    }));
    emit(Action::Answer { lane, to, text });
}
