//! Connects a client on pipes to a server over HTTP.
//!
//! The bridge acts as the HTTP client. Every line from the client is recorded and then posted
//! unchanged; every message from the server, on any stream, is recorded and then written as one
//! line. It speaks Streamable HTTP of every revision, decided per message, and the older HTTP+SSE
//! transport where the server supports nothing else. A message is posted again only if the server
//! rejected it unprocessed; a request always ends in an answer or an error.

mod calls;
mod ending;
mod events;
mod exchange;
mod intake;
mod legacy;
mod listen;
mod mirror;
mod outlet;
mod problem;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use http::uri::PathAndQuery;
use tapegate_core::frame::{self, Body, Frame, Garbage, Kind};
use tapegate_core::lines::Oversize;
use tapegate_core::relay::{Event, Permitted};
use tapegate_core::side::{Lane, Side};
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

use super::params::Params;
use super::station::{Judged, Station, Stopped, Waiting};
use super::upstream::Upstream;
use crate::deck::{Disposition, Outgoing};
use crate::signals::Signals;
use crate::stdio::{Cause, ClientPorts, Outcome, Patience};
use calls::{Call, Calls, Sort};
use mirror::Session;
use outlet::{Outlet, Turn};
use problem::Problem;

/// How many requests may be in flight at once; each needs a connection.
const FLIGHTS_MAX: usize = 256;
/// What a queued message is charged in addition to its bytes.
const MESSAGE_COST_BYTES: usize = 1024;
/// How many notices are printed; a server that fails for hours need not be reported more often.
const NOTICES_MAX: usize = 50;

/// Receives messages for the user; the bridge itself prints nothing.
pub type Notice = Box<dyn Fn(&str)>;

/// Runs one client's session with `upstream` until it ends. Must run inside a `LocalSet`.
pub async fn run(
    station: Rc<Station>,
    client: ClientPorts,
    upstream: Upstream,
    mut signals: Signals,
    patience: Patience,
    notice: Notice,
) -> Outcome {
    let bridge = Rc::new(Bridge::new(Rc::clone(&station), client.output, upstream, notice));
    let cause = tokio::select! {
        biased;
        error = station.failed() => Cause::Tape(error),
        number = signals.next() => Cause::Signal(number),
        () = bridge.outlet.run() => Cause::Client,
        () = bridge.abandoned() => Cause::Client,
        () = station.attend() => Cause::Actor,
        () = bridge.serve(client.input) => bridge.cause_of_leaving(),
    };
    bridge.close(&cause, &mut signals, patience).await;
    Outcome::new(cause)
}

/// One client's session and its server.
struct Bridge {
    station: Rc<Station>,
    lane: Lane,
    upstream: Upstream,
    /// The path messages are posted to; a redirect may change it.
    path: RefCell<PathAndQuery>,
    outlet: Outlet,
    calls: Calls,
    session: RefCell<Session>,
    params: RefCell<Params>,
    transport: RefCell<Transport>,
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
    reach: RefCell<Reach>,
    notice: Notice,
    notices: Cell<usize>,
    /// The calls waiting for an approval decision, by sequence number.
    held: RefCell<HashMap<u64, Waiting>>,
    holds: Cell<u64>,
    /// How many messages wait to be sent apart from those read from the client.
    unsent: Cell<usize>,
}

/// Which transport the server is known to speak.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Transport {
    /// No message has been accepted yet.
    Unknown,
    /// Messages are posted to one endpoint, which replies.
    Streamable,
    /// Messages are posted to the endpoint the server named; answers arrive on its one stream.
    Older(PathAndQuery),
}

/// Whether the server was ever reached.
#[derive(Debug)]
enum Reach {
    Untried,
    Failed(String),
    Heard,
}

impl Transport {
    /// The endpoint named by a server of the older transport.
    fn endpoint(self) -> Option<PathAndQuery> {
        match self {
            Self::Older(endpoint) => Some(endpoint),
            Self::Unknown | Self::Streamable => None,
        }
    }
}

impl Bridge {
    fn new(
        station: Rc<Station>,
        output: crate::port::Port,
        upstream: Upstream,
        notice: Notice,
    ) -> Self {
        let lane = station.open_session();
        let queue_bytes_max = station.message_bytes_max() + MESSAGE_COST_BYTES;
        Self {
            lane,
            path: RefCell::new(upstream.path().clone()),
            upstream,
            outlet: Outlet::new(output),
            calls: Calls::default(),
            session: RefCell::default(),
            params: RefCell::default(),
            transport: RefCell::new(Transport::Unknown),
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
            reach: RefCell::new(Reach::Untried),
            notice,
            notices: Cell::new(0),
            held: RefCell::default(),
            holds: Cell::new(0),
            unsent: Cell::new(0),
            station,
        }
    }

    /// Passes on a message from the server. `own` is the call whose reply contained it, if any;
    /// `resumed` tells whether its stream was resumed.
    async fn deliver(
        self: &Rc<Self>,
        own: Option<&Rc<Call>>,
        bytes: &[u8],
        resumed: bool,
    ) -> Result<(), Stopped> {
        let turn = self.outlet.turn().await;
        let frame = Frame::read(bytes);
        if let Body::Garbage(garbage) = frame.body()
            && !matches!(garbage, Garbage::Empty)
        {
            // A stdio client takes each line for a message, even a line of an HTML error page.
            let why = garbage.reason();
            let (lane, from, delivered) = (self.lane, Side::Server, false);
            self.station.pass(Event::Marked { lane, from, bytes, why: &why, delivered })?;
            self.notify("the MCP server sent data that is not an MCP message; it is on the tape");
            return Ok(());
        }
        let judged = self.station.hear(self.lane, bytes, (resumed, true))?;
        let Judged { disposition, said } = judged;
        let refused = matches!(disposition, Disposition::Refuse(()));
        if let Disposition::Forward(message) = disposition {
            self.pass_on(&turn, own, message);
        }
        let (to_client, to_server) = apart(said);
        self.say(&turn, own, to_client);
        if refused {
            // It may have answered a request of our own, which the client does not know about.
            self.note(own, &frame);
        }
        drop(turn);
        for message in to_server {
            self.tell_server(message.into_owned());
        }
        self.progress.notify_one();
        Ok(())
    }

    /// Writes a server's message to the client, and updates the session's state from it.
    fn pass_on(&self, turn: &Turn<'_>, own: Option<&Rc<Call>>, message: Permitted<'_>) {
        let frame = Frame::read(message.bytes());
        self.note(own, &frame);
        if !matches!(frame.body(), Body::Garbage(Garbage::Empty)) {
            turn.say(message.on_one_line());
        }
    }

    /// Sends one of our own messages to the server in the background.
    fn tell_server(self: &Rc<Self>, message: Permitted<'static>) {
        let bridge = Rc::clone(self);
        self.unsent.set(self.unsent.get() + 1);
        self.spawn(async move {
            bridge.send(message).await;
            bridge.unsent.set(bridge.unsent.get() - 1);
            bridge.progress.notify_one();
        });
    }

    /// Whether work is in progress that may lead to an answer for the client.
    fn is_busy(&self) -> bool {
        !self.calls.is_empty() || !self.held.borrow().is_empty() || self.unsent.get() > 0
    }

    /// Records an oversized message, and reports it to its sender or to the side waiting for it.
    async fn refuse(
        self: &Rc<Self>,
        own: Option<&Rc<Call>>,
        from: Side,
        message: Oversize,
    ) -> Result<(), Stopped> {
        let (lane, bytes_max) = (self.lane, self.station.message_bytes_max());
        let turn = self.outlet.turn().await;
        let outgoing = self.station.pass(Event::TooLarge { lane, from, message, bytes_max })?;
        let (to_client, to_server) = apart(outgoing);
        self.say(&turn, own, to_client);
        drop(turn);
        for message in to_server {
            self.send(message).await;
        }
        Ok(())
    }

    /// Gives up a call: each unanswered request in it gets an error.
    async fn give_up(&self, call: &Rc<Call>, problem: &Problem) {
        let unanswered = call.unanswered();
        let error = match unanswered.is_empty() {
            true => Vec::new(),
            false => self.masked(problem).error(),
        };
        for id in unanswered {
            let turn = self.outlet.turn().await;
            let event =
                Event::Failed { lane: self.lane, asker: Side::Client, id: &id, error: &error };
            // If the tape has failed, the session is ending, which answers all requests.
            let Ok(outgoing) = self.station.pass(event) else { return };
            self.say(&turn, Some(call), apart(outgoing).0);
        }
        self.calls.drop_call(call);
        self.progress.notify_one();
    }

    /// A problem fit to be shown: secrets in the server's text are redacted.
    fn masked(&self, problem: &Problem) -> Problem {
        problem.masked(|what, text| self.mask(what, text))
    }

    /// Redacts server text that is quoted to the client; `None` if it may be quoted unchanged.
    fn mask(&self, what: &str, text: &[u8]) -> Option<Vec<u8>> {
        // If the tape has failed, the session is ending and no more server text is shown.
        self.station.mask_text(self.lane, what, text).unwrap_or_else(|Stopped| Some(Vec::new()))
    }

    /// Writes our own messages to the client.
    fn say(&self, turn: &Turn<'_>, own: Option<&Rc<Call>>, messages: Vec<Permitted<'_>>) {
        for message in messages {
            self.note(own, &Frame::read(message.bytes()));
            turn.say(message);
        }
        self.progress.notify_one();
    }

    /// Updates the session's state from a message that goes to the client.
    fn note(&self, own: Option<&Rc<Call>>, message: &Frame<'_>) {
        match message.body() {
            // An array within a batch is not a message, so its elements answer nothing.
            Body::Batch => frame::elements(message.bytes())
                .iter()
                .for_each(|element| self.note_message(own, element)),
            _ => self.note_message(own, message),
        }
    }

    fn note_message(&self, own: Option<&Rc<Call>>, message: &Frame<'_>) {
        let Some(said) = message.envelope() else { return };
        let (Kind::Response | Kind::Error, Some(id)) = (said.kind(), said.id) else { return };
        let Some(call) = self.calls.settle(own, id) else { return };
        match (call.sort, said.result) {
            (Sort::Initialize, Some(_)) => {
                let id = call.opens.borrow_mut().take();
                *self.session.borrow_mut() = Session { id, version: mirror::negotiated(message) };
            }
            (Sort::ToolsList, Some(result)) => self.params.borrow_mut().learn(result),
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
    fn notify(&self, words: &str) {
        let count = self.notices.get();
        self.notices.set(count + 1);
        match count {
            0..NOTICES_MAX => (self.notice)(words),
            NOTICES_MAX => (self.notice)("further notices of this kind are omitted"),
            _ => {}
        }
    }
}

/// Splits messages into those for the client and those for the server.
fn apart(said: Vec<Outgoing<'_>>) -> (Vec<Permitted<'_>>, Vec<Permitted<'_>>) {
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    for Outgoing { to, message, .. } in said {
        match to {
            Side::Client => to_client.push(message),
            Side::Server => to_server.push(message),
        }
    }
    (to_client, to_server)
}
