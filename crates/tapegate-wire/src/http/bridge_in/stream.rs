//! Event streams towards a client, and the events recently sent on them.
//!
//! A stream is a queue of messages that outlives its connection: a client whose connection broke
//! asks for it again with the id of the last event it has seen, and gets the rest. For that, sent
//! events are kept in a [`EventHistory`] of bounded size, shared by all streams of a session.

mod raw_stream;
mod stream_reader;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use tapegate_core::relay::PermittedMessage;
use tokio::sync::Notify;

use super::super::OutboundBytes;
use super::history::{EventHistory, EventId, SentEvent};
use raw_stream::{LineStatus, StreamItem};

/// How many bytes may be queued on one stream before its sender waits.
const QUEUE_BYTES_MAX: usize = 1024 * 1024;

/// An event stream towards a client.
pub(super) struct ClientStream {
    number: u64,
    history: Rc<RefCell<EventHistory>>,
    inner: RefCell<StreamState>,
    /// Notified when there is more room, or the connection is gone.
    changed: Notify,
    /// Whether events carry ids.
    numbered: Cell<bool>,
    /// Whether it is a plain body sent in pieces instead of an event stream.
    plain: bool,
}

#[derive(Default)]
struct StreamState {
    /// Items not sent yet.
    queue: VecDeque<StreamItem>,
    /// Messages that wait for the end of a message sent in pieces.
    behind: VecDeque<PermittedMessage<'static>>,
    /// The total size of both queues.
    queue_bytes: usize,
    /// The state of the message sent in pieces.
    line: LineStatus,
    /// Events that go before the queue unchanged: initial events, and resent ones.
    ahead: VecDeque<OutboundBytes>,
    sent: u64,
    /// Whether no more messages will be added.
    finished: bool,
    /// A scheduled close of the connection before the end of the stream.
    parting: Option<QueuedClose>,
    /// The number of the current connection; older ones have been replaced.
    connection: u64,
    listening: ListenState,
    waker: Option<Waker>,
}

/// A connection close that takes its turn after the messages queued before it.
struct QueuedClose {
    /// How many queued messages are sent first.
    after: usize,
    /// The last event, until it is sent.
    last_event: Option<OutboundBytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ListenState {
    /// A connection is about to be attached.
    #[default]
    Soon,
    Yes,
    No,
}

impl ClientStream {
    /// A stream whose connection is about to be attached.
    pub(super) fn new(number: u64, history: &Rc<RefCell<EventHistory>>) -> Rc<Self> {
        Rc::new(Self::open(number, history))
    }

    /// A body sent in pieces, whose connection is about to be attached.
    pub(super) fn raw_body(history: &Rc<RefCell<EventHistory>>) -> Rc<Self> {
        Rc::new(Self { numbered: Cell::new(false), plain: true, ..Self::open(0, history) })
    }

    /// An event stream that may never get a connection.
    pub(super) fn without_reader(number: u64, history: &Rc<RefCell<EventHistory>>) -> Rc<Self> {
        let stream = Self::new(number, history);
        stream.inner.borrow_mut().listening = ListenState::No;
        stream
    }

    fn open(number: u64, history: &Rc<RefCell<EventHistory>>) -> Self {
        Self {
            number,
            history: Rc::clone(history),
            inner: RefCell::default(),
            changed: Notify::new(),
            numbered: Cell::new(true),
            plain: false,
        }
    }

    /// Whether it is a plain body instead of an event stream.
    pub(super) fn is_body(&self) -> bool {
        self.plain
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Omits event ids, for a transport that cannot resume.
    pub(super) fn without_ids(&self) {
        self.numbered.set(false);
    }

    /// Whether a connection reads, or is about to.
    pub(super) fn has_reader(&self) -> bool {
        self.inner.borrow().listening != ListenState::No
    }

    /// Whether a connection reads.
    pub(super) fn is_connected(&self) -> bool {
        self.inner.borrow().listening == ListenState::Yes
    }

    pub(super) fn has_room(&self) -> bool {
        self.inner.borrow().queue_bytes < QUEUE_BYTES_MAX
    }

    /// Adds a message. Callers that can wait check [`ClientStream::has_room`] first.
    pub(super) fn push(&self, message: PermittedMessage<'static>) {
        let inner = &mut *self.inner.borrow_mut();
        inner.queue_bytes += message.bytes().len();
        match inner.line {
            LineStatus::Open => inner.behind.push_back(message),
            LineStatus::Closed | LineStatus::Lost => {
                inner.queue.push_back(StreamItem::Message(message))
            }
        }
        // Stream 0 keeps its queue: its messages may still go to an exchange or to a new GET
        // stream.
        if inner.listening == ListenState::No && self.number > 0 {
            // No connection reads now, but a client that resumes can ask for it.
            self.move_to_history(inner);
        }
        wake(inner);
    }

    /// Adds an event of another kind before all messages.
    pub(super) fn push_first_event(&self, event: OutboundBytes) {
        self.inner.borrow_mut().ahead.push_back(event);
    }

    /// Sends the client an event id to resume from before the first message.
    pub(super) fn push_priming_event(&self) {
        let inner = &mut *self.inner.borrow_mut();
        // Later it would repeat an id that an event has used.
        if !self.numbered.get() || inner.sent > 0 {
            return;
        }
        inner.sent += 1;
        let id = format!("{}-{}", self.number, inner.sent);
        inner.ahead.push_back(OutboundBytes::priming_event(&id));
    }

    /// Removes the oldest unsent message.
    pub(super) fn take_oldest(&self) -> Option<PermittedMessage<'static>> {
        let inner = &mut *self.inner.borrow_mut();
        loop {
            let item = inner.queue.pop_front()?;
            inner.queue_bytes -= item.len();
            if let StreamItem::Message(message) = item {
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
    pub(super) fn close_for_resumption(&self, retry: Duration) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.listening != ListenState::No && inner.parting.is_none() {
            let last_event = Some(OutboundBytes::retry(retry));
            inner.parting = Some(QueuedClose { after: inner.queue.len(), last_event });
            wake(inner);
        }
    }

    /// All events at once, if the stream is finished and no connection reads yet.
    pub(super) fn take_if_complete(&self) -> Option<OutboundBytes> {
        let inner = &mut *self.inner.borrow_mut();
        let soon = inner.listening == ListenState::Soon;
        if !soon || !inner.is_finished() || inner.parting.is_some() {
            return None;
        }
        inner.listening = ListenState::No;
        let mut events = vec![self.next(inner)?];
        while let Some(event) = self.next(inner) {
            events.push(event);
        }
        Some(OutboundBytes::concat(&events))
    }

    /// Drops the connection; the stream stays.
    pub(super) fn disconnect(&self) {
        let inner = &mut *self.inner.borrow_mut();
        // The reader of the old connection sees another number and breaks its body off.
        inner.connection += 1;
        inner.listening = ListenState::No;
        inner.parting = None;
        inner.drop_pieces();
        if self.number > 0 {
            self.move_to_history(inner);
        }
        wake(inner);
    }

    /// Waits until there is room or no reader; false if nothing was read for `stall`.
    pub(super) async fn wait_for_room(&self, stall: Duration) -> bool {
        while self.has_reader() && !self.has_room() {
            if tokio::time::timeout(stall, self.changed.notified()).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Waits until the queue is at most half full; false if that takes longer than `patience`.
    pub(super) async fn wait_for_reader(&self, patience: Duration) -> bool {
        let half = async {
            while self.has_reader() && self.inner.borrow().queue_bytes > QUEUE_BYTES_MAX / 2 {
                self.changed.notified().await;
            }
        };
        tokio::time::timeout(patience, half).await.is_ok()
    }

    /// Schedules every event sent after event `number` to be sent again.
    pub(super) fn rewind(&self, number: u64) {
        let inner = &mut *self.inner.borrow_mut();
        inner.parting = None;
        inner.ahead = self.history.borrow().events_after(EventId { stream: self.number, number });
    }

    /// Moves unsent messages to the history.
    fn move_to_history(&self, inner: &mut StreamState) {
        while let Some(item) = inner.queue.pop_front() {
            if let StreamItem::Message(message) = item {
                self.event(inner, &message);
            }
        }
        inner.queue_bytes = 0;
        inner.ahead.clear();
    }

    /// Turns a message into the next event and remembers it.
    fn event(&self, inner: &mut StreamState, message: &PermittedMessage<'_>) -> OutboundBytes {
        inner.sent += 1;
        let id = self.numbered.get().then(|| format!("{}-{}", self.number, inner.sent));
        let event = OutboundBytes::event(message, id.as_deref());
        if self.numbered.get() {
            let id = EventId { stream: self.number, number: inner.sent };
            self.history.borrow_mut().push(SentEvent { id, event: event.clone() });
        }
        event
    }

    fn next(&self, inner: &mut StreamState) -> Option<OutboundBytes> {
        if let Some(event) = inner.ahead.pop_front() {
            return Some(event);
        }
        if let Some(parting) = &mut inner.parting {
            if parting.after == 0 {
                return parting.last_event.take();
            }
            parting.after -= 1;
        }
        let item = inner.queue.pop_front()?;
        inner.queue_bytes -= item.len();
        self.changed.notify_one();
        Some(match item {
            StreamItem::Message(message) => self.event(inner, &message),
            StreamItem::Piece(piece) => piece,
        })
    }
}

fn wake(inner: &mut StreamState) {
    if let Some(waker) = inner.waker.take() {
        waker.wake();
    }
}
