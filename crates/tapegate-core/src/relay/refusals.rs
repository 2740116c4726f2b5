//! Refused messages: how they are recorded, and who gets an error.
//!
//! The sender of a refused request gets one error; the sender of anything that expects no answer is not
//! told. Refused requests and notifications of the client keep their numbers on the tape, so that an
//! answer can refer to them; everything else is recorded as not delivered.

use std::borrow::Cow;

use super::holds::HeldRequest;
use super::own_message::OwnMessage;
use super::{
    ActionSink, CODE_GONE, CODE_TOO_LARGE, MessageOrigin, Relay, RelayAction, send_own_answer,
    send_own_entry,
};
use crate::frame::{self, Envelope, Frame, FrameBody, MessageKind};
use crate::gate::Refusal;
use crate::lines::OversizeMessage;
use crate::side::Side;
use crate::tape::{EntryBody, EntryElement, GateOutcome, ReplyLink, UNDELIVERED};
use crate::time::Timestamp;

impl Relay {
    /// Records a refused message, and sends an error to the side that waits for an answer because of
    /// it.
    pub(super) fn refuse(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        refusal: &Refusal,
        emit: &mut ActionSink<'_, '_>,
    ) {
        match frame.body() {
            FrameBody::Message(msg) => {
                self.refuse_message(origin, frame.bytes(), msg, refusal, emit)
            }
            FrameBody::Batch => self.refuse_batch(origin, frame.bytes(), refusal, emit),
            FrameBody::Garbage(_) => self.refuse_garbage(origin, frame.bytes(), refusal, emit),
        }
    }

    /// Refuses bytes that are not a message. Each message that can be found in them may expect an
    /// answer.
    fn refuse_garbage(
        &mut self,
        origin: MessageOrigin,
        bytes: &[u8],
        refusal: &Refusal,
        emit: &mut ActionSink<'_, '_>,
    ) {
        // On the tape, errors follow the message that caused them.
        record_undelivered(origin, bytes, &refusal.reason, emit);
        let mut denied: Vec<Vec<u8>> = Vec::new();
        for envelope in frame::scan_messages(bytes) {
            let Some(id) = envelope.id else { continue };
            let is_request =
                // A lenient server may take an object without a method for a request of the client.
                envelope.method.is_some() || (!envelope.answer && origin.from == Side::Client);
            match is_request {
                // A request gets one answer, however often its id occurs.
                true if denied.contains(&id) => {}
                true => {
                    self.deny(origin, &id, None, refusal, emit);
                    denied.push(id);
                }
                false => self.refuse_to_requester(origin, &id, refusal, emit),
            }
        }
    }

    /// Refuses a message that arrives when it can no longer be judged.
    pub(super) fn refuse_unjudged(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        reason: &str,
        emit: &mut ActionSink<'_, '_>,
    ) {
        self.refuse(origin, frame, &super::gate_dispatch::refusal(CODE_GONE, reason), emit);
    }

    fn refuse_message(
        &mut self,
        origin: MessageOrigin,
        bytes: &[u8],
        msg: &Envelope<'_>,
        refusal: &Refusal,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let says = matches!(msg.kind(), MessageKind::Request | MessageKind::Notification);
        // Only these get a number: our error refers to it, and so does the activity log.
        let n = (says && origin.from == Side::Client).then(|| {
            self.count += 1;
            self.count
        });
        match n {
            Some(n) => {
                let body = EntryBody::Message(EntryElement { n, reply: None });
                let gate_outcome = GateOutcome::Refused(refusal.reason.clone());
                emit(RelayAction::Record(&origin.entry(Cow::Borrowed(bytes), body, gate_outcome)));
            }
            None => record_undelivered(origin, bytes, &refusal.reason, emit),
        }
        let Some(id) = msg.id else { return };
        match msg.kind() {
            MessageKind::Request => self.deny(origin, id, n, refusal, emit),
            // It is neither request nor answer. If no request matches it, only a client may wait
            // for a reply.
            MessageKind::Other
                if self.pending(origin.from.other()).find(origin.lane, id).is_none() =>
            {
                if origin.from == Side::Client {
                    self.deny(origin, id, None, refusal, emit);
                }
            }
            _ => self.refuse_to_requester(origin, id, refusal, emit),
        }
    }

    /// Refuses a batch as a whole: one batch with an error for each request. A batch that is too long
    /// gets a single error, because errors for all its requests would be many times its size.
    fn refuse_batch(
        &mut self,
        origin: MessageOrigin,
        bytes: &[u8],
        refusal: &Refusal,
        emit: &mut ActionSink<'_, '_>,
    ) {
        record_undelivered(origin, bytes, &refusal.reason, emit);
        let is_long = frame::is_long_batch(bytes);
        let mut errors = Vec::new();
        for element in frame::each_element(bytes) {
            let Some(msg) = element.envelope() else { continue };
            match (msg.kind(), msg.id) {
                (MessageKind::Request, Some(_)) if is_long && !errors.is_empty() => {}
                (MessageKind::Request, Some(_)) if is_long => errors.push(error(b"null", refusal)),
                (MessageKind::Request, Some(id)) => {
                    // The client may cancel this request later, and the server never saw it.
                    self.unsent.insert(origin.lane, origin.from, id);
                    errors.push(error(id, refusal));
                }
                // The other side waits for this answer, which is dropped with the batch.
                (MessageKind::Response | MessageKind::Error, Some(id)) => {
                    self.refuse_to_requester(origin, id, refusal, emit);
                }
                _ => {}
            }
        }
        if is_long && let Some(error) = errors.pop() {
            self.count += 1;
            let element = EntryElement { n: self.count, reply: None };
            return send_own_answer(origin.at, origin.lane, origin.from, element, error, emit);
        }
        if errors.is_empty() {
            return;
        }
        let numbers = errors.iter().map(|_| {
            self.count += 1;
            Some(EntryElement { n: self.count, reply: None })
        });
        let body = EntryBody::Batch(numbers.collect());
        let message = OwnMessage::batch(&errors);
        send_own_entry((origin.at, origin.lane, origin.from), body, message, None, emit);
    }

    /// Tells the sender of a request that it was refused. `n` is its number, if it has one.
    fn deny(
        &mut self,
        origin: MessageOrigin,
        id: &[u8],
        n: Option<u64>,
        refusal: &Refusal,
        emit: &mut ActionSink<'_, '_>,
    ) {
        // Some clients cancel a call as soon as it is refused. The server must not see that either.
        self.unsent.insert(origin.lane, origin.from, id);
        self.count += 1;
        let reply = n.map(|to| ReplyLink { to, latency_ms: 0 });
        let element = EntryElement { n: self.count, reply };
        send_own_answer(origin.at, origin.lane, origin.from, element, error(id, refusal), emit);
    }

    /// Sends the side that waits for a refused answer an error in its place.
    pub(super) fn refuse_to_requester(
        &mut self,
        origin: MessageOrigin,
        id: &[u8],
        refusal: &Refusal,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let asker = origin.from.other();
        // The request is taken, so a second answer of the server finds nothing: one request, one
        // reply (invariant 5).
        let Some(pending_request) = self.pending_mut(asker).take_answered(origin.lane, id) else {
            return;
        };
        // The sender has cancelled and no longer expects an answer.
        if pending_request.cancelled {
            return;
        }
        self.count += 1;
        let reply =
            ReplyLink { to: pending_request.n, latency_ms: origin.at.ms_since(pending_request.at) };
        let element = EntryElement { n: self.count, reply: Some(reply) };
        send_own_answer(origin.at, origin.lane, asker, element, error(id, refusal), emit);
    }

    /// Tells the caller of a held call that it was refused.
    pub(super) fn refuse_held(
        &mut self,
        at: Timestamp,
        held_request: HeldRequest,
        refusal: &Refusal,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let hold_id = held_request.hold_id;
        self.cancel_question(at, hold_id, hold_id, emit);
        if self.end_task_of(at, &held_request, refusal, emit) {
            return;
        }
        self.unsent.insert(held_request.lane, held_request.from, &held_request.id);
        self.count += 1;
        let reply = ReplyLink { to: held_request.n, latency_ms: at.ms_since(held_request.at) };
        let body = EntryBody::Message(EntryElement { n: self.count, reply: Some(reply) });
        let text = error(&held_request.id, refusal);
        send_own_entry(
            (at, held_request.lane, held_request.from),
            body,
            text,
            Some(held_request.hold_id),
            emit,
        );
    }

    /// Records a message over the limit, and sends an error to the side that would wait for an answer.
    pub(super) fn refuse_oversize(
        &mut self,
        origin: MessageOrigin,
        message: OversizeMessage,
        bytes_max: usize,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let OversizeMessage { head, bytes_total, envelope: said } = message;
        let MessageOrigin { at, lane, from, .. } = origin;
        let batch = head.trim_ascii_start().starts_with(b"[");
        let body = EntryBody::TooLarge { bytes_total };
        emit(RelayAction::Record(&origin.entry(Cow::Owned(head), body, GateOutcome::Sent)));
        let request = said.method.is_some() || batch;
        // The requests of an oversize batch are unknown, so it gets one error with a null id.
        let Some(id) = said.id.or_else(|| batch.then(|| b"null".to_vec())) else { return };
        let (message_text, data) = frame::oversize_error(bytes_total, bytes_max);
        let text = OwnMessage::error_with(&id, CODE_TOO_LARGE, &message_text, &data);
        if request {
            // It was a request: tell its sender that it was not sent.
            self.count += 1;
            let element = EntryElement { n: self.count, reply: None };
            send_own_answer(at, lane, from, element, text, emit);
        } else if let Some(pending_request) =
            self.pending_mut(from.other()).take_answered(lane, &id)
        {
            // It was an answer: tell the side that waits for it why it does not come.
            self.count += 1;
            let reply =
                ReplyLink { to: pending_request.n, latency_ms: at.ms_since(pending_request.at) };
            let element = EntryElement { n: self.count, reply: Some(reply) };
            send_own_answer(at, lane, from.other(), element, text, emit);
        }
    }
}

/// Records something that is not delivered.
pub(super) fn record_undelivered(
    origin: MessageOrigin,
    bytes: &[u8],
    reason: &str,
    emit: &mut ActionSink<'_, '_>,
) {
    let body = EntryBody::Garbage(format!("{UNDELIVERED}: {reason}"));
    // It is not sent, so the tape does not mark its missing line ending.
    let origin = MessageOrigin { terminated: true, ..origin };
    emit(RelayAction::Record(&origin.entry(Cow::Borrowed(bytes), body, GateOutcome::Sent)));
}

/// The error reply for a refusal.
fn error(id: &[u8], refusal: &Refusal) -> OwnMessage {
    OwnMessage::error_with(id, refusal.code, &refusal.message, &refusal.data)
}
