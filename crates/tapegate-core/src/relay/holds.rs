//! Calls that are held outside the stream until they are decided.
//!
//! A session has at most [`HELD_MAX`] of them; its client is not read from while that many wait.

use super::own_message::OwnMessage;
use crate::frame::same_id;
use crate::gate::{Approval, Hold, HoldId, Refusal, Topic};
use crate::pending::{PendingRequest, UnansweredRequest};
use crate::side::{Lane, Side};
use crate::time::Timestamp;

/// How many calls of one session may be held at once.
pub const HELD_MAX: usize = 32;
/// How many calls of all sessions may be held at once.
pub const HELD_TOTAL_MAX: usize = 1024;

/// How often a caller is sent progress about its held call.
const PROGRESS_NS: u64 = 5_000_000_000;

/// The held calls, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct HoldQueue(Vec<HeldRequest>);

/// A held call.
#[derive(Debug)]
pub(super) struct HeldRequest {
    pub(super) hold_id: HoldId,
    pub(super) lane: Lane,
    pub(super) from: Side,
    /// The raw id.
    pub(super) id: Vec<u8>,
    /// Its exact bytes, line ending not included.
    pub(super) bytes: Vec<u8>,
    /// When it arrived.
    pub(super) at: Timestamp,
    /// Its number on the tape.
    pub(super) n: u64,
    /// The error its caller gets if there is no decision in time; `None` if it is then sent on.
    pub(super) on_timeout: Option<Refusal>,
    /// The approval it already has.
    pub(super) approval: Option<Approval>,
    /// Whether it waits for answers to our own requests rather than for a person.
    pub(super) awaits_list: bool,
    /// How often it has been held again.
    pub(super) rounds: u32,
    deadline_ns: u64,
    progress: Option<HoldProgress>,
}

/// A progress message to the caller of a held call, and where to send it.
pub(super) type HoldKeepalive = (HoldId, (Timestamp, Lane, Side), OwnMessage);

/// Progress messages for a caller that gave a progress token.
#[derive(Debug)]
struct HoldProgress {
    /// The raw token.
    token: Vec<u8>,
    count: u64,
    next_ns: u64,
}

impl HeldRequest {
    /// A call that is held from `now` on, as `hold` says.
    pub(super) fn new(
        now: Timestamp,
        (lane, from): (Lane, Side),
        (id, bytes, token): (&[u8], &[u8], Option<&[u8]>),
        n: u64,
        hold: Hold,
    ) -> Self {
        let next_ns = now.mono_ns.saturating_add(PROGRESS_NS);
        let progress = token.map(|token| HoldProgress { token: token.to_vec(), count: 0, next_ns });
        let (id, bytes, at) = (id.to_vec(), bytes.to_vec(), now);
        let Hold { hold_id, timeout_ms, on_timeout } = hold;
        let deadline_ns = deadline(now, timeout_ms);
        let (approval, awaits_list, rounds) = (None, false, 0);
        Self {
            hold_id,
            lane,
            from,
            id,
            bytes,
            at,
            n,
            on_timeout,
            approval,
            awaits_list,
            rounds,
            deadline_ns,
            progress,
        }
    }

    /// The same call, held again.
    pub(super) fn held_again(self, now: Timestamp, hold: Hold) -> Self {
        let Hold { hold_id: ticket, timeout_ms, on_timeout } = hold;
        let (deadline_ns, rounds) = (deadline(now, timeout_ms), self.rounds + 1);
        // The progress is kept, because its numbers must not start again.
        Self { hold_id: ticket, on_timeout, deadline_ns, rounds, awaits_list: false, ..self }
    }

    /// Turns it into an unanswered request.
    pub(super) fn into_unanswered(self) -> (UnansweredRequest, Option<HoldId>) {
        let pending_request = PendingRequest {
            at: self.at,
            n: self.n,
            topic: Topic::Other,
            cancelled: false,
            late: false,
        };
        (UnansweredRequest { lane: self.lane, id: self.id, pending_request }, Some(self.hold_id))
    }

    /// The progress message for its caller, if one is due.
    fn keepalive_due(&mut self, now: Timestamp) -> Option<HoldKeepalive> {
        // The text of the progress says that approval is awaited, which is not true of a list.
        if self.awaits_list {
            return None;
        }
        let progress = self.progress.as_mut().filter(|one| one.next_ns <= now.mono_ns)?;
        progress.count += 1;
        progress.next_ns = now.mono_ns.saturating_add(PROGRESS_NS);
        // Progress must increase, and the server's own may start anywhere above zero.
        let grown = format!("{:.6}", progress.count as f64 / 1e6);
        let message = OwnMessage::progress(&progress.token, &grown);
        Some((self.hold_id, (now, self.lane, self.from), message))
    }

    fn next_due_ns(&self) -> u64 {
        let progress = self.progress.as_ref().filter(|_| !self.awaits_list);
        progress.map_or(self.deadline_ns, |one| one.next_ns.min(self.deadline_ns))
    }
}

impl HoldQueue {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no further call of a session can be held.
    pub(super) fn is_full(&self, session: u32) -> bool {
        // The limit is per session: one client with many held calls must not block the others.
        let of_session = || self.0.iter().filter(|held| held.lane.session == session).count();
        self.0.len() >= HELD_TOTAL_MAX || (self.0.len() >= HELD_MAX && of_session() >= HELD_MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many calls of `from` are held.
    pub(super) fn count_from(&self, from: Side) -> usize {
        self.0.iter().filter(|held_request| held_request.from == from).count()
    }

    pub(super) fn insert(&mut self, held_request: HeldRequest) {
        self.0.push(held_request);
    }

    /// Whether a call is held under this id.
    pub(super) fn is_held(&self, hold_id: HoldId) -> bool {
        self.0.iter().any(|held_request| held_request.hold_id == hold_id)
    }

    /// Makes a held call wait for lists instead of a person; false if there is no such call.
    pub(super) fn await_list(&mut self, hold_id: HoldId) -> bool {
        let held_request = self.0.iter_mut().find(|held_request| held_request.hold_id == hold_id);
        held_request.map(|held_request| held_request.awaits_list = true).is_some()
    }

    /// Removes and returns the call held under this id.
    pub(super) fn take(&mut self, hold_id: HoldId) -> Option<HeldRequest> {
        self.take_if(|held_request| held_request.hold_id == hold_id)
    }

    /// Whether a call of `from` with this id is held.
    pub(super) fn contains(&self, lane: Lane, from: Side, id: &[u8]) -> bool {
        self.0.iter().any(|held_request| {
            (held_request.lane, held_request.from) == (lane, from) && same_id(&held_request.id, id)
        })
    }

    /// How many calls of `from` with this id are held that a message in `lane` can refer to.
    pub(super) fn count_reachable(&self, lane: Lane, from: Side, id: &[u8]) -> usize {
        let is_it = |held: &&HeldRequest| lane.reaches(held.lane) && held.from == from;
        self.0.iter().filter(is_it).filter(|held_request| same_id(&held_request.id, id)).count()
    }

    /// Removes and returns the oldest call of `from` with this id that a message in `lane` can refer to.
    pub(super) fn take_reachable(
        &mut self,
        lane: Lane,
        from: Side,
        id: &[u8],
    ) -> Option<HeldRequest> {
        self.take_if(|held_request| {
            lane.reaches(held_request.lane)
                && held_request.from == from
                && same_id(&held_request.id, id)
        })
    }

    /// Removes and returns the oldest call of `from` with this id.
    pub(super) fn take_id(&mut self, lane: Lane, from: Side, id: &[u8]) -> Option<HeldRequest> {
        self.take_if(|held_request| {
            (held_request.lane, held_request.from) == (lane, from) && same_id(&held_request.id, id)
        })
    }

    /// Removes and returns the oldest call of `from`, in one lane or all. If `keeps_lists`, skips calls that
    /// wait for a list of ours.
    pub(super) fn take_oldest_of(
        &mut self,
        lane: Option<Lane>,
        from: Side,
        keeps_lists: bool,
    ) -> Option<HeldRequest> {
        self.take_if(|held_request| {
            let is_there =
                held_request.from == from && lane.is_none_or(|lane| lane == held_request.lane);
            is_there && !(keeps_lists && held_request.awaits_list)
        })
    }

    /// Removes and returns the oldest call that has timed out.
    pub(super) fn take_late(&mut self, now: Timestamp) -> Option<HeldRequest> {
        self.take_if(|held_request| held_request.deadline_ns <= now.mono_ns)
    }

    /// The progress messages that are due.
    pub(super) fn keepalives_due(&mut self, now: Timestamp) -> Vec<HoldKeepalive> {
        self.0.iter_mut().filter_map(|held_request| held_request.keepalive_due(now)).collect()
    }

    /// When something is due next, by the monotonic clock.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.0.iter().map(HeldRequest::next_due_ns).min()
    }

    fn take_if(&mut self, is_it: impl Fn(&HeldRequest) -> bool) -> Option<HeldRequest> {
        // `remove` keeps the order of arrival: of calls with equal ids, the oldest is meant.
        self.0.iter().position(is_it).map(|at| self.0.remove(at))
    }
}

fn deadline(now: Timestamp, timeout_ms: u64) -> u64 {
    now.mono_ns.saturating_add(timeout_ms.saturating_mul(1_000_000))
}
