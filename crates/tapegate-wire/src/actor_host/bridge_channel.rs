//! The channel from an actor session to a bridge in the same process.
//!
//! The session adds output without waiting, and passes the actor no more events while too much is
//! queued. So the queue is bounded like the outbox of a client on pipes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use tapegate_core::tape::Provenance;
use tokio::sync::Notify;

use super::client_end::OUT_BYTES_MAX;
use super::raw_piece::ActorPiece;

/// What a queued item counts besides its bytes, so that many small ones are bounded too.
const ITEM_BYTES: usize = size_of::<ActorOutput>();

/// Output of an actor session. `about` is the id of the request it belongs to.
#[derive(Debug)]
pub(crate) enum ActorOutput {
    Message {
        about: Option<Vec<u8>>,
        bytes: Vec<u8>,
        provenance: Provenance,
    },
    /// Bytes that need not be a message: part of the body that answers a request, or of an event.
    Piece {
        about: Option<Vec<u8>>,
        piece: ActorPiece,
        ends: bool,
    },
    /// Ends the stream of a request before its answer.
    StreamEnd {
        about: Vec<u8>,
    },
    /// Closes the client's connection; of clients that share a session, that of the request.
    Disconnect {
        about: Option<Vec<u8>>,
        abrupt: bool,
    },
}

impl ActorOutput {
    fn queued_bytes(&self) -> usize {
        ITEM_BYTES
            + match self {
                Self::Message { bytes, .. } => bytes.len(),
                Self::Piece { piece, .. } => piece.bytes().len(),
                Self::StreamEnd { .. } | Self::Disconnect { .. } => 0,
            }
    }
}

#[derive(Default)]
struct OutputQueue {
    items: RefCell<VecDeque<ActorOutput>>,
    bytes: Cell<usize>,
    closed: Cell<bool>,
    added: Notify,
    taken: Notify,
}

/// The session's end of the channel. Dropping it ends the output.
pub(super) struct OutputSender(Rc<OutputQueue>);

/// The bridge's end of the channel.
pub(crate) struct OutputReceiver(Rc<OutputQueue>);

/// Creates a channel.
pub(super) fn channel() -> (OutputSender, OutputReceiver) {
    let queue: Rc<OutputQueue> = Rc::default();
    (OutputSender(Rc::clone(&queue)), OutputReceiver(queue))
}

impl OutputSender {
    /// Adds output, unless the channel is closed.
    pub(super) fn add(&self, output: ActorOutput) {
        if !self.0.closed.get() {
            self.0.bytes.set(self.0.bytes.get() + output.queued_bytes());
            self.0.items.borrow_mut().push_back(output);
            self.0.added.notify_one();
        }
    }

    /// How much the bridge has not taken yet.
    pub(super) fn queued_bytes(&self) -> usize {
        self.0.bytes.get()
    }

    /// Waits until the bridge has taken something.
    pub(super) async fn taken(&self) {
        self.0.taken.notified().await;
    }

    /// Discards what the bridge has not taken yet.
    pub(super) fn clear(&self) {
        self.0.items.take();
        self.0.bytes.set(0);
    }

    /// Ends the output; anything added later is discarded.
    pub(super) fn close(&self) {
        self.0.closed.set(true);
        self.0.added.notify_one();
    }
}

impl Drop for OutputSender {
    fn drop(&mut self) {
        self.close();
    }
}

impl OutputReceiver {
    /// Waits until so much is queued that the session does nothing before some of it is taken.
    pub(crate) async fn full(&self) {
        while self.0.bytes.get() < OUT_BYTES_MAX {
            self.0.added.notified().await;
        }
    }

    /// Waits for the next output; `None` is the end.
    pub(crate) async fn receive(&self) -> Option<ActorOutput> {
        loop {
            if let Some(output) = self.0.items.borrow_mut().pop_front() {
                self.0.bytes.set(self.0.bytes.get() - output.queued_bytes());
                self.0.taken.notify_one();
                return Some(output);
            }
            if self.0.closed.get() {
                return None;
            }
            self.0.added.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> ActorOutput {
        let (bytes, provenance) = (text.as_bytes().to_vec(), Provenance::default());
        ActorOutput::Message { about: None, bytes, provenance }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn output_is_taken_in_order_and_to_the_end() {
        let (sender, receiver) = channel();
        let piece = ActorPiece::new(b"\n".to_vec());
        sender.add(message("a"));
        sender.add(ActorOutput::Piece { about: None, piece, ends: false });
        sender.add(ActorOutput::Disconnect { about: None, abrupt: false });
        drop(sender);
        let taken: Vec<_> = std::iter::from_fn(|| run(receiver.receive())).collect();
        assert!(matches!(&taken[0], ActorOutput::Message { bytes, .. } if bytes == b"a"));
        assert!(matches!(&taken[1], ActorOutput::Piece { piece, .. } if piece.bytes() == b"\n"));
        assert!(matches!(&taken[2], ActorOutput::Disconnect { .. }));
        assert_eq!(taken.len(), 3);
    }

    #[test]
    fn queued_bytes_are_those_not_taken() {
        let (sender, receiver) = channel();
        sender.add(message("four"));
        sender.add(message(""));
        assert_eq!(sender.queued_bytes(), 4 + 2 * ITEM_BYTES);
        run(receiver.receive());
        assert_eq!(sender.queued_bytes(), ITEM_BYTES);
        sender.clear();
        assert_eq!(sender.queued_bytes(), 0);
        sender.close();
        sender.add(message("late"));
        assert!(run(receiver.receive()).is_none());
    }

    #[test]
    fn each_end_is_woken_by_the_other() {
        let (sender, receiver) = channel();
        let produce = async {
            sender.add(message("a"));
            sender.taken().await;
            drop(sender);
        };
        let consume = async {
            assert!(receiver.receive().await.is_some());
            receiver.receive().await
        };
        assert!(run(async { tokio::join!(consume, produce) }).0.is_none());
    }
}
