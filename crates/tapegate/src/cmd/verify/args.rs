//! Command-line arguments of `verify`.

use std::path::PathBuf;
use std::time::Duration;

use tapegate_core::json::path::JsonPath;
use tapegate_core::verifier::CallSelection;

use crate::entry_limit::PlayedTapeArgs;
use crate::output_file::file_only_parser;
use crate::upstream::UpstreamArgs;

/// Play the client's side of a tape to a live server, and report what has changed
///
/// Each session of the tape is played on its own connection: the client's messages are sent in
/// order, the server's requests get the recorded answers, and every response and notification is
/// compared with the tape. No tools are called unless --calls allows it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The tape to verify, of any dialect, compressed or not; `-` for standard input
    #[arg(short, long, value_name = "TAPE")]
    pub(super) recording: PathBuf,
    #[command(flatten)]
    pub(super) upstream: UpstreamArgs,
    /// Which messages to send
    #[arg(long, value_enum, default_value = "list")]
    pub(super) calls: CallsArg,
    /// A path to leave out of the comparison, such as `result.content[*].text` or `..timestamp`;
    /// repeatable, or separated by commas
    #[arg(long, value_name = "PATH", value_delimiter = ',', value_parser = parse_ignored_path)]
    pub(super) ignore: Vec<JsonPath>,
    /// Compare keys and types of values, but not the values; definitions of tools are still
    /// compared in full
    #[arg(long)]
    pub(super) schema_only: bool,
    /// How long to wait for an answer; one that took longer on the tape may take twice its recorded
    /// time
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = crate::units::duration)]
    pub(super) timeout: Duration,
    /// Print every difference of every change in the text format; without it, many changes are
    /// printed as a list of names
    #[arg(long)]
    pub(super) details: bool,
    /// The output format
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: VerifyFormat,
    /// Write the result to a file: JUnit XML if it ends in .xml, SARIF if in .sarif, else JSON;
    /// repeatable
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(PRINTED))]
    pub(super) report: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) tape: PlayedTapeArgs,
}

/// Why a report is not printed by --report.
const PRINTED: &str = "--format json|junit|sarif prints it to standard output; name a file";

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum CallsArg {
    /// Only messages that ask what the server offers: initialize, ping, discovery and lists
    List,
    /// Also resources, prompts, completions, subscriptions, and tools that are read-only both on
    /// the tape and on the live server
    ReadOnly,
    /// Everything, including destructive tools
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum VerifyFormat {
    Text,
    Json,
    Junit,
    Sarif,
}

/// Parses a path into answers and notifications.
fn parse_ignored_path(text: &str) -> Result<JsonPath, String> {
    crate::units::path_in(text, &["result", "error", "params"])
}

impl From<CallsArg> for CallSelection {
    fn from(word: CallsArg) -> Self {
        match word {
            CallsArg::List => Self::List,
            CallsArg::ReadOnly => Self::ReadOnly,
            CallsArg::All => Self::All,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  tapegate verify -r session.jsonl -- npx -y @modelcontextprotocol/server-filesystem /tmp
  tapegate verify -r session.jsonl --calls read-only --upstream \"python server.py\"
  tapegate verify -r session.jsonl --calls all --ignore 'result..text' -- node server.js
  tapegate verify -r session.jsonl --upstream-http https://mcp.example.com/mcp --report drift.sarif
  tapegate verify -r session.jsonl --format json -- node server.js | jq .tool_changes

Exit codes:
  0    nothing has changed
  1    something has changed, or the tape has nothing to compare with
  2    the tape is broken
  3    a file could not be read or written
  4    the server could not be started or reached, or is not an MCP server
  64   wrong usage
  130, 143  ended by a signal";
