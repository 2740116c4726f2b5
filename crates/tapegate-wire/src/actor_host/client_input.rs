//! The messages of a client: lines on a pipe, or whole messages from a bridge.

use tapegate_core::lines::{LineSplitter, OversizeMessage, StreamLine};
use tapegate_core::relay::PermittedMessage;
use tokio::sync::mpsc;

use crate::port::StreamPort;

/// Messages from a bridge that are sent together.
pub(crate) type MessageGroup = Vec<PermittedMessage<'static>>;

/// The input of an actor session.
pub(super) enum ClientInput {
    Pipe {
        /// The client's output, until it has ended or is no longer read.
        port: Option<StreamPort>,
        lines: LineSplitter,
    },
    Bridge {
        /// The bridge's messages, until it sends no more or is no longer read from.
        queue: Option<mpsc::Receiver<MessageGroup>>,
        group: std::vec::IntoIter<PermittedMessage<'static>>,
        current: Option<PermittedMessage<'static>>,
    },
}

/// A message of a client.
pub(super) enum ClientLine<'a> {
    /// A message, and whether its line has ended.
    Message(&'a [u8], bool),
    /// A message over the size limit.
    Oversize(OversizeMessage),
}

impl ClientInput {
    /// Lines of at most `line_bytes_max` bytes.
    pub(super) fn pipe(port: StreamPort, line_bytes_max: usize) -> Self {
        Self::Pipe { port: Some(port), lines: LineSplitter::new(line_bytes_max) }
    }

    /// Messages whose size the bridge has checked.
    pub(super) fn bridge(queue: mpsc::Receiver<MessageGroup>) -> Self {
        Self::Bridge { queue: Some(queue), group: Vec::new().into_iter(), current: None }
    }

    /// Whether more may follow.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Pipe { port, .. } => port.is_some(),
            Self::Bridge { queue, .. } => queue.is_some(),
        }
    }

    /// Stops reading.
    pub(super) fn close(&mut self) {
        match self {
            Self::Pipe { port, .. } => *port = None,
            Self::Bridge { queue, .. } => *queue = None,
        }
    }

    /// Waits until there is more to take, or the input has ended.
    pub(super) async fn read(&mut self) {
        let is_more = match self {
            Self::Pipe { port: Some(port), lines } => {
                // A hung-up terminal or socket reads as an error; treat it as end of input.
                let count = port.read(lines.read_buffer()).await.unwrap_or(0);
                lines.filled(count);
                count > 0
            }
            Self::Bridge { queue: Some(queue), group, .. } => match queue.recv().await {
                Some(messages) => {
                    *group = messages.into_iter();
                    true
                }
                None => false,
            },
            Self::Pipe { port: None, .. } | Self::Bridge { queue: None, .. } => false,
        };
        if !is_more {
            self.close();
        }
    }

    /// Takes the next message that was read.
    pub(super) fn next_line(&mut self) -> Option<ClientLine<'_>> {
        match self {
            Self::Pipe { port, lines } => {
                let mut cut = lines.next_line();
                if cut.is_none() {
                    lines.release();
                    if port.is_none() {
                        cut = lines.take_rest();
                    }
                }
                Some(match cut? {
                    StreamLine::Line(range) => ClientLine::Message(lines.bytes(range), true),
                    StreamLine::Unterminated(range) => {
                        ClientLine::Message(lines.bytes(range), false)
                    }
                    StreamLine::Oversize(message) => ClientLine::Oversize(message),
                })
            }
            Self::Bridge { group, current, .. } => {
                *current = group.next();
                current.as_ref().map(|message| ClientLine::Message(message.bytes(), true))
            }
        }
    }
}
