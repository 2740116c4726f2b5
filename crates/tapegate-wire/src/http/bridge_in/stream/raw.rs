//! What is sent as it is, piece by piece, on a stream of messages or in place of one.

use tapegate_core::relay::Permitted;

use super::super::super::Outbound;
use super::{Inner, Listening, Stream, wake};
use crate::stage::address::ActorPiece;

/// Something to be sent.
pub(super) enum Item {
    /// A message, which becomes an event.
    Message(Permitted<'static>),
    /// Bytes as they are.
    Piece(Outbound),
}

/// How far it is with what is sent in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Line {
    /// There is nothing of it, or it has ended.
    #[default]
    Closed,
    /// It has begun, and nothing else can be sent before it ends.
    Open,
    /// Its reader has gone; the rest goes nowhere.
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
    /// Whether nothing more comes, not even the end of what has begun.
    pub(super) fn is_over(&self) -> bool {
        self.finished && self.line != Line::Open
    }

    /// Lets go what is sent in pieces: nobody can come back for the rest.
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
    /// Adds a piece of an event, or of the body that this is; whether somebody may get it.
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
