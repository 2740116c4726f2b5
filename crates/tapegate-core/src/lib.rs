//! Everything in Tapegate that decides, and nothing that does I/O.
//!
//! The wire hands in bytes and times, this crate says what they are, what is to be recorded and
//! what may be sent. It reads no clock, no file and no environment.

/// A server that is no process.
pub mod actor;
/// Two rows side by side.
pub mod align;
/// The decisions that the activity log can contain.
pub mod decision;
/// One message: its exact bytes and what they say.
pub mod frame;
/// What stands between a message and its way on.
pub mod gate;
/// JSON as a view on bytes.
pub mod json;
/// What careless servers make of what they are sent.
pub mod lenient;
/// Cutting a byte stream into lines, in bounded memory.
pub mod lines;
/// A client that asks a server what it has.
pub mod lister;
/// What has been asked and not yet answered.
pub mod pending;
/// A tape in the role of the server.
pub mod player;
/// The live session's state machine.
pub mod relay;
/// The two ends of a session.
pub mod side;
/// What a request asks for, in 128 bits.
pub mod signature;
/// Cutting a server-sent event stream into events, in bounded memory.
pub mod sse;
/// What happened: headers, entries and the dialects they are written in.
pub mod tape;
/// Moments, and how tapes write them.
pub mod time;
/// A tape in the role of the client.
pub mod verifier;
