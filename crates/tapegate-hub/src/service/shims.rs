//! The shims that are there, as far as they say so.

use std::collections::BTreeMap;
use std::time::Duration;

use tapegate_core::time::At;
use tokio::sync::watch;

use super::Hub;
use crate::LEASE;
use crate::api::{HeartbeatRequest, HeartbeatResponse};

/// How many shims are told apart. Whoever comes when there are more takes the place of the one that
/// was not heard of for the longest time.
const SHIMS_MAX: usize = 1024;

/// The shims that are there.
pub(super) struct Shims {
    /// By connection, or by server if that is all they say.
    known: BTreeMap<String, Shim>,
    news: watch::Sender<()>,
}

/// A shim.
struct Shim {
    server_id: String,
    /// When it was last heard of.
    seen: At,
    state: String,
    /// How many streams it listens to. One that had some and has none is gone.
    streams: Option<usize>,
}

impl Default for Shims {
    fn default() -> Self {
        Self { known: BTreeMap::new(), news: watch::Sender::new(()) }
    }
}

impl Shim {
    fn is_gone(&self) -> bool {
        matches!(self.state.as_str(), "stopped" | "crashed")
    }

    /// How much longer it is believed to be there.
    fn left(&self, now: At) -> Duration {
        LEASE.saturating_sub(Duration::from_nanos(now.mono_ns.saturating_sub(self.seen.mono_ns)))
    }
}

impl Shims {
    /// Is told when one comes or goes.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// How many are there, and when to look again if nothing happens.
    pub(super) fn active(&mut self, now: At) -> (usize, Duration) {
        self.known.retain(|_, shim| !shim.left(now).is_zero());
        let there = self.known.values().filter(|shim| !shim.is_gone());
        let until = there.clone().map(|shim| shim.left(now)).min();
        (there.count(), until.unwrap_or(LEASE))
    }

    /// One says that it is alive.
    fn heard(&mut self, now: At, key: String, beat: &HeartbeatRequest) {
        self.make_room(&key);
        let shim = self.known.entry(key).or_insert_with(|| Shim {
            server_id: beat.server_id.clone(),
            seen: now,
            state: "running".to_owned(),
            streams: None,
        });
        shim.seen = now;
        shim.server_id.clone_from(&beat.server_id);
        if let Some(state) = &beat.state {
            shim.state.clone_from(state);
        }
        self.news.send_replace(());
    }

    fn make_room(&mut self, key: &str) {
        if self.known.len() < SHIMS_MAX || self.known.contains_key(key) {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, shim)| shim.seen.mono_ns);
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
            self.known.remove(&oldest);
        }
    }

    /// One listens, or has stopped to. While the hub is ending, who stops is gone.
    pub(super) fn listens(&mut self, key: &str, more: bool, ending: bool) {
        let Some(shim) = self.known.get_mut(key) else { return };
        let count = shim.streams.unwrap_or(0);
        let count = if more { count + 1 } else { count.saturating_sub(1) };
        shim.streams = Some(count);
        if count == 0 && ending {
            "stopped".clone_into(&mut shim.state);
        }
        self.news.send_replace(());
    }
}

impl Hub {
    pub(super) fn heartbeat(&self, beat: HeartbeatRequest) -> HeartbeatResponse {
        let key = beat.connection_id.as_ref().unwrap_or(&beat.server_id).clone();
        self.shims.borrow_mut().heard(self.clock.now(), key, &beat);
        let governed = self.governed();
        HeartbeatResponse {
            shutdown: self.is_stopping(),
            policy_version: governed.version().to_owned(),
            recording: governed.recording(),
            lease_ms: LEASE.as_millis() as u64,
        }
    }
}
