//! Agents and their configs: which MCP clients are on this machine, which servers their configs
//! name, and edits that put a server behind a shim and back without changing anything else.
//!
//! No async and no network. Config values that may be secret never reach an error or a report.

/// The known clients and where their configs are.
pub mod client_table;
/// A config that is rewritten for a session and put back.
pub mod config_guard;
/// Tells which client a command starts.
pub mod detection;
/// Finds configs and the servers they name.
pub mod discovery;
/// Edits of a config text.
pub mod edit;
/// One server entry of a config.
pub mod entry;
/// Puts entries behind a shim, and back.
pub mod rewrite;
/// Configs as trees with places.
pub mod tree;
