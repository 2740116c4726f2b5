//! An in-process server for clients.
//!
//! An actor plays the server, from a tape or a scenario. The host gives each client a session,
//! passes the client's messages to the actor, and sends what the actor replies, batching many lines
//! per read and write. A client that does not read is not read from either, so memory use is
//! bounded.

pub(crate) mod address;
mod behind;
mod desk;
mod errands;
mod handover;
mod notification;
mod outbox;
pub(crate) mod piece;
mod raw_line;
mod seat;
mod sitting;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::actor::{Actor, Seat as Number};
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::deck::Deck;
use crate::link::{LinkOptions, Upstream};
use crate::signals::Signals;
use crate::stdio::{Cause, ClientPorts, Patience};
use seat::Seat;
pub(crate) use sitting::Sitting;

/// How long an actor that wants to end may continue what it has begun.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// An actor, and the state shared by all its sessions.
pub struct Stage {
    actor: Rc<RefCell<dyn Actor>>,
    clock: Clock,
    options: StageOptions,
    /// How many sessions were ever started.
    seats: Cell<u32>,
    /// The actor's deadline, once it wants to end.
    stop: Cell<Option<Instant>>,
    /// Servers that handler calls were sent to.
    servers: errands::Servers,
    news: Notify,
}

/// The options of an actor host.
pub struct StageOptions {
    /// The largest message accepted, from a client or a passthrough server.
    pub message_bytes_max: usize,
    /// The passthrough server, if the actor may call one.
    pub behind: Option<Upstream>,
    /// How long a passthrough server may take to exit.
    pub patience: Patience,
    /// Receives messages for the user.
    pub notice: Rc<dyn Fn(&str)>,
    /// The error given to a client for requests left unanswered because the actor has ended.
    pub farewell: String,
}

impl StageOptions {
    fn link(&self) -> LinkOptions {
        let (patience, notice) = (self.patience, Rc::clone(&self.notice));
        LinkOptions { message_bytes_max: self.message_bytes_max, patience, notice }
    }
}

impl Stage {
    /// A host for `actor`, with `clock` as its source of time.
    pub fn new(actor: Rc<RefCell<dyn Actor>>, clock: Clock, options: StageOptions) -> Rc<Self> {
        Rc::new(Self {
            actor,
            clock,
            options,
            seats: Cell::new(0),
            stop: Cell::new(None),
            servers: errands::Servers::default(),
            news: Notify::new(),
        })
    }

    /// Makes every session ask the actor again for its next deadline, because it has changed.
    pub fn wake(&self) {
        self.news.notify_waiters();
    }

    fn next_seat(&self) -> Number {
        self.seats.set(self.seats.get() + 1);
        Number(self.seats.get())
    }

    /// Whether the actor wants to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.get().is_some()
    }

    /// Waits until the actor wants to end.
    pub(crate) async fn stopped(&self) {
        while !self.is_stopping() {
            self.news.notified().await;
        }
    }

    /// The error given to a client for requests left unanswered because the actor has ended.
    pub(crate) fn farewell(&self) -> &str {
        &self.options.farewell
    }

    /// Ends everything: no session reads any further input.
    fn stop(&self) {
        if !self.is_stopping() {
            self.stop.set(Some(Instant::now() + STOP_PATIENCE));
            self.news.notify_waiters();
        }
    }
}

/// Serves one client on pipes until it leaves, the actor ends, a signal arrives or the tape fails.
///
/// With `deck`, everything is recorded before it is sent; it must use the clock of the host.
pub async fn run_stdio(
    stage: &Rc<Stage>,
    client: ClientPorts,
    deck: Option<&mut Deck>,
    mut signals: Signals,
) -> Cause {
    let session = async {
        let mut seat = Seat::take(stage, client, deck);
        let cause = tokio::select! {
            cause = seat.run(false) => cause,
            number = signals.next() => Cause::Signal(number),
        };
        tokio::select! {
            () = seat.close(&cause) => {}
            // A second signal skips the rest of the shutdown.
            _ = signals.next() => {}
        }
        cause
    };
    LocalSet::new().run_until(session).await
}
