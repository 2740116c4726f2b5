//! Rewrites the events of a server's stream for the client.
//!
//! Parsers of event streams differ in what they accept as a byte order mark, a line end or a field
//! name. So while a policy is enforced, no byte of a stream is passed on as received. Each event is
//! rebuilt from its parsed fields: the evaluated message, `event: message`, `id` and `retry`; an
//! empty comment replaces anything else. Otherwise streams pass byte for byte.

use http::HeaderName;
use tapegate_core::frame::Frame;
use tapegate_core::side::Side;
use tapegate_core::sse::Piece;

use super::super::Outbound;
use super::super::station::{Judged, Stopped, Transparent};
use super::Exchange;
use super::gated::may_be_message;
use super::reply::is_message;
use crate::deck::Disposition;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const OTHER_LINES: &str = "a line of the event stream is neither a field nor a comment";
const OTHER_NAME: &str = "an event that is not named `message` carries data that may be a message";

/// The kind of an event, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    Message,
    /// Names the endpoint a legacy client posts to.
    Endpoint,
    /// Not defined by the protocol.
    Other,
}

impl EventKind {
    fn of(piece: &Piece, terminated: bool) -> Self {
        match piece.event.as_deref() {
            None | Some(b"message") => Self::Message,
            Some(b"endpoint") if terminated => Self::Endpoint,
            Some(_) => Self::Other,
        }
    }
}

impl Exchange {
    /// Records an event's message and returns the bytes to send. An incomplete event at the end of
    /// a stream is not `terminated`, but a client may treat it as complete.
    pub(super) fn pass_event(
        &mut self,
        piece: &Piece,
        terminated: bool,
    ) -> Result<Outbound, Stopped> {
        if piece.has_other_lines {
            self.note_odd(&piece.raw, OTHER_LINES)?;
        }
        let renamed = self.mask_event_id(piece)?;
        let piece = renamed.as_ref().unwrap_or(piece);
        let transparent = self.proxy.station.transparent();
        let kind = EventKind::of(piece, terminated);
        let data = piece.data.as_deref().filter(|data| !data.is_empty());
        match (kind, data) {
            (_, None) => Ok(unread(piece, transparent)),
            (EventKind::Message, Some(data)) => {
                self.pass_message(piece, data, terminated, transparent)
            }
            (EventKind::Endpoint, Some(data)) => Ok(self.pass_endpoint(piece, data, transparent)),
            (EventKind::Other, Some(data)) => self.pass_other(piece, data, terminated, transparent),
        }
    }

    /// Passes on an event that carries a message.
    fn pass_message(
        &mut self,
        piece: &Piece,
        data: &[u8],
        terminated: bool,
        transparent: Option<Transparent>,
    ) -> Result<Outbound, Stopped> {
        if data.trim_ascii().is_empty() && transparent.is_none() {
            return Ok(Outbound::event_without_data(piece));
        }
        self.learn(data);
        let (lane, how) = (self.lane(), (self.resumes(), terminated));
        let Judged { disposition, said } = self.proxy.station.hear(lane, data, how)?;
        let mut told = self.tell_apart(said);
        match (disposition, transparent) {
            (Disposition::Forward(message), Some(transparent)) if !message.is_replaced() => {
                return Ok(Outbound::event_as_received(piece, &message, transparent));
            }
            (Disposition::Forward(message), _) if told.is_empty() => {
                return Ok(Outbound::event_of(piece, &message, terminated));
            }
            (Disposition::Forward(message), _) => told.insert(0, message),
            (Disposition::Refuse(()) | Disposition::Hold(_), _) => {
                self.has_dropped |= told.is_empty();
            }
        }
        Ok(Outbound::instead_of(piece, &told))
    }

    /// Passes on an event that clients ignore because of its name. The name is the server's choice,
    /// and some parsers may disregard it.
    fn pass_other(
        &mut self,
        piece: &Piece,
        data: &[u8],
        terminated: bool,
        transparent: Option<Transparent>,
    ) -> Result<Outbound, Stopped> {
        let frame = Frame::read(data);
        let governed = self.proxy.station.is_governed();
        if transparent.is_none() {
            if is_message(&frame) || may_be_message(&frame) {
                self.note_odd(data, OTHER_NAME)?;
            }
            return Ok(Outbound::event_without_data(piece));
        }
        if governed && is_message(&frame) {
            return self.pass_message(piece, data, terminated, transparent);
        }
        Ok(unread(piece, transparent))
    }

    /// Has the gate record data that is withheld while a policy is enforced.
    fn note_odd(&mut self, bytes: &[u8], why: &str) -> Result<(), Stopped> {
        if !self.proxy.station.is_governed() {
            return Ok(());
        }
        let lane = self.lane();
        self.has_dropped |= self.proxy.station.rejects(lane, Side::Server, bytes, why)?;
        Ok(())
    }

    /// Whether the client resumes a stream.
    fn resumes(&self) -> bool {
        self.asked.is_none() && self.headers.contains_key(LAST_EVENT_ID)
    }
}

/// The bytes sent for a piece without a message.
fn unread(piece: &Piece, transparent: Option<Transparent>) -> Outbound {
    match transparent {
        Some(transparent) => Outbound::as_received(piece, transparent),
        None => Outbound::event_without_data(piece),
    }
}
