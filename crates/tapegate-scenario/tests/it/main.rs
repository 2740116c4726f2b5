//! Scenarios that are played, by playbooks and by chance.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod bounds;
mod chance;
mod engine;
mod stage;
