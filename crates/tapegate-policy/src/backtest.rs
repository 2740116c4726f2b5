//! What a policy would have done to recorded messages.
//!
//! A [`Trial`] feeds them to the same [`Warden`] that the shim uses, so nothing is decided here. No
//! approver is asked and nothing is stored: a call that would have been held counts as held.

mod found;
mod tally;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use tapegate_core::frame::{Frame, Kind};
use tapegate_core::gate::{Case, Gate, HoldEnd, Ticket, Topic, Verdict};
use tapegate_core::pending::IdKey;
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::At;

use crate::cases::Fate;
use crate::model::OnDrift;
use crate::note::{Note, Notes};
use crate::people::{Asking, People};
use crate::warden::{Hands, Ids, Regime, Reins, Settings, Warden};

pub use found::{Change, Finding, Group, Place, Sort, Stand, Told, What};
pub use tally::{Tally, differ, told};

/// The maximum number of unanswered requests that are tracked.
const ASKED_MAX: usize = 1 << 20;

/// What messages are judged with.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The policy, its profile and its redactor.
    pub regime: Regime,
    /// The settings of the session.
    pub settings: Settings,
}

/// Which earlier messages are needed to judge a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    /// Nothing.
    None,
    /// Those that affect later decisions: see [`sets_scene`].
    Scene,
    /// Everything.
    All,
}

/// A policy that is applied to the messages of one tape, in order.
#[derive(Debug)]
pub struct Trial {
    warden: Warden,
    notes: Kept,
    /// An empty vector of notes, reused to save allocations.
    spare: Vec<Note<'static>>,
    sessions: HashMap<Vec<u8>, u32, RandomState>,
    /// The topics of requests, by the side that waits for the response.
    asked: HashMap<(Side, u32, IdKey), Topic, RandomState>,
    /// Whether responses must be matched to their requests.
    pairing: bool,
}

/// A recorded message.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// When it was sent, in microseconds since 1970.
    pub wall_us: i64,
    /// The side that sent it.
    pub from: Side,
    /// Its session, as named on the tape.
    pub session: Option<&'a [u8]>,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether its line end was recorded too.
    pub terminated: bool,
}

/// What would have happened to a message.
#[derive(Debug)]
pub struct Heard {
    /// Whether it would have been sent on, refused or held.
    pub fate: Fate,
    /// What would have been sent instead.
    pub rewritten: Option<Vec<u8>>,
    /// The notes that would have been logged.
    pub notes: Vec<Note<'static>>,
    /// The method, if nothing would have been logged about it.
    pub passed: Option<String>,
}

/// Collects notes until they are fetched.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<Note<'static>>>>);

impl Notes for Kept {
    fn note(&mut self, note: &Note<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note.clone().into_owned());
    }
}

impl Kept {
    /// Returns the notes so far; the next ones go into `room`.
    fn swap(&self, room: Vec<Note<'static>>) -> Vec<Note<'static>> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), room)
    }
}

/// An approval channel that never answers.
struct Nobody;

impl People for Nobody {
    fn ask(&mut self, _: Ticket, _: &Asking<'_>) {}

    fn withdraw(&mut self, _: At, _: Ticket, _: HoldEnd) {}
}

impl Terms {
    /// Which earlier messages are needed to judge a message as the live gate would have.
    pub fn memory(&self) -> Memory {
        let policy = self.regime.policy.as_ref();
        let pinned = policy.is_some_and(|policy| {
            policy.pins.on_drift != OnDrift::Ignore && !policy.pins.lock.servers.is_empty()
        });
        // Cedar policies may depend on the client's name.
        let cedar = policy.is_some_and(|policy| policy.cedar.is_some());
        if self.regime.redactor.is_some() {
            Memory::All
        } else if cedar || pinned {
            Memory::Scene
        } else {
            Memory::None
        }
    }

    /// Starts a trial.
    pub fn trial(&self) -> Trial {
        let notes = Kept::default();
        let hands = Hands {
            notes: Box::new(notes.clone()),
            people: Box::new(Nobody),
            ids: Ids::default(),
            clock: Box::new(|| 0),
        };
        let reins = Reins::new(self.regime.clone());
        let warden = Warden::new(self.settings.clone(), hands, reins);
        let (sessions, asked) = (HashMap::default(), HashMap::default());
        let pairing = self.regime.redactor.is_some();
        Trial { warden, notes, spare: Vec::new(), sessions, asked, pairing }
    }
}

impl Trial {
    /// Judges the next message.
    pub fn hear(&mut self, said: &Said<'_>) -> Heard {
        let frame = Frame::read(said.bytes);
        let lane = self.lane(said.session);
        let case = Case {
            n: 0,
            at: At { wall_us: said.wall_us, mono_ns: 0 },
            lane,
            from: said.from,
            frame: &frame,
            terminated: said.terminated,
            topic: if self.pairing { self.topic(&frame, said.from, lane) } else { None },
            approved: None,
            listed: None,
        };
        let (fate, rewritten) = match self.warden.judge(&case) {
            Verdict::Forward => (Fate::Forward, None),
            Verdict::Rewrite(text) => (Fate::Forward, Some(text)),
            Verdict::Refuse(_) => (Fate::Deny, None),
            // A backtest cannot ask the server for lists, so such a call counts as held.
            Verdict::Hold(_) | Verdict::ListFirst(_) => (Fate::Approve, None),
        };
        let notes = self.notes.swap(std::mem::take(&mut self.spare));
        let method = frame.envelope().and_then(|envelope| envelope.method);
        let passed = method.filter(|_| notes.is_empty()).map(|method| method.decode().into_owned());
        Heard { fate, rewritten, notes, passed }
    }

    /// Takes back a result to reuse its memory.
    pub fn done(&mut self, heard: Heard) {
        self.spare = heard.notes;
        self.spare.clear();
    }

    fn lane(&mut self, session: Option<&[u8]>) -> Lane {
        let Some(session) = session else { return Lane::ONLY };
        let next = self.sessions.len() as u32 + 2;
        Lane::session(*self.sessions.entry(session.to_vec()).or_insert(next))
    }

    /// For a response, the topic of its request; a request's topic is remembered.
    fn topic(&mut self, frame: &Frame<'_>, from: Side, lane: Lane) -> Option<Topic> {
        let said = frame.envelope()?;
        let id = IdKey::new(said.id?);
        match said.kind() {
            Kind::Request if self.asked.len() < ASKED_MAX => {
                let topic = Topic::of(&said.method?.bytes());
                self.asked.insert((from, lane.session, id), topic);
                None
            }
            Kind::Response | Kind::Error => self.asked.remove(&(from.other(), lane.session, id)),
            _ => None,
        }
    }
}

/// Whether a message may affect decisions about others: a client introduces itself, or a server
/// lists what it offers.
pub fn sets_scene(from: Side, bytes: &[u8]) -> bool {
    let words: &[&[u8]] = match from {
        Side::Client => &[b"initialize"],
        Side::Server => &[b"tools", b"prompts", b"resource"],
    };
    // One search rules out most messages; escapes may hide the word.
    let may = memchr::memchr(b'\\', bytes).is_some()
        || words.iter().any(|word| memchr::memmem::find(bytes, word).is_some());
    let frame = Frame::read(if may { bytes } else { b"" });
    frame.envelope().is_some_and(|said| match from {
        Side::Client => said.is_method("initialize"),
        Side::Server => said.lists,
    })
}

#[cfg(test)]
mod tests;
