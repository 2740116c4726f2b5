//! Plays the server side of a scenario.
//!
//! The engine answers clients of both protocol eras from the scenario's current state, counts their
//! requests, and moves from phase to phase. It takes events and emits actions; the courier decides
//! how each message is delivered. Three invariants: every request is answered exactly once, unless
//! the scenario says otherwise or the client cancels it; an answer that ends a phase is delivered
//! before the phase changes, and nothing else is answered in between; every queue is bounded.

mod answer;
mod batch;
mod capabilities;
mod handlers;
mod kept;
mod lifecycle;
mod listen;
mod listing;
mod modern;
mod note;
mod phases;
mod play;
mod progress;
mod reload;
mod request;
mod script;
mod source;
mod suspend;
mod tell;
mod turn;
mod uri;
mod visit;

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use tapegate_core::actor::{Act, Actor, Cue, Seat};
use tapegate_core::time::At;

use crate::model::{Delivery, Scenario, Scope};
pub use note::Note;
use progress::Progress;
use script::Script;
use turn::Turn;
use visit::Visit;

/// A map whose hash is randomly seeded, so that clients cannot force collisions.
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// How often waiting requests check whether another client has changed the shared phase.
const POLL_NS: u64 = 5_000_000;

/// Looks up an environment variable.
pub type Env = Rc<dyn Fn(&str) -> Option<String>>;
/// Called for each event, with its time and the client it concerns.
pub type Watch = Rc<dyn Fn(At, Seat, Note<'_>)>;

/// The settings that a scenario runs with.
pub struct Setup {
    /// The seed of all random values.
    pub seed: u64,
    /// The environment variables that templates may read.
    pub env: Env,
    /// The delivery of every answer, overriding the scenario's own.
    pub delivery: Option<Delivery>,
    /// Whether programs and other servers may supply answers.
    pub handlers: bool,
    /// Whether the scenario may be reloaded; if so, any list may change.
    pub reloads: bool,
    /// Called for each event.
    pub watch: Watch,
}

impl Default for Setup {
    fn default() -> Self {
        let (env, watch) = (Rc::new(|_: &str| None), Rc::new(|_: At, _: Seat, _: Note<'_>| ()));
        Self { seed: 0, env, delivery: None, handlers: false, reloads: false, watch }
    }
}

/// Plays the server side of a scenario.
pub struct Engine {
    script: Rc<Script>,
    setup: Setup,
    seats: HashMap<Seat, Table, foldhash::fast::RandomState>,
    /// The progress of all clients, if they share one.
    global: Progress,
    /// How many clients have connected.
    visits: u32,
    /// The last ticket number given to an answer.
    tickets: u64,
    failure: Option<String>,
}

/// A client and its progress.
struct Table {
    visit: Visit,
    progress: Progress,
    /// The state of the random number generator.
    dice: Cell<u64>,
}

impl Engine {
    /// Creates an engine that runs `scenario`.
    pub fn new(scenario: Rc<Scenario>, setup: Setup) -> Self {
        Self {
            script: Rc::new(Script::new(scenario, setup.reloads)),
            setup,
            seats: HashMap::default(),
            global: Progress::default(),
            visits: 0,
            tickets: 0,
            failure: None,
        }
    }

    /// Why the scenario ended early, if it did.
    pub fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn is_global(&self) -> bool {
        self.script.scenario.server.scope == Scope::Global
    }

    /// The progress that applies to this client: its own or the shared one.
    fn progress<'a>(&'a self, table: &'a Table) -> &'a Progress {
        if self.is_global() { &self.global } else { &table.progress }
    }
}

impl Actor for Engine {
    fn handle(&mut self, at: At, seat: Seat, cue: Cue<'_>, act: &mut dyn FnMut(Act<'_>)) {
        if let Cue::Taken { streams, .. } = cue {
            self.visits += 1;
            let visit = Visit::new(self.visits, streams);
            // The n-th client draws the same random values, whatever the other clients do.
            let others = u64::from(self.visits - 1).wrapping_mul(0xd605_bbb5_8c8a_bbfd);
            let dice = Cell::new(self.setup.seed.wrapping_add(others));
            self.seats.insert(seat, Table { visit, progress: Progress::default(), dice });
            return;
        }
        let global = self.is_global();
        let failed = self.failure.is_some();
        let Some(table) = self.seats.get_mut(&seat).filter(|_| !failed) else { return };
        let mut turn = Turn {
            script: &self.script,
            setup: &self.setup,
            visit: &mut table.visit,
            progress: if global { &mut self.global } else { &mut table.progress },
            tickets: &mut self.tickets,
            dice: &table.dice,
            failure: &mut self.failure,
            at,
            seat,
            act,
        };
        let is_empty = matches!(cue, Cue::Empty);
        turn.cue(cue);
        if is_empty {
            self.seats.remove(&seat);
        }
    }

    fn due(&self, seat: Seat) -> Option<u64> {
        let table = self.seats.get(&seat)?;
        if self.failure.is_some() {
            return None;
        }
        let progress = self.progress(table);
        let held = match &progress.leaving {
            Some(leaving) if leaving.seat != seat => table.visit.held_since(),
            None if table.visit.is_holding() => Some(0),
            _ => None,
        };
        let poll = held.map(|since| since.saturating_add(POLL_NS));
        let phase = progress.due(&self.script);
        table.visit.due().into_iter().chain(poll).chain(phase).min()
    }

    fn busy(&self, seat: Seat) -> bool {
        self.failure.is_none() && self.seats.get(&seat).is_some_and(|table| table.visit.is_busy())
    }

    fn backlog(&self, seat: Seat) -> usize {
        self.seats.get(&seat).map_or(0, |table| table.visit.backlog())
    }
}
