//! What a long-running process prints on standard error: a line for people, or a JSON object for
//! machines. Decisions are logged in full in the activity log; only what needs attention goes here.

use tapegate_core::json::write_str;
use tapegate_core::time::{SubSecond, write_rfc3339};

use crate::called;
use crate::exit::Failure;
use crate::talk;
use crate::verbosity;
pub(crate) use crate::verbosity::Level;

/// Prints log lines to standard error.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    json: bool,
    /// The least severe level that is printed.
    least: Level,
    component: &'static str,
    server_id: String,
}

impl Log {
    /// The log with the requested level; fails if the environment names an invalid one.
    pub(crate) fn new(component: &'static str, server_id: &str) -> Result<Self, Failure> {
        verbosity::level_in_environment()?;
        Ok(Self::unset(component, server_id))
    }

    /// The same, ignoring an invalid level in the environment.
    pub(crate) fn unset(component: &'static str, server_id: &str) -> Self {
        Self {
            json: verbosity::is_log_json(),
            least: verbosity::chosen_level().unwrap_or(Level::Warn),
            component,
            server_id: server_id.to_owned(),
        }
    }

    /// Whether this level is printed.
    pub(crate) fn says(&self, level: Level) -> bool {
        level <= self.least
    }

    /// Whether lines are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a message.
    pub(crate) fn say(&self, level: Level, words: &str) {
        if !self.says(level) {
            return;
        }
        if self.json {
            return talk::line(&self.object(level, words));
        }
        let words = talk::shown(words);
        talk::line(&match level {
            Level::Error => format!("error: {words}"),
            Level::Warn => format!("{}: warning: {words}", called::name()),
            Level::Info | Level::Debug => format!("{}: {words}", called::name()),
        });
    }

    /// Prints a message at any level except with --quiet.
    pub(crate) fn announce(&self, words: &str) {
        match (self.least, self.json) {
            (Level::Error, _) => {}
            (_, true) => talk::line(&self.object(Level::Info, words)),
            (_, false) => talk::line(&format!("{}: {}", called::name(), talk::shown(words))),
        }
    }

    fn object(&self, level: Level, words: &str) -> String {
        let server_id = Some(self.server_id.as_str());
        LogLine { level, component: self.component, server_id, message: words, hint: None }.json()
    }
}

/// One line of a JSON log.
pub(crate) struct LogLine<'l> {
    pub(crate) level: Level,
    pub(crate) component: &'l str,
    /// The server concerned, in a process that runs in front of one.
    pub(crate) server_id: Option<&'l str>,
    pub(crate) message: &'l str,
    pub(crate) hint: Option<&'l str>,
}

impl LogLine<'_> {
    /// The line, without its line ending.
    pub(crate) fn json(&self) -> String {
        let mut out = b"{\"timestamp\":\"".to_vec();
        write_rfc3339(&mut out, now_us(), SubSecond::Micros);
        out.push(b'"');
        let members = [
            ("level", Some(self.level.name())),
            ("component", Some(self.component)),
            ("server_id", self.server_id),
            ("message", Some(self.message)),
            ("hint", self.hint),
        ];
        for (name, value) in members.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
            out.extend_from_slice(format!(",\"{name}\":").as_bytes());
            write_str(&mut out, value);
        }
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn now_us() -> i64 {
    tapegate_wire::clock::Clock::start().now().wall_us
}
