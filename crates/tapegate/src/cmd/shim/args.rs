//! What can be said on the command line of `shim`.

use std::path::PathBuf;

use crate::logs::LogArgs;
use crate::settings::ProjectArgs;
use crate::upstream::UpstreamArgs;

/// Stand between an agent and an MCP server, and let through what a policy permits
///
/// Starts the server, or connects to it. Every call is decided by `tapegate.yaml` and logged before
/// it is sent; what needs a person's approval waits, and the rest flows on. Without a policy nothing
/// is refused but what is no proper message: everything is recorded and logged.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The name of the server in the policy and in the logs [default: made from its command or URL]
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) server_id: Option<String>,
    #[command(flatten)]
    pub(super) project: ProjectArgs,
    /// Join the hub here, which then hands out the policy and asks people
    #[arg(long, value_name = "URL")]
    pub(super) governance_endpoint: Option<String>,
    /// The file with the hub's token [default: the one in the state folder]
    #[arg(long, value_name = "FILE", requires = "governance_endpoint")]
    pub(super) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) upstream: UpstreamArgs,
    /// Listen here for clients by HTTP, instead of serving one on standard input and output;
    /// without a host, on loopback. Ends by Ctrl-C
    #[arg(long, visible_alias = "listen", value_name = "[HOST:]PORT")]
    pub(super) http: Option<String>,
    /// The largest message that passes, such as 10MB; a larger one is refused
    #[arg(long, value_name = "BYTES", default_value = "10MB", value_parser = crate::sizes::bytes)]
    pub(super) max_message_bytes: usize,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

const EXAMPLES: &str = "\
Examples:
  tapegate shim -- npx -y @modelcontextprotocol/server-filesystem /tmp
  tapegate shim --server-id files --config ci/tapegate.yaml -- uvx mcp-server-time
  tapegate shim --profile development -- uvx mcp-server-git      log, but refuse nothing
  tapegate shim --http :8080 --upstream-http http://127.0.0.1:3000/mcp      as a sidecar
  tapegate shim --governance-endpoint http://127.0.0.1:7469 --server-id git -- uvx mcp-server-git

In a client's config (.mcp.json):
  {\"mcpServers\": {\"files\": {\"command\": \"tapegate\",
    \"args\": [\"shim\", \"--server-id\", \"files\", \"--\",
             \"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \"/tmp\"]}}}

A policy that changes is taken up at once, and on SIGHUP. `tapegate approvals` shows what waits,
`tapegate log` what was decided.

The server's exit code is ours. Exit 2: the policy does not load; 3: the tape could not be
written; 4: the server or the hub could not be started or reached; 64: wrong usage.";
