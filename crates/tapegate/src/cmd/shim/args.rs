//! Command-line arguments of `shim`.

use std::path::PathBuf;

use crate::output_file::{TAPES, file_only_parser};
use crate::settings::ProjectArgs;
use crate::upstream::UpstreamArgs;

/// Gate an MCP server: forward only what a policy permits
///
/// Starts the server, or connects to it. Every call is checked against `tapegate.yaml` and logged
/// before it is sent; calls that need approval wait, without blocking the others. Without a policy,
/// everything is recorded, logged and forwarded, unless --require-policy is given.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The name of the server in the policy and in the logs [default: derived from its command or
    /// URL]
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) server_id: Option<String>,
    #[command(flatten)]
    pub(super) project: ProjectArgs,
    /// Refuse to start without a policy, and tell the client why; TAPEGATE_REQUIRE_POLICY=1 does
    /// the same
    #[arg(long)]
    pub(super) require_policy: bool,
    /// Join the hub at this URL, which then supplies the policy and handles approvals
    #[arg(long, value_name = "URL")]
    pub(super) governance_endpoint: Option<String>,
    /// The file with the hub's shim token [default: where `tapegate hub` writes it]
    #[arg(long, value_name = "FILE", requires = "governance_endpoint")]
    pub(super) token_file: Option<PathBuf>,
    /// Take all options and the server's command line from this entry, which `wrap` has stored for a
    /// client that does not pass such arguments on as they are written
    #[arg(long, value_name = "ID", exclusive = true)]
    pub(super) entry: Option<String>,
    /// Record to this folder, one tape a session, also if the policy turns recording off
    #[arg(long, value_name = "DIR", value_parser = file_only_parser(TAPES))]
    pub(super) record_to: Option<PathBuf>,
    #[command(flatten)]
    pub(super) upstream: UpstreamArgs,
    /// Listen on this address for HTTP clients, instead of serving one on standard input and
    /// output; without a host, on loopback. Ctrl-C stops it
    #[arg(long, visible_alias = "listen", value_name = "[HOST:]PORT")]
    pub(super) http: Option<String>,
    /// The largest message to forward, such as 10MB; a larger one is refused
    #[arg(long, value_name = "BYTES", default_value = "10MB", value_parser = crate::units::bytes)]
    pub(super) max_message_bytes: usize,
    /// Log a request as an orphan if it is not answered within this many seconds; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(super) answer_timeout: u64,
    /// Further files of ours, which no call may name.
    #[arg(skip)]
    pub(super) own_files: Vec<PathBuf>,
    /// The folder in which the server runs a command line that names none, if that is certain.
    #[arg(skip)]
    pub(super) command_folder: Option<String>,
    /// The option that names the policy, as the user knows it.
    #[arg(skip = "--config")]
    pub(super) policy_option: &'static str,
}

impl Args {
    /// In front of a server of our own that people start by itself.
    pub(crate) fn in_front_of(
        command: Vec<String>,
        server_id: String,
        policy: Option<PathBuf>,
        require_policy: bool,
        http: Option<String>,
        own_files: Vec<PathBuf>,
        command_folder: Option<String>,
    ) -> Self {
        Self {
            server_id: Some(server_id),
            project: ProjectArgs { config: policy, profile: None },
            require_policy,
            governance_endpoint: None,
            token_file: None,
            entry: None,
            record_to: None,
            upstream: UpstreamArgs::started_by(command),
            http,
            own_files,
            command_folder,
            policy_option: "--policy",
            max_message_bytes: MESSAGE_BYTES_MAX,
            // The tool ends its commands itself, and its limit may be raised while it runs.
            answer_timeout: 0,
        }
    }
}

/// The default of `--max-message-bytes`.
const MESSAGE_BYTES_MAX: usize = 10 << 20;

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

A changed policy takes effect once a person has run `tapegate policy accept`, or at once if it
provably permits nothing more. `tapegate approvals` lists pending calls, `tapegate log` decisions.

A session that cannot start answers every request with the reason until the client leaves.
Exits with the server's exit code. Exit 2: no policy loads; 3: the tape could not be written;
4: the server or the hub could not be started or reached; 64: wrong usage.";
