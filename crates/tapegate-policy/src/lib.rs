//! What Tapegate lets through and what it lets a tape keep, decided by pure functions.
//!
//! Rules come in as text and messages as bytes; what goes out is a decision or a masked text.
//! This crate reads no clock, no file and no environment.

/// What a policy would have done to messages that are on tape.
pub mod backtest;
/// The tests that people write of their policies.
pub mod cases;
/// The one function that decides.
pub mod decide;
/// Taking out of list replies what may not be seen.
pub mod filter;
/// Which requests are decided about, and what they are about.
pub mod gated;
/// A policy from what was observed.
pub mod generate;
/// Globs as policies write them.
pub mod glob;
/// How messages must be written, so that nobody can take them for others.
pub mod inspect;
/// The one judge of whole messages.
pub mod judge;
/// From the text of a policy to the policy.
pub mod load;
/// The methods of the protocol, and how each is treated.
pub mod methods;
/// A policy, read and checked.
pub mod model;
/// What is noted about messages.
pub mod note;
/// The built-in rule about Tapegate's own files.
pub mod own_files;
/// How people are asked.
pub mod people;
/// What servers offer, held to what was accepted.
pub mod pins;
/// What a rule wants of a call's arguments.
pub mod predicate;
/// Taking secrets out of what is written to a tape.
pub mod redact;
/// What callers are told when a message goes nowhere.
pub mod refuse;
/// What people who decide are shown of a call.
pub mod shown;
/// Whether a changed policy permits nothing more.
pub mod tighten;
/// The trace that a call belongs to.
pub mod trace;
mod uri;
/// The gate over all of these.
pub mod warden;
