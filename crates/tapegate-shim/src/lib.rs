//! A session under a policy: everything that `tapegate shim` does between its client and its server
//! besides moving bytes.
//!
//! The binary reads the command line and the environment into a [`ShimPlan`](plan::ShimPlan), and
//! moves the bytes. This crate loads the policy, owns the gate, the journal and the tape, asks for
//! approvals, follows changed policy files and keeps contact with a hub. It never prints, never
//! exits and reads no environment: messages go to a [`MessageLog`](message_log::MessageLog).

/// Watches files for changes.
pub mod file_watch;
/// A session whose policy and approvals are a hub's.
pub mod hub_session;
/// The log of a session's decisions.
pub mod journal;
/// A session whose policy is in files.
pub mod local_session;
/// Where messages for people go.
pub mod message_log;
/// What to govern, and how.
pub mod plan;
/// Reloads the policy when its files change.
pub mod reload;
/// Loads a policy.
pub mod shim_policy;
/// The gate, the tape and the log events of a session.
pub mod shim_session;
/// Stands in for a session that cannot start.
pub mod start_failure;
/// The tapes of sessions.
pub mod tapes;

mod client_patience;
mod counters;
mod file_approvals;
mod policy_updater;
mod traffic_monitor;
mod user_asking;
