//! What Tapegate lets through and what it lets a tape keep, decided by pure functions.
//!
//! Rules come in as text and messages as bytes; what goes out is a decision or a masked text.
//! This crate reads no clock, no file and no environment.

/// Taking secrets out of what is written to a tape.
pub mod redact;
