//! Command-line arguments of `replay`.

use std::path::PathBuf;

use tapegate_core::json::path::JsonPath;
use tapegate_core::player::{
    FUZZY_THRESHOLD_DEFAULT, MatchMode, OnExhausted, OnUnmatched, ServerMessages, StateScope,
};

use crate::client_transport::ListenArgs;
use crate::entry_limit::PlayedTapeArgs;
use crate::output_file::{CLIENTS, file_only_parser};
use crate::report_files::RunArgs;
use crate::upstream::UpstreamArgs;

/// Play a tape as an MCP server
///
/// A client that starts this command in place of its server gets the recorded answers, and the
/// server's other messages at the points where they were recorded. A request that is not on the
/// tape is reported and answered with an error. With sequential matching, a call with other params
/// is answered with a warning, unless --strict-params is given.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The tape to play, of any dialect, compressed or not; `-` for standard input with --http
    #[arg(short, long, value_name = "TAPE")]
    pub(super) recording: PathBuf,
    /// The session to play: a number from 1, `last`, or `all`, which gives the first client the
    /// first session, the second client the second, and so on
    #[arg(long, value_name = "N|last|all", default_value = "all", value_parser = session)]
    pub(super) session: TapeSession,
    /// How to find a request on the tape
    #[arg(long, value_enum, default_value = "sequential")]
    pub(super) match_mode: MatchModeArg,
    /// With fuzzy, the share of params that must be equal, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = FUZZY_THRESHOLD_DEFAULT, value_parser = parse_share)]
    pub(super) fuzzy_threshold: f64,
    /// How long answers take: `instant`, `realistic` as recorded, or `scaled:N` times as long
    #[arg(long, value_name = "TIMING", default_value = "instant", value_parser = parse_pace)]
    pub(super) timing: f64,
    /// What to do with a request that is not on the tape
    #[arg(long, value_enum, default_value = "error")]
    pub(super) on_unmatched: OnUnmatchedArg,
    /// What to do with a request that is made more often than recorded
    #[arg(long, value_enum, default_value = "error")]
    pub(super) on_exhausted: OnExhaustedArg,
    /// Whether each session plays the tape from its start, or all sessions share it
    #[arg(long, value_enum, default_value = "session")]
    pub(super) state_scope: StateScopeArg,
    /// Which notifications and requests of the recorded server to send
    #[arg(long, value_enum, default_value = "all")]
    pub(super) server_messages: ServerMessagesArg,
    /// A path to ignore when requests are compared, such as `params.arguments.now` or
    /// `..timestamp`; repeatable, or separated by commas
    #[arg(long, value_name = "PATH", value_delimiter = ',', value_parser = parse_ignored_path)]
    pub(super) ignore: Vec<JsonPath>,
    /// With sequential, treat a call with other params as a request that is not on the tape,
    /// instead of warning about it
    #[arg(long)]
    pub(super) strict_params: bool,
    /// Treat a list that is requested more often than recorded, or with sequential out of order, as
    /// a request that is not on the tape, instead of warning about it
    #[arg(long)]
    pub(super) strict_reads: bool,
    /// Treat every answer of the client that differs from the recorded one as a divergence,
    /// including the output of models and lists of roots, instead of warning about these
    #[arg(long)]
    pub(super) strict_replies: bool,
    /// Listen on this address for HTTP clients, instead of serving one on standard input and
    /// output; without a host, on loopback. Ctrl-C stops it
    #[arg(long, value_name = "[HOST:]PORT")]
    pub(super) http: Option<String>,
    #[command(flatten)]
    pub(super) listen: ListenArgs,
    #[command(flatten)]
    pub(super) upstream: UpstreamArgs,
    /// Write a new tape with what was played and what was passed through; the old one is never
    /// changed
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(CLIENTS))]
    pub(super) record_to: Option<PathBuf>,
    /// Overwrite the tape that --record-to names, if it exists
    #[arg(long, requires = "record_to")]
    pub(super) force: bool,
    /// Write a report to a file: JUnit XML if it ends in .xml, SARIF if in .sarif, else JSON;
    /// repeatable
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(CLIENTS))]
    pub(super) report: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) run: RunArgs,
    #[command(flatten)]
    pub(super) tape: PlayedTapeArgs,
}

/// Which session of the tape is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TapeSession {
    All,
    Last,
    Number(usize),
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum MatchModeArg {
    /// Requests come in the recorded order
    Sequential,
    /// Requests come in any order, each exactly as recorded
    ByRequest,
    /// Requests come in any order and may differ a little
    Fuzzy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum OnUnmatchedArg {
    /// Answer with an error, and exit with code 6
    Error,
    /// Answer with an error, and continue
    Warn,
    /// Pass it to the server named by --upstream or --upstream-http
    Passthrough,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum OnExhaustedArg {
    /// Treat it as not on the tape
    Error,
    /// Give the last answer again
    Last,
    /// Start again with the first answer; with sequential, after `initialize`
    Cycle,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum StateScopeArg {
    /// Each session plays the tape from its start
    Session,
    /// All sessions share one position on the tape
    Global,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum ServerMessagesArg {
    /// Everything
    All,
    /// Notifications, but no requests
    Notifications,
    /// Nothing
    None,
}

impl Args {
    pub(super) fn mode(&self) -> MatchMode {
        match self.match_mode {
            MatchModeArg::Sequential => MatchMode::Sequential,
            MatchModeArg::ByRequest => MatchMode::ByRequest,
            MatchModeArg::Fuzzy => MatchMode::Fuzzy { threshold: self.fuzzy_threshold },
        }
    }
}

impl From<OnUnmatchedArg> for OnUnmatched {
    fn from(word: OnUnmatchedArg) -> Self {
        match word {
            OnUnmatchedArg::Error => Self::Error,
            OnUnmatchedArg::Warn => Self::Warn,
            OnUnmatchedArg::Passthrough => Self::Passthrough,
        }
    }
}

impl From<OnExhaustedArg> for OnExhausted {
    fn from(word: OnExhaustedArg) -> Self {
        match word {
            OnExhaustedArg::Error => Self::Error,
            OnExhaustedArg::Last => Self::Last,
            OnExhaustedArg::Cycle => Self::Cycle,
        }
    }
}

impl From<StateScopeArg> for StateScope {
    fn from(word: StateScopeArg) -> Self {
        match word {
            StateScopeArg::Session => Self::Session,
            StateScopeArg::Global => Self::Global,
        }
    }
}

impl From<ServerMessagesArg> for ServerMessages {
    fn from(word: ServerMessagesArg) -> Self {
        match word {
            ServerMessagesArg::All => Self::All,
            ServerMessagesArg::Notifications => Self::Notifications,
            ServerMessagesArg::None => Self::None,
        }
    }
}

/// The factor for recorded delays.
fn parse_pace(text: &str) -> Result<f64, String> {
    let scale = match (text, text.strip_prefix("scaled:")) {
        ("instant", _) => Some(0.0),
        ("realistic", _) => Some(1.0),
        (_, Some(scale)) => scale.parse().ok(),
        _ => return Err("expected `instant`, `realistic` or `scaled:N`".to_owned()),
    };
    let positive = scale.filter(|scale: &f64| scale.is_finite() && *scale >= 0.0);
    positive.ok_or("expected a number of 0 or more after `scaled:`".to_owned())
}

fn session(text: &str) -> Result<TapeSession, String> {
    match (text, text.parse()) {
        ("all", _) => Ok(TapeSession::All),
        ("last", _) => Ok(TapeSession::Last),
        (_, Ok(number @ 1..)) => Ok(TapeSession::Number(number)),
        _ => Err("expected a number from 1, `last` or `all`".to_owned()),
    }
}

/// Parses a path into requests.
fn parse_ignored_path(text: &str) -> Result<JsonPath, String> {
    crate::units::path_in(text, &["params"])
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
    share.ok_or("expected a number from 0 to 1".to_owned())
}

const EXAMPLES: &str = "\
Examples:
  tapegate replay -r session.jsonl
  tapegate replay -r session.jsonl --match-mode by-request --timing realistic
  tapegate replay -r session.jsonl --match-mode fuzzy --ignore ..timestamp -v
  tapegate replay -r session.jsonl --http :8080 --report replay.json --report replay.xml
  tapegate replay -r session.jsonl --on-unmatched passthrough --record-to more.jsonl \\
    -- npx -y @modelcontextprotocol/server-filesystem /tmp

In a client's config (.mcp.json):
  {\"mcpServers\": {\"files\": {\"command\": \"tapegate\",
    \"args\": [\"replay\", \"-r\", \"/tmp/session.jsonl\"]}}}

Exit codes:
  0    the client left
  2    the tape is broken
  3    a file could not be read or written
  4    cannot listen for HTTP, or the passthrough server failed
  6    the client asked for something that is not on the tape
  64   wrong usage
  130, 143  ended by a signal";
