//! Command-line arguments of `shim`.

use std::path::PathBuf;

use crate::settings::ProjectArgs;
use crate::upstream::UpstreamArgs;

/// Stand between an agent and an MCP server, and let through what a policy permits
///
/// Starts the server, or connects to it. Every call is decided by `tapegate.yaml` and logged before
/// it is sent; what needs a person's approval waits, and the rest flows on. Without a policy
/// everything is recorded, logged and sent on, unless --require-policy is given.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The name of the server in the policy and in the logs [default: made from its command or URL]
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) server_id: Option<String>,
    #[command(flatten)]
    pub(super) project: ProjectArgs,
    /// Refuse to start without a policy, and tell the client why; TAPEGATE_REQUIRE_POLICY=1 does
    /// the same
    #[arg(long)]
    pub(super) require_policy: bool,
    /// Join the hub here, which then hands out the policy and asks people
    #[arg(long, value_name = "URL")]
    pub(super) governance_endpoint: Option<String>,
    /// The file with the shims' token of the hub [default: where `tapegate hub` puts it]
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
    /// Log a request as an orphan that is not answered within so many seconds; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(super) answer_timeout: u64,
}

const EXAMPLES: &str = "\
Examples:
  tapegate shim --require-policy -- npx -y @modelcontextprotocol/server-filesystem /tmp
  tapegate shim --server-id files --config ci/tapegate.yaml -- uvx mcp-server-time
  tapegate shim --profile development -- uvx mcp-server-git      log, but refuse nothing
  tapegate shim --require-policy --http :8080 --upstream-http http://127.0.0.1:3000/mcp
  tapegate shim --require-policy --governance-endpoint http://127.0.0.1:7469 -- uvx mcp-server-git

In a client's config (.mcp.json):
  {\"mcpServers\": {\"files\": {\"command\": \"tapegate\",
    \"args\": [\"shim\", \"--require-policy\", \"--server-id\", \"files\", \"--\",
             \"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \"/tmp\"]}}}

A policy that changes is taken up once a person has run `tapegate policy accept`, or at once if it
provably permits nothing more. `tapegate approvals` shows what waits, `tapegate log` what was decided.

A session that cannot start answers every request with the reason until the client leaves.
The server's exit code is ours. Exit 2: no policy that loads; 3: the tape could not be
written; 4: the server or the hub could not be started or reached; 64: wrong usage.";
