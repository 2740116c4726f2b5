//! Attacks on the gate, one test per class, against real servers that record what they did.
//!
//! Each test asserts that the denied tool did not run and that the refusal is in the activity log.

mod agent;
mod conversions;
mod disguised_calls;
mod files;
mod forged_approvals;
mod http_bytes;
mod http_events;
mod http_heads;
mod http_replies;
mod prototypes;
mod target_server;
