//! Decides what Tapegate lets through and what it writes to a tape, with pure functions.
//!
//! The inputs are policy text and message bytes; the outputs are decisions and redacted text. This
//! crate reads no clock, no file and no environment.

/// Requests for human approval.
pub mod approval_channel;
/// What a policy would have done to recorded messages.
pub mod backtest;
/// Test cases that users write for their policies.
pub mod cases;
/// Tests of the commands in a call.
pub mod command_rules;
/// The single decision function.
pub mod decide;
/// Removes hidden items from list replies.
pub mod filter;
/// Which requests are gated, and what they name.
pub mod gated_requests;
/// Generates a policy from observed traffic.
pub mod generate;
/// The glob syntax of policies.
pub mod glob;
/// Which calls a grant with argument patterns covers.
pub mod granted_calls;
/// The calls that wait for approval.
pub mod hold_register;
/// Checks that every reader parses a message the same way.
pub mod inspect;
/// Judges whole messages.
pub mod judge;
/// Loads a policy from its text.
pub mod load;
/// The methods of the protocol, and how each is treated.
pub mod methods;
/// A policy, parsed and checked.
pub mod model;
/// Records of what happened to messages.
pub mod note;
/// The built-in rule about Tapegate's own files.
pub mod own_files;
/// Compares what servers offer with what was accepted.
pub mod pins;
/// The gate that combines all of these.
pub mod policy_gate;
/// Tests on a call's arguments.
pub mod predicate;
/// Removes secrets from what is written to a tape.
pub mod redact;
/// What approvers see of a call.
pub mod redacted_arguments;
/// The errors returned for refused messages.
pub mod refuse;
/// The state that a client carries between a question and its answer.
pub mod request_state;
/// Checks that a changed policy permits nothing new.
pub mod tighten;
/// The trace context of a call.
pub mod trace;
mod uri;
/// The text of the question that a client's user is asked.
pub mod user_question;
