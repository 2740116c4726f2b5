//! The messages of a client: lines on a pipe, or whole messages from a bridge.

use tapegate_core::relay::PermittedMessage;
use tokio::sync::mpsc;

use crate::port::{LineReader, ReceivedLine};

/// Messages from a bridge that are sent together.
pub(crate) type MessageGroup = Vec<PermittedMessage<'static>>;

/// The input of an actor session.
pub(super) enum ClientInput {
    Pipe(LineReader),
    Bridge(BridgeInput),
}

/// Messages from a bridge, which has checked their sizes.
pub(super) struct BridgeInput {
    queue: mpsc::Receiver<MessageGroup>,
    group: std::vec::IntoIter<PermittedMessage<'static>>,
    current: Option<PermittedMessage<'static>>,
}

impl ClientInput {
    pub(super) fn from_bridge(queue: mpsc::Receiver<MessageGroup>) -> Self {
        Self::Bridge(BridgeInput { queue, group: Vec::new().into_iter(), current: None })
    }

    /// Whether messages of a bridge wait to be taken.
    pub(super) fn has_waiting(&self) -> bool {
        match self {
            Self::Pipe(_) => false,
            Self::Bridge(input) => input.group.len() > 0 || !input.queue.is_empty(),
        }
    }

    /// Waits until there is more to take; false at the end.
    pub(super) async fn read(&mut self) -> bool {
        match self {
            Self::Pipe(reader) => reader.read().await,
            Self::Bridge(input) => {
                let group = input.queue.recv().await;
                let is_more = group.is_some();
                input.group = group.unwrap_or_default().into_iter();
                is_more
            }
        }
    }

    /// Takes the next message that was read; once the input `is_over`, also an incomplete one.
    pub(super) fn next_line(&mut self, is_over: bool) -> Option<ReceivedLine<'_>> {
        match self {
            Self::Pipe(reader) => reader.next_line(is_over),
            Self::Bridge(input) => {
                input.current = input.group.next();
                input.current.as_ref().map(|message| ReceivedLine::Line(message.bytes(), true))
            }
        }
    }
}
