//! How much is printed on standard error, and in which format: the flags of every command.

use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::ValueEnum;

use crate::event_log;
use crate::exit::{Exit, Failure};

// The flags of every command, before or after its name. A doc comment would become the help's first line.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct VerbosityArgs {
    /// Print only errors on standard error
    #[arg(short, long, global = true, help_heading = HEADING)]
    quiet: bool,
    /// Print more on standard error: which files are read, what the command does, and how it ended;
    /// TAPEGATE_LOG=debug does the same
    #[arg(short, long, global = true, help_heading = HEADING)]
    verbose: bool,
    /// How much to print on standard error; -q is error, -v is debug. debug also prints what happens
    /// to processes, connections and sessions, trace also each message without its content
    /// [default: info; for logs of shim and hub, warn]
    #[arg(long, value_enum, value_name = "LEVEL", ignore_case = true)]
    #[arg(global = true, help_heading = HEADING)]
    log_level: Option<VerbosityLevel>,
    /// The format of messages on standard error [default: human; for logs of shim and hub, json
    /// unless standard error is a terminal]
    #[arg(long, value_enum, value_name = "FORM", global = true, help_heading = HEADING)]
    log_format: Option<LogFormatArg>,
}

const HEADING: &str = "Global options";

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormatArg {
    /// Text for people
    #[value(alias = "text")]
    Human,
    /// One JSON object per line
    Json,
}

/// The severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum VerbosityLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// The settings of this process.
#[derive(Debug, Clone)]
struct Verbosity {
    /// The least severe level that is printed, if it was chosen.
    least: Option<VerbosityLevel>,
    format: Option<LogFormatArg>,
    /// The command being run.
    component: String,
}

static CHOSEN: OnceLock<Verbosity> = OnceLock::new();

/// Sets the verbosity of this process. Only the first call has an effect.
pub(crate) fn choose(args: VerbosityArgs, component: &str) -> Result<(), Failure> {
    if args.quiet && args.verbose {
        return Err(Failure::new(Exit::Usage, "give either --quiet or --verbose, not both"));
    }
    if args.log_level.is_some() && (args.quiet || args.verbose) {
        let flag = if args.quiet { "--quiet" } else { "--verbose" };
        let message = format!("give either --log-level or {flag}, not both");
        return Err(Failure::new(Exit::Usage, message));
    }
    let named = level_in_environment();
    let least = match (args.quiet, args.verbose, &named) {
        (true, ..) => Some(VerbosityLevel::Error),
        (_, true, _) => Some(VerbosityLevel::Debug),
        (_, _, named) => args.log_level.or(named.as_ref().ok().copied().flatten()),
    };
    let format = args.log_format;
    CHOSEN.set(Verbosity { least, format, component: component.to_owned() }).ok();
    event_log::install(least);
    // A shim reports a wrong setting to its client itself.
    if component == "shim" { Ok(()) } else { named.map(|_| ()) }
}

/// Chooses the format from a command line that cannot be parsed.
pub(crate) fn choose_unparsed(words: &[&str]) {
    // The words after `--` are the server's.
    let own = || words.iter().take_while(|word| **word != "--");
    let values = own().skip(1);
    let is_json = own().any(|word| *word == "--log-format=json")
        || own().zip(values).any(|pair| pair == (&"--log-format", &"json"));
    let format = is_json.then_some(LogFormatArg::Json);
    let component = words.get(1).filter(|word| !word.starts_with('-')).unwrap_or(&"").to_string();
    CHOSEN.set(Verbosity { least: None, format, component }).ok();
}

/// Whether this level is printed; by default, everything but details is.
pub(crate) fn is_enabled(level: VerbosityLevel) -> bool {
    level <= chosen_level().unwrap_or(VerbosityLevel::Info)
}

/// Whether only errors are printed.
pub(crate) fn is_quiet() -> bool {
    !is_enabled(VerbosityLevel::Warn)
}

/// Whether details are printed.
pub(crate) fn is_verbose() -> bool {
    is_enabled(VerbosityLevel::Debug)
}

/// The least severe level that is printed, if it was chosen.
pub(crate) fn chosen_level() -> Option<VerbosityLevel> {
    CHOSEN.get().and_then(|chosen| chosen.least)
}

/// Whether messages are JSON.
pub(crate) fn is_json() -> bool {
    CHOSEN.get().and_then(|chosen| chosen.format) == Some(LogFormatArg::Json)
}

/// Whether the lines of a log are JSON: a log usually goes to a file or a collector.
pub(crate) fn is_log_json() -> bool {
    match CHOSEN.get().and_then(|chosen| chosen.format) {
        Some(word) => word == LogFormatArg::Json,
        None => !std::io::stderr().is_terminal(),
    }
}

/// Whether details of this command are JSON, as the lines of its log are.
pub(crate) fn is_detail_json() -> bool {
    let has_log = ["shim", "hub"].contains(&component());
    if has_log { is_log_json() } else { is_json() }
}

/// The command being run.
pub(crate) fn component() -> &'static str {
    CHOSEN.get().map_or("", |chosen| chosen.component.as_str())
}

impl VerbosityLevel {
    /// The level's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The least severe level that is printed, from the environment.
pub(crate) fn level_in_environment() -> Result<Option<VerbosityLevel>, Failure> {
    let value = std::env::var_os("TAPEGATE_LOG").filter(|value| !value.is_empty());
    let Some(value) = value else { return Ok(None) };
    let known = VerbosityLevel::value_variants();
    let found = known.iter().copied().find(|level| value.eq_ignore_ascii_case(level.name()));
    found.map(Some).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("the log level `{}` is unknown", value.display()))
            .hint("TAPEGATE_LOG is `error`, `warn`, `info`, `debug` or `trace`")
    })
}
