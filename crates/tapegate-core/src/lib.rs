//! Everything in Tapegate that decides, and nothing that does I/O.
//!
//! The wire passes in bytes and times; this crate decides what they are, what is recorded and what
//! may be sent. It never reads a clock, a file or the environment.

/// An event of the activity log.
pub mod activity;
/// In-process servers.
pub mod actor;
/// Aligns two sequences.
pub mod alignment;
/// The decisions that the activity log can contain.
pub mod decision;
/// One message: its exact bytes and what they say.
pub mod frame;
/// The interface between the relay and the policy that decides about messages.
pub mod gate;
/// What a grant lets differ from the call that was approved.
pub mod grant_pattern;
/// Bytes as hexadecimal text.
pub mod hex;
/// JSON as a view on bytes.
pub mod json;
/// How lenient servers may interpret what they are sent.
pub mod lenient;
/// Splits a byte stream into lines, in bounded memory.
pub mod lines;
/// A client that lists what a server offers.
pub mod lister;
/// Requests that wait for their answers.
pub mod pending;
/// A tape in the role of the server.
pub mod player;
/// Formats JSON for people.
pub mod readable_json;
/// The state machine of a live session.
pub mod relay;
/// The two ends of a session.
pub mod side;
/// What a request asks for, in 128 bits.
pub mod signature;
/// Splits a server-sent event stream into events, in bounded memory.
pub mod sse;
/// Tapes: headers, entries and the dialects they are written in.
pub mod tape;
/// Timestamps, and how tapes write them.
pub mod time;
/// A tape in the role of the client.
pub mod verifier;
/// Makes control characters and invisible characters in a text visible.
pub mod visible_text;
/// Matches text with wildcards.
pub mod wildcard;
/// Enums whose variants are words in logs and messages.
pub mod words;
