//! The wire: pipes, sockets, child processes, and the loop that moves frames between them.
//!
//! No decisions are made here. The core's relay decides what is recorded and sent; this crate
//! reads, asks the relay, records and writes, on the thread that was woken.

/// An in-process server for clients.
pub mod actor_host;
/// The upstream server as a child process.
pub mod child;
/// The current time.
pub mod clock;
/// A program that has our terminal.
pub mod foreground;
/// HTTP towards the client, the server, or both.
pub mod http;
/// A connection to a live server from within the process.
pub mod link;
/// Lists what a live server offers.
pub mod lister_loop;
/// Releases memory that is needed only once.
pub mod memory;
/// A descriptor that never blocks us and whose flags are never changed.
pub mod port;
/// Ends the servers when we are killed.
pub mod reaper;
/// The relay, the gate and the tape of one recording.
pub mod recorded_session;
/// Signals that end a session.
pub mod signals;
/// The driver loop between a client and a server on pipes.
pub mod stdio;
/// Runs a verifier against live servers.
pub mod verifier_loop;

mod message_trace;
mod raw;
mod server_end;
