//! What a policy would have done to messages that are on tape.
//!
//! A [`Trial`] puts them to the same [`Warden`] that a shim has, so that nothing is decided here.
//! Nobody is asked and nothing is kept: a call that would have waited is one that waits for ever.

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

/// How many unanswered requests are remembered.
const ASKED_MAX: usize = 1 << 20;

/// What messages are judged by.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The policy, and what goes with it.
    pub regime: Regime,
    /// What is known of the session.
    pub settings: Settings,
}

/// What must be known of what was said before a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    /// Nothing.
    None,
    /// Whatever sets the scene: see [`sets_scene`].
    Scene,
    /// Everything.
    All,
}

/// A policy that is tried on the messages of one tape, in their order.
#[derive(Debug)]
pub struct Trial {
    warden: Warden,
    notes: Kept,
    /// Room for notes that is used again.
    spare: Vec<Note<'static>>,
    sessions: HashMap<Vec<u8>, u32, RandomState>,
    /// What requests were about, by who waits for the answer.
    asked: HashMap<(Side, u32, IdKey), Topic, RandomState>,
    /// Whether answers must be known by what was asked.
    pairing: bool,
}

/// A message of a tape.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// When it was said, in microseconds since 1970.
    pub wall_us: i64,
    /// Who said it.
    pub from: Side,
    /// Its session, as the tape names it.
    pub session: Option<&'a [u8]>,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether its line end came too.
    pub terminated: bool,
}

/// What would have become of a message.
#[derive(Debug)]
pub struct Heard {
    /// Whether it would have been sent on.
    pub fate: Fate,
    /// What would have been sent in its place.
    pub rewritten: Option<Vec<u8>>,
    /// What would have been noted.
    pub notes: Vec<Note<'static>>,
    /// The method, if nothing would have been noted of it.
    pub passed: Option<String>,
}

/// Keeps notes until they are asked for.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<Note<'static>>>>);

impl Notes for Kept {
    fn note(&mut self, note: &Note<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note.clone().into_owned());
    }
}

impl Kept {
    /// The notes so far; the next ones go into `room`.
    fn swap(&self, room: Vec<Note<'static>>) -> Vec<Note<'static>> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), room)
    }
}

/// Nobody is asked.
struct Nobody;

impl People for Nobody {
    fn ask(&mut self, _: Ticket, _: &Asking<'_>) {}

    fn withdraw(&mut self, _: At, _: Ticket, _: HoldEnd) {}
}

impl Terms {
    /// What must be known of what was said before, to judge a message as it would have been.
    pub fn memory(&self) -> Memory {
        let policy = self.regime.policy.as_ref();
        let pinned = policy.is_some_and(|policy| {
            policy.pins.on_drift != OnDrift::Ignore && !policy.pins.lock.servers.is_empty()
        });
        // Cedar may ask which client has introduced itself.
        let cedar = policy.is_some_and(|policy| policy.cedar.is_some());
        if self.regime.redactor.is_some() {
            Memory::All
        } else if cedar || pinned {
            Memory::Scene
        } else {
            Memory::None
        }
    }

    /// Begins a trial.
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
            // Nothing is listed on a tape but what is on it.
            Verdict::Hold(_) | Verdict::ListFirst(_) => (Fate::Approve, None),
        };
        let notes = self.notes.swap(std::mem::take(&mut self.spare));
        let method = frame.envelope().and_then(|envelope| envelope.method);
        let passed = method.filter(|_| notes.is_empty()).map(|method| method.decode().into_owned());
        Heard { fate, rewritten, notes, passed }
    }

    /// Takes back what was heard, whose memory is used again.
    pub fn done(&mut self, heard: Heard) {
        self.spare = heard.notes;
        self.spare.clear();
    }

    fn lane(&mut self, session: Option<&[u8]>) -> Lane {
        let Some(session) = session else { return Lane::ONLY };
        let next = self.sessions.len() as u32 + 2;
        Lane::session(*self.sessions.entry(session.to_vec()).or_insert(next))
    }

    /// What an answer's request was about; of a request, that is remembered.
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

/// Whether a message may change what is decided about others: a client introduces itself, or a
/// server lists what it has.
pub fn sets_scene(from: Side, bytes: &[u8]) -> bool {
    let words: &[&[u8]] = match from {
        Side::Client => &[b"initialize"],
        Side::Server => &[b"tools", b"prompts", b"resource"],
    };
    // Most messages are told by a search; a word may also be written in escapes.
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
