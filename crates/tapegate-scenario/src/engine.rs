//! A scenario in the role of the server.
//!
//! The engine answers clients of both eras from the state that the scenario is in, counts what they
//! do, and goes from phase to phase. It is fed cues and emits acts; how what it says travels is the
//! courier's business. Three things hold: every request is answered exactly once, unless the scenario
//! says otherwise or the client takes it back; an answer that leads out of a phase is delivered before
//! the phase changes, and nothing else is answered in between; nothing gathers without a bound.

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

/// A map that nobody outside can make slow on purpose.
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// How often requests look whether another client's phase has changed that they wait for.
const POLL_NS: u64 = 5_000_000;

/// Finds a variable of the environment.
pub type Env = Rc<dyn Fn(&str) -> Option<String>>;
/// Is told what happens, when and to whom.
pub type Watch = Rc<dyn Fn(At, Seat, Note<'_>)>;

/// What a scenario is run with.
pub struct Setup {
    /// What chance goes by.
    pub seed: u64,
    /// Variables of the environment.
    pub env: Env,
    /// How all answers travel, whatever the scenario says.
    pub delivery: Option<Delivery>,
    /// Whether programs and other servers may be asked for answers.
    pub handlers: bool,
    /// Whether the scenario may be read anew, so that any list may change.
    pub reloads: bool,
    /// Is told what happens.
    pub watch: Watch,
}

impl Default for Setup {
    fn default() -> Self {
        let (env, watch) = (Rc::new(|_: &str| None), Rc::new(|_: At, _: Seat, _: Note<'_>| ()));
        Self { seed: 0, env, delivery: None, handlers: false, reloads: false, watch }
    }
}

/// A scenario in the role of the server.
pub struct Engine {
    script: Rc<Script>,
    setup: Setup,
    seats: HashMap<Seat, Table, foldhash::fast::RandomState>,
    /// Where all clients are, if they share that.
    global: Progress,
    /// How many clients have come.
    visits: u32,
    /// How many answers were given a number.
    tickets: u64,
    failure: Option<String>,
}

/// A client and where it is.
struct Table {
    visit: Visit,
    progress: Progress,
    /// Where the next random number comes from.
    dice: Cell<u64>,
}

impl Engine {
    /// An engine that runs a scenario.
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

    /// Why the scenario has come to an end before its time, if it has.
    pub fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn is_global(&self) -> bool {
        self.script.scenario.server.scope == Scope::Global
    }

    /// Where the clients at a table are.
    fn progress<'a>(&'a self, table: &'a Table) -> &'a Progress {
        if self.is_global() { &self.global } else { &table.progress }
    }
}

impl Actor for Engine {
    fn handle(&mut self, at: At, seat: Seat, cue: Cue<'_>, act: &mut dyn FnMut(Act<'_>)) {
        if let Cue::Taken { streams, .. } = cue {
            self.visits += 1;
            let visit = Visit::new(self.visits, streams);
            // Chance is the same for the n-th client, whatever the others do.
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
