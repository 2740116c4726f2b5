//! What a policy would have done to recorded messages.
//!
//! A [`PolicyTrial`] feeds them to the same [`PolicyGate`] that the shim uses, so nothing is decided here. No
//! approver is asked and nothing is stored: a call that would have been held counts as held.

mod finding;
mod tally;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use tapegate_core::frame::{Frame, MessageKind};
use tapegate_core::gate::{Gate, GateInput, HoldEnd, HoldId, Topic, Verdict};
use tapegate_core::pending::IdKey;
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::Timestamp;

use crate::approval_channel::{ApprovalChannel, ApprovalRequest};
use crate::cases::CaseOutcome;
use crate::hold_register::HoldRegister;
use crate::model::OnDrift;
use crate::note::{Note, NoteSink};
use crate::policy_gate::{
    ActivePolicy, GateEffects, GateSettings, IdGenerator, PolicyGate, PolicyHandle,
};

pub use finding::{
    BacktestFinding, BacktestItem, FindingDetail, FindingGroup, FindingKind, FindingLocation,
    PolicyChange, PolicyOutcome,
};
pub use tally::{BacktestTally, differ, findings_of};

/// The maximum number of unanswered requests that are tracked.
const ASKED_MAX: usize = 1 << 20;

/// What messages are judged with.
#[derive(Debug, Clone)]
pub struct BacktestConfig {
    /// The policy, its profile and its redactor.
    pub active_policy: ActivePolicy,
    /// The settings of the session.
    pub settings: GateSettings,
}

/// Which earlier messages are needed to judge a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HistoryScope {
    /// Nothing.
    None,
    /// Those that affect later decisions: see [`affects_later_decisions`].
    Scene,
    /// Everything.
    All,
}

/// A policy that is applied to the messages of one tape, in order.
#[derive(Debug)]
pub struct PolicyTrial {
    gate: PolicyGate,
    notes: NoteBuffer,
    /// An empty vector of notes, reused to save allocations.
    spare: Vec<Note<'static>>,
    sessions: HashMap<Vec<u8>, u32, RandomState>,
    /// The topics of requests, by the side that waits for the response.
    request_topics: HashMap<(Side, u32, IdKey), Topic, RandomState>,
    /// Whether responses must be matched to their requests.
    pairing: bool,
}

/// A recorded message.
#[derive(Debug, Clone, Copy)]
pub struct TapeMessage<'a> {
    /// When it was sent, in microseconds since 1970.
    pub wall_us: i64,
    /// The side that sent it.
    pub from: Side,
    /// Its session, as named on the tape.
    pub session: Option<&'a [u8]>,
    pub bytes: &'a [u8],
    /// Whether its line end was recorded too.
    pub terminated: bool,
}

/// What would have happened to a message.
#[derive(Debug)]
pub struct TrialOutcome {
    /// Whether it would have been sent on, refused or held.
    pub case_outcome: CaseOutcome,
    /// What would have been sent instead.
    pub rewritten: Option<Vec<u8>>,
    /// The notes that would have been logged.
    pub notes: Vec<Note<'static>>,
    /// The method, if nothing would have been logged about it.
    pub passed: Option<String>,
}

/// Collects notes until they are fetched.
#[derive(Debug, Clone, Default)]
struct NoteBuffer(Arc<Mutex<Vec<Note<'static>>>>);

impl NoteSink for NoteBuffer {
    fn note(&mut self, note: &Note<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note.clone().into_owned());
    }
}

impl NoteBuffer {
    /// Returns the notes so far; the next ones go into `room`.
    fn take_notes(&self, room: Vec<Note<'static>>) -> Vec<Note<'static>> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), room)
    }
}

/// An approval channel that never answers.
struct BacktestApprovals;

impl ApprovalChannel for BacktestApprovals {
    fn request_approval(&mut self, _: HoldId, _: &ApprovalRequest<'_>) {}

    fn withdraw_request(&mut self, _: Timestamp, _: HoldId, _: HoldEnd) {}
}

impl BacktestConfig {
    /// Which earlier messages are needed to judge a message as the live gate would have.
    pub fn memory(&self) -> HistoryScope {
        let policy = self.active_policy.policy.as_ref();
        let pinned = policy.is_some_and(|policy| {
            policy.pins.on_drift != OnDrift::Ignore && !policy.pins.lock.servers.is_empty()
        });
        // Cedar policies may depend on the client's name.
        let cedar = policy.is_some_and(|policy| policy.cedar.is_some());
        if self.active_policy.redactor.is_some() {
            HistoryScope::All
        } else if cedar || pinned {
            HistoryScope::Scene
        } else {
            HistoryScope::None
        }
    }

    /// Starts a trial.
    pub fn trial(&self) -> PolicyTrial {
        let notes = NoteBuffer::default();
        let effects = GateEffects {
            notes: Box::new(notes.clone()),
            approval_channel: Box::new(BacktestApprovals),
            holds: HoldRegister::default(),
            ids: IdGenerator::default(),
            states: None,
            clock: Box::new(|| 0),
        };
        let policy_handle = PolicyHandle::new(self.active_policy.clone());
        let gate = PolicyGate::new(self.settings.clone(), effects, policy_handle);
        let (sessions, request_topics) = (HashMap::default(), HashMap::default());
        let pairing = self.active_policy.redactor.is_some();
        PolicyTrial { gate, notes, spare: Vec::new(), sessions, request_topics, pairing }
    }
}

impl PolicyTrial {
    /// Judges the next message.
    pub fn judge(&mut self, message: &TapeMessage<'_>) -> TrialOutcome {
        let frame = Frame::read(message.bytes);
        let lane = self.lane(message.session);
        let case = GateInput {
            n: 0,
            at: Timestamp { wall_us: message.wall_us, mono_ns: 0 },
            lane,
            from: message.from,
            frame: &frame,
            terminated: message.terminated,
            topic: if self.pairing { self.topic(&frame, message.from, lane) } else { None },
            approved: None,
            listed: None,
        };
        let (case_outcome, rewritten) = match self.gate.judge(&case) {
            Verdict::Forward => (CaseOutcome::Forward, None),
            Verdict::Rewrite(text) => (CaseOutcome::Forward, Some(text)),
            Verdict::Refuse(_) => (CaseOutcome::Deny, None),
            // A backtest cannot ask the server for lists, so such a call counts as held.
            Verdict::Hold(_) | Verdict::ListFirst(_) => (CaseOutcome::Approve, None),
        };
        let notes = self.notes.take_notes(std::mem::take(&mut self.spare));
        let method = frame.envelope().and_then(|envelope| envelope.method);
        let passed = method.filter(|_| notes.is_empty()).map(|method| method.decode().into_owned());
        TrialOutcome { case_outcome, rewritten, notes, passed }
    }

    /// Takes back a result to reuse its memory.
    pub fn recycle(&mut self, outcome: TrialOutcome) {
        self.spare = outcome.notes;
        self.spare.clear();
    }

    fn lane(&mut self, session: Option<&[u8]>) -> Lane {
        let Some(session) = session else { return Lane::ONLY };
        let next = self.sessions.len() as u32 + 2;
        Lane::session(*self.sessions.entry(session.to_vec()).or_insert(next))
    }

    /// For a response, the topic of its request; a request's topic is remembered.
    fn topic(&mut self, frame: &Frame<'_>, from: Side, lane: Lane) -> Option<Topic> {
        let msg = frame.envelope()?;
        let id = IdKey::new(msg.id?);
        match msg.kind() {
            MessageKind::Request if self.request_topics.len() < ASKED_MAX => {
                let topic = Topic::of(&msg.method?.bytes());
                self.request_topics.insert((from, lane.session, id), topic);
                None
            }
            MessageKind::Response | MessageKind::Error => {
                self.request_topics.remove(&(from.other(), lane.session, id))
            }
            _ => None,
        }
    }
}

/// Whether a message may affect decisions about others: a client introduces itself, or a server
/// lists what it offers.
pub fn affects_later_decisions(from: Side, bytes: &[u8]) -> bool {
    let words: &[&[u8]] = match from {
        Side::Client => &[b"initialize"],
        Side::Server => &[b"tools", b"prompts", b"resource"],
    };
    // One search rules out most messages; escapes may hide the word.
    let may = memchr::memchr(b'\\', bytes).is_some()
        || words.iter().any(|word| memchr::memmem::find(bytes, word).is_some());
    let frame = Frame::read(if may { bytes } else { b"" });
    frame.envelope().is_some_and(|msg| match from {
        Side::Client => msg.is_method("initialize"),
        Side::Server => msg.lists,
    })
}

#[cfg(test)]
mod tests;
