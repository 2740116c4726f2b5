//! Tests of the public API: playbooks of the relay, and properties of everything that round-trips.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chunking;
mod chunks;
mod gate_properties;
mod json;
mod playbooks;
mod player;
mod relay;
mod replay_roundtrip;
mod sse_readers;
mod sse_rewrite;
mod tapes;
mod task_properties;
mod verifier;
