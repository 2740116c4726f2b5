//! The governance service shared by many shims.
//!
//! A hub loads the policy and distributes it, asks people for approvals, writes the activity log
//! for shims that cannot write it themselves, and collects metrics. It listens on loopback and
//! answers only callers that hold a token of this run. It decides with the same function as the
//! shims, and it never falls back to forwarding everything.

use std::time::Duration;

/// The JSON API: requests, responses and pushes.
pub mod api;
/// The client that a shim uses to talk to a hub.
pub mod client;
/// What is granted together with an approval.
pub mod grant_plan;
/// How a hub is found, and the lock that allows one hub per state folder.
pub mod hub_lock;
/// The policy in force.
pub mod hub_policy;
/// A hub from start to shutdown.
pub mod lifecycle;
/// Limits on connections and requests.
pub mod limits;
/// Counters, gauges and histograms.
pub mod metrics;
/// How a hub proves its identity.
pub mod proof;
/// The HTTP service.
pub mod service;
/// The secrets of a run.
pub mod token;

mod channels;
mod otlp;

/// How long a shim may use a policy after it last heard from the hub: two heartbeats and some
/// slack.
pub const LEASE: Duration = Duration::from_secs(12);

/// How often a shim sends a heartbeat.
pub const HEARTBEAT: Duration = Duration::from_secs(5);
