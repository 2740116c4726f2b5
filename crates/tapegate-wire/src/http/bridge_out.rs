//! Connects a client on pipes to a server over HTTP.
//!
//! The bridge acts as the HTTP client. Every line from the client is recorded and then posted
//! unchanged; every message from the server, on any stream, is recorded and then written as one
//! line. It speaks Streamable HTTP of every revision, decided per message, and the older HTTP+SSE
//! transport where the server supports nothing else. A message is posted again only if the server
//! rejected it unprocessed; a request always ends in an answer or an error.

mod client_input;
mod client_writer;
mod event_reader;
mod exchange;
mod legacy_sse;
mod pending_calls;
mod problem;
mod server_stream;
mod shutdown;
mod upstream_session;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use http::uri::PathAndQuery;
use tapegate_core::frame::{Envelope, Frame, FrameBody, FrameError, find_envelope};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::{PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

use super::mirrored_params::MirroredParams;
use super::shared_session::{GateResult, SessionStoppedError, SharedSession};
use super::upstream::HttpUpstream;
use crate::recorded_session::{Disposition, OutgoingMessage, split_by_side};
use crate::signals::Signals;
use crate::stdio::{ClientPorts, EndCause, SessionOutcome, ShutdownTimeouts, answered_id};
use client_writer::{ClientWriter, WriteTurn};
use pending_calls::{BridgeCall, BridgeCalls, CallKind};
use problem::ExchangeProblem;
use upstream_session::UpstreamSession;

/// How many requests may be in flight at once; each needs a connection.
const FLIGHTS_MAX: usize = 256;
/// What a queued message is charged in addition to its bytes.
const MESSAGE_COST_BYTES: usize = 1024;
/// How many notices are printed; a server that fails for hours need not be reported more often.
const NOTICES_MAX: usize = 50;

/// Receives messages for the user; the bridge itself prints nothing.
pub type BridgeNotice = Box<dyn Fn(&str)>;

/// Runs one client's session with `upstream` until it ends. Must run inside a `LocalSet`.
pub async fn run(
    shared_session: Rc<SharedSession>,
    client: ClientPorts,
    upstream: HttpUpstream,
    mut signals: Signals,
    patience: ShutdownTimeouts,
    notice: BridgeNotice,
) -> SessionOutcome {
    let bridge =
        Rc::new(OutboundBridge::new(Rc::clone(&shared_session), client.output, upstream, notice));
    let cause = tokio::select! {
        // Checked in this order: a failed tape or a signal ends the session even while messages
        // flow.
        biased;
        error = shared_session.tape_failed() => EndCause::Tape(error),
        number = signals.next() => EndCause::Signal(number),
        () = bridge.client_writer.run() => EndCause::Client,
        () = bridge.client_gone() => EndCause::Client,
        () = shared_session.run_holds(|message| bridge.deliver_own(message)) => EndCause::Actor,
        () = bridge.serve(client.input) => bridge.end_cause(),
    };
    bridge.close(&cause, &mut signals, patience).await;
    SessionOutcome::new(cause)
}

/// One client's session and its server.
struct OutboundBridge {
    shared_session: Rc<SharedSession>,
    lane: Lane,
    upstream: HttpUpstream,
    /// The path messages are posted to; a redirect may change it.
    path: RefCell<PathAndQuery>,
    client_writer: ClientWriter,
    calls: BridgeCalls,
    session: RefCell<UpstreamSession>,
    params: RefCell<MirroredParams>,
    transport: RefCell<UpstreamTransport>,
    /// Held while probing which transport the server speaks.
    finding: Mutex<()>,
    tasks: RefCell<JoinSet<()>>,
    listener: RefCell<Option<AbortHandle>>,
    /// Whether the server's own stream was lost and may be reopened.
    deaf: Cell<bool>,
    flights: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    queue_bytes_max: usize,
    /// Notified when a request was answered or given up.
    progress: Notify,
    /// Whether reading from the client is paused.
    blocked: Cell<bool>,
    block: Notify,
    reach: RefCell<Reachability>,
    notice: BridgeNotice,
    notices: Cell<usize>,
    /// How many messages wait to be sent apart from those read from the client.
    unsent: Cell<usize>,
}

/// Which transport the server is known to speak.
#[derive(Debug, Clone, PartialEq, Eq)]
enum UpstreamTransport {
    /// No message has been accepted yet.
    Unknown,
    /// Messages are posted to one endpoint, which replies.
    Streamable,
    /// Messages are posted to the endpoint the server named; answers arrive on its one stream.
    Older(PathAndQuery),
}

/// Whether the server was ever reached.
#[derive(Debug)]
enum Reachability {
    Untried,
    Failed(String),
    Heard,
}

impl UpstreamTransport {
    /// The endpoint named by a server of the older transport.
    fn endpoint(self) -> Option<PathAndQuery> {
        match self {
            Self::Older(endpoint) => Some(endpoint),
            Self::Unknown | Self::Streamable => None,
        }
    }
}

impl OutboundBridge {
    fn new(
        shared_session: Rc<SharedSession>,
        output: crate::port::StreamPort,
        upstream: HttpUpstream,
        notice: BridgeNotice,
    ) -> Self {
        let lane = shared_session.open_session();
        let queue_bytes_max = shared_session.message_bytes_max() + MESSAGE_COST_BYTES;
        Self {
            lane,
            path: RefCell::new(upstream.path().clone()),
            upstream,
            client_writer: ClientWriter::new(output),
            calls: BridgeCalls::default(),
            session: RefCell::default(),
            params: RefCell::default(),
            transport: RefCell::new(UpstreamTransport::Unknown),
            finding: Mutex::new(()),
            tasks: RefCell::default(),
            listener: RefCell::default(),
            deaf: Cell::new(false),
            flights: Arc::new(Semaphore::new(FLIGHTS_MAX)),
            queue: Arc::new(Semaphore::new(queue_bytes_max)),
            queue_bytes_max,
            progress: Notify::new(),
            blocked: Cell::new(false),
            block: Notify::new(),
            reach: RefCell::new(Reachability::Untried),
            notice,
            notices: Cell::new(0),
            unsent: Cell::new(0),
            shared_session,
        }
    }

    /// Passes on a message from the server. `own` is the call whose reply contained it, if any;
    /// `resumed` tells whether its stream was resumed.
    async fn deliver(
        self: &Rc<Self>,
        own: Option<&Rc<BridgeCall>>,
        frame: &Frame<'_>,
        resumed: bool,
    ) -> Result<(), SessionStoppedError> {
        // The turn comes before the recording, so that lines are written in the order of the tape.
        let turn = self.client_writer.acquire().await;
        if let FrameBody::Garbage(garbage) = frame.body()
            && !matches!(garbage, FrameError::Empty)
        {
            // A stdio client takes each line for a message, even a line of an HTML error page.
            let (from, unsent) = ((self.lane, Side::Server), (frame.bytes(), false));
            self.shared_session.mark(from, unsent, &garbage.reason())?;
            self.notify("the MCP server sent data that is not an MCP message; it is not passed on");
            return Ok(());
        }
        let judged = self.shared_session.receive_from_server(self.lane, frame, (resumed, true))?;
        let GateResult { disposition, outgoing: outgoing_messages } = judged;
        let refused = matches!(disposition, Disposition::Refuse(()));
        if let Disposition::Forward(message) = disposition {
            self.forward_to_client(&turn, own, message);
        }
        let (to_client, to_server) = split_by_side(outgoing_messages);
        self.send_own_to_client(&turn, own, to_client);
        if refused {
            // It may have answered a request of our own, which the client does not know about.
            self.learn_from_frame(own, frame);
        }
        // Released first: the server may be slow, and the client's other messages need not wait for
        // it.
        drop(turn);
        for message in to_server {
            self.send_own_to_server(message.into_owned());
        }
        self.progress.notify_one();
        Ok(())
    }

    /// Writes a server's message to the client, and updates the session's state from it.
    fn forward_to_client(
        &self,
        turn: &WriteTurn<'_>,
        own: Option<&Rc<BridgeCall>>,
        message: PermittedMessage<'_>,
    ) {
        let frame = message.frame();
        self.learn_from_frame(own, &frame);
        if !matches!(frame.body(), FrameBody::Garbage(FrameError::Empty)) {
            turn.enqueue(message.into_one_line());
        }
    }

    /// Sends one of our own messages to the server in the background.
    fn send_own_to_server(self: &Rc<Self>, message: PermittedMessage<'static>) {
        let bridge = Rc::clone(self);
        self.unsent.set(self.unsent.get() + 1);
        self.spawn(async move {
            bridge.send(message).await;
            bridge.unsent.set(bridge.unsent.get() - 1);
            bridge.progress.notify_one();
        });
    }

    /// Delivers a message of our own that follows from a decision.
    fn deliver_own(self: &Rc<Self>, outgoing: OutgoingMessage<'static>) {
        match outgoing.to {
            Side::Client => self.client_writer.enqueue(outgoing.message),
            Side::Server => self.send_own_to_server(outgoing.message),
        }
        self.progress.notify_one();
    }

    /// Whether work is in progress that may lead to an answer for the client.
    fn is_busy(&self) -> bool {
        !self.calls.is_empty()
            || self.shared_session.recorded_session().held_calls() > 0
            || self.unsent.get() > 0
    }

    /// Records an oversized message, and reports it to its sender or to the side waiting for it.
    async fn refuse(
        self: &Rc<Self>,
        own: Option<&Rc<BridgeCall>>,
        from: Side,
        message: OversizeMessage,
    ) -> Result<(), SessionStoppedError> {
        let turn = self.client_writer.acquire().await;
        let outgoing = self.shared_session.refuse_oversize(self.lane, from, message)?;
        let (to_client, to_server) = split_by_side(outgoing);
        self.send_own_to_client(&turn, own, to_client);
        drop(turn);
        for message in to_server {
            self.send(message).await;
        }
        Ok(())
    }

    /// Gives up a call: each unanswered request in it gets an error.
    async fn fail_call(&self, call: &Rc<BridgeCall>, problem: &ExchangeProblem) {
        let unanswered = call.unanswered();
        let error = match unanswered.is_empty() {
            true => Vec::new(),
            false => self.masked(problem).error(),
        };
        for id in unanswered {
            let turn = self.client_writer.acquire().await;
            let event = RelayEvent::RequestFailed {
                lane: self.lane,
                asker: Side::Client,
                id: &id,
                error: &error,
            };
            // If the tape has failed, the session is ending, which answers all requests.
            let Ok(outgoing) = self.shared_session.feed_and_commit(event) else { return };
            self.send_own_to_client(&turn, Some(call), split_by_side(outgoing).0);
        }
        self.calls.remove(call);
        self.progress.notify_one();
    }

    /// A problem fit to be shown: secrets in the server's text are redacted.
    fn masked(&self, problem: &ExchangeProblem) -> ExchangeProblem {
        problem.masked(|what, text| self.mask(what, text))
    }

    /// Redacts server text that is quoted to the client; `None` if it may be quoted unchanged.
    fn mask(&self, what: &str, text: &[u8]) -> Option<Vec<u8>> {
        // If the tape has failed, the session is ending and no more server text is shown.
        self.shared_session
            .mask_text(self.lane, what, text)
            .unwrap_or_else(|SessionStoppedError| Some(Vec::new()))
    }

    /// Writes our own messages to the client.
    fn send_own_to_client(
        &self,
        turn: &WriteTurn<'_>,
        own: Option<&Rc<BridgeCall>>,
        messages: Vec<PermittedMessage<'_>>,
    ) {
        for message in messages {
            self.learn_from_frame(own, &message.frame());
            turn.enqueue(message);
        }
        self.progress.notify_one();
    }

    /// Updates the session's state from a message that goes to the client.
    fn learn_from_frame(&self, own: Option<&Rc<BridgeCall>>, message: &Frame<'_>) {
        // An array within a batch is not a message, so its elements answer nothing.
        find_envelope(message, |envelope| {
            self.learn_from_message(own, envelope);
            None::<()>
        });
    }

    fn learn_from_message(&self, own: Option<&Rc<BridgeCall>>, envelope: &Envelope<'_>) {
        let settled = answered_id(envelope).and_then(|id| self.calls.settle(own, id));
        let Some(call) = settled else { return };
        match (call.kind, envelope.result) {
            (CallKind::Initialize, Some(result)) => {
                let id = call.opens.borrow_mut().take();
                *self.session.borrow_mut() =
                    UpstreamSession { id, version: upstream_session::negotiated(result) };
            }
            (CallKind::ToolsList, Some(result)) => self.params.borrow_mut().learn_tools(result),
            _ => {}
        }
    }

    /// Runs a background task that ends with the session.
    fn spawn(&self, task: impl Future<Output = ()> + 'static) -> AbortHandle {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(task)
    }

    /// Shows the user a notice.
    fn notify(&self, message_text: &str) {
        let count = self.notices.get();
        self.notices.set(count + 1);
        match count {
            0..NOTICES_MAX => (self.notice)(message_text),
            NOTICES_MAX => (self.notice)("further notices of this kind are omitted"),
            _ => {}
        }
    }
}
