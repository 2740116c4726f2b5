//! The way back: replies and event streams, read along and passed on.

use std::borrow::Cow;
use std::rc::Rc;

use bytes::Bytes;
use http::header::{ALT_SVC, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use hyper::body::{Body as _, Incoming};
use tapegate_core::frame::{Body, Frame, Kind};
use tapegate_core::lines::Oversize;
use tapegate_core::relay::Event;
use tapegate_core::side::Side;
use tapegate_core::sse::{self, Piece};

use super::super::ReplyBody;
use super::super::body::{Collected, collect};
use super::super::headers;
use super::super::request_check::{ReplyKind, Route, read_reply};
use super::super::station::{Passage, Passed, Stopped};
use super::gated::may_be_message;
use super::stream::{EventStream, PlainStream};
use super::{Exchange, Scope, asking, ended};
use crate::deck::Outgoing;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl Exchange {
    /// Passes on what the server replied, and has it recorded first.
    pub(super) async fn reply(mut self, response: Response<Incoming>) -> Response<ReplyBody> {
        let (mut parts, mut body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        self.note_session(&parts.headers, parts.status.is_success());
        self.keep_redirect_here(&mut parts.headers);
        if self.proxy.station.is_governed() {
            parts.headers.remove(ALT_SVC);
            let elsewhere = parts.headers.get(LOCATION).is_some_and(|to| !self.is_here(to));
            if parts.status.is_redirection() && elsewhere && self.asked.is_some() {
                return self.unreachable("the server sends its client past the gate");
            }
            if parts.status.is_redirection() {
                self.announce(&parts.headers);
            }
        }
        let kind = match self.kind_of(&parts, &body) {
            Ok(kind) => kind,
            Err(refused) => return *refused,
        };
        if kind == ReplyKind::Events {
            if parts.headers.contains_key(CONTENT_ENCODING) {
                return self
                    .unreachable("the server compresses its events, though it was not asked to");
            }
            // An event may be replaced by a longer or shorter one.
            parts.headers.remove(CONTENT_LENGTH);
            let stream = EventStream::new(self, body);
            return Response::from_parts(parts, ReplyBody::stream(stream));
        }
        let carries_messages = self.asked.is_some() || kind == ReplyKind::Json;
        if !carries_messages || self.lane.is_none() {
            return Response::from_parts(parts, ReplyBody::stream(PlainStream(body)));
        }
        let collected = tokio::select! {
            collected = collect(&mut body, self.proxy.station.message_bytes_max()) => collected,
            why = ended(self.proxy.ending.subscribe()) => return self.unreachable(&why),
        };
        match collected {
            Ok(Collected::Whole(body)) => self.pass_whole(parts, body),
            Ok(Collected::TooLarge(message)) => self.pass_too_large(message),
            Err(error) => self.unreachable(&format!("the server's reply broke off: {error}")),
        }
    }

    /// What a reply carries. One that clients may read otherwise than the gate is refused.
    fn kind_of(
        &mut self,
        parts: &http::response::Parts,
        body: &Incoming,
    ) -> Result<ReplyKind, Box<Response<ReplyBody>>> {
        let by_type = |kind| headers::is_type(&parts.headers, kind);
        let kind = match (by_type("text/event-stream"), by_type("application/json")) {
            (true, _) => ReplyKind::Events,
            (_, true) => ReplyKind::Json,
            _ => ReplyKind::Other,
        };
        if !self.proxy.station.is_governed() || self.route != Route::Endpoint {
            return Ok(kind);
        }
        let why = match read_reply(&parts.headers) {
            // A client that opens a stream may read events from it without looking at its type.
            Ok(ReplyKind::Json | ReplyKind::Other)
                if self.is_get && parts.status.is_success() && !body.is_end_stream() =>
            {
                "the server answered a GET with something that is not a stream of events"
            }
            Ok(kind) => return Ok(kind),
            Err(why) => why,
        };
        match self.rejects_reply(b"", why) {
            Some(refused) => Err(Box::new(refused)),
            None => Ok(kind),
        }
    }

    /// Notes why a reply should be refused, and refuses it if the gate does more than observe.
    fn rejects_reply(&mut self, body: &[u8], why: &str) -> Option<Response<ReplyBody>> {
        let station = &self.proxy.station;
        let lane = self.lane.unwrap_or_else(|| station.open_exchange());
        match station.rejects(lane, Side::Server, body, why) {
            Ok(true) => Some(self.unreachable(why)),
            Ok(false) => None,
            Err(stopped) => Some(headers::refusal(503, &stopped.to_string())),
        }
    }

    fn pass_whole(&mut self, mut parts: http::response::Parts, body: Bytes) -> Response<ReplyBody> {
        let governed = self.proxy.station.is_governed();
        if governed
            && headers::unpacked(&parts.headers, &body, usize::MAX).is_err()
            && let Some(refused) = self
                .rejects_reply(&body, "the server compresses its reply, though it was not asked to")
        {
            return refused;
        }
        let text = headers::readable(&parts.headers, &body);
        let frame = Frame::read(&text);
        // "Accepted" and the like, as legacy servers answer a post, is not worth a mark.
        let json = headers::is_type(&parts.headers, "application/json");
        let pleasantry = parts.status.is_success() && !json;
        // What is no message to us may be one to a client that forgives more.
        let garbage = matches!(frame.body(), Body::Garbage(_)) && !text.is_empty();
        let odd = garbage && (json || (parts.status.is_success() && may_be_message(&frame)));
        let recorded = if is_message(&frame) || (odd && governed) {
            let lane = self.lane();
            self.proxy.station.receive(lane, Side::Server, &text)
        } else if text.is_empty() || pleasantry {
            Ok(Passed { passage: Passage::Send(None), said: Vec::new() })
        } else {
            let why = format!("no JSON-RPC message, but the body of HTTP status {}", parts.status);
            let marked = self.mark(&text, &why);
            marked.map(|()| Passed { passage: Passage::Send(None), said: Vec::new() })
        };
        let Ok(Passed { passage, said }) = recorded else {
            return headers::refusal(503, &Stopped.to_string());
        };
        let told = self.tell_apart(said);
        let instead = match passage {
            // What was judged is what is sent: others may unpack it otherwise than we do.
            Passage::Send(None) if governed && matches!(text, Cow::Owned(_)) => {
                Some(text.into_owned())
            }
            Passage::Send(instead) => instead,
            // Whoever waits for it gets an error, if the gate has not made one.
            Passage::Stop | Passage::Held(_) if told.is_empty() => {
                return self.unreachable("the server's reply was refused");
            }
            Passage::Stop | Passage::Held(_) => Some(told.concat()),
        };
        // Whatever the reply was, no other will come for this request on this connection; in a
        // session it may still come on another, if the server only accepted the message.
        if parts.status.as_u16() != 202 {
            self.dismiss(None).ok();
        }
        let body = match instead {
            None => body,
            Some(text) => {
                parts.headers.remove(CONTENT_ENCODING);
                parts.headers.remove(CONTENT_LENGTH);
                parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Bytes::from(text)
            }
        };
        Response::from_parts(parts, ReplyBody::full(body))
    }

    /// Tells the server what is for it, and returns what the client is told.
    pub(super) fn tell_apart(&mut self, said: Vec<Outgoing>) -> Vec<Vec<u8>> {
        let mut told = Vec::new();
        for Outgoing { to, text, .. } in said {
            match (to, text) {
                (Side::Client, text) => told.extend(text),
                (Side::Server, Some(text)) => self.post(text),
                (Side::Server, None) => {}
            }
        }
        told
    }

    /// Marks a body that is no message, but passed on, on the tape.
    fn mark(&mut self, bytes: &[u8], why: &str) -> Result<(), Stopped> {
        let (lane, from, delivered) = (self.lane(), Side::Server, true);
        self.proxy.station.pass(Event::Marked { lane, from, bytes, why, delivered }).map(drop)
    }

    fn pass_too_large(&mut self, message: Oversize) -> Response<ReplyBody> {
        match self.too_large(message) {
            Ok(Some(text)) => headers::json(200, text),
            Ok(None) => self.unreachable("the server's reply is over the size limit"),
            Err(Stopped) => headers::refusal(503, &Stopped.to_string()),
        }
    }

    /// Marks an oversize message of the server, and returns what its asker is told.
    pub(super) fn too_large(&mut self, message: Oversize) -> Result<Option<Vec<u8>>, Stopped> {
        let bytes_max = self.proxy.station.message_bytes_max();
        let lane = self.lane();
        let event = Event::TooLarge { lane, from: Side::Server, message, bytes_max };
        let outgoing = self.proxy.station.pass(event)?;
        Ok(self.tell_apart(outgoing).pop())
    }

    /// Tells the server something of our own, as its client would: by a POST in the same session.
    pub(super) fn post(&mut self, text: Vec<u8>) {
        if asking::request(&text).is_some() {
            return self.ask(text);
        }
        let (path, headers) = self.own_head();
        let proxy = Rc::clone(&self.proxy);
        tokio::task::spawn_local(async move {
            // A server that does not take it has waited in vain, as it would without us.
            proxy.upstream.send(Method::POST, path, headers, Bytes::from(text)).await.ok();
        });
    }

    /// Learns the session that a request has opened, and forgets one that was ended.
    fn note_session(&mut self, headers: &HeaderMap, success: bool) {
        let mut sessions = self.proxy.sessions.borrow_mut();
        if let (Some(id), true) = (&self.deletes, success)
            && let Some(lane) = sessions.unbind(id)
        {
            self.proxy.forget(lane);
        }
        let (Scope::Opening, Some(lane)) = (self.scope, self.lane) else { return };
        match headers.get("mcp-session-id") {
            Some(id) => {
                self.scope = Scope::Session;
                sessions.bind(id.as_bytes(), lane);
            }
            None => self.proxy.station.adopt(lane),
        }
    }

    /// Records what an event carries and returns the bytes to send. Half an event at the end of a
    /// stream is `terminated` by nothing, but may be taken for a whole one.
    pub(super) fn pass_event(
        &mut self,
        piece: Piece,
        terminated: bool,
    ) -> Result<Vec<u8>, Stopped> {
        let Some(data) = &piece.data else { return Ok(piece.raw) };
        if terminated && piece.event.as_deref() == Some(b"endpoint") {
            return Ok(self.pass_endpoint(&piece, data));
        }
        let message = piece.event.as_deref().is_none_or(|event| event == b"message");
        let governed = self.proxy.station.is_governed();
        // By what name an event goes is the server's choice, and some reader may not mind.
        let message = message || (governed && is_message(&Frame::read(data)));
        if !message || data.is_empty() {
            return Ok(piece.raw);
        }
        let (lane, how) = (self.lane(), (self.resumes(), terminated));
        let Passed { passage, said } = self.proxy.station.hear(lane, data, how)?;
        let mut told = self.tell_apart(said);
        match passage {
            Passage::Send(None) => return Ok(piece.raw),
            Passage::Send(Some(text)) => told.insert(0, text),
            Passage::Stop | Passage::Held(_) => {}
        }
        Ok(instead_of(&piece, &told))
    }

    /// Whether the client goes on with a stream that it has seen the beginning of.
    fn resumes(&self) -> bool {
        self.asked.is_none() && self.headers.contains_key(LAST_EVENT_ID)
    }
}

/// Events that take the place of one, and keep its id, by which a client goes on after a break.
pub(super) fn instead_of(piece: &Piece, told: &[Vec<u8>]) -> Vec<u8> {
    let mut events = Vec::new();
    let id = piece.id.as_deref().map(String::from_utf8_lossy);
    if let Some(retry_ms) = piece.retry_ms {
        events.extend_from_slice(format!("retry: {retry_ms}\n").as_bytes());
    }
    for text in told {
        sse::write_event(&mut events, id.as_deref(), Some("message"), text);
    }
    if told.is_empty() {
        if let Some(id) = id {
            events.extend_from_slice(format!("id: {id}\n").as_bytes());
        }
        events.push(b'\n');
    }
    events
}

/// Whether a reply's body is a message, rather than an error of HTTP or of OAuth in JSON.
fn is_message(frame: &Frame<'_>) -> bool {
    match frame.body() {
        Body::Batch => true,
        Body::Message(said) => said.kind() != Kind::Other && (said.version_ok || said.id.is_some()),
        Body::Garbage(_) => false,
    }
}
