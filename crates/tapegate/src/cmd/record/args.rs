//! Command-line arguments of `record` and `tape`.

use std::path::PathBuf;
use std::time::Duration;

use tapegate_core::tape::Dialect;
use tapegate_wire::recorded_session::OnTapeError;

use crate::argument_values::non_empty;
use crate::output_file::{CLIENTS, file_only_parser};
use crate::redaction::RedactArgs;
use crate::upstream::UpstreamArgs;

/// Record the messages between a client and an MCP server
///
/// Starts the server, or connects to it, and forwards every message byte for byte; each one is on
/// the tape before it is sent. The tape has one JSON object per line: a header, messages, a footer.
#[derive(Debug, clap::Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub(crate) struct RecordArgs {
    /// The tape to write, compressed if its name ends in .gz; in a folder, each session gets its
    /// own tape. If the tape exists, the next free name is used (see --if-exists)
    #[arg(short, long, value_name = "FILE|DIR/")]
    pub(super) output: PathBuf,
    /// The dialect of the tape
    #[arg(long, value_enum, default_value = "thoughtjack")]
    pub(super) dialect: RecordDialectArg,
    #[command(flatten)]
    pub(super) wire: WireArgs,
}

/// Record like `record`, in the overwatch dialect
///
/// Writes one JSON object per frame, valid or not, with its exact bytes, and no header. If the tape
/// exists, the next free name is used, unless --if-exists says otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = TAPE_EXAMPLES)]
pub(crate) struct TapeArgs {
    /// The tape to write; if it exists, the next free name is used (see --if-exists). In a folder, named with a
    /// `/` at its end, each session gets its own tape [default: a new file in --tape-dir]
    #[arg(long, visible_alias = "out", value_name = "FILE|DIR/")]
    pub(super) tape: Option<PathBuf>,
    /// The folder for tapes without a name
    #[arg(long, value_name = "DIR", default_value = "./tapes", conflicts_with = "tape", value_parser = file_only_parser(CLIENTS))]
    pub(super) tape_dir: PathBuf,
    /// A word for the name of a tape in --tape-dir
    #[arg(long, value_name = "NAME", conflicts_with = "tape")]
    pub(super) session: Option<String>,
    /// The dialect of the tape
    #[arg(long, value_enum, default_value = "overwatch")]
    pub(super) dialect: RecordDialectArg,
    #[command(flatten)]
    pub(super) wire: WireArgs,
}

/// What both commands take.
#[derive(Debug, clap::Args)]
pub(crate) struct WireArgs {
    #[command(flatten)]
    pub(super) upstream: UpstreamArgs,
    /// Listen on this address for HTTP clients, instead of serving one on standard input and
    /// output; without a host, on loopback. Ctrl-C stops it
    #[arg(long, value_name = "[HOST:]PORT", value_parser = non_empty)]
    pub(super) http: Option<String>,
    /// A name for the recording, in the header of the thoughtjack dialect
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Tags for the recording, separated by commas, in the same header
    #[arg(long, value_delimiter = ',', value_parser = non_empty)]
    pub(super) tags: Vec<String>,
    #[command(flatten)]
    pub(super) redaction: RedactArgs,
    /// How often the tape is synced to disk; at least every 100 messages
    #[arg(long, value_name = "DUR", default_value = "1s", value_parser = crate::units::duration)]
    pub(super) flush_interval: Duration,
    /// The largest message to forward, such as 10MB; a larger one is refused. A message is held in
    /// memory while it is forwarded
    #[arg(long, value_name = "BYTES", default_value = "1GB", value_parser = crate::units::bytes)]
    pub(super) max_message_bytes: usize,
    /// What to do when the tape cannot be written
    #[arg(long, value_enum, default_value = "stop")]
    pub(super) on_tape_error: TapeErrorArg,
    /// Omit `raw` of valid frames in the overwatch dialect, which halves the tape
    #[arg(long)]
    pub(super) no_raw: bool,
    /// What to do if the tape already exists
    #[arg(long, value_enum, value_name = "WAY", default_value = "number")]
    if_exists: IfExistsArg,
    /// The same as --if-exists overwrite
    #[arg(long, conflicts_with = "if_exists")]
    pub(super) force: bool,
}

impl WireArgs {
    /// What to do if the tape already exists.
    pub(super) fn if_exists(&self) -> IfExistsArg {
        if self.force { IfExistsArg::Overwrite } else { self.if_exists }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum RecordDialectArg {
    /// A header, numbered messages, a footer
    #[value(alias = "tj")]
    Thoughtjack,
    /// One object per frame
    #[value(alias = "ow")]
    Overwatch,
}

/// What happens if the tape exists already. Nothing but `fail` keeps a session from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum IfExistsArg {
    /// Record to the next free name (s.jsonl, s-2.jsonl, ...); a tape that holds nothing but a
    /// client's probe (initialize or server/discover) is replaced
    Number,
    /// Append to it; if that cannot be done, record to the next free name
    Append,
    /// Overwrite it, unless another process is writing it
    Overwrite,
    /// Exit with code 3
    Fail,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum TapeErrorArg {
    /// End the session: nothing is forwarded unrecorded
    Stop,
    /// Continue the session unrecorded
    Continue,
}

impl From<RecordDialectArg> for Dialect {
    fn from(word: RecordDialectArg) -> Self {
        match word {
            RecordDialectArg::Thoughtjack => Self::Thoughtjack,
            RecordDialectArg::Overwatch => Self::Overwatch,
        }
    }
}

impl From<TapeErrorArg> for OnTapeError {
    fn from(word: TapeErrorArg) -> Self {
        match word {
            TapeErrorArg::Stop => Self::Stop,
            TapeErrorArg::Continue => Self::Continue,
        }
    }
}

const RECORD_EXAMPLES: &str = "\
Examples:
  tapegate record -o session.jsonl -- npx -y @modelcontextprotocol/server-filesystem /tmp
  tapegate record --upstream \"python server.py\" -o session.jsonl --name run-1 --tags ci,files
  tapegate record --upstream-http https://mcp.example.com/mcp -o session.jsonl
  tapegate record --http :8080 --upstream-http http://127.0.0.1:3000/mcp -o session.jsonl.gz
  tapegate record --http :8080 -o session.jsonl -- uvx mcp-server-time
  tapegate record -o session.jsonl --redact secrets,..password -- uvx mcp-server-time

In a client's config (.mcp.json):
  {\"mcpServers\": {\"files\": {\"command\": \"tapegate\",
    \"args\": [\"record\", \"-o\", \"/tmp/tapes/\", \"--name\", \"files\", \"--\",
             \"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \"/tmp\"]}}}

Exits with the server's exit code. If that is not 0, standard error says how the server ended. The
code is 0 if the server still ran after the client had left, and had to be ended. Without a server
that ended, 3: the tape could not be written; 4: the server could not be started or reached; 64:
wrong usage. A signal ends it with 128 plus its number (Ctrl-C: 130).";

const TAPE_EXAMPLES: &str = "\
Examples:
  tapegate tape --tape ./tapes/run.jsonl -- node ./dist/index.js
  tapegate tape -- uvx mcp-server-time              (a new file in ./tapes)

In a client's config (.mcp.json):
  {\"mcpServers\": {\"time\": {\"command\": \"tapegate\",
    \"args\": [\"tape\", \"--tape\", \"/tmp/time.jsonl\", \"--\", \"uvx\", \"mcp-server-time\"]}}}";
