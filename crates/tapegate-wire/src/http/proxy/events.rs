//! Events of a server's stream on their way to the client.
//!
//! Readers of event streams differ: in what they take for the mark at a stream's start, for a line end,
//! for a field's name. So while a policy is enforced no byte of a stream is passed on. Each event is
//! written again from what was read of it: the message that was judged, `event: message`, `id` and
//! `retry`; a comment without text stands for anything else. Otherwise streams pass byte for byte.

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
const OTHER_NAME: &str = "an event of another name than `message` carries what may be a message";

/// What an event is by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    Message,
    /// It tells a legacy client where to post.
    Endpoint,
    /// Nothing that the protocol knows.
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
    /// Records what an event carries and returns the bytes to send. Half an event at the end of a
    /// stream is `terminated` by nothing, but may be taken for a whole one.
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

    /// Passes on an event that clients pass over because of its name. By what name an event goes is
    /// the server's choice, and some reader may not mind.
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

    /// Has the gate note what does not leave while a policy is enforced.
    fn note_odd(&mut self, bytes: &[u8], why: &str) -> Result<(), Stopped> {
        if !self.proxy.station.is_governed() {
            return Ok(());
        }
        let lane = self.lane();
        self.has_dropped |= self.proxy.station.rejects(lane, Side::Server, bytes, why)?;
        Ok(())
    }

    /// Whether the client goes on with a stream that it has seen the beginning of.
    fn resumes(&self) -> bool {
        self.asked.is_none() && self.headers.contains_key(LAST_EVENT_ID)
    }
}

/// What is sent of a piece without a message.
fn unread(piece: &Piece, transparent: Option<Transparent>) -> Outbound {
    match transparent {
        Some(transparent) => Outbound::as_received(piece, transparent),
        None => Outbound::event_without_data(piece),
    }
}
