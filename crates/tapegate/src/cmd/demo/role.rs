//! The processes of the demo that are this program under another role.

/// Which process of the demo to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DemoRole {
    /// The agent, with a config of its servers.
    Agent,
    /// The MCP server, with the file that it writes what it steals to.
    Server,
}
