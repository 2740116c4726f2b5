//! Calls that are held outside the stream until they are decided.
//!
//! A session has at most [`HELD_MAX`] of them; its client is not read from while that many wait.

use super::own_message::OwnMessage;
use crate::frame::same_id;
use crate::gate::{Approval, Hold, HoldId, Refusal, TaskDialect, TaskHandle, Topic};
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
    /// The task of ours that stands for it. Its caller then has an answer already.
    pub(super) task: Option<TaskHandle>,
    deadline_ns: u64,
    /// What the caller is told in progress messages.
    awaits: String,
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
        let Hold { hold_id, timeout_ms, on_timeout, progress: awaits, replacement, task: _ } = hold;
        let bytes = replacement.unwrap_or_else(|| bytes.to_vec());
        let (id, at) = (id.to_vec(), now);
        let deadline_ns = deadline(now, timeout_ms);
        let (approval, awaits_list, rounds, task) = (None, false, 0, None);
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
            task,
            deadline_ns,
            awaits,
            progress,
        }
    }

    /// What its caller is told about the wait.
    pub(super) fn awaits(&self) -> &str {
        &self.awaits
    }

    /// The same call, held again.
    pub(super) fn held_again(self, now: Timestamp, hold: Hold) -> Self {
        let Hold { hold_id, timeout_ms, on_timeout, progress: awaits, replacement, task: _ } = hold;
        let (deadline_ns, rounds) = (deadline(now, timeout_ms), self.rounds + 1);
        let bytes = replacement.unwrap_or(self.bytes);
        // The progress is kept, because its numbers must not start again.
        let awaits_list = false;
        Self { hold_id, on_timeout, deadline_ns, rounds, awaits_list, awaits, bytes, ..self }
    }

    /// Turns it into an unanswered request.
    pub(super) fn into_unanswered(self) -> (UnansweredRequest, Option<HoldId>) {
        let pending_request = PendingRequest {
            at: self.at,
            n: self.n,
            topic: Topic::Other,
            // A call that became a task is answered already.
            cancelled: self.task.is_some(),
            late: false,
        };
        (UnansweredRequest { lane: self.lane, id: self.id, pending_request }, Some(self.hold_id))
    }

    /// Whether its caller waits for an answer with this id. The caller of a task has one.
    fn waits_as(&self, id: &[u8]) -> bool {
        self.task.is_none() && same_id(&self.id, id)
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
        let message = OwnMessage::progress(&progress.token, &grown, &self.awaits);
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

    /// Whether one more call can be held without its session becoming full. A client that is not read
    /// from could neither poll its tasks nor cancel them.
    pub(super) fn has_room_for_task(&self) -> bool {
        self.0.len() + 1 < HELD_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many calls of `from` are held.
    pub(super) fn count_from(&self, from: Side) -> usize {
        self.0.iter().filter(|held| held.from == from && held.task.is_none()).count()
    }

    pub(super) fn insert(&mut self, held_request: HeldRequest) {
        self.0.push(held_request);
    }

    /// Whether a call is held under this id.
    pub(super) fn is_held(&self, hold_id: HoldId) -> bool {
        self.0.iter().any(|held_request| held_request.hold_id == hold_id)
    }

    /// The lane of a held call of a client that waits for a person.
    pub(super) fn asking_lane(&self, hold_id: HoldId) -> Option<Lane> {
        let held = self.0.iter().find(|held_request| held_request.hold_id == hold_id);
        held.filter(|held| held.from == Side::Client && !held.awaits_list).map(|held| held.lane)
    }

    /// Makes a held call wait for lists instead of a person; false if there is no such call.
    pub(super) fn await_list(&mut self, hold_id: HoldId) -> bool {
        let held_request = self.0.iter_mut().find(|held_request| held_request.hold_id == hold_id);
        held_request.map(|held_request| held_request.awaits_list = true).is_some()
    }

    pub(super) fn get(&self, hold_id: HoldId) -> Option<&HeldRequest> {
        self.0.iter().find(|held_request| held_request.hold_id == hold_id)
    }

    /// Makes a held call a task.
    pub(super) fn set_task(&mut self, hold_id: HoldId, task: TaskHandle) {
        if let Some(held) = self.0.iter_mut().find(|held| held.hold_id == hold_id) {
            // The extension has no progress messages about tasks.
            held.progress = held.progress.take().filter(|_| task.dialect == TaskDialect::Core);
            held.task = Some(task);
        }
    }

    /// Removes and returns the call that a task stands for.
    pub(super) fn take_task(&mut self, task_id: &str) -> Option<HeldRequest> {
        self.take_if(|held_request| {
            held_request.task.as_ref().is_some_and(|task| task.task_id == task_id)
        })
    }

    /// Removes and returns the call held under this id.
    pub(super) fn take(&mut self, hold_id: HoldId) -> Option<HeldRequest> {
        self.take_if(|held_request| held_request.hold_id == hold_id)
    }

    /// Whether a call of `from` with this id is held.
    pub(super) fn contains(&self, lane: Lane, from: Side, id: &[u8]) -> bool {
        self.0.iter().any(|held_request| {
            (held_request.lane, held_request.from) == (lane, from) && held_request.waits_as(id)
        })
    }

    /// How many calls of `from` with this id are held that a message in `lane` can refer to.
    pub(super) fn count_reachable(&self, lane: Lane, from: Side, id: &[u8]) -> usize {
        let is_it = |held: &&HeldRequest| lane.reaches(held.lane) && held.from == from;
        self.0.iter().filter(is_it).filter(|held_request| held_request.waits_as(id)).count()
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
                && held_request.waits_as(id)
        })
    }

    /// Removes and returns the oldest call of `from` with this id.
    pub(super) fn take_id(&mut self, lane: Lane, from: Side, id: &[u8]) -> Option<HeldRequest> {
        self.take_if(|held_request| {
            (held_request.lane, held_request.from) == (lane, from) && held_request.waits_as(id)
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
