//! One server and the clients connected to it.
//!
//! A session has its own connection; clients without sessions share one. A client's message is
//! recorded, entered in the id map and queued for the server in one step, so every sent message is
//! on the tape and every answer has a matching request.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use tapegate_core::frame::Envelope;
use tapegate_core::relay::{Event, LineBuffer, Permitted};
use tapegate_core::side::{Lane, Side};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::Instant;

use super::super::terms::Terms;
use super::book::Book;
use super::down;
use super::ending::End;
use super::exchange::Exchange;
use super::held::HeldCalls;
use super::history::History;
use super::raw::RawEvent;
use super::servers::Server;
use super::stream::Stream;
use crate::child::Pipes;
use crate::deck::{Disposition, Outgoing};
use crate::http::listen::Cord;
use crate::http::params::Params;
use crate::http::station::Judged;
use crate::http::{Station, Stopped};
use crate::port::Port;
use crate::stdio::Patience;

/// How many messages may wait for a server that does not read.
const INPUT_MESSAGES_MAX: usize = 8;
/// A reserved slot in the server's input queue.
type Slot = mpsc::OwnedPermit<LineBuffer>;

/// How many of our own messages may wait in addition before reading from the server stops too.
const OWED_MAX: usize = 256;

/// One server and the clients connected to it.
pub(super) struct Board {
    pub(super) kind: Kind,
    /// Whether the server's lines may name the request they belong to.
    pub(super) addressed: bool,
    pub(super) lane: Lane,
    pub(super) station: Rc<Station>,
    pub(super) book: RefCell<Book>,
    /// Which arguments clients without a session must mirror in headers.
    pub(super) params: RefCell<Params>,
    /// Carries messages that belong to no request: the GET stream, or everything in HTTP+SSE.
    pub(super) main: Rc<Stream>,
    pub(super) history: Rc<RefCell<History>>,
    /// Whether requests are answered with streams where possible, as most HTTP servers do.
    pub(super) by_stream: bool,
    pub(super) input: RefCell<Option<mpsc::Sender<LineBuffer>>>,
    /// Permits for our own messages that the server has not read yet.
    owed: Arc<Semaphore>,
    exchanges: Cell<u64>,
    pub(super) streams: Cell<u64>,
    used: Cell<Instant>,
    pub(super) ended: Cell<bool>,
    pub(super) end: RefCell<Option<End>>,
    pub(super) end_asked: Notify,
    /// The handles of its clients' connections.
    pub(super) cords: RefCell<Vec<Rc<Cord>>>,
    /// The raw event that is being sent in pieces.
    pub(super) raw: RefCell<Option<RawEvent>>,
    /// The calls that wait for an approval decision.
    pub(super) held: RefCell<HeldCalls>,
}

/// Which clients use a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One client, by Streamable HTTP.
    Session,
    /// One client, by HTTP+SSE.
    Old,
    /// All clients without a session.
    Shared,
}

/// Why something was not sent to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotSent {
    /// The server has ended or its input is closed.
    Ended,
    /// Too many requests are unanswered.
    Busy,
    /// The tape failed.
    Stopped,
}

/// What happened to a client's message: forwarded, refused with this answer, or held.
pub(super) type Sent = Disposition<(), Option<Permitted<'static>>>;

impl From<Stopped> for NotSent {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl Board {
    /// Connects to a server. The returned task must be run; it completes once the server has ended
    /// and is cleaned up.
    pub(super) fn start(
        station: &Rc<Station>,
        (lane, kind): (Lane, Kind),
        (server, pipes): (Server, Pipes),
        patience: Patience,
    ) -> (Rc<Self>, impl Future<Output = ()> + use<>) {
        let (sender, receiver) = mpsc::channel(INPUT_MESSAGES_MAX);
        let history = Rc::new(RefCell::new(History::new(server.history_bytes_max())));
        let main = match kind {
            Kind::Old => Stream::new(0, &history),
            Kind::Session | Kind::Shared => Stream::unattended(0, &history),
        };
        let board = Rc::new(Self {
            kind,
            addressed: server.is_seat(),
            lane,
            station: Rc::clone(station),
            book: RefCell::new(Book::new(station.is_governed())),
            params: RefCell::default(),
            main,
            history,
            by_stream: kind == Kind::Session && server.is_seat(),
            input: RefCell::new(Some(sender)),
            owed: Arc::new(Semaphore::new(OWED_MAX)),
            exchanges: Cell::new(0),
            streams: Cell::new(0),
            used: Cell::new(Instant::now()),
            ended: Cell::new(false),
            end: RefCell::default(),
            end_asked: Notify::new(),
            cords: RefCell::default(),
            raw: RefCell::default(),
            held: RefCell::default(),
        });
        tokio::task::spawn_local(write_all(pipes.input, receiver));
        let task = down::run(Rc::clone(&board), server, pipes.output, patience);
        (board, task)
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.get()
    }

    /// When it was last used, or `None` while it is in use.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let waits = self.book.borrow().is_live() || !self.held.borrow().is_empty();
        let busy = self.main.is_attended() || waits;
        (!busy).then(|| self.used.get())
    }

    /// Creates the exchange that collects the answers to a POST of one message or a batch.
    pub(super) fn exchange(
        &self,
        lane: Lane,
        terms: &Terms,
        said: Option<&Envelope<'_>>,
        requests: usize,
    ) -> Rc<Exchange> {
        self.exchanges.set(self.exchanges.get() + 1);
        Rc::new(Exchange::new(self.exchanges.get(), lane, terms, said, requests))
    }

    /// Evaluates and records a client's message, and queues it for the server once there is room.
    pub(super) async fn send(
        &self,
        lane: Lane,
        bytes: &[u8],
        exchange: Option<&Rc<Exchange>>,
    ) -> Result<Sent, NotSent> {
        self.station.room_for(lane, bytes).await;
        let slot = self.reserve().await?;
        // There is no await from here on, so recording and queueing are one step.
        self.used.set(Instant::now());
        let Judged { disposition, said } = self.station.receive(lane, Side::Client, bytes)?;
        let told = self.say_apart(said).pop();
        Ok(match disposition {
            Disposition::Forward(message) => {
                self.forward(slot, lane, message, exchange);
                Disposition::Forward(())
            }
            Disposition::Refuse(()) => Disposition::Refuse(told.map(Permitted::into_owned)),
            Disposition::Hold(ticket) => Disposition::Hold(ticket),
        })
    }

    /// Waits for a free slot in the server's input queue.
    pub(super) async fn reserve(&self) -> Result<Slot, NotSent> {
        let sender = self.input.borrow().clone().ok_or(NotSent::Ended)?;
        let slot = sender.reserve_owned().await.map_err(|_| NotSent::Ended)?;
        if self.is_ended() {
            return Err(NotSent::Ended);
        }
        self.make_room()?;
        Ok(slot)
    }

    /// Sends a permitted message, with its ids renamed for the server.
    pub(super) fn forward(
        &self,
        slot: Slot,
        lane: Lane,
        message: Permitted<'_>,
        exchange: Option<&Rc<Exchange>>,
    ) {
        let line = message.on_one_line();
        let line = match exchange {
            Some(exchange) => self.book.borrow_mut().enter(exchange, line),
            None => self.book.borrow().cancel(lane, line),
        };
        slot.send(self.lines_of(line));
        if let Some(exchange) = exchange.filter(|exchange| exchange.can_be_told()) {
            self.hand_over(exchange);
        }
    }

    /// The lines a message is sent as. With a gate, a batch is split into one line per message:
    /// stdio servers answer messages one by one, and the gate accepts no batches from them. The
    /// exchange joins the answers again.
    fn lines_of(&self, message: Permitted<'_>) -> LineBuffer {
        let mut lines = LineBuffer::default();
        let is_batch = message.bytes().first() == Some(&b'[');
        if is_batch && self.station.is_governed() {
            for (_, element) in message.elements() {
                lines.push(element.on_one_line());
            }
        } else {
            lines.push(message);
        }
        lines
    }

    /// Sends the messages meant for the server, and returns those for the client.
    pub(super) fn say_apart<'e>(&self, said: Vec<Outgoing<'e>>) -> Vec<Permitted<'e>> {
        let mut told = Vec::new();
        for Outgoing { to, message, .. } in said {
            match to {
                Side::Client => told.push(message),
                Side::Server => self.say(message),
            }
        }
        told
    }

    fn make_room(&self) -> Result<(), NotSent> {
        let forgotten = self.book.borrow_mut().make_room().map_err(|()| NotSent::Busy)?;
        if let Some(exchange) = forgotten.filter(|_| self.kind == Kind::Shared) {
            let (lane, asker) = (exchange.lane, Side::Client);
            self.station.pass(Event::Dismissed { lane, asker, bytes: None, why: None })?;
        }
        Ok(())
    }

    /// Moves messages that wait for a client without a GET stream to an exchange.
    fn hand_over(&self, exchange: &Exchange) {
        if self.kind != Kind::Session || self.main.is_attended() {
            return;
        }
        while let Some(text) = self.main.take_oldest() {
            self.stream_of(exchange).push(text);
        }
    }

    /// Sends one of our own messages to the server. It must be recorded already.
    pub(super) fn say(&self, message: Permitted<'_>) {
        let Some(sender) = self.input.borrow().clone() else { return };
        let mut lines = LineBuffer::default();
        lines.push(message);
        if let Err(mpsc::error::TrySendError::Full(lines)) = sender.try_send(lines) {
            // The caller also reads the server's output, so it must not block on its input.
            let owed = Arc::clone(&self.owed).try_acquire_owned().ok();
            tokio::task::spawn_local(async move {
                sender.send(lines).await.ok();
                drop(owed);
            });
        }
    }

    /// Waits while too many of our own messages are queued; reading on would only add to them.
    pub(super) async fn relieved(&self) {
        drop(self.owed.acquire().await);
    }

    /// Records a message as not delivered.
    pub(super) fn mark(&self, lane: Lane, from: Side, bytes: &[u8], why: &str) {
        // If the tape has failed, the session ends anyway.
        self.station.pass(Event::Marked { lane, from, bytes, why, delivered: false }).ok();
    }
}

/// Writes queued lines until the queue is closed, then closes the server's input.
async fn write_all(input: Port, mut queue: mpsc::Receiver<LineBuffer>) {
    while let Some(mut lines) = queue.recv().await {
        while lines.left() > 0 {
            match input.write(lines.cleared()).await {
                Ok(count) => lines.advance(count),
                Err(_) => return,
            }
        }
    }
}
