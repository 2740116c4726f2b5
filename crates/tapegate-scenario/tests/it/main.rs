//! Runs scenarios, by playbooks and by random tests.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod bounds;
mod engine;
mod harness;
mod random_clients;
