//! What all exchanges of one recording share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tapegate_core::relay::Event;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tokio::sync::Notify;

use crate::deck::{Deck, Outgoing};

/// One recording that many exchanges feed, on one thread.
pub struct Station {
    deck: RefCell<Deck>,
    message_bytes_max: usize,
    stop: Notify,
    stopped: Cell<bool>,
    tape_error: RefCell<Option<RecordError>>,
    sessionless: Cell<Option<Lane>>,
    /// How many messages of clients nobody has read.
    unread: Cell<u64>,
}

/// Nothing may pass any more: the tape failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("recording has stopped")]
pub struct Stopped;

impl Station {
    /// A station that records with `deck`.
    pub fn new(deck: Deck, message_bytes_max: usize) -> Rc<Self> {
        Rc::new(Self {
            deck: RefCell::new(deck),
            message_bytes_max,
            stop: Notify::new(),
            stopped: Cell::new(false),
            tape_error: RefCell::new(None),
            sessionless: Cell::new(None),
            unread: Cell::new(0),
        })
    }

    /// The largest message that passes.
    pub fn message_bytes_max(&self) -> usize {
        self.message_bytes_max
    }

    /// Records a message that arrived. When this returns `Ok` it is on the tape and may be sent.
    pub fn receive(&self, lane: Lane, from: Side, bytes: &[u8]) -> Result<(), Stopped> {
        self.pass(Event::Received { lane, from, bytes, terminated: true }).map(drop)
    }

    /// Records a message of the server, which came on a stream that was gone on with if `resumed`.
    pub fn hear(&self, lane: Lane, bytes: &[u8], resumed: bool) -> Result<(), Stopped> {
        let (from, terminated) = (Side::Server, true);
        self.pass(match resumed {
            true => Event::Resumed { lane, bytes, terminated },
            false => Event::Received { lane, from, bytes, terminated },
        })
        .map(drop)
    }

    /// Feeds an event and has it recorded; returns what is to be sent because of it.
    pub fn pass(&self, event: Event<'_>) -> Result<Vec<Outgoing>, Stopped> {
        if self.stopped.get() {
            return Err(Stopped);
        }
        if let Event::TooLarge { from: Side::Client, .. } = event {
            self.unread.set(self.unread.get() + 1);
        }
        self.deck.borrow_mut().pass(event).map_err(|error| {
            *self.tape_error.borrow_mut() = Some(error);
            self.stopped.set(true);
            self.stop.notify_one();
            Stopped
        })
    }

    /// How many messages of clients were over the limit, so that nobody has read them.
    pub fn unread(&self) -> u64 {
        self.unread.get()
    }

    /// A lane for a new session.
    pub fn open_session(&self) -> Lane {
        self.deck.borrow_mut().open_session()
    }

    /// A lane for one exchange of a client without a session.
    pub fn open_exchange(&self) -> Lane {
        let session = self.sessionless.get().unwrap_or_else(|| self.open_session());
        self.sessionless.set(Some(session));
        self.deck.borrow_mut().open_exchange(session)
    }

    /// Takes `lane` as the session of all clients without one, if there is none yet.
    pub fn adopt(&self, lane: Lane) {
        if self.sessionless.get().is_none() {
            self.sessionless.set(Some(lane));
        }
    }

    /// Waits until the tape has failed, and says why.
    pub async fn failed(&self) -> RecordError {
        loop {
            if let Some(error) = self.tape_error.borrow_mut().take() {
                return error;
            }
            self.stop.notified().await;
        }
    }

    /// The deck, for whoever ends the recording.
    pub fn deck(&self) -> std::cell::RefMut<'_, Deck> {
        self.deck.borrow_mut()
    }
}
