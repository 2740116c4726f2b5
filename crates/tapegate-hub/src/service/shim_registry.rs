//! The shims that are connected, according to their heartbeats.

use std::collections::BTreeMap;
use std::time::Duration;

use tapegate_core::time::Timestamp;
use tokio::sync::watch;
use tracing::debug;

use super::Hub;
use crate::LEASE;
use crate::api::{Counters, HeartbeatRequest, HeartbeatResponse};
use crate::metrics::{MetricName, Metrics};

/// How many shims are tracked. When there are more, a new one replaces the one that has been silent
/// for the longest time.
const SHIMS_MAX: usize = 1024;
/// How many different series a shim may report.
const COUNTS_MAX: usize = 1000;
/// How long a shim may take to open its stream again. The kernel closes the stream of one that is
/// killed at once.
const RECONNECT: Duration = Duration::from_secs(2);
/// The states a server can be in.
const STATES: [&str; 5] = ["starting", "running", "stopping", "stopped", "crashed"];

/// The shims that are connected.
pub(super) struct ShimRegistry {
    /// By connection id, or by server id if that is all they send.
    known: BTreeMap<String, ShimInfo>,
    /// Those that were forgotten, and whose calls may still count as waiting.
    forgotten: Vec<String>,
    /// How many streams each has open, also before its first heartbeat.
    streams: BTreeMap<String, usize>,
    changes: watch::Sender<()>,
}

struct ShimInfo {
    server_id: String,
    /// Its process, if it has told.
    process: Option<u32>,
    /// When it was last heard from.
    seen: Timestamp,
    state: &'static str,
    /// Since when it has no stream, if it had one.
    silent_since: Option<Timestamp>,
    /// Whether it was reported as lost.
    is_lost: bool,
    /// The totals in its last heartbeat, by metric name and labels.
    counted: BTreeMap<(MetricName, [String; 2]), u64>,
}

impl Default for ShimRegistry {
    fn default() -> Self {
        let (known, streams) = (BTreeMap::new(), BTreeMap::new());
        Self { known, forgotten: Vec::new(), streams, changes: watch::Sender::new(()) }
    }
}

impl ShimInfo {
    fn is_gone(&self) -> bool {
        matches!(self.state, "stopped" | "crashed")
    }

    /// How much longer it is considered connected.
    fn remaining_lease(&self, now: Timestamp) -> Duration {
        LEASE.saturating_sub(Duration::from_nanos(now.mono_ns.saturating_sub(self.seen.mono_ns)))
    }

    /// How much longer its calls count as waiting.
    fn remaining_patience(&self, now: Timestamp) -> Duration {
        let silent = |since: Timestamp| {
            RECONNECT
                .saturating_sub(Duration::from_nanos(now.mono_ns.saturating_sub(since.mono_ns)))
        };
        match self.silent_since {
            _ if self.is_gone() => Duration::ZERO,
            Some(since) => silent(since).min(self.remaining_lease(now)),
            None => self.remaining_lease(now),
        }
    }

    /// Counts the increase since its last totals.
    fn count(&mut self, counters: &Counters, metrics: &mut Metrics) {
        let messages = counters.messages.iter().map(|it| {
            let labels = [it.direction.name().to_owned(), it.method.clone()];
            ((MetricName::StdioMessages, labels), it.count)
        });
        let framing = counters.framing_errors.iter().map(|it| {
            let labels = [it.error_type.clone(), String::new()];
            ((MetricName::StdioFramingErrors, labels), it.count)
        });
        let decisions = counters.decisions.iter().map(|it| {
            let profile = tapegate_policy::model::Profile::from(it.profile).as_str().to_owned();
            let labels = [it.decision.clone(), profile];
            ((MetricName::StdioGovernanceDecisions, labels), it.count)
        });
        for (key, count) in messages.chain(framing).chain(decisions) {
            // The caller chooses the labels, and must not make the hub's memory grow.
            if self.counted.len() >= COUNTS_MAX && !self.counted.contains_key(&key) {
                continue;
            }
            let (name, labels) = key.clone();
            let before = self.counted.insert(key, count).unwrap_or(0);
            // A restarted shim counts from zero.
            let more = if count >= before { count - before } else { count };
            let mut named = vec![self.server_id.as_str(), labels[0].as_str()];
            named.extend(
                Some(labels[1].as_str()).filter(|_| name != MetricName::StdioFramingErrors),
            );
            if more > 0 {
                metrics.add(name, &named, more);
            }
        }
    }
}

impl ShimRegistry {
    /// Notifies when a shim comes or goes.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// How many are connected, and how long until the next one may time out.
    pub(super) fn count_active(&mut self, now: Timestamp) -> (usize, Duration) {
        // A shim that was killed is never reported as stopped.
        let forgotten = &mut self.forgotten;
        self.known.retain(|key, shim| {
            let is_leased = !shim.remaining_lease(now).is_zero();
            if !is_leased {
                debug!(server_id = shim.server_id, state = shim.state, "shim lost, no heartbeat");
                forgotten.extend((!shim.is_lost).then(|| key.clone()));
            }
            is_leased
        });
        let there = self.known.values().filter(|shim| !shim.is_gone());
        let until = there.clone().map(|shim| shim.remaining_lease(now)).min();
        (there.count(), until.unwrap_or(LEASE))
    }

    /// The connections that were lost or have ended since the last call, and how long until the next
    /// one may be.
    fn take_lost(&mut self, now: Timestamp) -> (Vec<String>, Duration) {
        self.count_active(now);
        let mut lost = std::mem::take(&mut self.forgotten);
        let mut until = LEASE;
        for (key, shim) in self.known.iter_mut().filter(|(_, shim)| !shim.is_lost) {
            let patience = shim.remaining_patience(now);
            if patience.is_zero() {
                debug!(server_id = shim.server_id, state = shim.state, "shim lost, or at its end");
                shim.is_lost = true;
                lost.push(key.clone());
            } else {
                until = until.min(patience);
            }
        }
        (lost, until)
    }

    /// The processes of those that have not ended.
    pub(super) fn active_processes(&self) -> Vec<u32> {
        let there = self.known.values().filter(|shim| !shim.is_gone());
        there.filter_map(|shim| shim.process).collect()
    }

    /// The servers of those that have not ended.
    pub(super) fn active_servers(&self) -> Vec<&str> {
        let there = self.known.values().filter(|shim| !shim.is_gone());
        there.map(|shim| shim.server_id.as_str()).collect()
    }

    /// Considers those gone that have no stream left when a shutdown begins. They were killed; one
    /// that only lost its stream ends itself, since its next heartbeat tells it to.
    pub(super) fn end_without_streams(&mut self) {
        for shim in self.known.values_mut().filter(|shim| shim.silent_since.is_some()) {
            shim.state = "stopped";
        }
        self.changes.send_replace(());
    }

    /// Every server and its state.
    pub(super) fn states(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.known.values().map(|shim| (shim.server_id.as_str(), shim.state))
    }

    /// Records a heartbeat.
    fn note_heartbeat(
        &mut self,
        now: Timestamp,
        key: String,
        beat: &HeartbeatRequest,
    ) -> &mut ShimInfo {
        self.make_room(&key);
        self.changes.send_replace(());
        let shim = self.known.entry(key).or_insert_with(|| {
            debug!(server_id = beat.server_id, "shim registered");
            ShimInfo {
                server_id: beat.server_id.clone(),
                process: None,
                seen: now,
                state: "running",
                silent_since: None,
                is_lost: false,
                counted: BTreeMap::new(),
            }
        });
        shim.seen = now;
        shim.server_id.clone_from(&beat.server_id);
        shim.process = beat.pid.or(shim.process);
        let state = beat.state.as_deref().and_then(|word| STATES.iter().find(|it| **it == word));
        let state = state.copied().unwrap_or(shim.state);
        if state != shim.state {
            debug!(server_id = shim.server_id, was = shim.state, state, "shim changed its state");
        }
        shim.state = state;
        shim
    }

    fn make_room(&mut self, key: &str) {
        if self.known.len() < SHIMS_MAX || self.known.contains_key(key) {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, shim)| shim.seen.mono_ns);
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
            debug!(count = SHIMS_MAX, "too many shims, the most silent one is forgotten");
            self.known.remove(&oldest);
            self.forgotten.push(oldest);
        }
    }

    /// Records that a shim has opened or closed a stream. Closing the last one during shutdown ends
    /// it.
    pub(super) fn set_listening(
        &mut self,
        now: Timestamp,
        key: &str,
        (more, ending): (bool, bool),
    ) {
        let count = self.streams.get(key).copied().unwrap_or(0);
        let count = if more { count + 1 } else { count.saturating_sub(1) };
        match count {
            0 => drop(self.streams.remove(key)),
            count => drop(self.streams.insert(key.to_owned(), count)),
        }
        let Some(shim) = self.known.get_mut(key) else { return };
        debug!(server_id = shim.server_id, streams = count, "shim opened or closed a stream");
        shim.silent_since = (count == 0).then_some(now);
        // One that comes back can be lost again.
        shim.is_lost &= count == 0;
        if count == 0 && ending {
            shim.state = "stopped";
        }
        self.changes.send_replace(());
    }
}

impl Hub {
    /// Takes the calls of lost shims off their requests, so that the same call of another shim joins
    /// them and no approver is asked twice. Never returns.
    pub(super) async fn watch_shims(&self) {
        let mut news = self.shims.borrow().subscribe();
        loop {
            let (lost, until) = self.shims.borrow_mut().take_lost(self.clock.now());
            lost.iter().for_each(|connection| self.release_callers(connection));
            tokio::select! {
                // The sender is a field of `self`, so it cannot be dropped meanwhile.
                _ = news.changed() => {}
                () = tokio::time::sleep(until) => {}
            }
        }
    }

    pub(super) fn heartbeat(&self, beat: HeartbeatRequest) -> HeartbeatResponse {
        let key = beat.connection_id.as_ref().unwrap_or(&beat.server_id).clone();
        self.tally.borrow_mut().note_shim(&key, &beat.server_id);
        let mut shims = self.shims.borrow_mut();
        let shim = shims.note_heartbeat(self.clock.now(), key.clone(), &beat);
        if let Some(counters) = &beat.counters {
            // From now on, its lines in the log are not counted.
            let counting = &mut self.follow.borrow_mut().counting;
            if counting.len() < 4 * SHIMS_MAX {
                counting.insert(key);
            }
            shim.count(counters, &mut self.metrics.borrow_mut());
        }
        let governed = self.active_policy();
        HeartbeatResponse {
            shutdown: self.is_stopping(),
            policy_version: governed.version().to_owned(),
            recording: governed.is_recording(),
            lease_ms: LEASE.as_millis() as u64,
        }
    }
}
