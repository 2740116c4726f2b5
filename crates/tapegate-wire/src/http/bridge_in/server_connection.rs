//! One server and the clients connected to it.
//!
//! A session has its own connection; clients without sessions share one. A client's message is
//! recorded, entered in the id map and queued for the server in one step, so every sent message is
//! on the tape and every answer has a matching request.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use tapegate_core::frame::{Envelope, Frame};
use tapegate_core::relay::PermittedMessage;
use tapegate_core::side::{Lane, Side};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::Instant;

use super::super::request_headers::RequestHeaders;
use super::exchange::PostExchange;
use super::history::EventHistory;
use super::id_map::IdMap;
use super::raw_output::RawEvent;
use super::server_output;
use super::servers::ServerProvider;
use super::shutdown::ConnectionEnd;
use super::stream::ClientStream;
use crate::actor_host::MessageGroup;
use crate::child::SpawnError;
use crate::http::listener::ConnectionHandle;
use crate::http::mirrored_params::MirroredParams;
use crate::http::shared_session::GateResult;
use crate::http::{SessionStoppedError, SharedSession};
use crate::recorded_session::{Disposition, OutgoingMessage, split_by_side};
use crate::stdio::ShutdownTimeouts;

/// How many messages may wait for a server that does not read.
const INPUT_MESSAGES_MAX: usize = 8;
/// A reserved slot in the server's input queue.
type QueueSlot = mpsc::OwnedPermit<MessageGroup>;

/// How many of our own messages may wait in addition before reading from the server stops too.
const OWED_MAX: usize = 256;

/// One server and the clients connected to it.
pub(super) struct ServerConnection {
    pub(super) kind: ConnectionKind,
    pub(super) lane: Lane,
    pub(super) session: Rc<SharedSession>,
    pub(super) id_map: RefCell<IdMap>,
    /// Which arguments clients without a session must mirror in headers.
    pub(super) params: RefCell<MirroredParams>,
    /// Carries messages that belong to no request: the GET stream, or everything in HTTP+SSE.
    pub(super) main: Rc<ClientStream>,
    pub(super) history: Rc<RefCell<EventHistory>>,
    /// Whether requests are answered with streams where possible, as most HTTP servers do.
    pub(super) by_stream: bool,
    /// Whether a body with an id that is not a JSON-RPC message gets an error. A process decides for
    /// itself what to answer.
    pub(super) refuses_malformed: bool,
    /// The server's input; `None` once the connection has ended.
    pub(super) input: RefCell<Option<mpsc::Sender<MessageGroup>>>,
    /// Permits for our own messages that the server has not read yet.
    owed: Arc<Semaphore>,
    exchanges: Cell<u64>,
    pub(super) streams: Cell<u64>,
    used: Cell<Instant>,
    pub(super) end: RefCell<Option<ConnectionEnd>>,
    pub(super) end_asked: Notify,
    /// The handles of its clients' connections.
    pub(super) client_connections: RefCell<Vec<Rc<ConnectionHandle>>>,
    /// The raw event that is being sent in pieces.
    pub(super) raw: RefCell<Option<RawEvent>>,
}

/// Which clients use a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionKind {
    /// One client, by Streamable HTTP.
    Session,
    /// One client, by HTTP+SSE.
    Old,
    /// All clients without a session.
    Shared,
}

/// Why something was not sent to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendError {
    /// The server has ended or its input is closed.
    Ended,
    /// Too many requests are unanswered.
    Busy,
    /// The tape failed.
    Stopped,
}

/// What happened to a client's message: forwarded, refused with this answer, or held.
pub(super) type SendDisposition = Disposition<(), Option<PermittedMessage<'static>>>;

impl From<SessionStoppedError> for SendError {
    fn from(_: SessionStoppedError) -> Self {
        Self::Stopped
    }
}

impl ServerConnection {
    /// Starts a server and connects to it. The returned task must be run; it completes once the
    /// server has ended and is cleaned up.
    pub(super) fn start(
        session: &Rc<SharedSession>,
        (lane, kind): (Lane, ConnectionKind),
        servers: &ServerProvider,
        patience: ShutdownTimeouts,
    ) -> Result<(Rc<Self>, impl Future<Output = ()> + use<>), SpawnError> {
        let (sender, receiver) = mpsc::channel(INPUT_MESSAGES_MAX);
        let (server, output) = servers.start(kind, receiver, session.message_bytes_max())?;
        let history = Rc::new(RefCell::new(EventHistory::new(server.history_bytes_max())));
        let main = match kind {
            ConnectionKind::Old => ClientStream::new(0, &history),
            ConnectionKind::Session | ConnectionKind::Shared => {
                ClientStream::without_reader(0, &history)
            }
        };
        let connection = Rc::new(Self {
            kind,
            lane,
            session: Rc::clone(session),
            id_map: RefCell::new(IdMap::new(session.is_governed())),
            params: RefCell::default(),
            main,
            history,
            by_stream: kind == ConnectionKind::Session && server.is_in_process(),
            refuses_malformed: server.is_in_process(),
            input: RefCell::new(Some(sender)),
            owed: Arc::new(Semaphore::new(OWED_MAX)),
            exchanges: Cell::new(0),
            streams: Cell::new(0),
            used: Cell::new(Instant::now()),
            end: RefCell::default(),
            end_asked: Notify::new(),
            client_connections: RefCell::default(),
            raw: RefCell::default(),
        });
        let task = server_output::run(Rc::clone(&connection), server, output, patience);
        Ok((connection, task))
    }

    pub(super) fn is_ended(&self) -> bool {
        self.input.borrow().is_none()
    }

    /// When it was last used, or `None` while it is in use.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let waits = self.id_map.borrow().is_live()
            || !self.session.held_lanes(self.lane.session).is_empty();
        let busy = self.main.has_reader() || waits;
        (!busy).then(|| self.used.get())
    }

    /// Creates the exchange that collects the answers to a POST of one message or a batch.
    pub(super) fn exchange(
        &self,
        lane: Lane,
        terms: &RequestHeaders,
        envelope: Option<&Envelope<'_>>,
        requests: usize,
    ) -> Rc<PostExchange> {
        self.exchanges.set(self.exchanges.get() + 1);
        Rc::new(PostExchange::new(self.exchanges.get(), lane, terms, envelope, requests))
    }

    /// Evaluates and records a client's message, and queues it for the server once there is room.
    pub(super) async fn send(
        &self,
        lane: Lane,
        frame: &Frame<'_>,
        exchange: Option<&Rc<PostExchange>>,
    ) -> Result<SendDisposition, SendError> {
        // Before a slot is taken: a call that waits for approvals must not block the queue.
        self.session.wait_for_hold_capacity_in(lane, frame).await;
        let slot = self.reserve().await?;
        // There is no await from here on, so recording and queueing are one step.
        self.used.set(Instant::now());
        let GateResult { disposition, outgoing } =
            self.session.receive(lane, Side::Client, frame)?;
        let to_client = self.send_server_part(outgoing).pop();
        Ok(match disposition {
            Disposition::Forward(message) => {
                self.forward(slot, lane, message, exchange);
                Disposition::Forward(())
            }
            Disposition::Refuse(()) => {
                Disposition::Refuse(to_client.map(PermittedMessage::into_owned))
            }
            Disposition::Hold(hold_id) => Disposition::Hold(hold_id),
            Disposition::Consume => Disposition::Consume,
        })
    }

    /// Waits for a free slot in the server's input queue.
    pub(super) async fn reserve(&self) -> Result<QueueSlot, SendError> {
        let sender = self.input.borrow().clone().ok_or(SendError::Ended)?;
        let slot = sender.reserve_owned().await.map_err(|_| SendError::Ended)?;
        // The server may have ended during the wait.
        if self.is_ended() {
            return Err(SendError::Ended);
        }
        self.make_room()?;
        Ok(slot)
    }

    /// Sends a permitted message, with its ids renamed for the server.
    pub(super) fn forward(
        &self,
        slot: QueueSlot,
        lane: Lane,
        message: PermittedMessage<'_>,
        exchange: Option<&Rc<PostExchange>>,
    ) {
        let line = message.into_one_line();
        let line = match exchange {
            // Ids are renamed after the gate and the tape have seen the client's own.
            Some(exchange) => self.id_map.borrow_mut().add_requests(exchange, line),
            None => self.id_map.borrow().cancel(lane, line),
        };
        slot.send(self.to_messages(line));
        if let Some(exchange) = exchange.filter(|exchange| exchange.accepts_notifications()) {
            self.flush_to_exchange(exchange);
        }
    }

    /// The messages a message is sent as. With a gate, a batch is split: stdio servers answer
    /// messages one by one, and the gate accepts no batches from them. The exchange joins the
    /// answers again.
    fn to_messages(&self, message: PermittedMessage<'_>) -> MessageGroup {
        let is_batch = message.bytes().first() == Some(&b'[');
        match is_batch && self.session.is_governed() {
            true => {
                let elements = message.elements().into_iter();
                elements.map(|(_, element)| element.into_one_line().into_owned()).collect()
            }
            false => vec![message.into_owned()],
        }
    }

    /// Sends the messages meant for the server, and returns those for the client.
    pub(super) fn send_server_part<'e>(
        &self,
        outgoing: Vec<OutgoingMessage<'e>>,
    ) -> Vec<PermittedMessage<'e>> {
        let (to_client, to_server) = split_by_side(outgoing);
        to_server.into_iter().for_each(|message| self.send_own(message));
        to_client
    }

    fn make_room(&self) -> Result<(), SendError> {
        let forgotten = self.id_map.borrow_mut().make_room().map_err(|()| SendError::Busy)?;
        if let Some(exchange) = forgotten.filter(|_| self.kind == ConnectionKind::Shared) {
            // A session has one lane for all its requests, so this would forget them all.
            self.session.forget_requests((exchange.lane, Side::Client), None)?;
        }
        Ok(())
    }

    /// Moves messages that wait for a client without a GET stream to an exchange.
    fn flush_to_exchange(&self, exchange: &PostExchange) {
        if self.kind != ConnectionKind::Session || self.main.has_reader() {
            return;
        }
        // Messages that arrived while the client had no stream go first, in their order.
        while let Some(text) = self.main.take_oldest() {
            self.stream_of(exchange).push(text);
        }
    }

    /// Sends one of our own messages to the server. It must be recorded already.
    pub(super) fn send_own(&self, message: PermittedMessage<'_>) {
        let Some(sender) = self.input.borrow().clone() else { return };
        let messages = vec![message.into_owned()];
        if let Err(mpsc::error::TrySendError::Full(messages)) = sender.try_send(messages) {
            // The caller also reads the server's output, so it must not block on its input.
            let owed = Arc::clone(&self.owed).try_acquire_owned().ok();
            tokio::task::spawn_local(async move {
                sender.send(messages).await.ok();
                drop(owed);
            });
        }
    }

    /// Waits while too many of our own messages are queued; reading on would only add to them.
    pub(super) async fn wait_for_write_capacity(&self) {
        drop(self.owed.acquire().await);
    }

    /// Records a message as not delivered.
    pub(super) fn mark_undelivered(&self, lane: Lane, from: Side, bytes: &[u8], reason: &str) {
        // If the tape has failed, the session ends anyway.
        self.session.mark((lane, from), (bytes, false), reason).ok();
    }
}
