//! Command-line arguments of `serve`.

use std::path::PathBuf;

use tapegate_scenario::model::ScenarioScope;

use crate::client_transport::ListenArgs;
use crate::output_file::{CLIENTS, file_only_parser};
use crate::report_files::RunArgs;

/// Run a scenario as an MCP server
///
/// A scenario is a YAML file that describes what an MCP server offers, how it answers, and how it
/// changes over time: a fixture for clients, or an attack that tests whether an agent, or the gate
/// in front of it, is safe. `--expect` compares the agent with a safe one and gives a verdict.
/// docs/serve.md describes the language.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The scenario
    #[arg(value_name = "FILE", required_unless_present_any = ["scenario", "tool", "list", "config"])]
    pub(super) file: Option<PathBuf>,
    /// The scenario, in the form that `server run` takes
    #[arg(short, long, value_name = "FILE", hide = true, conflicts_with = "file")]
    pub(super) config: Option<PathBuf>,
    /// A scenario of the built-in library; --list shows them
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["file", "config"])]
    pub(super) scenario: Option<String>,
    /// A file with one tool, to serve without a scenario
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["file", "config", "scenario"])]
    pub(super) tool: Option<PathBuf>,
    /// List the library and exit
    #[arg(long, conflicts_with_all = NAMED, conflicts_with_all = SERVED)]
    pub(super) list: bool,
    /// The format of the list: text, or json with one object per line
    #[arg(long, value_enum, requires = "list", conflicts_with_all = NAMED)]
    pub(super) format: Option<ServeFormat>,
    /// Listen on this address for HTTP clients, instead of serving one on standard input and
    /// output; without a host, on loopback. Ctrl-C stops it
    #[arg(long, value_name = "[HOST:]PORT")]
    pub(super) http: Option<String>,
    #[command(flatten)]
    pub(super) listen: ListenArgs,
    /// Who shares phases and counts, overriding the scenario
    #[arg(long, value_enum)]
    pub(super) state_scope: Option<ScopeArg>,
    /// How all answers are delivered, overriding the scenario
    #[arg(long, value_enum, value_name = "MODE")]
    pub(super) behavior: Option<BehaviorArg>,
    /// The folder in which `$include` looks for files
    #[arg(long, value_name = "DIR", default_value = "library", conflicts_with = "scenario")]
    pub(super) library: PathBuf,
    /// Allow effects outside of the session: programs and servers that handle requests, full pipes,
    /// dropped connections, logs outside of this folder
    #[arg(long)]
    pub(super) allow_external_handlers: bool,
    /// Reload the scenario when one of its files changes; sessions continue
    #[arg(long, conflicts_with = "scenario")]
    pub(super) watch: bool,
    /// Check the client against what the scenario expects of a safe agent, and report a verdict
    #[arg(long, conflicts_with = "watch")]
    pub(super) expect: bool,
    /// Write the verdict to a file: JUnit XML if it ends in .xml, SARIF if in .sarif, else JSON;
    /// repeatable
    #[arg(long, value_name = "FILE", requires = "expect", value_parser = file_only_parser(CLIENTS))]
    pub(super) report: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) run: RunArgs,
    /// Write events to a file, one JSON object per line
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(CLIENTS))]
    pub(super) events_file: Option<PathBuf>,
    /// The seed for random values in templates
    #[arg(long, value_name = "NUMBER")]
    pub(super) seed: Option<u64>,
    /// The largest message to accept, such as 10MB
    #[arg(long, value_name = "BYTES", default_value = "10MB", value_parser = crate::units::bytes)]
    pub(super) max_message_bytes: usize,
}

/// The arguments that name a scenario.
const NAMED: [&str; 4] = ["file", "config", "scenario", "tool"];

/// The arguments that say how it is served.
const SERVED: [&str; 10] = [
    "http",
    "state_scope",
    "behavior",
    "library",
    "allow_external_handlers",
    "watch",
    "expect",
    "events_file",
    "seed",
    "max_message_bytes",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ServeFormat {
    Text,
    Json,
    Jsonl,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum ScopeArg {
    /// Each session has its own
    #[value(alias = "per_connection", alias = "session")]
    PerConnection,
    /// All sessions share one
    Global,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum BehaviorArg {
    /// Normally
    Normal,
    /// One byte every tenth of a second
    #[value(alias = "slow_loris")]
    SlowLoris,
    /// Without an end of line
    #[value(alias = "unbounded_line")]
    UnboundedLine,
    /// 10,000 levels deep
    #[value(alias = "nested_json")]
    NestedJson,
    /// Five seconds late
    #[value(alias = "response_delay")]
    ResponseDelay,
}

impl BehaviorArg {
    /// The word for it in scenarios.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::SlowLoris => "slow_loris",
            Self::UnboundedLine => "unbounded_line",
            Self::NestedJson => "nested_json",
            Self::ResponseDelay => "response_delay",
        }
    }
}

impl From<ScopeArg> for ScenarioScope {
    fn from(word: ScopeArg) -> Self {
        match word {
            ScopeArg::PerConnection => Self::Connection,
            ScopeArg::Global => Self::Global,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  tapegate serve --list
  tapegate serve --scenario rug-pull --expect --report verdict.json
  tapegate serve server.yaml --watch
  tapegate serve server.yaml --http :8080 --state-scope global
  tapegate serve --tool calculator.yaml --behavior slow-loris

In a client's config (.mcp.json), to test whether the agent falls for the attack:
  {\"mcpServers\": {\"calculator\": {\"command\": \"tapegate\",
    \"args\": [\"serve\", \"--scenario\", \"rug-pull\", \"--expect\", \"--report\", \"/tmp/verdict.xml\"]}}}

Exit codes:
  0    the client left, and with --expect it was safe
  1    with --expect, no expectation was tested
  2    the scenario is broken, or needs --allow-external-handlers
  3    a file could not be read or written
  4    cannot listen for HTTP
  5    the scenario gave up waiting (on_timeout: abort)
  6    with --expect, the agent was not safe
  64   wrong usage
  130, 143  ended by a signal, unless there is a verdict";
