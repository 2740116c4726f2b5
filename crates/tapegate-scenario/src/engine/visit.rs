//! One client: what it has said of itself, and what is under way for it.

use std::collections::VecDeque;

use tapegate_core::frame::same_id;

use super::Map;
use super::batch::Batch;
use super::listen::Listen;
use super::play::{Play, Wait};
use super::suspend::Suspended;
use crate::courier::Courier;

/// How many requests may wait for a phase to change, and how many bytes of them.
const HELD_MAX: usize = 1024;
const HELD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many requests may be under way.
const PLAYS_MAX: usize = 1024;
/// How much room they may take.
const PLAYS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How many answers that cannot be taken back are remembered.
const STUBBORN_MAX: usize = 256;
/// How long an id may be that is remembered.
const ID_BYTES_MAX: usize = 1024;

/// One client.
pub(super) struct Visit {
    /// Which one since the start, from 1.
    pub(super) number: u32,
    /// Whether each answer has a stream of its own.
    pub(super) streams: bool,
    pub(super) courier: Courier,
    /// The revision that the handshake led to.
    pub(super) version: Option<Box<str>>,
    /// Whether a request without a handshake was answered.
    pub(super) is_modern: bool,
    /// Whether what is done when a client comes was done.
    pub(super) is_connected: bool,
    /// The answer after which the client counts as there.
    pub(super) starting: Option<u64>,
    /// How bad must be what the client wants to hear of the log.
    pub(super) level: Option<usize>,
    /// What is under way.
    pub(super) plays: Vec<Play>,
    /// What waits for the client to come back.
    pub(super) suspended: VecDeque<Suspended>,
    pub(super) listens: Vec<Listen>,
    pub(super) batches: Map<u32, Batch>,
    pub(super) batch_count: u32,
    /// How many requests were sent to the client.
    pub(super) asked: u64,
    /// Answers that are delivered, or will never be.
    pub(super) settled: VecDeque<u64>,
    /// Lists that have changed while nobody was looking, by the notifications that say so.
    pub(super) changed: Vec<&'static str>,
    /// Requests whose answers are on their way even if nobody wants them any more.
    stubborn: VecDeque<Box<[u8]>>,
    /// Whether the client says no more.
    pub(super) has_left: bool,
    /// Until when a client that has left is told what it has asked for.
    pub(super) patient_until: Option<u64>,
    /// Whether that is over.
    is_impatient: bool,
    pub(super) scratch: Vec<u8>,
    held: VecDeque<Held>,
    held_bytes: usize,
    held_since: u64,
}

/// A message that waits for a phase to change.
pub(super) struct Held {
    id: Box<[u8]>,
    pub(super) text: Box<[u8]>,
    pub(super) batch: Option<u32>,
}

impl Visit {
    pub(super) fn new(number: u32, streams: bool) -> Self {
        Self {
            number,
            streams,
            courier: Courier::new(streams),
            version: None,
            is_modern: false,
            is_connected: false,
            starting: None,
            level: None,
            plays: Vec::new(),
            suspended: VecDeque::new(),
            listens: Vec::new(),
            batches: Map::default(),
            batch_count: 0,
            asked: 0,
            settled: VecDeque::new(),
            changed: Vec::new(),
            stubborn: VecDeque::new(),
            has_left: false,
            patient_until: None,
            is_impatient: false,
            scratch: Vec::new(),
            held: VecDeque::new(),
            held_bytes: 0,
            held_since: 0,
        }
    }

    /// Whether there is room for something more to be under way.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let taken = || self.plays.iter().map(|play| play.kept.bytes()).sum::<usize>();
        self.plays.len() < PLAYS_MAX && taken().saturating_add(bytes) <= PLAYS_BYTES_MAX
    }

    /// Forgets a message that waits, if there is one with this id.
    pub(super) fn forget(&mut self, id: &[u8]) -> Option<Held> {
        let place = self.held.iter().position(|held| same_id(&held.id, id))?;
        let held = self.held.remove(place)?;
        self.held_bytes -= held.text.len();
        Some(held)
    }

    /// Keeps a message until the phase has changed; false if too much waits already.
    pub(super) fn hold(&mut self, id: &[u8], text: &[u8], batch: Option<u32>, now_ns: u64) -> bool {
        if self.held.len() >= HELD_MAX || self.held_bytes + text.len() > HELD_BYTES_MAX {
            return false;
        }
        self.held_since = now_ns;
        self.held_bytes += text.len();
        self.held.push_back(Held { id: id.into(), text: text.into(), batch });
        true
    }

    /// The message that has waited longest.
    pub(super) fn next_held(&mut self, now_ns: u64) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.held_bytes -= held.text.len();
        self.held_since = now_ns;
        Some(held)
    }

    /// Looks at what waits again, from this moment on.
    pub(super) fn looked(&mut self, now_ns: u64) {
        self.held_since = now_ns;
    }

    /// Whether messages wait.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// When it was last looked whether what waits may go on.
    pub(super) fn held_since(&self) -> Option<u64> {
        self.is_holding().then_some(self.held_since)
    }

    /// When something is to be done.
    pub(super) fn due(&self) -> Option<u64> {
        let plays = self.plays.iter().filter_map(|play| play.wait.until()).min();
        let now = (!self.settled.is_empty() || !self.changed.is_empty()).then_some(0);
        let patience = self.patient_until.filter(|_| self.is_busy());
        self.courier.due().into_iter().chain(plays).chain(now).chain(patience).min()
    }

    /// Gives up what a client has asked for that has left, once it has taken too long.
    pub(super) fn lose_patience(&mut self, now_ns: u64) {
        self.is_impatient |= self.patient_until.is_some_and(|until| until <= now_ns);
    }

    /// Whether something is still to be said without the client saying more.
    pub(super) fn is_busy(&self) -> bool {
        if self.is_impatient {
            return false;
        }
        let waits = |play: &Play| !matches!(play.wait, Wait::Reply { .. }) || !self.has_left;
        self.courier.busy() || self.is_holding() || self.plays.iter().any(waits)
    }

    /// Notes that an answer goes its way even if nobody wants it any more.
    pub(super) fn insist(&mut self, id: &[u8]) {
        if self.stubborn.len() >= STUBBORN_MAX {
            self.stubborn.pop_front();
        }
        if id.len() <= ID_BYTES_MAX {
            self.stubborn.push_back(id.into());
        }
    }

    /// Whether the answer to a request goes its way even if nobody wants it any more.
    pub(super) fn is_stubborn(&self, id: &[u8]) -> bool {
        self.stubborn.iter().any(|known| same_id(known, id))
    }

    /// How many bytes wait.
    pub(super) fn backlog(&self) -> usize {
        self.courier.backlog() + self.held_bytes
    }
}
