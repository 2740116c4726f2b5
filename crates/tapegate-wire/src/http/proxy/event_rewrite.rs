//! Rewrites the events of a server's stream for the client.
//!
//! Parsers of event streams differ in what they accept as a byte order mark, a line end or a field
//! name. So while a policy is enforced, no byte of a stream is passed on as received. Each event is
//! rebuilt from its parsed fields: the evaluated message, `event: message`, `id` and `retry`; an
//! empty comment replaces anything else. Otherwise streams pass byte for byte.

use tapegate_core::frame::Frame;
use tapegate_core::side::Side;
use tapegate_core::sse::SsePiece;

use super::super::OutboundBytes;
use super::super::request_headers::LAST_EVENT_ID;
use super::super::shared_session::{GateResult, SessionStoppedError, UnenforcedProof};
use super::ProxyExchange;
use super::gated_request::may_be_message;
use super::reply::is_message;
use crate::recorded_session::Disposition;

const OTHER_LINES: &str = "a line of the event stream is neither a field nor a comment";
const OTHER_NAME: &str = "an event that is not named `message` carries data that may be a message";

/// The kind of an event, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SseEventKind {
    Message,
    /// Names the endpoint a legacy client posts to.
    Endpoint,
    /// Not defined by the protocol.
    Other,
}

impl SseEventKind {
    fn of(piece: &SsePiece, terminated: bool) -> Self {
        match piece.event.as_deref() {
            None | Some(b"message") => Self::Message,
            // A partial `endpoint` may be cut off in the middle of a path.
            Some(b"endpoint") if terminated => Self::Endpoint,
            Some(_) => Self::Other,
        }
    }
}

impl ProxyExchange {
    /// Records an event's message and returns the bytes to send. An incomplete event at the end of
    /// a stream is not `terminated`, but a client may treat it as complete.
    pub(super) fn forward_event(
        &mut self,
        piece: &SsePiece,
        terminated: bool,
    ) -> Result<OutboundBytes, SessionStoppedError> {
        // A parser with other rules may find a message in such a line.
        if piece.has_other_lines {
            self.note_dropped(&piece.raw, OTHER_LINES)?;
        }
        let renamed = self.mask_event_id(piece)?;
        let piece = renamed.as_ref().unwrap_or(piece);
        // Asked per event, because the policy may change while a stream is open.
        let transparent = self.proxy.shared_session.transparent();
        let kind = SseEventKind::of(piece, terminated);
        let data = piece.data.as_deref().filter(|data| !data.is_empty());
        match (kind, data) {
            (_, None) => Ok(event_without_message(piece, transparent)),
            (SseEventKind::Message, Some(data)) => {
                if data.trim_ascii().is_empty() && transparent.is_none() {
                    return Ok(OutboundBytes::event_without_data(piece));
                }
                let frame = self.proxy.shared_session.read(data);
                self.forward_message_event(piece, &frame, terminated, transparent)
            }
            (SseEventKind::Endpoint, Some(data)) => {
                Ok(self.forward_endpoint_event(piece, data, transparent))
            }
            (SseEventKind::Other, Some(data)) => {
                self.forward_named_event(piece, data, terminated, transparent)
            }
        }
    }

    /// Passes on an event that carries a message.
    fn forward_message_event(
        &mut self,
        piece: &SsePiece,
        frame: &Frame<'_>,
        terminated: bool,
        transparent: Option<UnenforcedProof>,
    ) -> Result<OutboundBytes, SessionStoppedError> {
        self.learn_tools(frame);
        let (lane, how) = (self.lane(), (self.is_resumption(), terminated));
        let GateResult { disposition, outgoing } =
            self.proxy.shared_session.receive_from_server(lane, frame, how)?;
        let mut to_client = self.send_server_part(outgoing);
        match (disposition, transparent) {
            (Disposition::Forward(message), Some(transparent)) if !message.is_replaced() => {
                return Ok(OutboundBytes::event_as_received(piece, &message, transparent));
            }
            (Disposition::Forward(message), _) if to_client.is_empty() => {
                return Ok(OutboundBytes::event_with_message(piece, &message, terminated));
            }
            (Disposition::Forward(message), _) => to_client.insert(0, message),
            (Disposition::Refuse(()) | Disposition::Hold(_) | Disposition::Consume, _) => {
                // The event may have been the answer that the client waits for.
                self.has_dropped |= to_client.is_empty();
            }
        }
        Ok(OutboundBytes::events_in_place_of(piece, &to_client))
    }

    /// Passes on an event that clients ignore because of its name. The name is the server's choice,
    /// and some parsers may disregard it.
    fn forward_named_event(
        &mut self,
        piece: &SsePiece,
        data: &[u8],
        terminated: bool,
        transparent: Option<UnenforcedProof>,
    ) -> Result<OutboundBytes, SessionStoppedError> {
        let frame = self.proxy.shared_session.read(data);
        let governed = self.proxy.shared_session.is_governed();
        // Enforced: nothing passes under a name that only most parsers respect.
        if transparent.is_none() {
            if is_message(&frame) || may_be_message(&frame) {
                self.note_dropped(data, OTHER_NAME)?;
            }
            return Ok(OutboundBytes::event_without_data(piece));
        }
        if governed && is_message(&frame) {
            return self.forward_message_event(piece, &frame, terminated, transparent);
        }
        Ok(event_without_message(piece, transparent))
    }

    /// Has the gate record data that is withheld while a policy is enforced.
    fn note_dropped(&mut self, bytes: &[u8], reason: &str) -> Result<(), SessionStoppedError> {
        if !self.proxy.shared_session.is_governed() {
            return Ok(());
        }
        let lane = self.lane();
        self.has_dropped |=
            self.proxy.shared_session.check_ambiguous(lane, Side::Server, bytes, reason)?;
        Ok(())
    }

    /// Whether the client resumes a stream.
    fn is_resumption(&self) -> bool {
        self.client_message.is_none() && self.headers.contains_key(LAST_EVENT_ID)
    }
}

/// The bytes sent for a piece without a message.
fn event_without_message(piece: &SsePiece, transparent: Option<UnenforcedProof>) -> OutboundBytes {
    match transparent {
        Some(transparent) => OutboundBytes::as_received(piece, transparent),
        None => OutboundBytes::event_without_data(piece),
    }
}
