//! The governance service that many shims share.
//!
//! A hub loads the policy and hands it out, asks people, keeps the activity log of those who cannot
//! write it themselves, and counts. It listens on loopback, to whoever has a token of this run.
//! It decides by the same function as shims do, and it never falls back to forwarding everything.

use std::time::Duration;

/// What is said to a hub and what it says.
pub mod api;
/// What a shim needs to talk to a hub.
pub mod client;
/// Where a hub is found, and that there is only one.
pub mod corner;
/// The policy that holds.
pub mod governed;
/// What a hub bears of those who talk to it.
pub mod limits;
/// What is counted.
pub mod metrics;
/// How a hub shows that it is the hub.
pub mod proof;
/// A hub from its start to its end.
pub mod serve;
/// The service.
pub mod service;
/// The secrets of a run.
pub mod token;

mod otlp;

/// How long a shim may use a policy without another word from the hub: two heartbeats, and a little
/// more for the way.
pub const LEASE: Duration = Duration::from_secs(12);

/// How often a shim says that it is alive.
pub const HEARTBEAT: Duration = Duration::from_secs(5);
