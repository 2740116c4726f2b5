//! The governed bash tool: it runs the commands of agents, records each in a session, and reads
//! commands as the rules of a policy do.
//!
//! No network and no async: a command is watched by a thread that waits in `poll`, so its memory
//! and its time have bounds that do not depend on a runtime. Libraries never print.

/// The settings.
pub mod config;
/// Runs commands, and keeps a bounded part of what they write.
pub mod executor;
/// Log records.
pub mod log_record;
/// Metrics.
pub mod metrics;
/// Recordings: sessions, entries, metadata and index.
pub mod recording;
/// Reports about recordings.
pub mod reports;
/// The process that runs one command and ends everything it has started.
pub mod runner;
/// The MCP server.
pub mod server;
mod signal_name;
