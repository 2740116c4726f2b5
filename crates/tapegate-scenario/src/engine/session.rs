//! The state of one client: its protocol settings, and its pending operations.

use std::collections::VecDeque;

use tapegate_core::frame::same_id;

use super::EngineMap;
use super::batch::EngineBatch;
use super::running_request::{RequestWait, RunningRequest};
use super::subscriptions::ChangeSubscription;
use super::suspended_operation::SuspendedOperation;
use crate::delivery_queue::DeliveryQueue;

/// How many requests may wait for a phase change, and how many bytes they may take.
const HELD_MAX: usize = 1024;
const HELD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many operations may be pending.
const PLAYS_MAX: usize = 1024;
/// How many bytes they may take.
const PLAYS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How many requests that cannot be cancelled are remembered.
const STUBBORN_MAX: usize = 256;
/// How long a remembered id may be.
const ID_BYTES_MAX: usize = 1024;

/// One client.
#[derive(Default)]
pub(super) struct EngineSession {
    /// Its number since the start, from 1.
    pub(super) number: u32,
    /// Whether each answer has its own stream.
    pub(super) streams: bool,
    pub(super) delivery: DeliveryQueue,
    /// The revision agreed on in the handshake.
    pub(super) version: Option<Box<str>>,
    /// Whether a request without a handshake was answered.
    pub(super) is_modern: bool,
    /// Whether the side effects of a new client have started.
    pub(super) is_connected: bool,
    /// The answer after whose delivery the client counts as connected.
    pub(super) starting: Option<u64>,
    /// The lowest log level that the client wants.
    pub(super) level: Option<usize>,
    /// Operations that wait.
    pub(super) plays: Vec<RunningRequest>,
    /// Operations that wait for the client to retry with input.
    pub(super) suspended: VecDeque<SuspendedOperation>,
    pub(super) listens: Vec<ChangeSubscription>,
    pub(super) batches: EngineMap<u32, EngineBatch>,
    pub(super) batch_count: u32,
    /// How many requests were sent to the client.
    pub(super) client_request_count: u64,
    /// Tickets of answers that were delivered, or never will be.
    pub(super) settled: VecDeque<u64>,
    /// Notifications still to be sent for lists that a reload has changed.
    pub(super) changed: Vec<&'static str>,
    /// Requests that are answered even if the client cancels them.
    stubborn: VecDeque<Box<[u8]>>,
    /// Whether the client has closed its side.
    pub(super) has_left: bool,
    /// Until when a client that has closed its side still receives answers.
    pub(super) patient_until: Option<u64>,
    /// Whether that time is over.
    is_impatient: bool,
    pub(super) scratch: Vec<u8>,
    held: VecDeque<DeferredMessage>,
    held_bytes: usize,
    held_since: u64,
}

/// A request that waits for a phase change.
pub(super) struct DeferredMessage {
    id: Box<[u8]>,
    pub(super) text: Box<[u8]>,
    pub(super) batch: Option<u32>,
}

impl EngineSession {
    pub(super) fn new(number: u32, streams: bool) -> Self {
        Self { number, streams, delivery: DeliveryQueue::new(streams), ..Self::default() }
    }

    /// Whether one more operation may be pending.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let taken = || self.plays.iter().map(|play| play.owned_request.bytes()).sum::<usize>();
        self.plays.len() < PLAYS_MAX && taken().saturating_add(bytes) <= PLAYS_BYTES_MAX
    }

    /// Removes the waiting request with this id, if there is one.
    pub(super) fn forget_waiting(&mut self, id: &[u8]) -> Option<DeferredMessage> {
        let index = self.held.iter().position(|held| same_id(&held.id, id))?;
        let held = self.held.remove(index)?;
        self.held_bytes -= held.text.len();
        Some(held)
    }

    /// Queues a request until the phase has changed; false if the queue is full.
    pub(super) fn hold(&mut self, id: &[u8], text: &[u8], batch: Option<u32>, now_ns: u64) -> bool {
        if self.held.len() >= HELD_MAX || self.held_bytes + text.len() > HELD_BYTES_MAX {
            return false;
        }
        self.held_since = now_ns;
        self.held_bytes += text.len();
        self.held.push_back(DeferredMessage { id: id.into(), text: text.into(), batch });
        true
    }

    /// Removes the request that has waited longest.
    pub(super) fn next_waiting(&mut self, now_ns: u64) -> Option<DeferredMessage> {
        let held = self.held.pop_front()?;
        self.held_bytes -= held.text.len();
        self.held_since = now_ns;
        Some(held)
    }

    /// Notes when the queue was last checked.
    pub(super) fn mark_checked(&mut self, now_ns: u64) {
        self.held_since = now_ns;
    }

    /// Whether requests wait for a phase change.
    pub(super) fn has_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// When the queue was last checked, if requests wait.
    pub(super) fn last_checked(&self) -> Option<u64> {
        self.has_waiting().then_some(self.held_since)
    }

    /// When the next work is due.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        let plays = self.plays.iter().filter_map(|play| play.wait.deadline_ns()).min();
        // Work left by an event of another client, or by a reload, is due at once.
        let now = (!self.settled.is_empty() || !self.changed.is_empty()).then_some(0);
        let patience = self.patient_until.filter(|_| self.is_busy());
        self.delivery.next_wakeup().into_iter().chain(plays).chain(now).chain(patience).min()
    }

    /// Gives up on a client that has closed its side, once its time is over.
    pub(super) fn expire_requests(&mut self, now_ns: u64) {
        self.is_impatient |= self.patient_until.is_some_and(|until| until <= now_ns);
    }

    /// Whether messages are still to be sent without further input from the client.
    pub(super) fn is_busy(&self) -> bool {
        if self.is_impatient {
            return false;
        }
        let waits = |play: &RunningRequest| {
            // A client that has closed its side cannot reply, so such a wait must not keep the
            // process alive.
            !matches!(play.wait, RequestWait::Reply { .. }) || !self.has_left
        };
        self.delivery.is_busy() || self.has_waiting() || self.plays.iter().any(waits)
    }

    /// Notes that a request is answered even if the client cancels it.
    pub(super) fn mark_uncancellable(&mut self, id: &[u8]) {
        if self.stubborn.len() >= STUBBORN_MAX {
            self.stubborn.pop_front();
        }
        // The client chooses the id, so its size is bounded.
        if id.len() <= ID_BYTES_MAX {
            self.stubborn.push_back(id.into());
        }
    }

    /// Whether a request is answered even if the client cancels it.
    pub(super) fn is_uncancellable(&self, id: &[u8]) -> bool {
        self.stubborn.iter().any(|known| same_id(known, id))
    }

    /// How many bytes are queued.
    pub(super) fn backlog_bytes(&self) -> usize {
        self.delivery.backlog_bytes() + self.held_bytes
    }
}
