//! Requests of our own to the server, within a client's session.
//!
//! They are posted with the client's headers, except that headers mirroring a message are rewritten
//! for ours. Only the answer is processed; it never reaches the client.

use std::rc::Rc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use hyper::body::Incoming;
use tapegate_core::frame::{Frame, MessageKind, error_object, same_id};
use tapegate_core::relay::{PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};

use super::super::OutboundBytes;
use super::super::body::{CollectedBody, collect};
use super::super::headers;
use super::super::request_headers::{LAST_EVENT_ID, METHOD};
use super::super::shared_session::{GateResult, SessionStoppedError};
use super::super::upstream::{EventBody, EventRead};
use super::{Proxy, ProxyExchange};
use crate::stdio::answered_id;

/// How long an answer may take. The call that waits for it times out earlier.
const PATIENCE: Duration = Duration::from_secs(30);
const TOO_LARGE: &str = "the server's answer is too large";
const UNANSWERED: &str = "the server's reply ended without an answer";
/// The headers that mirror a message, and so must not be taken from another message.
const MIRRORS: [&str; 2] = ["mcp-name", "mcp-param-"];

/// The session and endpoint that a request of our own is sent to.
struct OwnRequestSender {
    proxy: Rc<Proxy>,
    lane: Lane,
    path: PathAndQuery,
    headers: HeaderMap,
}

/// The id and method of a request.
pub(super) fn request(message: &PermittedMessage<'_>) -> Option<(Vec<u8>, String)> {
    let frame = message.frame();
    let envelope = frame.envelope().filter(|envelope| envelope.kind() == MessageKind::Request)?;
    Some((envelope.id?.to_vec(), envelope.method?.decode().into_owned()))
}

impl ProxyExchange {
    /// The path and headers for our own message to the server.
    pub(super) fn own_request_head(&mut self) -> (PathAndQuery, HeaderMap) {
        let lane = self.lane();
        // A legacy session has its own endpoint. The stream's own path accepts no POST.
        let endpoint = self.proxy.sessions.borrow().endpoint_of(lane);
        let path = endpoint.unwrap_or_else(|| self.path.clone());
        let mut headers = self.headers.clone();
        // These describe the client's request, not ours.
        for name in [LAST_EVENT_ID, CONTENT_ENCODING, CONTENT_LENGTH] {
            headers.remove(name);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        (path, headers)
    }

    /// Sends a request to the server in the background.
    pub(super) fn send_own_request(&mut self, message: PermittedMessage<'static>) {
        let (path, headers) = self.own_request_head();
        let sender =
            OwnRequestSender { proxy: Rc::clone(&self.proxy), lane: self.lane(), path, headers };
        tokio::task::spawn_local(tokio::time::timeout(PATIENCE, sender.run(message)));
    }
}

impl OwnRequestSender {
    /// Sends requests for as long as an answer leads to another one.
    async fn run(self, message: PermittedMessage<'static>) {
        let mut next = Some(message);
        while let Some(message) = next.take() {
            let Some((id, method)) = request(&message) else { return };
            match self.exchange(&id, &method, message).await {
                Ok(then) => next = then,
                Err(reason) => return self.report_failure(&id, &reason),
            }
        }
    }

    fn report_failure(&self, id: &[u8], reason: &str) {
        let error = error_object(-32000, reason, None);
        let (lane, asker) = (self.lane, Side::Client);
        // If the tape has failed, the session ends anyway.
        self.proxy
            .shared_session
            .feed_and_commit(RelayEvent::RequestFailed { lane, asker, id, error: &error })
            .ok();
    }

    /// Posts a request and processes its answer; returns the next request to send.
    async fn exchange(
        &self,
        id: &[u8],
        method: &str,
        message: PermittedMessage<'static>,
    ) -> Result<Option<PermittedMessage<'static>>, String> {
        let mut headers = self.headers.clone();
        let mirrors: Vec<HeaderName> = headers.keys().cloned().collect();
        for name in
            mirrors.iter().filter(|name| MIRRORS.iter().any(|m| name.as_str().starts_with(m)))
        {
            headers.remove(name);
        }
        // Only revisions that mirror the method have the header.
        if headers.contains_key(METHOD)
            && let Ok(value) = HeaderValue::from_str(method)
        {
            headers.insert(METHOD, value);
        }
        let (path, body) = (self.path.clone(), OutboundBytes::message(message));
        let sent = self.proxy.upstream.send(Method::POST, path, headers, body);
        let (parts, body) = sent.await.map_err(|error| error.to_string())?.into_parts();
        if headers::is_type(&parts.headers, "text/event-stream") {
            return self.receive_event_stream(id, body).await;
        }
        let bytes_max = self.proxy.shared_session.message_bytes_max();
        let mut body = body;
        let body = match collect(&mut body, bytes_max).await {
            Ok(CollectedBody::Whole(body)) => body,
            Ok(CollectedBody::TooLarge(_)) => return Err(TOO_LARGE.to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let text = headers::decompress_for_reading(&parts.headers, &body);
        let frame = self.proxy.shared_session.read(&text);
        if is_answer_to(&frame, id) {
            return self.receive_answer(&frame);
        }
        match parts.status {
            // The answer arrives on the stream of a legacy session.
            StatusCode::ACCEPTED => Ok(None),
            status if status.is_success() => Err("the server's reply has no answer".to_owned()),
            status => Err(format!("the server answered {status}")),
        }
    }

    async fn receive_event_stream(
        &self,
        id: &[u8],
        body: Incoming,
    ) -> Result<Option<PermittedMessage<'static>>, String> {
        let session = &self.proxy.shared_session;
        let mut events = EventBody::new(body, session.message_bytes_max());
        loop {
            let piece = match events.next().await {
                EventRead::Piece(piece) => piece,
                EventRead::TooLarge(_) => return Err(TOO_LARGE.to_owned()),
                EventRead::End(cause) => return Err(cause.unwrap_or_else(|| UNANSWERED.to_owned())),
            };
            // An event without data is a keep-alive or an id.
            let Some(data) = piece.data.filter(|data| !data.is_empty()) else { continue };
            let frame = session.read(&data);
            if is_answer_to(&frame, id) {
                return self.receive_answer(&frame);
            }
            // The client must not see replies to a request that it did not make.
            let reason = "it came in the reply to a request that tapegate made";
            let marked = session.mark((self.lane, Side::Server), (&data, false), reason);
            marked.map_err(|stopped| stopped.to_string())?;
        }
    }

    /// Feeds an answer to the relay; returns the next request to send.
    fn receive_answer(
        &self,
        answer: &Frame<'_>,
    ) -> Result<Option<PermittedMessage<'static>>, String> {
        let heard = self.proxy.shared_session.receive_from_server(self.lane, answer, (false, true));
        let GateResult { outgoing: outgoing_messages, .. } =
            heard.map_err(|stopped: SessionStoppedError| stopped.to_string())?;
        let next = outgoing_messages.into_iter().find(|outgoing| outgoing.to == Side::Server);
        Ok(next.map(|outgoing| outgoing.message.into_owned()))
    }
}

/// Whether a message answers the request with this id.
fn is_answer_to(frame: &Frame<'_>, id: &[u8]) -> bool {
    frame.envelope().and_then(answered_id).is_some_and(|of| same_id(of, id))
}
