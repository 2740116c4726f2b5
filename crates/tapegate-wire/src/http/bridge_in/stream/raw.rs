//! What is sent as it is, piece by piece, on a stream of messages or in place of one.

use bytes::Bytes;

use super::{Inner, Listening, Stream, wake};

/// Something to be sent.
pub(super) enum Item {
    /// A message, which becomes an event.
    Message(Bytes),
    /// Bytes as they are.
    Piece(Bytes),
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
    pub(super) fn bytes(&self) -> &Bytes {
        match self {
            Self::Message(bytes) | Self::Piece(bytes) => bytes,
        }
    }

    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Message(bytes) | Self::Piece(bytes) => bytes,
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
        self.queue_bytes = self.queue.iter().map(|item| item.bytes().len()).sum();
    }
}

impl Stream {
    /// Adds a piece of an event, or of the body that this is; whether somebody may get it.
    pub(in super::super) fn push_piece(&self, bytes: &[u8], ends: bool) -> bool {
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
        let head: &[u8] = match (self.plain, inner.line) {
            (false, Line::Closed) => b"event: message\ndata: ",
            _ => b"",
        };
        let tail: &[u8] = if ends && !self.plain { b"\n\n" } else { b"" };
        let piece = Bytes::from([head, bytes, tail].concat());
        inner.line = if ends { Line::Closed } else { Line::Open };
        if !piece.is_empty() {
            inner.queue_bytes += piece.len();
            inner.queue.push_back(Item::Piece(piece));
        }
        if ends {
            inner.queue.extend(inner.behind.drain(..).map(Item::Message));
        }
        wake(inner);
        true
    }
}
