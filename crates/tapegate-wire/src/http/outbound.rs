//! The bytes that may be sent over HTTP, to a server or to a client.
//!
//! An [`OutboundBytes`] is made of messages that carry the proof that they may be sent, of messages this
//! process originates, or of data that is not a message. Requests to servers and session replies
//! take nothing else, so this file lists everything that can reach a peer.

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderMap;
use tapegate_core::frame::{Frame, FrameBody};
use tapegate_core::json::place_of;
use tapegate_core::relay::{MessagePayload, PermittedMessage};
use tapegate_core::sse::{self, SsePiece};

use super::headers;
use super::proxy::PlainBody;
use super::shared_session::UnenforcedProof;
use crate::actor_host::raw_piece::ActorPiece;
use crate::port::OriginatedBytes;

/// Bytes that may be sent over HTTP.
///
/// It cannot be made from raw bytes:
///
/// ```compile_fail,E0308
/// use tapegate_wire::http::{OutboundBytes, ReplyBody};
/// fn reply(body: bytes::Bytes) -> ReplyBody {
///     ReplyBody::from_whole(body)
/// }
/// ```
///
/// ```compile_fail,E0423
/// let forged = tapegate_wire::http::OutboundBytes(bytes::Bytes::from_static(b"{}"));
/// ```
///
/// ```
/// use tapegate_core::relay::PermittedMessage;
/// use tapegate_wire::http::{OutboundBytes, ReplyBody};
/// fn reply(message: PermittedMessage<'_>) -> ReplyBody {
///     ReplyBody::from_whole(OutboundBytes::message(message))
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct OutboundBytes(Bytes);

/// A body as received, and its text: they differ if the body is compressed.
pub(super) struct ReadBody<'a> {
    body: &'a Bytes,
    text: Cow<'a, [u8]>,
}

impl<'a> ReadBody<'a> {
    pub(super) fn new(headers: &HeaderMap, body: &'a Bytes) -> Self {
        Self { body, text: headers::decompress_for_reading(headers, body) }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether the body was compressed.
    pub(super) fn is_unpacked(&self) -> bool {
        matches!(self.text, Cow::Owned(_))
    }
}

impl OutboundBytes {
    /// An empty body.
    pub(crate) fn empty() -> Self {
        Self::default()
    }

    /// A message, unchanged.
    pub fn message(message: PermittedMessage<'_>) -> Self {
        match message.into_payload() {
            MessagePayload::AsReceived(bytes) => Self(Bytes::copy_from_slice(bytes)),
            MessagePayload::Replaced(text) => Self(Bytes::from(text)),
        }
    }

    /// The body that a message was read from, as received, even if compressed. If the message was
    /// replaced, the replacement.
    pub(super) fn unchanged(message: PermittedMessage<'_>, read: &ReadBody<'_>) -> Self {
        match place_of(message.bytes(), read.text()) {
            Some(place) if place.len() == read.text().len() => Self(read.body.clone()),
            _ => Self::message(message),
        }
    }

    /// A message as an event, with an id if the client can resume from it.
    pub(super) fn event(message: &PermittedMessage<'_>, id: Option<&str>) -> Self {
        Self(event(id, "message", message.bytes()))
    }

    /// The events that replace one event. Each gets its id, from which a client can resume.
    pub(super) fn events_in_place_of(piece: &SsePiece, messages: &[PermittedMessage<'_>]) -> Self {
        let events: Vec<Self> =
            messages.iter().map(|message| Self::event_with_message(piece, message, true)).collect();
        if events.is_empty() { Self::event_without_data(piece) } else { Self::concat(&events) }
    }

    /// An event with a message, rebuilt from its fields; any other content is dropped. An
    /// incomplete event at the end of a stream is not `terminated`, and stays incomplete.
    pub(super) fn event_with_message(
        piece: &SsePiece,
        message: &PermittedMessage<'_>,
        terminated: bool,
    ) -> Self {
        let mut event = Vec::new();
        sse::rewrite_event(&mut event, piece, Some(message.bytes()), terminated);
        Self(Bytes::from(event))
    }

    /// The rest of an event whose data is withheld or blank.
    pub(super) fn event_without_data(piece: &SsePiece) -> Self {
        let mut event = Vec::new();
        sse::rewrite_event(&mut event, piece, None, true);
        Self(Bytes::from(event))
    }

    /// An event as received, whose message may be sent. `message` must be that of the event; if it
    /// was replaced, the event is rebuilt from it.
    pub(super) fn event_as_received(
        piece: &SsePiece,
        message: &PermittedMessage<'_>,
        transparent: UnenforcedProof,
    ) -> Self {
        let data = piece.data.as_deref().unwrap_or_default();
        match place_of(message.bytes(), data) {
            Some(place) if place.len() == data.len() => Self::as_received(piece, transparent),
            _ => Self::event_with_message(piece, message, true),
        }
    }

    /// A piece of an event stream, as received.
    pub(super) fn as_received(piece: &SsePiece, _: UnenforcedProof) -> Self {
        Self(Bytes::copy_from_slice(&piece.raw))
    }

    /// The event that names the endpoint a legacy client posts to.
    pub(super) fn endpoint(path: &str) -> Self {
        Self(event(None, "endpoint", path.as_bytes()))
    }

    /// An event without a message that gives the client an id to resume from.
    pub(super) fn priming_event(id: &str) -> Self {
        Self(Bytes::from(format!("id: {id}\ndata: \n\n")))
    }

    /// Tells the client when to reconnect for the rest of a stream.
    pub(super) fn retry(after: std::time::Duration) -> Self {
        Self(Bytes::from(format!("retry: {}\n\n", after.as_millis())))
    }

    /// A comment, used as a keep-alive.
    pub(super) fn comment(text: &'static str) -> Self {
        Self(Bytes::from(format!(": {text}\n\n")))
    }

    /// Plain text of our own that is not a message.
    pub(super) fn plain_notice(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// A body that is not a message.
    pub(super) fn plain(body: PlainBody) -> Self {
        Self(body.into_bytes())
    }

    /// A piece of an actor's output, framed as part of an event.
    pub(super) fn actor_piece(head: &str, piece: &ActorPiece, tail: &str) -> Self {
        Self(Bytes::from([head.as_bytes(), piece.bytes(), tail.as_bytes()].concat()))
    }

    /// Bytes that this process sends as an endpoint of its own.
    pub(crate) fn originated(bytes: OriginatedBytes<'_>) -> Self {
        Self(Bytes::copy_from_slice(bytes.bytes()))
    }

    /// All parts joined into one.
    pub(super) fn concat(parts: &[Self]) -> Self {
        match parts {
            [one] => one.clone(),
            parts => Self(Bytes::from(parts.iter().map(Self::bytes).collect::<Vec<_>>().concat())),
        }
    }

    /// The same as an event, if it is a message.
    pub(super) fn into_event(self) -> Option<Self> {
        let is_message = !matches!(Frame::read(&self.0).body(), FrameBody::Garbage(_));
        is_message.then(|| Self(event(None, "message", &self.0)))
    }

    /// The bytes, for inspection.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl AsRef<[u8]> for OutboundBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<OutboundBytes> for Bytes {
    fn from(outbound: OutboundBytes) -> Self {
        outbound.0
    }
}

fn event(id: Option<&str>, name: &str, data: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(data.len() + 64);
    sse::write_event(&mut event, id, Some(name), data);
    Bytes::from(event)
}
