//! What the shims of this hub have done, for the summary at the end of a session.
//!
//! Taken from the activity log, which has every decision even if the shim was killed. The log may
//! also have lines of other sessions, so only connections that have joined this hub count.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;

use serde::{Deserialize, Serialize};
use tapegate_store::activity::{CallTally, LoggedEvent};

/// How many connections are counted.
const CONNECTIONS_MAX: usize = 4096;

/// What the shims of a hub have done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTotals {
    /// How many servers were connected.
    pub servers: usize,
    /// How many calls were made.
    pub calls: u64,
    /// How many of them were denied, by the policy or by a person.
    pub denials: u64,
    /// How many were approved by a person.
    pub approvals: u64,
    pub tapes: Vec<String>,
}

/// The counts, by connection.
#[derive(Debug, Default)]
pub(super) struct SessionTally {
    /// The connections that have joined this hub, and their servers.
    joined: BTreeMap<String, String>,
    connections: BTreeMap<String, ConnectionTally>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct ConnectionTally {
    counts: CallTally,
    tape: Option<String>,
}

impl SessionTally {
    /// Counts a shim that has joined.
    pub(super) fn note_shim(&mut self, connection: &str, server: &str) {
        if self.joined.len() < CONNECTIONS_MAX && !self.joined.contains_key(connection) {
            self.joined.insert(connection.to_owned(), server.to_owned());
        }
    }

    /// Counts a line of the log.
    pub(super) fn note_line(&mut self, line: &LoggedEvent) {
        let text = |key| line.str(key).unwrap_or_default();
        let connection = text("connection_id");
        // Sessions of one shim have numbers after its id.
        let shim = connection.split('.').next().unwrap_or_default();
        let is_new = !self.connections.contains_key(shim);
        if shim.is_empty() || (is_new && self.connections.len() >= CONNECTIONS_MAX) {
            return;
        }
        let tally = self.connections.entry(shim.to_owned()).or_default();
        if text("kind") == "session" {
            tally.tape = line.str("tape").map(|tape| tape.into_owned()).or(tally.tape.take());
            return;
        }
        tally.counts.note_line(line, &self.hasher);
    }

    pub(super) fn totals(&self) -> SessionTotals {
        let servers: BTreeSet<&String> = self.joined.values().collect();
        let mut totals = SessionTotals { servers: servers.len(), ..SessionTotals::default() };
        for (_, tally) in self.connections.iter().filter(|(id, _)| self.joined.contains_key(*id)) {
            totals.calls += tally.counts.calls;
            totals.denials += tally.counts.denials;
            totals.approvals += tally.counts.approvals;
            totals.tapes.extend(tally.tape.clone());
        }
        totals
    }
}
