//! Replies and event streams from the server: inspected, recorded and passed on.

use std::rc::Rc;

use bytes::Bytes;
use http::header::{ALT_SVC, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use tapegate_core::frame::{Body, Frame, Kind, envelopes};
use tapegate_core::lines::Oversize;
use tapegate_core::relay::{Event, Permitted};
use tapegate_core::side::Side;

use super::super::body::{Collected, collect};
use super::super::headers;
use super::super::outbound::ReadBody;
use super::super::request_check::{ReplyKind, Route, read_reply};
use super::super::station::{Judged, Stopped};
use super::super::{Outbound, ReplyBody};
use super::gated::{may_be_message, names_any};
use super::stream::EventStream;
use super::{Exchange, PlainBody, Scope, asking, ended};
use crate::deck::{Disposition, Outgoing};

impl Exchange {
    /// Passes on the server's reply after recording it.
    pub(super) async fn reply(mut self, response: Response<Incoming>) -> Response<ReplyBody> {
        let (mut parts, mut body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        self.note_session(&parts.headers, parts.status.is_success());
        self.keep_redirect_here(&mut parts.headers);
        if self.proxy.station.is_governed() {
            parts.headers.remove(ALT_SVC);
            if parts.status.is_redirection()
                && let Some(refused) = self.check_redirect(&parts.headers)
            {
                return refused;
            }
        }
        if self.mask_head(&mut parts).is_err() {
            return headers::refusal(503, &Stopped.to_string());
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
        // At the endpoint, clients may read any reply as a message.
        let may_carry = self.route == Route::Endpoint && self.proxy.station.is_governed();
        if !may_carry && (!carries_messages || self.lane.is_none()) {
            return self.pass_plain(parts, body).await;
        }
        let collected = tokio::select! {
            collected = collect(&mut body, self.proxy.station.message_bytes_max()) => collected,
            why = ended(self.proxy.ending.subscribe()) => return self.unreachable(&why),
        };
        match collected {
            Ok(Collected::Whole(body)) => self.pass_whole(parts, body),
            Ok(Collected::TooLarge(message)) => self.pass_too_large(message),
            Err(error) => self.unreachable(&format!("the server's reply ended early: {error}")),
        }
    }

    /// The kind of a reply. A reply that clients may read differently from the gate is refused.
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
            // A client that opens a stream may read events from it without checking the type.
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

    /// Records why a reply should be refused, and refuses it unless the gate only observes.
    pub(super) fn rejects_reply(&mut self, body: &[u8], why: &str) -> Option<Response<ReplyBody>> {
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
        let read = ReadBody::new(&parts.headers, &body);
        let text = read.text();
        let frame = Frame::read(text);
        // Plain texts such as "Accepted", which legacy servers reply to a POST, are not recorded.
        let json = headers::is_type(&parts.headers, "application/json");
        let pleasantry = parts.status.is_success() && !json;
        // A more lenient client may accept what we do not parse as a message.
        let garbage = matches!(frame.body(), Body::Garbage(_)) && !text.is_empty();
        let odd = garbage && (json || (parts.status.is_success() && may_be_message(&frame)));
        // Send exactly the bytes that were evaluated: others may decompress the body differently.
        let unpacks = governed && read.is_unpacked();
        let judged = is_message(&frame) || (odd && governed) || self.may_answer(&parts, &frame);
        let mut is_masked = false;
        let (body, is_new) = if judged {
            let lane = self.lane();
            self.learn(text);
            let judged = self.proxy.station.receive(lane, Side::Server, text);
            let Ok(Judged { disposition, said }) = judged else {
                return headers::refusal(503, &Stopped.to_string());
            };
            let told = headers::one_message(self.tell_apart(said));
            match (disposition, told) {
                (Disposition::Forward(message), _) if unpacks || message.is_replaced() => {
                    (Outbound::message(message), true)
                }
                (Disposition::Forward(message), _) => (Outbound::unchanged(message, &read), false),
                (_, Some(message)) => (Outbound::message(message), true),
                // The client gets an error of ours, since the gate has not made one.
                (_, None) => return self.unreachable("the server's reply was refused"),
            }
        } else {
            let why = format!("no JSON-RPC message, but the body of HTTP status {}", parts.status);
            let silent = text.is_empty() || pleasantry;
            if !silent && self.mark(text, &why).is_err() {
                return headers::refusal(503, &Stopped.to_string());
            }
            let Ok(masked) = self.mask_body(&parts, text) else {
                return headers::refusal(503, &Stopped.to_string());
            };
            is_masked = masked.is_some();
            let plain = match masked {
                Some(masked) => masked,
                None if unpacks => Bytes::copy_from_slice(text),
                None => body.clone(),
            };
            (Outbound::plain(PlainBody::new(plain)), false)
        };
        // No further reply to this request will come on this connection. After a 202, the answer
        // may still come on another stream of the session.
        if parts.status.as_u16() != 202 {
            self.dismiss(None).ok();
        }
        if is_new || unpacks || is_masked {
            headers::strip_body_facts(&mut parts.headers);
        }
        if is_new {
            parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Response::from_parts(parts, ReplyBody::full(body))
    }

    /// Whether to evaluate an object that is not a message to us, while a policy is enforced: it
    /// arrives where a client expects an answer, or lenient parsers take it for a message. HTTP and
    /// OAuth errors are neither.
    fn may_answer(&self, parts: &http::response::Parts, frame: &Frame<'_>) -> bool {
        if self.route != Route::Endpoint
            || !matches!(frame.body(), Body::Message(_))
            || self.proxy.station.transparent().is_some()
        {
            return false;
        }
        // The body of an acceptance is not read as an answer.
        let accepts = self.older || parts.status == StatusCode::ACCEPTED;
        (parts.status.is_success() && !accepts && self.asks())
            || names_any(frame.bytes(), &["jsonrpc", "method", "result"])
    }

    /// Whether the client's message contains a request.
    fn asks(&self) -> bool {
        let asked = self.asked.as_deref().map(Frame::read);
        let envelopes = asked.map(|asked| envelopes(&asked)).unwrap_or_default();
        envelopes.iter().any(|said| said.kind() == Kind::Request)
    }

    /// Learns from a tool list which arguments are mirrored in headers.
    pub(super) fn learn(&self, text: &[u8]) {
        let asked = self.asked.as_deref().map(Frame::read);
        let lists =
            |asked: &Frame<'_>| envelopes(asked).iter().any(|said| said.is_method("tools/list"));
        if !self.proxy.station.is_governed()
            || !(self.answers_all || asked.as_ref().is_some_and(lists))
        {
            return;
        }
        for said in envelopes(&Frame::read(text)) {
            if let Some(result) = said.result {
                self.proxy.params.borrow_mut().learn(result);
            }
        }
    }

    /// Sends the messages meant for the server, and returns those for the client.
    pub(super) fn tell_apart<'e>(&mut self, said: Vec<Outgoing<'e>>) -> Vec<Permitted<'e>> {
        let mut told = Vec::new();
        for Outgoing { to, message, .. } in said {
            match to {
                Side::Client => told.push(message),
                Side::Server => self.post(message),
            }
        }
        told
    }

    /// Records a delivered body that is not a message.
    fn mark(&mut self, bytes: &[u8], why: &str) -> Result<(), Stopped> {
        let (lane, from, delivered) = (self.lane(), Side::Server, true);
        self.proxy.station.pass(Event::Marked { lane, from, bytes, why, delivered }).map(drop)
    }

    fn pass_too_large(&mut self, message: Oversize) -> Response<ReplyBody> {
        match self.too_large(message) {
            Ok(Some(message)) => headers::json(200, message),
            Ok(None) => self.unreachable("the server's reply is over the size limit"),
            Err(Stopped) => headers::refusal(503, &Stopped.to_string()),
        }
    }

    /// Records an oversized server message, and returns the error for the client.
    pub(super) fn too_large(
        &mut self,
        message: Oversize,
    ) -> Result<Option<Permitted<'static>>, Stopped> {
        let bytes_max = self.proxy.station.message_bytes_max();
        let lane = self.lane();
        let event = Event::TooLarge { lane, from: Side::Server, message, bytes_max };
        let outgoing = self.proxy.station.pass(event)?;
        Ok(self.tell_apart(outgoing).pop().map(Permitted::into_owned))
    }

    /// Sends our own message to the server as the client would: by a POST in the same session.
    pub(super) fn post(&mut self, message: Permitted<'_>) {
        if asking::request(message.bytes()).is_some() {
            return self.ask(message.into_owned());
        }
        let body = Outbound::message(message);
        let (path, headers) = self.own_head();
        let proxy = Rc::clone(&self.proxy);
        tokio::task::spawn_local(async move {
            // If the server does not accept it, it waits on, as it would without us.
            proxy.upstream.send(Method::POST, path, headers, body).await.ok();
        });
    }

    /// Learns the session that a request has opened, and forgets one that was deleted.
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
}

/// Whether a reply's body is a message rather than an HTTP or OAuth error in JSON.
pub(super) fn is_message(frame: &Frame<'_>) -> bool {
    match frame.body() {
        Body::Batch => true,
        Body::Message(said) => said.kind() != Kind::Other && (said.version_ok || said.id.is_some()),
        Body::Garbage(_) => false,
    }
}
