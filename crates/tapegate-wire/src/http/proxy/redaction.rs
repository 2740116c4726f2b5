//! Redacts secrets in server output that is not a message: headers, error bodies and event ids.
//!
//! Some values pass unchanged because the client must return or use them: the session id, cookies,
//! the targets of redirects and `endpoint` events, and the replies of login and metadata requests.

use std::collections::VecDeque;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE, LOCATION, SET_COOKIE};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use tapegate_core::sse::SsePiece;

use super::super::body::CollectedBody;
use super::super::headers::EarlyReply;
use super::super::request_check::RequestRoute;
use super::super::request_headers::{LAST_EVENT_ID, SESSION};
use super::super::shared_session::SessionStoppedError;
use super::super::{OutboundBytes, ReplyBody, headers};
use super::stream::PlainStream;
use super::{PlainBody, Proxy, ProxyExchange};

/// How many original ids of redacted event ids are remembered.
const IDS_MAX: usize = 1024;
/// Longer ids are not remembered: a client cannot resume from them.
const ID_BYTES_MAX: usize = 4096;

/// The original event ids, by the redacted ids that clients received.
#[derive(Debug, Default)]
pub(super) struct MaskedIds(VecDeque<(Vec<u8>, HeaderValue)>);

impl MaskedIds {
    fn insert(&mut self, name: &[u8], id: &[u8]) {
        // Masking is deterministic, so a known name already has this id.
        let known = self.0.iter().any(|(known, _)| known == name);
        let Ok(id) = HeaderValue::from_bytes(id) else { return };
        if known || id.len() > ID_BYTES_MAX {
            return;
        }
        if self.0.len() >= IDS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((name.to_vec(), id));
    }

    fn find(&self, name: &[u8]) -> Option<HeaderValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, id)| id.clone())
    }
}

impl Proxy {
    /// Replaces a redacted event id from a client with the server's original.
    pub(super) fn restore_event_id(&self, headers: &mut HeaderMap) {
        let name = headers.get(LAST_EVENT_ID);
        if let Some(id) = name.and_then(|name| self.event_ids.borrow().find(name.as_bytes())) {
            headers.insert(LAST_EVENT_ID, id);
        }
    }
}

impl ProxyExchange {
    fn mask(&self, what: &str, text: &[u8]) -> Result<Option<Vec<u8>>, SessionStoppedError> {
        let session = &self.proxy.shared_session;
        let lane = self.lane.unwrap_or_else(|| session.open_exchange());
        session.mask_text(lane, what, text)
    }

    /// Whether a reply gives a client what it needs to log in.
    fn is_login(&self, status: StatusCode) -> bool {
        // Only a granted login gives the client what it needs. Errors are redacted as elsewhere.
        let is_granted = status.is_success() || status.is_redirection();
        is_granted && matches!(self.route, RequestRoute::Login(_) | RequestRoute::Metadata)
    }

    /// Redacts the head of a reply.
    pub(super) fn mask_head(&self, parts: &mut Parts) -> Result<(), SessionStoppedError> {
        if !self.proxy.shared_session.masks() || self.is_login(parts.status) {
            return Ok(());
        }
        let reason =
            parts.extensions.get::<ReasonPhrase>().map(|reason| reason.as_bytes().to_vec());
        if let Some(reason) = reason
            && self.mask("the reason phrase of a reply", &reason)?.is_some()
        {
            parts.extensions.remove::<ReasonPhrase>();
        }
        let is_kept = |name: &HeaderName| {
            [SESSION, SET_COOKIE, CONTENT_LENGTH, DATE].contains(name)
                || (*name == LOCATION && parts.status.is_redirection())
        };
        let mut masked = HeaderMap::with_capacity(parts.headers.len());
        for (name, value) in &parts.headers {
            let value = match is_kept(name) {
                true => Some(value.clone()),
                false => self.mask_header(name, value)?,
            };
            value.into_iter().for_each(|value| _ = masked.append(name, value));
        }
        parts.headers = masked;
        Ok(())
    }

    /// The value to send for a header; `None` drops it. Its name may match a redacted field.
    fn mask_header(
        &self,
        name: &HeaderName,
        value: &HeaderValue,
    ) -> Result<Option<HeaderValue>, SessionStoppedError> {
        // The name is included, because the rules may redact fields by their name.
        let head = format!("{name}: ").into_bytes();
        let line = [&head, value.as_bytes()].concat();
        let Some(masked) = self.mask(&format!("the header `{name}`"), &line)? else {
            return Ok(Some(value.clone()));
        };
        match masked.strip_prefix(&*head) {
            Some(rest) => Ok(HeaderValue::from_bytes(rest).ok()),
            // The whole line was withheld, or the name itself is a secret.
            None => match self.mask("the name of a header", name.as_str().as_bytes())? {
                Some(_) => Ok(None),
                None => Ok(HeaderValue::from_bytes(&masked).ok()),
            },
        }
    }

    /// Redacts a body that is not a message; `None` if it may be sent unchanged.
    pub(super) fn mask_body(
        &self,
        parts: &Parts,
        text: &[u8],
    ) -> Result<Option<Bytes>, SessionStoppedError> {
        if text.is_empty() || self.is_login(parts.status) || !self.proxy.shared_session.masks() {
            return Ok(None);
        }
        let what = format!("the body of HTTP status {}", parts.status.as_u16());
        Ok(self.mask(&what, text)?.map(Bytes::from))
    }

    /// Passes on a reply that carries no message. If secrets are redacted, it is collected first.
    pub(super) async fn forward_plain_reply(
        mut self,
        mut parts: Parts,
        mut body: Incoming,
    ) -> Result<Response<ReplyBody>, EarlyReply> {
        let session = &self.proxy.shared_session;
        if !session.masks() || self.is_login(parts.status) {
            let stream = PlainStream::new(body, None);
            return Ok(Response::from_parts(parts, ReplyBody::stream(stream)));
        }
        // Nothing may be changed, but the log says what would have been redacted.
        if session.transparent().is_some() {
            let watch = BodyWatch::new(self, parts.clone());
            let stream = PlainStream::new(body, Some(watch));
            return Ok(Response::from_parts(parts, ReplyBody::stream(stream)));
        }
        let CollectedBody::Whole(body) = self.collect_reply(&mut body).await? else {
            // Passing the rest unread could reveal a secret.
            return Ok(self.unreachable_reply("the server's reply is too large to be masked"));
        };
        let Ok(text) = headers::decompress_or_reject(&parts.headers, &body, usize::MAX) else {
            let reason = "the server's reply uses an unsupported compression";
            self.refuse_ambiguous_reply(&body, reason)?;
            return Ok(self.unreachable_reply(reason));
        };
        let masked = self.mask_body(&parts, &text)?;
        let is_masked = masked.is_some();
        let plain = masked.unwrap_or_else(|| body.clone());
        if is_masked {
            headers::strip_body_headers(&mut parts.headers);
        }
        let body = OutboundBytes::plain(PlainBody::new(plain));
        Ok(Response::from_parts(parts, ReplyBody::from_whole(body)))
    }

    /// The event with a redacted id, if necessary. The client may resume from the id it receives.
    pub(super) fn mask_event_id(
        &self,
        piece: &SsePiece,
    ) -> Result<Option<SsePiece>, SessionStoppedError> {
        let Some(id) = piece.id.as_deref().filter(|_| self.proxy.shared_session.masks()) else {
            return Ok(None);
        };
        let masked = self.mask("the id of an event", id)?;
        Ok(masked.map(|name| {
            self.proxy.event_ids.borrow_mut().insert(&name, id);
            SsePiece { id: Some(name), ..piece.clone() }
        }))
    }
}

/// Inspects a body as it passes, to record what would be redacted.
pub(super) struct BodyWatch {
    exchange: ProxyExchange,
    parts: Parts,
    seen: Vec<u8>,
}

impl BodyWatch {
    fn new(exchange: ProxyExchange, parts: Parts) -> Self {
        Self { exchange, parts, seen: Vec::new() }
    }

    /// Takes a piece. Bytes beyond the size limit are not inspected.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let bytes_max = self.exchange.proxy.shared_session.message_bytes_max();
        let room = bytes_max.saturating_sub(self.seen.len());
        self.seen.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl Drop for BodyWatch {
    /// Hyper does not poll a body of known length to its end, so the inspection is done on drop.
    fn drop(&mut self) {
        let text = headers::decompress_for_reading(&self.parts.headers, &self.seen);
        // If the tape has failed, the session ends the recording.
        self.exchange.mask_body(&self.parts, &text).ok();
    }
}
