//! Raw bytes sent piece by piece, within an event stream or as a plain body.

use tapegate_core::relay::Permitted;

use super::super::super::Outbound;
use super::{Inner, Listening, Stream, wake};
use crate::stage::address::ActorPiece;

/// A queued item.
pub(super) enum Item {
    /// A message, sent as an event.
    Message(Permitted<'static>),
    /// Raw bytes, sent unchanged.
    Piece(Outbound),
}

/// The state of a message sent in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Line {
    /// None has begun, or the last one has ended.
    #[default]
    Closed,
    /// One has begun; nothing else can be sent before it ends.
    Open,
    /// Its reader has gone; the rest is discarded.
    Lost,
}

impl Item {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Message(message) => message.bytes().len(),
            Self::Piece(piece) => piece.bytes().len(),
        }
    }
}

impl Inner {
    /// Whether everything has been added, including the end of a message sent in pieces.
    pub(super) fn is_over(&self) -> bool {
        self.finished && self.line != Line::Open
    }

    /// Discards queued pieces: a message sent in pieces cannot be resumed.
    pub(super) fn lose_pieces(&mut self) {
        if self.line == Line::Open {
            self.line = Line::Lost;
        }
        self.queue.retain(|item| matches!(item, Item::Message(_)));
        self.queue.extend(self.behind.drain(..).map(Item::Message));
        self.queue_bytes = self.queue.iter().map(Item::len).sum();
    }
}

impl Stream {
    /// Adds a piece of an event or of the plain body; false if there is no reader for it.
    pub(in super::super) fn push_piece(&self, piece: &ActorPiece<'_>, ends: bool) -> bool {
        let inner = &mut *self.inner.borrow_mut();
        if inner.listening == Listening::No {
            inner.line = Line::Lost;
        }
        if inner.line == Line::Lost {
            if ends {
                inner.line = Line::Closed;
            }
            return false;
        }
        let head = match (self.plain, inner.line) {
            (false, Line::Closed) => "event: message\ndata: ",
            _ => "",
        };
        let tail = if ends && !self.plain { "\n\n" } else { "" };
        let piece = Outbound::actor_piece(head, piece, tail);
        inner.line = if ends { Line::Closed } else { Line::Open };
        if !piece.is_empty() {
            inner.queue_bytes += piece.bytes().len();
            inner.queue.push_back(Item::Piece(piece));
        }
        if ends {
            inner.queue.extend(inner.behind.drain(..).map(Item::Message));
        }
        wake(inner);
        true
    }
}
