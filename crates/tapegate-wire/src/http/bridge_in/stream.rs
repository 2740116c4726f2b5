//! Event streams towards a client, and what was sent on them lately.
//!
//! A stream is a queue of messages that outlives its connection: a client whose connection broke
//! asks for it again with the id of the last event it has seen, and gets the rest. What was sent
//! is kept for that in a [`History`] of bounded size, shared by all streams of a session.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

use super::super::body::{BrokenBody, Pieces};

/// What may wait on one stream before its sender waits too.
const QUEUE_BYTES_MAX: usize = 1024 * 1024;
/// What is kept of a session's events, so that they can be sent again.
const HISTORY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often a stream with nothing to say shows that it is alive.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An event stream towards a client.
pub(super) struct Stream {
    number: u64,
    history: Rc<RefCell<History>>,
    inner: RefCell<Inner>,
    /// Somebody waits for room, or for the connection to go.
    changed: Notify,
    /// Whether events carry ids.
    numbered: Cell<bool>,
}

#[derive(Default)]
struct Inner {
    /// Messages that were not sent yet.
    queue: VecDeque<Bytes>,
    queue_bytes: usize,
    /// Events that go before the queue as they are: first words, and what is sent again.
    ahead: VecDeque<Bytes>,
    sent: u64,
    /// Nothing more comes.
    finished: bool,
    /// The connection, by number; an older one has been replaced.
    connection: u64,
    listening: Listening,
    waker: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Listening {
    /// A connection is about to come.
    #[default]
    Soon,
    Yes,
    No,
}

/// The events of a session that were sent last.
#[derive(Default)]
pub(super) struct History {
    events: VecDeque<Sent>,
    bytes: usize,
}

struct Sent {
    stream: u64,
    number: u64,
    event: Bytes,
}

/// The end of a stream that a connection reads from.
pub(super) struct Outlet {
    stream: Rc<Stream>,
    connection: u64,
    keep_alive: Pin<Box<Sleep>>,
    /// Kept until the connection is gone.
    _guard: Option<Box<dyn std::any::Any>>,
}

/// An event's id: its stream's number and its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

impl EventId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        Some(Self { stream: stream.parse().ok()?, number: number.parse().ok()? })
    }
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

    pub(super) fn has_room(&self) -> bool {
        self.inner.borrow().queue_bytes < QUEUE_BYTES_MAX
    }

    /// Adds a message; whoever may wait asks [`Stream::has_room`] first.
    pub(super) fn push(&self, text: Bytes) {
        let inner = &mut *self.inner.borrow_mut();
        inner.queue_bytes += text.len();
        inner.queue.push_back(text);
        if inner.listening == Listening::No && self.number > 0 {
            // Nobody reads now, but who comes back can ask for it.
            self.file_away(inner);
        }
        wake(inner);
    }

    /// Adds an event of another kind, before all messages.
    pub(super) fn begin_with(&self, event: Bytes) {
        self.inner.borrow_mut().ahead.push_back(event);
    }

    /// Gives the client an id to come back with before there is anything to say.
    pub(super) fn prime(&self) {
        let inner = &mut *self.inner.borrow_mut();
        inner.sent += 1;
        let event = Bytes::from(format!("id: {}-{}\ndata: \n\n", self.number, inner.sent));
        inner.ahead.push_back(event);
    }

    /// Takes the oldest message that was not sent.
    pub(super) fn take_oldest(&self) -> Option<Bytes> {
        let inner = &mut *self.inner.borrow_mut();
        let text = inner.queue.pop_front()?;
        inner.queue_bytes -= text.len();
        Some(text)
    }

    /// Says that nothing more comes.
    pub(super) fn finish(&self) {
        let inner = &mut *self.inner.borrow_mut();
        inner.finished = true;
        wake(inner);
    }

    /// Gives up the connection; the stream stays.
    pub(super) fn break_off(&self) {
        let inner = &mut *self.inner.borrow_mut();
        inner.connection += 1;
        inner.listening = Listening::No;
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

    /// A connection that reads from now on, in place of any other. `guard` is dropped with it.
    pub(super) fn attach(self: &Rc<Self>, guard: Option<Box<dyn std::any::Any>>) -> Outlet {
        let inner = &mut *self.inner.borrow_mut();
        inner.connection += 1;
        inner.listening = Listening::Yes;
        wake(inner);
        let keep_alive = Box::pin(tokio::time::sleep(KEEP_ALIVE));
        Outlet { stream: Rc::clone(self), connection: inner.connection, keep_alive, _guard: guard }
    }

    /// Has everything that was sent after event `number` sent again.
    pub(super) fn rewind(&self, number: u64) {
        let inner = &mut *self.inner.borrow_mut();
        inner.ahead = self.history.borrow().after(EventId { stream: self.number, number });
    }

    /// Moves what was not sent to the history.
    fn file_away(&self, inner: &mut Inner) {
        while let Some(text) = inner.queue.pop_front() {
            self.event(inner, &text);
        }
        inner.queue_bytes = 0;
        inner.ahead.clear();
    }

    /// Makes a message the next event and remembers it.
    fn event(&self, inner: &mut Inner, text: &[u8]) -> Bytes {
        inner.sent += 1;
        let mut event = Vec::with_capacity(text.len() + 48);
        event.extend_from_slice(b"event: message\n");
        if self.numbered.get() {
            event.extend_from_slice(format!("id: {}-{}\n", self.number, inner.sent).as_bytes());
        }
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(text);
        event.extend_from_slice(b"\n\n");
        let event = Bytes::from(event);
        if self.numbered.get() {
            self.history.borrow_mut().keep(Sent {
                stream: self.number,
                number: inner.sent,
                event: event.clone(),
            });
        }
        event
    }

    fn next(&self, inner: &mut Inner) -> Option<Bytes> {
        if let Some(event) = inner.ahead.pop_front() {
            return Some(event);
        }
        let text = inner.queue.pop_front()?;
        inner.queue_bytes -= text.len();
        self.changed.notify_one();
        Some(self.event(inner, &text))
    }
}

fn wake(inner: &mut Inner) {
    if let Some(waker) = inner.waker.take() {
        waker.wake();
    }
}

impl History {
    /// Events of one stream after `id`.
    pub(super) fn after(&self, id: EventId) -> VecDeque<Bytes> {
        let later = |sent: &&Sent| sent.stream == id.stream && sent.number > id.number;
        self.events.iter().filter(later).map(|sent| sent.event.clone()).collect()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn keep(&mut self, sent: Sent) {
        self.bytes += sent.event.len();
        self.events.push_back(sent);
        while self.bytes > HISTORY_BYTES_MAX && self.events.len() > 1 {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.event.len();
        }
    }
}

impl Pieces for Outlet {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenBody>>> {
        let inner = &mut *self.stream.inner.borrow_mut();
        if inner.connection != self.connection {
            let words = "the stream was taken over or its reader was too slow".to_owned();
            return Poll::Ready(Some(Err(BrokenBody(words))));
        }
        if let Some(event) = self.stream.next(inner) {
            self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return Poll::Ready(Some(Ok(event)));
        }
        if inner.finished {
            return Poll::Ready(None);
        }
        inner.waker = Some(cx.waker().clone());
        if self.keep_alive.as_mut().poll(cx).is_ready() {
            self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return Poll::Ready(Some(Ok(Bytes::from_static(b": keep-alive\n\n"))));
        }
        Poll::Pending
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        let inner = &mut *self.stream.inner.borrow_mut();
        if inner.connection == self.connection {
            inner.listening = Listening::No;
            inner.ahead.clear();
            if self.stream.number > 0 {
                self.stream.file_away(inner);
            }
            self.stream.changed.notify_one();
        }
    }
}
