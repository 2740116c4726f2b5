//! Event streams towards a client, and what was sent on them lately.
//!
//! A stream is a queue of messages that outlives its connection: a client whose connection broke
//! asks for it again with the id of the last event it has seen, and gets the rest. What was sent
//! is kept for that in a [`History`] of bounded size, shared by all streams of a session.

mod outlet;
mod raw;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use tapegate_core::relay::Permitted;
use tokio::sync::Notify;

use super::super::Outbound;
use super::history::{EventId, History, Sent};
pub(super) use outlet::KEEP_ALIVE;
use raw::{Item, Line};

/// What may wait on one stream before its sender waits too.
const QUEUE_BYTES_MAX: usize = 1024 * 1024;

/// An event stream towards a client.
pub(super) struct Stream {
    number: u64,
    history: Rc<RefCell<History>>,
    inner: RefCell<Inner>,
    /// Somebody waits for room, or for the connection to go.
    changed: Notify,
    /// Whether events carry ids.
    numbered: Cell<bool>,
    /// Whether it is no stream of events, but a body that comes in pieces.
    plain: bool,
}

#[derive(Default)]
struct Inner {
    /// What was not sent yet.
    queue: VecDeque<Item>,
    /// Messages that wait for the end of what is sent in pieces.
    behind: VecDeque<Permitted<'static>>,
    /// How much is in both.
    queue_bytes: usize,
    /// What is sent in pieces.
    line: Line,
    /// Events that go before the queue as they are: first words, and what is sent again.
    ahead: VecDeque<Outbound>,
    sent: u64,
    /// Nothing more comes.
    finished: bool,
    /// How the connection ends before the stream does, if it is to.
    parting: Option<Parting>,
    /// The connection, by number; an older one has been replaced.
    connection: u64,
    listening: Listening,
    waker: Option<Waker>,
}

/// The end of a connection, behind what was said before it.
struct Parting {
    /// How many messages of the queue go before it.
    after: usize,
    /// The last event, until it is sent.
    words: Option<Outbound>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Listening {
    /// A connection is about to come.
    #[default]
    Soon,
    Yes,
    No,
}

impl Stream {
    /// A stream whose connection is about to come.
    pub(super) fn new(number: u64, history: &Rc<RefCell<History>>) -> Rc<Self> {
        Rc::new(Self {
            number,
            history: Rc::clone(history),
            inner: RefCell::default(),
            changed: Notify::new(),
            numbered: Cell::new(true),
            plain: false,
        })
    }

    /// A body that comes in pieces, whose connection is about to come.
    pub(super) fn plain(history: &Rc<RefCell<History>>) -> Rc<Self> {
        Rc::new(Self {
            number: 0,
            history: Rc::clone(history),
            inner: RefCell::default(),
            changed: Notify::new(),
            numbered: Cell::new(false),
            plain: true,
        })
    }

    /// The same, where no connection may ever come.
    pub(super) fn unattended(number: u64, history: &Rc<RefCell<History>>) -> Rc<Self> {
        let stream = Self::new(number, history);
        stream.inner.borrow_mut().listening = Listening::No;
        stream
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Leaves out event ids, for a transport that cannot resume.
    pub(super) fn without_ids(&self) {
        self.numbered.set(false);
    }

    /// Whether somebody reads, or is about to.
    pub(super) fn is_attended(&self) -> bool {
        self.inner.borrow().listening != Listening::No
    }

    /// Whether somebody reads.
    pub(super) fn is_connected(&self) -> bool {
        self.inner.borrow().listening == Listening::Yes
    }

    pub(super) fn has_room(&self) -> bool {
        self.inner.borrow().queue_bytes < QUEUE_BYTES_MAX
    }

    /// Adds a message; whoever may wait asks [`Stream::has_room`] first.
    pub(super) fn push(&self, message: Permitted<'static>) {
        let inner = &mut *self.inner.borrow_mut();
        inner.queue_bytes += message.bytes().len();
        match inner.line {
            Line::Open => inner.behind.push_back(message),
            Line::Closed | Line::Lost => inner.queue.push_back(Item::Message(message)),
        }
        if inner.listening == Listening::No && self.number > 0 {
            // Nobody reads now, but who comes back can ask for it.
            self.file_away(inner);
        }
        wake(inner);
    }

    /// Adds an event of another kind, before all messages.
    pub(super) fn begin_with(&self, event: Outbound) {
        self.inner.borrow_mut().ahead.push_back(event);
    }

    /// Gives the client an id to come back with before there is anything to say.
    pub(super) fn prime(&self) {
        let inner = &mut *self.inner.borrow_mut();
        if !self.numbered.get() || inner.sent > 0 {
            return;
        }
        inner.sent += 1;
        let id = format!("{}-{}", self.number, inner.sent);
        inner.ahead.push_back(Outbound::priming(&id));
    }

    /// Takes the oldest message that was not sent.
    pub(super) fn take_oldest(&self) -> Option<Permitted<'static>> {
        let inner = &mut *self.inner.borrow_mut();
        loop {
            let item = inner.queue.pop_front()?;
            inner.queue_bytes -= item.len();
            if let Item::Message(message) = item {
                return Some(message);
            }
        }
    }

    /// Says that nothing more comes.
    pub(super) fn finish(&self) {
        let inner = &mut *self.inner.borrow_mut();
        inner.finished = true;
        wake(inner);
    }

    /// Ends the connection in order, once it has what there is. The stream stays, and what comes
    /// from now on is for whoever asks for the rest; `retry` tells when to.
    pub(super) fn part(&self, retry: Duration) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.listening != Listening::No && inner.parting.is_none() {
            let words = Some(Outbound::retry(retry));
            inner.parting = Some(Parting { after: inner.queue.len(), words });
            wake(inner);
        }
    }

    /// Everything, if nothing more comes and nobody reads yet.
    pub(super) fn whole(&self) -> Option<Outbound> {
        let inner = &mut *self.inner.borrow_mut();
        let soon = inner.listening == Listening::Soon;
        if !soon || !inner.is_over() || inner.parting.is_some() {
            return None;
        }
        inner.listening = Listening::No;
        let mut events = vec![self.next(inner)?];
        while let Some(event) = self.next(inner) {
            events.push(event);
        }
        Some(Outbound::joined(&events))
    }

    /// Gives up the connection; the stream stays.
    pub(super) fn break_off(&self) {
        let inner = &mut *self.inner.borrow_mut();
        inner.connection += 1;
        inner.listening = Listening::No;
        inner.parting = None;
        inner.lose_pieces();
        if self.number > 0 {
            self.file_away(inner);
        }
        wake(inner);
    }

    /// Waits until there is room or nobody reads any more; false if nothing moved for `stall`.
    pub(super) async fn room(&self, stall: Duration) -> bool {
        while self.is_attended() && !self.has_room() {
            if tokio::time::timeout(stall, self.changed.notified()).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Waits until the reader has caught up by half; false if that takes longer than `patience`.
    pub(super) async fn caught_up(&self, patience: Duration) -> bool {
        let half = async {
            while self.is_attended() && self.inner.borrow().queue_bytes > QUEUE_BYTES_MAX / 2 {
                self.changed.notified().await;
            }
        };
        tokio::time::timeout(patience, half).await.is_ok()
    }

    /// Has everything that was sent after event `number` sent again.
    pub(super) fn rewind(&self, number: u64) {
        let inner = &mut *self.inner.borrow_mut();
        inner.parting = None;
        inner.ahead = self.history.borrow().after(EventId { stream: self.number, number });
    }

    /// Moves what was not sent to the history.
    fn file_away(&self, inner: &mut Inner) {
        while let Some(item) = inner.queue.pop_front() {
            if let Item::Message(message) = item {
                self.event(inner, &message);
            }
        }
        inner.queue_bytes = 0;
        inner.ahead.clear();
    }

    /// Makes a message the next event and remembers it.
    fn event(&self, inner: &mut Inner, message: &Permitted<'_>) -> Outbound {
        inner.sent += 1;
        let id = self.numbered.get().then(|| format!("{}-{}", self.number, inner.sent));
        let event = Outbound::event(message, id.as_deref());
        if self.numbered.get() {
            let id = EventId { stream: self.number, number: inner.sent };
            self.history.borrow_mut().keep(Sent { id, event: event.clone() });
        }
        event
    }

    fn next(&self, inner: &mut Inner) -> Option<Outbound> {
        if let Some(event) = inner.ahead.pop_front() {
            return Some(event);
        }
        if let Some(parting) = &mut inner.parting {
            if parting.after == 0 {
                return parting.words.take();
            }
            parting.after -= 1;
        }
        let item = inner.queue.pop_front()?;
        inner.queue_bytes -= item.len();
        self.changed.notify_one();
        Some(match item {
            Item::Message(message) => self.event(inner, &message),
            Item::Piece(piece) => piece,
        })
    }
}

fn wake(inner: &mut Inner) {
    if let Some(waker) = inner.waker.take() {
        waker.wake();
    }
}
