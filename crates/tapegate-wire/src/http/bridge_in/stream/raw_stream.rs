//! Raw bytes sent piece by piece, within an event stream or as a plain body.

use tapegate_core::relay::PermittedMessage;

use super::super::super::OutboundBytes;
use super::{ClientStream, ListenState, StreamState, wake};
use crate::actor_host::raw_piece::ActorPiece;

/// A queued item.
pub(super) enum StreamItem {
    /// A message, sent as an event.
    Message(PermittedMessage<'static>),
    /// Raw bytes, sent unchanged.
    Piece(OutboundBytes),
}

/// The state of a message sent in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LineStatus {
    /// None has begun, or the last one has ended.
    #[default]
    Closed,
    /// One has begun; nothing else can be sent before it ends.
    Open,
    /// Its reader has gone; the rest is discarded.
    Lost,
}

impl StreamItem {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Message(message) => message.bytes().len(),
            Self::Piece(piece) => piece.bytes().len(),
        }
    }
}

impl StreamState {
    /// Whether everything has been added, including the end of a message sent in pieces.
    pub(super) fn is_finished(&self) -> bool {
        self.finished && self.line != LineStatus::Open
    }

    /// Discards queued pieces: a message sent in pieces cannot be resumed.
    pub(super) fn drop_pieces(&mut self) {
        if self.line == LineStatus::Open {
            self.line = LineStatus::Lost;
        }
        self.queue.retain(|item| matches!(item, StreamItem::Message(_)));
        // Messages that waited for the last piece must not wait for it any longer.
        self.queue.extend(self.behind.drain(..).map(StreamItem::Message));
        self.queue_bytes = self.queue.iter().map(StreamItem::len).sum();
    }
}

impl ClientStream {
    /// Adds a piece of an event or of the plain body; false if there is no reader for it.
    pub(in super::super) fn push_piece(&self, piece: &ActorPiece, ends: bool) -> bool {
        let inner = &mut *self.inner.borrow_mut();
        if inner.listening == ListenState::No {
            inner.line = LineStatus::Lost;
        }
        if inner.line == LineStatus::Lost {
            // The next message starts fresh, even though this one was lost.
            if ends {
                inner.line = LineStatus::Closed;
            }
            return false;
        }
        let head = match (self.plain, inner.line) {
            (false, LineStatus::Closed) => "event: message\ndata: ",
            _ => "",
        };
        let tail = if ends && !self.plain { "\n\n" } else { "" };
        let piece = OutboundBytes::actor_piece(head, piece, tail);
        inner.line = if ends { LineStatus::Closed } else { LineStatus::Open };
        if !piece.is_empty() {
            inner.queue_bytes += piece.bytes().len();
            inner.queue.push_back(StreamItem::Piece(piece));
        }
        // Kept in order: these arrived while the message was under way.
        if ends {
            inner.queue.extend(inner.behind.drain(..).map(StreamItem::Message));
        }
        wake(inner);
        true
    }
}
