//! Event streams towards a client, and the events recently sent on them.
//!
//! A stream is a queue of messages that outlives its connection: a client whose connection broke
//! asks for it again with the id of the last event it has seen, and gets the rest. For that, sent
//! events are kept in a [`History`] of bounded size, shared by all streams of a session.

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

/// How many bytes may be queued on one stream before its sender waits.
const QUEUE_BYTES_MAX: usize = 1024 * 1024;

/// An event stream towards a client.
pub(super) struct Stream {
    number: u64,
    history: Rc<RefCell<History>>,
    inner: RefCell<Inner>,
    /// Notified when there is more room, or the connection is gone.
    changed: Notify,
    /// Whether events carry ids.
    numbered: Cell<bool>,
    /// Whether it is a plain body sent in pieces instead of an event stream.
    plain: bool,
}

#[derive(Default)]
struct Inner {
    /// Items not sent yet.
    queue: VecDeque<Item>,
    /// Messages that wait for the end of a message sent in pieces.
    behind: VecDeque<Permitted<'static>>,
    /// The total size of both queues.
    queue_bytes: usize,
    /// The state of the message sent in pieces.
    line: Line,
    /// Events that go before the queue unchanged: initial events, and resent ones.
    ahead: VecDeque<Outbound>,
    sent: u64,
    /// Whether no more messages will be added.
    finished: bool,
    /// A scheduled close of the connection before the end of the stream.
    parting: Option<Parting>,
    /// The number of the current connection; older ones have been replaced.
    connection: u64,
    listening: Listening,
    waker: Option<Waker>,
}

/// A connection close that takes its turn after the messages queued before it.
struct Parting {
    /// How many queued messages are sent first.
    after: usize,
    /// The last event, until it is sent.
    words: Option<Outbound>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Listening {
    /// A connection is about to be attached.
    #[default]
    Soon,
    Yes,
    No,
}

impl Stream {
    /// A stream whose connection is about to be attached.
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

    /// A body sent in pieces, whose connection is about to be attached.
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

    /// An event stream that may never get a connection.
    pub(super) fn unattended(number: u64, history: &Rc<RefCell<History>>) -> Rc<Self> {
        let stream = Self::new(number, history);
        stream.inner.borrow_mut().listening = Listening::No;
        stream
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Omits event ids, for a transport that cannot resume.
    pub(super) fn without_ids(&self) {
        self.numbered.set(false);
    }

    /// Whether a connection reads, or is about to.
    pub(super) fn is_attended(&self) -> bool {
        self.inner.borrow().listening != Listening::No
    }

    /// Whether a connection reads.
    pub(super) fn is_connected(&self) -> bool {
        self.inner.borrow().listening == Listening::Yes
    }

    pub(super) fn has_room(&self) -> bool {
        self.inner.borrow().queue_bytes < QUEUE_BYTES_MAX
    }

    /// Adds a message. Callers that can wait check [`Stream::has_room`] first.
    pub(super) fn push(&self, message: Permitted<'static>) {
        let inner = &mut *self.inner.borrow_mut();
        inner.queue_bytes += message.bytes().len();
        match inner.line {
            Line::Open => inner.behind.push_back(message),
            Line::Closed | Line::Lost => inner.queue.push_back(Item::Message(message)),
        }
        if inner.listening == Listening::No && self.number > 0 {
            // No connection reads now, but a client that resumes can ask for it.
            self.file_away(inner);
        }
        wake(inner);
    }

    /// Adds an event of another kind before all messages.
    pub(super) fn begin_with(&self, event: Outbound) {
        self.inner.borrow_mut().ahead.push_back(event);
    }

    /// Sends the client an event id to resume from before the first message.
    pub(super) fn prime(&self) {
        let inner = &mut *self.inner.borrow_mut();
        if !self.numbered.get() || inner.sent > 0 {
            return;
        }
        inner.sent += 1;
        let id = format!("{}-{}", self.number, inner.sent);
        inner.ahead.push_back(Outbound::priming(&id));
    }

    /// Removes the oldest unsent message.
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

    /// Declares that no more messages follow.
    pub(super) fn finish(&self) {
        let inner = &mut *self.inner.borrow_mut();
        inner.finished = true;
        wake(inner);
    }

    /// Closes the connection once all queued messages are sent. The stream stays; later messages
    /// are for the client that resumes it, after `retry`.
    pub(super) fn part(&self, retry: Duration) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.listening != Listening::No && inner.parting.is_none() {
            let words = Some(Outbound::retry(retry));
            inner.parting = Some(Parting { after: inner.queue.len(), words });
            wake(inner);
        }
    }

    /// All events at once, if the stream is finished and no connection reads yet.
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

    /// Drops the connection; the stream stays.
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

    /// Waits until there is room or no reader; false if nothing was read for `stall`.
    pub(super) async fn room(&self, stall: Duration) -> bool {
        while self.is_attended() && !self.has_room() {
            if tokio::time::timeout(stall, self.changed.notified()).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Waits until the queue is at most half full; false if that takes longer than `patience`.
    pub(super) async fn caught_up(&self, patience: Duration) -> bool {
        let half = async {
            while self.is_attended() && self.inner.borrow().queue_bytes > QUEUE_BYTES_MAX / 2 {
                self.changed.notified().await;
            }
        };
        tokio::time::timeout(patience, half).await.is_ok()
    }

    /// Schedules every event sent after event `number` to be sent again.
    pub(super) fn rewind(&self, number: u64) {
        let inner = &mut *self.inner.borrow_mut();
        inner.parting = None;
        inner.ahead = self.history.borrow().after(EventId { stream: self.number, number });
    }

    /// Moves unsent messages to the history.
    fn file_away(&self, inner: &mut Inner) {
        while let Some(item) = inner.queue.pop_front() {
            if let Item::Message(message) = item {
                self.event(inner, &message);
            }
        }
        inner.queue_bytes = 0;
        inner.ahead.clear();
    }

    /// Turns a message into the next event and remembers it.
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
