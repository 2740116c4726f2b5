//! Requests to the server through a gate. Nothing that can be read as a message bypasses it,
//! whatever path, method or content type it is sent with.

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use tapegate_core::frame::{self, Body, Envelope, Frame};
use tapegate_core::json::{Cursor, Kind as JsonKind};
use tapegate_core::relay::Permitted;
use tapegate_core::side::Side;

use super::super::body::Collected;
use super::super::outbound::ReadBody;
use super::super::request_check::{self, Rejection, RequestHead, Route};
use super::super::station::{Judged, Stopped};
use super::super::terms::Terms;
use super::super::{Outbound, ReplyBody, headers};
use super::{Exchange, PlainBody};
use crate::deck::{Disposition, Outgoing};

/// What happens to a request: forwarded with a body, answered by us, or held.
type Admitted = Disposition<Outbound, Box<Response<ReplyBody>>>;

impl Exchange {
    /// Refuses a request that the server may parse differently from the gate.
    pub(super) fn check(&mut self, parts: &Parts, body: &Collected) -> Option<Response<ReplyBody>> {
        if !self.proxy.station.is_governed() {
            return None;
        }
        let (bytes, has_body) = match body {
            Collected::Whole(bytes) => (bytes.clone(), !bytes.is_empty()),
            Collected::TooLarge(_) => (Bytes::new(), true),
        };
        let Parts { method, uri: target, headers, .. } = parts;
        let route = self.route;
        let head = RequestHead { method, target, headers, route, has_body };
        let bytes_max = self.proxy.station.message_bytes_max();
        let checked = request_check::check_head(&head)
            .and_then(|()| self.check_settings(parts))
            .and_then(|()| check_body(&head, &bytes, bytes_max));
        self.reject(&checked.err()?, &bytes)
    }

    /// Refuses parameters that some servers would let override the server's URL or `--header`.
    fn check_settings(&self, parts: &Parts) -> Result<(), Rejection> {
        let upstream = &self.proxy.upstream;
        if let Some(name) = upstream.lookalike(&parts.headers) {
            let reason = format!("the header `{name}` is not accepted: it is set by `--header`");
            return Err(Rejection::new(400, reason));
        }
        match self.route {
            Route::Endpoint if !self.told => {
                request_check::check_own_query(upstream.path().query(), parts.uri.query())
            }
            _ => Ok(()),
        }
    }

    /// Records why a request should be refused, and refuses it unless the gate only observes.
    fn reject(&mut self, rejection: &Rejection, body: &[u8]) -> Option<Response<ReplyBody>> {
        let station = &self.proxy.station;
        // The lane is not stored in the exchange: an observed request may still open a session.
        let lane = self.lane.unwrap_or_else(|| station.open_exchange());
        match station.rejects(lane, Side::Client, body, &rejection.reason) {
            Ok(true) => Some(headers::rejected_each(rejection, &Frame::read(body))),
            Ok(false) => None,
            Err(stopped) => Some(refusal(stopped)),
        }
    }

    /// Evaluates and records the messages of a request.
    pub(super) async fn admit(&mut self, parts: &mut Parts, body: Bytes) -> Admitted {
        let governed = self.proxy.station.is_governed();
        let read = ReadBody::new(&parts.headers, &body);
        let text = read.text();
        let frame = Frame::read(text);
        let carries = match governed {
            true => !body.is_empty() && (self.carries_messages(&frame) || may_be_message(&frame)),
            false => parts.method == Method::POST && self.carries_messages(&frame),
        };
        if !carries {
            return Disposition::Forward(Outbound::plain(PlainBody::new(body)));
        }
        let lane = self.lane_for(&frame);
        if governed {
            if let Some(refused) = self.disagrees(parts, &frame) {
                return Disposition::Refuse(Box::new(refused));
            }
            self.proxy.station.room_for(lane, text).await;
        }
        self.asked = Some(read.shared_text());
        let judged = self.proxy.station.receive(lane, Side::Client, text);
        let Judged { disposition, said } = match judged {
            Ok(judged) => judged,
            Err(stopped) => return Disposition::Refuse(Box::new(refusal(stopped))),
        };
        match disposition {
            Disposition::Forward(message) if message.is_replaced() => {
                parts.headers.remove(CONTENT_ENCODING);
                self.asked = Some(Bytes::copy_from_slice(message.bytes()));
                Disposition::Forward(Outbound::message(message))
            }
            // Send exactly the bytes that were evaluated: others may decompress differently.
            Disposition::Forward(message)
                if read.is_unpacked() && self.proxy.station.transparent().is_none() =>
            {
                parts.headers.remove(CONTENT_ENCODING);
                Disposition::Forward(Outbound::message(message))
            }
            Disposition::Forward(message) => {
                Disposition::Forward(Outbound::unchanged(message, &read))
            }
            Disposition::Refuse(()) => Disposition::Refuse(Box::new(self.stopped(parts, said))),
            Disposition::Hold(ticket) => {
                parts.headers.remove(CONTENT_ENCODING);
                self.tell_apart(said);
                Disposition::Hold(ticket)
            }
        }
    }

    /// Refuses a message whose headers contradict it: readers may rely on either.
    fn disagrees(&mut self, parts: &Parts, frame: &Frame<'_>) -> Option<Response<ReplyBody>> {
        let terms = Terms::read(&parts.headers);
        let check = |said: &Envelope<'_>| {
            let params = self.proxy.params.borrow();
            terms.check_mirrors(said).or_else(|| terms.check_contradictions(said, &params))
        };
        let rejection = frame::find_envelope(frame, check)?;
        let lane = self.lane();
        match self.proxy.station.rejects(lane, Side::Client, frame.bytes(), &rejection.reason) {
            Ok(true) => Some(headers::rejected_each(&rejection, frame)),
            Ok(false) => None,
            Err(stopped) => Some(refusal(stopped)),
        }
    }

    /// Replies to a request that is not forwarded.
    fn stopped(&mut self, parts: &Parts, said: Vec<Outgoing<'_>>) -> Response<ReplyBody> {
        let asked = self.asked.take().unwrap_or_default();
        let mut answers = Vec::new();
        for Outgoing { to, message, .. } in said {
            match to {
                Side::Client => answers.push(message),
                Side::Server => self.post(message),
            }
        }
        match answers.is_empty() {
            false => self.answered(&Terms::read(&parts.headers), answers),
            true => unanswered(&Frame::read(&asked)),
        }
    }

    /// Replies with our own answers, or sends them on a legacy client's stream. A body that is not
    /// a message may contain several requests, each of which is answered.
    pub(super) fn answered(
        &mut self,
        terms: &Terms,
        answers: Vec<Permitted<'_>>,
    ) -> Response<ReplyBody> {
        let events: Vec<_> = answers.iter().map(|one| Outbound::event(one, None)).collect();
        let events = Outbound::joined(&events);
        if self.older && self.whisper(events.clone()) {
            return accepted();
        }
        match headers::one_message(answers).filter(|_| terms.json) {
            Some(message) => headers::json(200, message),
            None => headers::events(ReplyBody::full(events)),
        }
    }

    /// Sends an event on the stream of a legacy session; false if there is no reader or no room.
    pub(super) fn whisper(&mut self, event: Outbound) -> bool {
        let lane = self.lane();
        let inbox = self.proxy.inboxes.borrow().get(&lane).cloned();
        inbox.is_some_and(|inbox| inbox.try_send(event).is_ok())
    }
}

/// The reply to a refused message that expects no answer. A refused message must not be reported as
/// accepted; only the cancellation of a held call has taken effect.
fn unanswered(asked: &Frame<'_>) -> Response<ReplyBody> {
    match asked.body() {
        Body::Garbage(garbage) => headers::error(400, b"null", -32700, &garbage.reason()),
        Body::Message(said) if said.is_method("notifications/cancelled") => accepted(),
        _ => headers::error(400, b"null", -32600, "the message was refused"),
    }
}

/// An empty 202 reply.
pub(super) fn accepted() -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::full(Outbound::empty()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

fn refusal(stopped: Stopped) -> Response<ReplyBody> {
    headers::refusal(503, &stopped.to_string())
}

/// Checks a body against its route: a compressed body must decompress within the limit, and a login
/// request must not contain messages.
fn check_body(head: &RequestHead<'_>, body: &[u8], bytes_max: usize) -> Result<(), Rejection> {
    let text = headers::unpacked(head.headers, body, bytes_max)?;
    match head.route {
        Route::Login(step) => request_check::check_login_body(step, &text),
        Route::Endpoint | Route::Metadata | Route::Unknown => Ok(()),
    }
}

/// Whether some parser may read this as a message, although it is not one by our reading. Parsers
/// differ in how they match `method`, and in the encodings and errors they accept.
pub(super) fn may_be_message(frame: &Frame<'_>) -> bool {
    match frame.body() {
        Body::Message(_) => names_method(frame.bytes()),
        Body::Batch => frame::elements(frame.bytes()).iter().any(|one| names_method(one.bytes())),
        Body::Garbage(_) => {
            let text = frame.bytes();
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
    let mut first = true;
    while let Ok(Some(key)) = cursor.key(&mut first) {
        if frame::careless(key, names).is_some() {
            return true;
        }
        if cursor.value().is_err() {
            return false;
        }
    }
    false
}
