//! Plays the server side of a scenario.
//!
//! The engine answers clients of both protocol eras from the scenario's current state, counts their
//! requests, and moves from phase to phase. It takes events and emits actions; the delivery queue decides
//! how each message is delivered. Three invariants: every request is answered exactly once, unless
//! the scenario says otherwise or the client cancels it; an answer that ends a phase is delivered
//! before the phase changes, and nothing else is answered in between; every queue is bounded.

mod answer;
mod answer_origin;
mod batch;
mod capabilities;
mod engine_turn;
mod handlers;
mod item_listing;
mod lifecycle;
mod note;
mod owned_request;
mod phase_progress;
mod phases;
mod prepared_scenario;
mod reload;
mod request;
mod running_request;
mod server_messages;
mod session;
mod stateless;
mod subscriptions;
mod suspended_operation;
mod uri;

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::time::Timestamp;

use crate::model::{Delivery, Scenario, ScenarioScope};
use engine_turn::EngineTurn;
pub use note::EngineNote;
use phase_progress::PhaseProgress;
use prepared_scenario::PreparedScenario;
use session::EngineSession;

/// A map whose hash is randomly seeded, so that clients cannot force collisions.
type EngineMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// How often waiting requests check whether another client has changed the shared phase.
const POLL_NS: u64 = 5_000_000;

/// Looks up an environment variable.
pub type EnvLookup = Rc<dyn Fn(&str) -> Option<String>>;
/// Called for each event, with its time and the client it concerns.
pub type EngineObserver = Rc<dyn Fn(Timestamp, ActorSessionId, EngineNote<'_>)>;

/// The settings that a scenario runs with.
pub struct EngineSetup {
    /// The seed of all random values.
    pub seed: u64,
    /// The environment variables that templates may read.
    pub env: EnvLookup,
    /// The delivery of every answer, overriding the scenario's own.
    pub delivery: Option<Delivery>,
    /// Whether programs and other servers may supply answers.
    pub handlers: bool,
    /// Whether the scenario may be reloaded; if so, any list may change.
    pub reloads: bool,
    /// Called for each event.
    pub watch: EngineObserver,
}

impl Default for EngineSetup {
    fn default() -> Self {
        let (env, watch) = (
            Rc::new(|_: &str| None),
            Rc::new(|_: Timestamp, _: ActorSessionId, _: EngineNote<'_>| ()),
        );
        Self { seed: 0, env, delivery: None, handlers: false, reloads: false, watch }
    }
}

/// Plays the server side of a scenario.
pub struct Engine {
    script: Rc<PreparedScenario>,
    setup: EngineSetup,
    clients: HashMap<ActorSessionId, ClientState, foldhash::fast::RandomState>,
    /// The progress of all clients, if they share one.
    global: PhaseProgress,
    /// How many clients have connected.
    visits: u32,
    /// The last ticket number given to an answer.
    last_id: u64,
    failure: Option<String>,
}

/// A client and its progress.
struct ClientState {
    engine_session: EngineSession,
    progress: PhaseProgress,
    /// The state of the random number generator.
    dice: Cell<u64>,
}

impl Engine {
    /// Creates an engine that runs `scenario`.
    pub fn new(scenario: Rc<Scenario>, setup: EngineSetup) -> Self {
        Self {
            script: Rc::new(PreparedScenario::new(scenario, setup.reloads)),
            setup,
            clients: HashMap::default(),
            global: PhaseProgress::default(),
            visits: 0,
            last_id: 0,
            failure: None,
        }
    }

    /// Why the scenario ended early, if it did.
    pub fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn is_global(&self) -> bool {
        self.script.scenario.server.scope == ScenarioScope::Global
    }

    /// The progress that applies to this client: its own or the shared one.
    fn progress<'a>(&'a self, table: &'a ClientState) -> &'a PhaseProgress {
        if self.is_global() { &self.global } else { &table.progress }
    }
}

impl Actor for Engine {
    fn handle(
        &mut self,
        at: Timestamp,
        session: ActorSessionId,
        event: ActorEvent<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        if let ActorEvent::Taken { streams, .. } = event {
            self.visits += 1;
            let engine_session = EngineSession::new(self.visits, streams);
            // The n-th client draws the same random values, whatever the other clients do.
            let others = u64::from(self.visits - 1).wrapping_mul(0xd605_bbb5_8c8a_bbfd);
            let dice = Cell::new(self.setup.seed.wrapping_add(others));
            self.clients.insert(
                session,
                ClientState { engine_session, progress: PhaseProgress::default(), dice },
            );
            return;
        }
        let global = self.is_global();
        let failed = self.failure.is_some();
        // After an abort, nothing is answered any more.
        let Some(table) = self.clients.get_mut(&session).filter(|_| !failed) else { return };
        let mut turn = EngineTurn {
            script: &self.script,
            setup: &self.setup,
            engine_session: &mut table.engine_session,
            progress: if global { &mut self.global } else { &mut table.progress },
            last_id: &mut self.last_id,
            dice: &table.dice,
            failure: &mut self.failure,
            at,
            session,
            act,
        };
        let is_empty = matches!(event, ActorEvent::Empty);
        turn.handle_event(event);
        if is_empty {
            // After the event is handled: other clients may wait for an answer that this one will
            // not take.
            self.clients.remove(&session);
        }
    }

    fn next_wakeup(&self, session: ActorSessionId) -> Option<u64> {
        let table = self.clients.get(&session)?;
        if self.failure.is_some() {
            return None;
        }
        let progress = self.progress(table);
        let held = match &progress.leaving {
            // Another client's answer ends the phase, and its delivery wakes only that client. So
            // this one polls.
            Some(leaving) if leaving.session != session => table.engine_session.last_checked(),
            // The phase has changed, so the waiting requests are due at once.
            None if table.engine_session.has_waiting() => Some(0),
            _ => None,
        };
        let poll = held.map(|since| since.saturating_add(POLL_NS));
        let phase = progress.next_deadline(&self.script);
        table.engine_session.next_deadline().into_iter().chain(poll).chain(phase).min()
    }

    fn is_busy(&self, session: ActorSessionId) -> bool {
        self.failure.is_none()
            && self.clients.get(&session).is_some_and(|table| table.engine_session.is_busy())
    }

    fn backlog_bytes(&self, session: ActorSessionId) -> usize {
        self.clients.get(&session).map_or(0, |table| table.engine_session.backlog_bytes())
    }
}
