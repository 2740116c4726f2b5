//! Command-line arguments of `bash`.

use std::path::PathBuf;

use tapegate_bash::config::ToolNameStyle;

use crate::client_transport::ListenArgs;
use crate::output_file::{CLIENTS, file_only_parser};

/// Serve a bash tool that records every command
///
/// An MCP server with the tools `bash_recorder.execute`, `read_output`, `stop`, `session_info` and
/// `list_recent`. Every command is recorded in a session below `.cuff/recordings`, with its output,
/// exit code and caller; `tapegate sessions` shows the recordings. With a policy, each command is
/// checked first, as `tapegate shim` does it; without one, any command is executed. Nothing that a
/// command starts outlives the server.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The settings [default: settings.yml, settings.yaml or .cuff/settings.yml, if one of them has
    /// `plugins.bash_recorder`]
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// The policy that commands must pass [default: tapegate.yaml or thoughtgate.yaml in this folder
    /// or one above, or else tapegate/tapegate.yaml in the user's config folder; behind a shim, none]
    #[arg(short, long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
    /// Refuse to start without a policy, and tell the client why; TAPEGATE_REQUIRE_POLICY=1 does
    /// the same
    #[arg(long)]
    pub(super) require_policy: bool,
    /// Only record, even if there is a policy
    #[arg(long, conflicts_with_all = ["policy", "require_policy"])]
    pub(super) no_policy: bool,
    /// The name of the tool in the policy and in the logs [default: bash]
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) server_id: Option<String>,
    /// How tools are named, overriding the settings. Some clients refuse a dot
    #[arg(long, value_enum, value_name = "STYLE")]
    pub(super) tool_name_style: Option<NameStyleArg>,
    /// Listen on this address for HTTP clients, instead of serving one on standard input and
    /// output; without a host, on loopback. Ctrl-C stops it
    #[arg(long, value_name = "[HOST:]PORT")]
    pub(super) http: Option<String>,
    #[command(flatten)]
    pub(super) listen: ListenArgs,
    /// Write metrics to a file as Prometheus text, every 5 seconds and at the end
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(CLIENTS))]
    pub(super) metrics_file: Option<PathBuf>,
    /// The folder that the policy in front takes for that of commands that name none.
    #[arg(long, hide = true)]
    pub(super) judged_folder: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum NameStyleArg {
    /// bash_recorder.execute
    Dotted,
    /// bash_recorder_execute
    Underscore,
}

impl From<NameStyleArg> for ToolNameStyle {
    fn from(word: NameStyleArg) -> Self {
        match word {
            NameStyleArg::Dotted => Self::Dotted,
            NameStyleArg::Underscore => Self::Underscore,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  claude mcp add bash -- tapegate bash
  tapegate bash --config settings.yml
  tapegate bash --policy commands.yml
  tapegate bash --tool-name-style underscore
  tapegate bash --http :8090 --metrics-file /var/lib/node_exporter/bash.prom
  tapegate sessions list

In a client's config (.mcp.json):
  {\"mcpServers\": {\"bash\": {\"command\": \"tapegate\", \"args\": [\"bash\"]}}}

docs/bash.md shows how to switch off the client's own shell.

Exit codes:
  0    the client left
  2    the settings are not valid
  3    a file could not be read or written
  4    cannot listen for HTTP
  64   wrong usage
  130, 143  ended by a signal";
