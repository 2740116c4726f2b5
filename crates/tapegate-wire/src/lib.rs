//! The wire: pipes, sockets, child processes, and the loop that moves frames between them.
//!
//! Nothing here decides. The relay of the core says what is recorded and what is sent; this crate
//! reads, asks, has it recorded and writes, on the thread that was woken.

/// The upstream server as a child process.
pub mod child;
/// What time it is.
pub mod clock;
/// The relay and the tape of one recording.
pub mod deck;
/// HTTP towards the client, the server, or both.
pub mod http;
/// A live server that is talked to from inside.
pub mod link;
/// A live server that is asked what it has.
pub mod listing;
/// Memory that is only needed once.
pub mod memory;
/// A descriptor that never blocks us and whose flags are never touched.
pub mod port;
/// What ends the servers when we are killed.
pub mod sentry;
/// Signals that end a session.
pub mod signals;
/// A server that is no process, in front of its clients.
pub mod stage;
/// The driver loop between a client and a server on pipes.
pub mod stdio;
/// A verifier and the live servers it talks to.
pub mod verifying;

mod raw;
