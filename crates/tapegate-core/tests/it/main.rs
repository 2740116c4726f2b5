//! Tests of the public API: playbooks of the relay, and properties of everything that round-trips.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod gating;
mod json;
mod playbooks;
mod player;
mod relay;
mod replays;
mod sse_again;
mod sse_readers;
mod streams;
mod stretches;
mod tapes;
mod verifier;
