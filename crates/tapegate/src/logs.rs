//! What a process on the wire says on standard error while it runs: a line for people, or a JSON
//! object for machines. What was decided is logged in full by the activity log; here is said what
//! somebody should notice.

use std::io::IsTerminal;

use tapegate_core::json::write_str;
use tapegate_core::time::{SubSecond, write_rfc3339};

use crate::exit::{Exit, Failure};
use crate::settings::Surroundings;
use crate::talk;

/// What can be said about logs on a command line.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LogArgs {
    /// The form of what is said on standard error [default: human on a terminal, else json]
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) log_format: Option<FormatWord>,
    /// Say also what is passed on; TAPEGATE_LOG=debug does the same
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Say nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FormatWord {
    /// A line for people
    Human,
    /// One JSON object a line
    Json,
}

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Says what happens.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    json: bool,
    /// The least of what is said.
    least: Level,
    component: &'static str,
    server_id: String,
}

impl Log {
    /// The log that was asked for.
    pub(crate) fn new(
        args: &LogArgs,
        around: &Surroundings<'_>,
        component: &'static str,
        server_id: &str,
    ) -> Result<Self, Failure> {
        let least = match (args.quiet, args.verbose) {
            (true, _) => Level::Error,
            (_, true) => Level::Debug,
            _ => least(around)?,
        };
        Ok(Self { least, ..Self::unset(args, component, server_id) })
    }

    /// The log whose level nobody has set.
    pub(crate) fn unset(args: &LogArgs, component: &'static str, server_id: &str) -> Self {
        let json = match args.log_format {
            Some(word) => word == FormatWord::Json,
            None => !std::io::stderr().is_terminal(),
        };
        Self { json, least: Level::Warn, component, server_id: server_id.to_owned() }
    }

    /// Whether anything is said at this level.
    pub(crate) fn says(&self, level: Level) -> bool {
        level <= self.least
    }

    /// Whether lines are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Says something.
    pub(crate) fn say(&self, level: Level, words: &str) {
        if !self.says(level) {
            return;
        }
        if self.json {
            return talk::line(&self.object(now_us(), level, words));
        }
        let words = talk::shown(words);
        talk::line(&match level {
            Level::Error => format!("error: {words}"),
            Level::Warn => format!("tapegate: warning: {words}"),
            Level::Info | Level::Debug => format!("tapegate: {words}"),
        });
    }

    /// Says something that is to be known whatever else is said, unless nothing is.
    pub(crate) fn announce(&self, words: &str) {
        match (self.least, self.json) {
            (Level::Error, _) => {}
            (_, true) => talk::line(&self.object(now_us(), Level::Info, words)),
            (_, false) => talk::say(words),
        }
    }

    fn object(&self, wall_us: i64, level: Level, words: &str) -> String {
        let mut out = b"{\"timestamp\":\"".to_vec();
        write_rfc3339(&mut out, wall_us, SubSecond::Micros);
        out.push(b'"');
        let members = [
            ("level", level.name()),
            ("component", self.component),
            ("server_id", &self.server_id),
            ("message", words),
        ];
        for (name, value) in members {
            out.extend_from_slice(format!(",\"{name}\":").as_bytes());
            write_str(&mut out, value);
        }
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }
}

impl Level {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// The least of what is said, as the environment has it.
fn least(around: &Surroundings<'_>) -> Result<Level, Failure> {
    let Some(value) = around.first(&["TAPEGATE_LOG"]) else { return Ok(Level::Warn) };
    let known = [Level::Error, Level::Warn, Level::Info, Level::Debug];
    let found = known.into_iter().find(|level| value.eq_ignore_ascii_case(level.name()));
    found.ok_or_else(|| {
        Failure::new(Exit::Usage, format!("the log level `{}` is unknown", value.display()))
            .hint("TAPEGATE_LOG is `error`, `warn`, `info` or `debug`")
    })
}

fn now_us() -> i64 {
    tapegate_wire::clock::Clock::start().now().wall_us
}
