//! An in-process server for clients.
//!
//! An actor plays the server, from a tape or a scenario. The host gives each client a session,
//! passes the client's messages to the actor, and sends what the actor replies, batching many lines
//! per read and write. A client that does not read is not read from either, so memory use is
//! bounded.

mod bridge_channel;
mod bridge_client;
mod client_end;
mod client_input;
mod client_io;
mod client_read_wait;
mod handler_calls;
mod notification;
mod outbox;
mod passthrough;
mod pipe_client;
pub(crate) mod raw_piece;
mod session;
mod session_handle;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::actor::{Actor, ActorSessionId};
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::link::{LinkOptions, LinkTarget};
use crate::port::LineReader;
use crate::recorded_session::RecordedSession;
use crate::signals::Signals;
use crate::stdio::{ClientPorts, EndCause, ShutdownTimeouts};
pub(crate) use bridge_channel::{ActorOutput, OutputReceiver};
use client_input::ClientInput;
pub(crate) use client_input::MessageGroup;
use pipe_client::PipeClient;
use session::ActorSession;
pub(crate) use session_handle::ActorSessionHandle;

/// How long an actor that wants to end may continue what it has begun.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// An actor, and the state shared by all its sessions.
pub struct ActorHost {
    actor: Rc<RefCell<dyn Actor>>,
    clock: Clock,
    options: ActorHostOptions,
    /// How many sessions were ever started.
    session_count: Cell<u32>,
    /// The actor's deadline, once it wants to end.
    stop: Cell<Option<Instant>>,
    /// Servers that handler calls were sent to.
    servers: handler_calls::HandlerServers,
    notify: Notify,
}

/// The options of an actor host.
pub struct ActorHostOptions {
    /// The largest message accepted, from a client or a passthrough server.
    pub message_bytes_max: usize,
    /// The passthrough server, if the actor may call one.
    pub passthrough: Option<LinkTarget>,
    /// How long a passthrough server may take to exit.
    pub patience: ShutdownTimeouts,
    /// Receives messages for the user.
    pub notice: Rc<dyn Fn(&str)>,
    /// The error given to a client for requests left unanswered because the actor has ended.
    pub farewell: String,
}

impl ActorHostOptions {
    fn link(&self) -> LinkOptions {
        let (patience, notice) = (self.patience, Rc::clone(&self.notice));
        LinkOptions { message_bytes_max: self.message_bytes_max, patience, notice }
    }
}

impl ActorHost {
    /// A host for `actor`, with `clock` as its source of time.
    pub fn new(actor: Rc<RefCell<dyn Actor>>, clock: Clock, options: ActorHostOptions) -> Rc<Self> {
        Rc::new(Self {
            actor,
            clock,
            options,
            session_count: Cell::new(0),
            stop: Cell::new(None),
            servers: handler_calls::HandlerServers::default(),
            notify: Notify::new(),
        })
    }

    /// Makes every session ask the actor again for its next deadline, because it has changed.
    pub fn wake_all(&self) {
        self.notify.notify_waiters();
    }

    fn next_session_number(&self) -> ActorSessionId {
        self.session_count.set(self.session_count.get() + 1);
        ActorSessionId(self.session_count.get())
    }

    /// Whether the actor wants to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.get().is_some()
    }

    /// Waits until the actor wants to end.
    pub(crate) async fn stop_requested(&self) {
        while !self.is_stopping() {
            self.notify.notified().await;
        }
    }

    /// The error given to a client for requests left unanswered because the actor has ended.
    pub(crate) fn end_reason(&self) -> &str {
        &self.options.farewell
    }

    /// Ends everything: no session reads any further input.
    fn stop(&self) {
        // The first request sets the deadline; later ones must not extend it.
        if !self.is_stopping() {
            self.stop.set(Some(Instant::now() + STOP_PATIENCE));
            self.notify.notify_waiters();
        }
    }
}

/// Serves one client on pipes until it leaves, the actor ends, a signal arrives or the tape fails.
///
/// With `recording`, everything is recorded before it is sent; it must use the clock of the host.
pub async fn run_stdio(
    host: &Rc<ActorHost>,
    client: ClientPorts,
    recording: Option<&mut RecordedSession>,
    mut signals: Signals,
) -> EndCause {
    let session = async {
        let bytes_max = host.options.message_bytes_max;
        let input = ClientInput::Pipe(LineReader::new(client.input, bytes_max));
        let pipe = PipeClient::new(client.output, recording, bytes_max);
        let mut actor_session = ActorSession::open(host, input, pipe);
        let cause = tokio::select! {
            cause = actor_session.run(false, false) => cause,
            number = signals.next() => EndCause::Signal(number),
        };
        tokio::select! {
            () = actor_session.close(&cause) => {}
            // A second signal skips the rest of the shutdown.
            _ = signals.next() => {}
        }
        cause
    };
    LocalSet::new().run_until(session).await
}
