//! Requests to the server through a gate. Nothing that can be read as a message bypasses it,
//! whatever path, method or content type it is sent with.

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use http::{Method, Response};
use tapegate_core::frame::{self, Envelope, Frame, FrameBody};
use tapegate_core::json::{Cursor, JsonKind};
use tapegate_core::relay::PermittedMessage;
use tapegate_core::side::Side;

use super::super::body::CollectedBody;
use super::super::headers::EarlyReply;
use super::super::outbound::ReadBody;
use super::super::pending_message::PendingMessage;
use super::super::request_check::{self, RequestHead, RequestRejection, RequestRoute};
use super::super::request_headers::RequestHeaders;
use super::super::shared_session::GateResult;
use super::super::{OutboundBytes, ReplyBody, headers};
use super::{PlainBody, ProxyExchange};
use crate::recorded_session::{Disposition, OutgoingMessage};

/// What happens to a request: forwarded with a body, answered by us, or held.
type RequestDisposition = Disposition<OutboundBytes, Response<ReplyBody>>;

impl ProxyExchange {
    /// Refuses a request that the server may parse differently from the gate.
    pub(super) fn check(&self, parts: &Parts, body: &CollectedBody) -> Result<(), EarlyReply> {
        if !self.proxy.shared_session.is_governed() {
            return Ok(());
        }
        let (bytes, has_body) = match body {
            CollectedBody::Whole(bytes) => (bytes.clone(), !bytes.is_empty()),
            // Too large to be checked, and refused later. Its head is still checked.
            CollectedBody::TooLarge(_) => (Bytes::new(), true),
        };
        let Parts { method, uri: target, headers, .. } = parts;
        let route = self.route;
        let head = RequestHead { method, target, headers, route, has_body };
        let bytes_max = self.proxy.shared_session.message_bytes_max();
        let checked = request_check::check_head(&head)
            .and_then(|()| self.check_settings(parts))
            .and_then(|()| check_body(&head, &bytes, bytes_max));
        checked.or_else(|rejection| self.reject(&rejection, &Frame::read(&bytes)))
    }

    /// Refuses parameters that some servers would let override the server's URL or `--header`.
    fn check_settings(&self, parts: &Parts) -> Result<(), RequestRejection> {
        let upstream = &self.proxy.upstream;
        if let Some(name) = upstream.ambiguous_header(&parts.headers) {
            let reason = format!("the header `{name}` is not accepted: it is set by `--header`");
            return Err(RequestRejection::new(400, reason));
        }
        match self.route {
            RequestRoute::Endpoint if !self.announced_path => {
                request_check::check_own_query(upstream.path().query(), parts.uri.query())
            }
            _ => Ok(()),
        }
    }

    /// Records why a request should be refused, and refuses it unless the gate only observes.
    fn reject(&self, rejection: &RequestRejection, frame: &Frame<'_>) -> Result<(), EarlyReply> {
        let session = &self.proxy.shared_session;
        // The lane is not stored in the exchange: an observed request may still open a session.
        let lane = self.lane.unwrap_or_else(|| session.open_exchange());
        match session.check_ambiguous(lane, Side::Client, frame.bytes(), &rejection.reason)? {
            true => Err(Box::new(headers::rejection_replies(rejection, frame))),
            false => Ok(()),
        }
    }

    /// Evaluates and records the messages of a request.
    pub(super) async fn judge_request(
        &mut self,
        parts: &mut Parts,
        body: Bytes,
    ) -> Result<RequestDisposition, EarlyReply> {
        let governed = self.proxy.shared_session.is_governed();
        let read = ReadBody::new(&parts.headers, &body);
        let text = read.text();
        let frame = self.proxy.shared_session.read(text);
        let carries = match governed {
            true => !body.is_empty() && (self.carries_messages(&frame) || may_be_message(&frame)),
            false => parts.method == Method::POST && self.carries_messages(&frame),
        };
        if !carries {
            return Ok(Disposition::Forward(OutboundBytes::plain(PlainBody::new(body))));
        }
        let lane = self.lane_for(&frame);
        if governed {
            self.check_mirrors(parts, &frame)?;
            // Before the message is judged: a call that cannot be held would be refused.
            self.proxy.shared_session.wait_for_hold_capacity_in(lane, &frame).await;
        }
        // Kept from here on, so that a broken exchange can answer the requests in it.
        self.client_message = Some(PendingMessage::of(&frame));
        let GateResult { disposition, outgoing } =
            self.proxy.shared_session.receive(lane, Side::Client, &frame)?;
        Ok(match disposition {
            Disposition::Forward(message) if message.is_replaced() => {
                // The new body is not compressed.
                parts.headers.remove(CONTENT_ENCODING);
                self.client_message = Some(PendingMessage::of(&message.frame()));
                Disposition::Forward(OutboundBytes::message(message))
            }
            // Send exactly the bytes that were evaluated: others may decompress differently.
            Disposition::Forward(message)
                if read.is_unpacked() && self.proxy.shared_session.transparent().is_none() =>
            {
                parts.headers.remove(CONTENT_ENCODING);
                Disposition::Forward(OutboundBytes::message(message))
            }
            Disposition::Forward(message) => {
                Disposition::Forward(OutboundBytes::unchanged(message, &read))
            }
            Disposition::Refuse(()) => {
                Disposition::Refuse(self.refusal_reply(parts, &frame, outgoing))
            }
            Disposition::Consume => {
                self.client_message = None;
                self.send_server_part(outgoing);
                Disposition::Consume
            }
            Disposition::Hold(hold_id) => {
                // A held call is sent as the text that the gate has read.
                parts.headers.remove(CONTENT_ENCODING);
                self.send_server_part(outgoing);
                Disposition::Hold(hold_id)
            }
        })
    }

    /// Refuses a message whose headers contradict it: readers may rely on either.
    fn check_mirrors(&self, parts: &Parts, frame: &Frame<'_>) -> Result<(), EarlyReply> {
        let terms = RequestHeaders::read(&parts.headers);
        let check = |envelope: &Envelope<'_>| {
            let params = self.proxy.params.borrow();
            terms.check_mirrors(envelope).or_else(|| terms.check_contradictions(envelope, &params))
        };
        let rejection = frame::find_envelope(frame, check);
        rejection.map_or(Ok(()), |rejection| self.reject(&rejection, frame))
    }

    /// Replies to a request that is not forwarded.
    fn refusal_reply(
        &mut self,
        parts: &Parts,
        frame: &Frame<'_>,
        outgoing: Vec<OutgoingMessage<'_>>,
    ) -> Response<ReplyBody> {
        // Nothing was sent, so there is nothing to dismiss later.
        self.client_message = None;
        let answers = self.send_server_part(outgoing);
        match answers.is_empty() {
            false => self.own_answer_reply(&RequestHeaders::read(&parts.headers), answers),
            true => reply_without_answer(frame),
        }
    }

    /// Replies with our own answers, or sends them on a legacy client's stream. A body that is not
    /// a message may contain several requests, each of which is answered.
    pub(super) fn own_answer_reply(
        &mut self,
        terms: &RequestHeaders,
        answers: Vec<PermittedMessage<'_>>,
    ) -> Response<ReplyBody> {
        let events: Vec<_> = answers.iter().map(|one| OutboundBytes::event(one, None)).collect();
        let events = OutboundBytes::concat(&events);
        // A legacy client reads answers only from its stream.
        if self.older && self.send_on_legacy_stream(events.clone()) {
            return headers::accepted();
        }
        match headers::single_or_batch(answers).filter(|_| terms.json) {
            Some(message) => headers::json(200, message),
            None => headers::events(ReplyBody::from_whole(events)),
        }
    }

    /// Sends an event on the stream of a legacy session; false if there is no reader or no room.
    pub(super) fn send_on_legacy_stream(&mut self, event: OutboundBytes) -> bool {
        let lane = self.lane();
        let inbox = self.proxy.inboxes.borrow().get(&lane).cloned();
        inbox.is_some_and(|inbox| inbox.try_send(event).is_ok())
    }
}

/// The reply to a refused message that expects no answer. A refused message must not be reported as
/// accepted; only the cancellation of a held call has taken effect.
fn reply_without_answer(request: &Frame<'_>) -> Response<ReplyBody> {
    match request.body() {
        FrameBody::Garbage(garbage) => headers::error(400, b"null", -32700, &garbage.reason()),
        FrameBody::Message(envelope) if envelope.is_method("notifications/cancelled") => {
            headers::accepted()
        }
        _ => headers::error(400, b"null", -32600, "the message was refused"),
    }
}

/// Checks a body against its route: a compressed body must decompress within the limit, and a login
/// request must not contain messages.
fn check_body(
    head: &RequestHead<'_>,
    body: &[u8],
    bytes_max: usize,
) -> Result<(), RequestRejection> {
    let text = headers::decompress_or_reject(head.headers, body, bytes_max)?;
    match head.route {
        RequestRoute::Login(step) => request_check::check_login_body(step, &text),
        RequestRoute::Endpoint | RequestRoute::Metadata | RequestRoute::Unknown => Ok(()),
    }
}

/// Whether some parser may read this as a message, although it is not one by our reading. Parsers
/// differ in how they match `method`, and in the encodings and errors they accept.
pub(super) fn may_be_message(frame: &Frame<'_>) -> bool {
    match frame.body() {
        FrameBody::Message(_) => names_method(frame.bytes()),
        FrameBody::Batch => {
            frame::elements(frame.bytes()).iter().any(|one| names_method(one.bytes()))
        }
        FrameBody::Garbage(_) => {
            let text = frame.bytes();
            // Byte order marks and NULs show another encoding, in which the text may be a message.
            let odd = text.iter().take(4).any(|byte| matches!(byte, 0 | 0xFE | 0xFF | 0xEF));
            let quoted = || text.windows(8).any(|part| part.eq_ignore_ascii_case(b"\"method\""));
            odd || matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')) || quoted()
        }
    }
}

/// Whether an object has a member that some parser reads as `method`.
fn names_method(object: &[u8]) -> bool {
    names_any(object, &["method"])
}

/// Whether an object has a member that some parser reads as one of `names`.
pub(super) fn names_any(object: &[u8], names: &[&str]) -> bool {
    let Ok(mut cursor) = Cursor::new(object) else { return false };
    if !matches!(cursor.kind(), Ok(JsonKind::Object)) || cursor.open().is_err() {
        return false;
    }
    while let Ok(Some(key)) = cursor.next_key() {
        if frame::lenient_key_match(key, names).is_some() {
            return true;
        }
        if cursor.value().is_err() {
            return false;
        }
    }
    false
}
