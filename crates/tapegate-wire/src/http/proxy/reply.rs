//! Replies and event streams from the server: inspected, recorded and passed on.

use std::rc::Rc;

use bytes::Bytes;
use http::header::{ALT_SVC, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use tapegate_core::frame::{Frame, FrameBody, MessageKind, envelopes};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::PermittedMessage;
use tapegate_core::side::Side;

use super::super::body::{CollectedBody, collect};
use super::super::headers::{self, EarlyReply};
use super::super::outbound::ReadBody;
use super::super::request_check::{ReplyKind, RequestRoute, read_reply};
use super::super::request_headers::SESSION;
use super::super::shared_session::{GateResult, SessionStoppedError};
use super::super::{OutboundBytes, ReplyBody};
use super::gated_request::{may_be_message, names_any};
use super::stream::EventStream;
use super::{ExchangeScope, PlainBody, ProxyExchange, own_requests, recording_ended};
use crate::recorded_session::{Disposition, OutgoingMessage, split_by_side};

impl ProxyExchange {
    /// Passes on the server's reply after recording it.
    pub(super) async fn reply(
        mut self,
        response: Response<Incoming>,
    ) -> Result<Response<ReplyBody>, EarlyReply> {
        let (mut parts, mut body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        self.note_session(&parts.headers, parts.status.is_success());
        self.rewrite_redirect(&mut parts.headers);
        if self.proxy.shared_session.is_governed() {
            // It offers the client another server address, which would bypass the gate.
            parts.headers.remove(ALT_SVC);
            if parts.status.is_redirection() {
                self.check_redirect(&parts.headers)?;
            }
        }
        self.mask_head(&mut parts)?;
        let kind = self.classify_reply(&parts, &body)?;
        if kind == ReplyKind::Events {
            if parts.headers.contains_key(CONTENT_ENCODING) {
                return Ok(self.unreachable_reply(
                    "the server compresses its events, though it was not asked to",
                ));
            }
            // An event may be replaced by a longer or shorter one.
            parts.headers.remove(CONTENT_LENGTH);
            let stream = EventStream::new(self, body);
            return Ok(Response::from_parts(parts, ReplyBody::stream(stream)));
        }
        let carries_messages = self.client_message.is_some() || kind == ReplyKind::Json;
        // At the endpoint, clients may read any reply as a message.
        let may_carry =
            self.route == RequestRoute::Endpoint && self.proxy.shared_session.is_governed();
        if !may_carry && (!carries_messages || self.lane.is_none()) {
            return self.forward_plain_reply(parts, body).await;
        }
        match self.collect_reply(&mut body).await? {
            CollectedBody::Whole(body) => self.forward_whole_reply(parts, body),
            CollectedBody::TooLarge(message) => {
                let too_large = "the server's reply is over the size limit";
                Ok(match self.record_oversize(message)? {
                    Some(message) => headers::json(200, message),
                    None => self.unreachable_reply(too_large),
                })
            }
        }
    }

    /// Reads the body of a reply, unless the recording ends before it does.
    pub(super) async fn collect_reply(
        &mut self,
        body: &mut Incoming,
    ) -> Result<CollectedBody, EarlyReply> {
        let bytes_max = self.proxy.shared_session.message_bytes_max();
        let reason = tokio::select! {
            collected = collect(body, bytes_max) => match collected {
                Ok(collected) => return Ok(collected),
                Err(error) => format!("the server's reply ended early: {error}"),
            },
            reason = recording_ended(self.proxy.ending.subscribe()) => reason,
        };
        Err(Box::new(self.unreachable_reply(&reason)))
    }

    /// The kind of a reply. A reply that clients may read differently from the gate is refused.
    fn classify_reply(
        &mut self,
        parts: &http::response::Parts,
        body: &Incoming,
    ) -> Result<ReplyKind, EarlyReply> {
        let by_type = |kind| headers::is_type(&parts.headers, kind);
        let kind = match (by_type("text/event-stream"), by_type("application/json")) {
            (true, _) => ReplyKind::Events,
            (_, true) => ReplyKind::Json,
            _ => ReplyKind::Other,
        };
        if !self.proxy.shared_session.is_governed() || self.route != RequestRoute::Endpoint {
            return Ok(kind);
        }
        let reason = match read_reply(&parts.headers) {
            // A client that opens a stream may read events from it without checking the type.
            Ok(ReplyKind::Json | ReplyKind::Other)
                if self.is_get && parts.status.is_success() && !body.is_end_stream() =>
            {
                "the server answered a GET with something that is not a stream of events"
            }
            Ok(kind) => return Ok(kind),
            Err(reason) => reason,
        };
        self.refuse_ambiguous_reply(b"", reason)?;
        Ok(kind)
    }

    /// Records why a reply should be refused, and refuses it unless the gate only observes.
    pub(super) fn refuse_ambiguous_reply(
        &mut self,
        body: &[u8],
        reason: &str,
    ) -> Result<(), EarlyReply> {
        let session = &self.proxy.shared_session;
        let lane = self.lane.unwrap_or_else(|| session.open_exchange());
        match session.check_ambiguous(lane, Side::Server, body, reason)? {
            true => Err(Box::new(self.unreachable_reply(reason))),
            false => Ok(()),
        }
    }

    fn forward_whole_reply(
        &mut self,
        mut parts: http::response::Parts,
        body: Bytes,
    ) -> Result<Response<ReplyBody>, EarlyReply> {
        let governed = self.proxy.shared_session.is_governed();
        if governed && headers::decompress_or_reject(&parts.headers, &body, usize::MAX).is_err() {
            let reason = "the server compresses its reply, though it was not asked to";
            self.refuse_ambiguous_reply(&body, reason)?;
        }
        let read = ReadBody::new(&parts.headers, &body);
        let text = read.text();
        let frame = self.proxy.shared_session.read(text);
        // Plain texts such as "Accepted", which legacy servers reply to a POST, are not recorded.
        let json = headers::is_type(&parts.headers, "application/json");
        let pleasantry = parts.status.is_success() && !json;
        // A more lenient client may accept what we do not parse as a message.
        let garbage = matches!(frame.body(), FrameBody::Garbage(_)) && !text.is_empty();
        let odd = garbage && (json || (parts.status.is_success() && may_be_message(&frame)));
        // Send exactly the bytes that were evaluated: others may decompress the body differently.
        let unpacks = governed && read.is_unpacked();
        let judged = is_message(&frame) || (odd && governed) || self.may_answer(&parts, &frame);
        let mut is_masked = false;
        let (body, is_new) = if judged {
            let lane = self.lane();
            self.learn_tools(&frame);
            let GateResult { disposition, outgoing } =
                self.proxy.shared_session.receive(lane, Side::Server, &frame)?;
            let to_client = headers::single_or_batch(self.send_server_part(outgoing));
            match (disposition, to_client) {
                (Disposition::Forward(message), _) if unpacks || message.is_replaced() => {
                    (OutboundBytes::message(message), true)
                }
                (Disposition::Forward(message), _) => {
                    (OutboundBytes::unchanged(message, &read), false)
                }
                (_, Some(message)) => (OutboundBytes::message(message), true),
                // The client gets an error of ours, since the gate has not made one.
                (_, None) => return Ok(self.unreachable_reply("the server's reply was refused")),
            }
        } else {
            let silent = text.is_empty() || pleasantry;
            let masked = self.record_plain_reply(&parts, text, silent)?;
            is_masked = masked.is_some();
            let plain = match masked {
                Some(masked) => masked,
                None if unpacks => Bytes::copy_from_slice(text),
                None => body.clone(),
            };
            (OutboundBytes::plain(PlainBody::new(plain)), false)
        };
        // No further reply to this request will come on this connection. After a 202, the answer
        // may still come on another stream of the session.
        if parts.status.as_u16() != 202 {
            // Requests that got their answer above are not pending any more, so only lost ones are
            // dismissed.
            self.dismiss_requests(None).ok();
        }
        if is_new || unpacks || is_masked {
            // They describe a body that is not sent.
            headers::strip_body_headers(&mut parts.headers);
        }
        if is_new {
            parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Ok(Response::from_parts(parts, ReplyBody::from_whole(body)))
    }

    /// Records a body that is not a message, unless `silent`; returns it redacted, if it must be.
    fn record_plain_reply(
        &mut self,
        parts: &http::response::Parts,
        text: &[u8],
        silent: bool,
    ) -> Result<Option<Bytes>, SessionStoppedError> {
        if !silent {
            let reason =
                format!("no JSON-RPC message, but the body of HTTP status {}", parts.status);
            let lane = self.lane();
            self.proxy.shared_session.mark((lane, Side::Server), (text, true), &reason)?;
        }
        self.mask_body(parts, text)
    }

    /// Whether to evaluate an object that is not a message to us, while a policy is enforced: it
    /// arrives where a client expects an answer, or lenient parsers take it for a message. HTTP and
    /// OAuth errors are neither.
    fn may_answer(&self, parts: &http::response::Parts, frame: &Frame<'_>) -> bool {
        if self.route != RequestRoute::Endpoint
            || !matches!(frame.body(), FrameBody::Message(_))
            || self.proxy.shared_session.transparent().is_some()
        {
            return false;
        }
        // The body of an acceptance is not read as an answer.
        let accepts = self.older || parts.status == StatusCode::ACCEPTED;
        let has_request = || self.client_message.as_ref().is_some_and(|one| one.has_request);
        (parts.status.is_success() && !accepts && has_request())
            || names_any(frame.bytes(), &["jsonrpc", "method", "result"])
    }

    /// Learns from a tool list which arguments are mirrored in headers.
    pub(super) fn learn_tools(&self, frame: &Frame<'_>) {
        let lists = self.client_message.as_ref().is_some_and(|message| message.lists_tools);
        // On a legacy stream the request is not known here, so every answer is looked at.
        if !self.proxy.shared_session.is_governed() || !(self.answers_all || lists) {
            return;
        }
        for envelope in envelopes(frame) {
            if let Some(result) = envelope.result {
                self.proxy.params.borrow_mut().learn_tools(result);
            }
        }
    }

    /// Sends the messages meant for the server, and returns those for the client.
    pub(super) fn send_server_part<'e>(
        &mut self,
        outgoing_messages: Vec<OutgoingMessage<'e>>,
    ) -> Vec<PermittedMessage<'e>> {
        let (to_client, to_server) = split_by_side(outgoing_messages);
        to_server.into_iter().for_each(|message| self.post_own_message(message));
        to_client
    }

    /// Records an oversized server message, and returns the error for the client.
    pub(super) fn record_oversize(
        &mut self,
        message: OversizeMessage,
    ) -> Result<Option<PermittedMessage<'static>>, SessionStoppedError> {
        let lane = self.lane();
        let outgoing = self.proxy.shared_session.refuse_oversize(lane, Side::Server, message)?;
        Ok(self.send_server_part(outgoing).pop().map(PermittedMessage::into_owned))
    }

    /// Sends our own message to the server as the client would: by a POST in the same session.
    pub(super) fn post_own_message(&mut self, message: PermittedMessage<'_>) {
        if own_requests::request(&message).is_some() {
            return self.send_own_request(message.into_owned());
        }
        let body = OutboundBytes::message(message);
        let (path, headers) = self.own_request_head();
        let proxy = Rc::clone(&self.proxy);
        tokio::task::spawn_local(async move {
            // If the server does not accept it, it waits on, as it would without us.
            proxy.upstream.send(Method::POST, path, headers, body).await.ok();
        });
    }

    /// Learns the session that a request has opened, and forgets one that was deleted.
    fn note_session(&mut self, headers: &HeaderMap, success: bool) {
        let mut sessions = self.proxy.sessions.borrow_mut();
        // A server that refused to delete the session still has it.
        if let (Some(id), true) = (&self.deletes, success)
            && let Some(lane) = sessions.unbind(id)
        {
            self.proxy.forget_lane(lane);
        }
        let (ExchangeScope::Opening, Some(lane)) = (self.scope, self.lane) else { return };
        match headers.get(SESSION) {
            Some(id) => {
                self.scope = ExchangeScope::Session;
                sessions.bind(id.as_bytes(), lane);
            }
            // The server assigns no sessions, so all its clients share this one on the tape.
            None => self.proxy.shared_session.adopt_lane(lane),
        }
    }
}

/// Whether a reply's body is a message rather than an HTTP or OAuth error in JSON.
pub(super) fn is_message(frame: &Frame<'_>) -> bool {
    match frame.body() {
        FrameBody::Batch => true,
        FrameBody::Message(envelope) => {
            envelope.kind() != MessageKind::Other && (envelope.version_ok || envelope.id.is_some())
        }
        FrameBody::Garbage(_) => false,
    }
}
