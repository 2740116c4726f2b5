//! What Tapegate lets through and what it lets a tape keep, decided by pure functions.
//!
//! Rules come in as text and messages as bytes; what goes out is a decision or a masked text.
//! This crate reads no clock, no file and no environment.

/// The one function that decides.
pub mod decide;
/// Globs as policies write them.
pub mod glob;
/// A policy, read and checked.
pub mod model;
/// What a rule wants of a call's arguments.
pub mod predicate;
/// Taking secrets out of what is written to a tape.
pub mod redact;
/// Arguments as people are shown them.
pub mod shown;
