//! Agents and their configs: which MCP clients are on this machine, which servers their configs
//! name, and edits that put a server behind a shim and back without changing anything else.
//!
//! No async and no network. Config values that may be secret never reach an error or a report.

/// Entries of the bash tool.
pub mod bash_tool;
/// The known clients and where their configs are.
pub mod client_table;
/// Servers that come from a command line.
pub mod command_line;
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
/// Which servers a session can govern.
pub mod governance;
/// Keeps the servers of a config behind shims for good.
pub mod installation;
/// Sessions that leave the user's configs alone.
pub mod overlay;
/// Environment variables that entries refer to.
pub mod references;
/// Puts entries behind a shim, and back.
pub mod rewrite;
/// The ids of servers in policies.
pub mod server_id;
/// What starts the shim of a server.
pub mod shim_entry;
/// Entries whose command line is in our state folder.
pub mod stored_entry;
/// Switches for servers outside of their entries.
pub mod switches;
/// Configs as trees with places.
pub mod tree;
