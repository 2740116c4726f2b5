//! A server that is no process, in front of its clients.
//!
//! An actor plays the server: a tape, a scenario. The stage gives each client a seat, tells the
//! actor what the client says, and sends what the actor says, many lines with one read and one
//! write. A client that does not read is not read from either; nothing gathers without a bound.

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

/// How long an actor that wants to end may go on with what it has begun.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// An actor, and what all its seats share.
pub struct Stage {
    actor: Rc<RefCell<dyn Actor>>,
    clock: Clock,
    options: StageOptions,
    /// How many seats were ever taken.
    seats: Cell<u32>,
    /// When the actor's time is up, once it wants to end.
    stop: Cell<Option<Instant>>,
    /// Servers that errands went to.
    servers: errands::Servers,
    news: Notify,
}

/// How a stage is kept.
pub struct StageOptions {
    /// The largest message that is heard, of a client and of a server behind.
    pub message_bytes_max: usize,
    /// The server behind, if the actor may ask one.
    pub behind: Option<Upstream>,
    /// How long a server behind has to end.
    pub patience: Patience,
    /// Takes what a person may want to know.
    pub notice: Rc<dyn Fn(&str)>,
    /// What a client is told whose request is not answered because the actor has ended.
    pub farewell: String,
}

impl StageOptions {
    fn link(&self) -> LinkOptions {
        let (patience, notice) = (self.patience, Rc::clone(&self.notice));
        LinkOptions { message_bytes_max: self.message_bytes_max, patience, notice }
    }
}

impl Stage {
    /// A stage for `actor`, which is told the time by `clock`.
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

    /// Has the actor asked again at every seat when it wants to be woken, because it has changed.
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

    /// What a client is told whose request is not answered because the actor has ended.
    pub(crate) fn farewell(&self) -> &str {
        &self.options.farewell
    }

    /// Ends everything: nothing more is read at any seat.
    fn stop(&self) {
        if !self.is_stopping() {
            self.stop.set(Some(Instant::now() + STOP_PATIENCE));
            self.news.notify_waiters();
        }
    }
}

/// Serves one client on pipes until it leaves, the actor or a signal wants an end, or the tape fails.
///
/// With a deck, everything is on its tape before it is sent; it must go by the clock of the stage.
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
            // Who signals twice has no patience left.
            _ = signals.next() => {}
        }
        cause
    };
    LocalSet::new().run_until(session).await
}
