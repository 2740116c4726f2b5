//! What a long-running process prints on standard error: a line for people, or a JSON object for
//! machines. Decisions are logged in full in the activity log; only what needs attention goes here.

use serde_json::Value;
use tapegate_core::time::{SubSecond, write_rfc3339};

use crate::exit::Failure;
use crate::program_name;
use crate::terminal_output;
use crate::verbosity;
pub(crate) use crate::verbosity::VerbosityLevel;

/// Prints log lines to standard error.
#[derive(Debug, Clone)]
pub(crate) struct Logger {
    json: bool,
    /// The least severe level that is printed.
    least: VerbosityLevel,
    component: &'static str,
    server_id: String,
}

impl Logger {
    /// The log with the requested level; fails if the environment names an invalid one.
    pub(crate) fn new(component: &'static str, server_id: &str) -> Result<Self, Failure> {
        verbosity::level_in_environment()?;
        Ok(Self::ignoring_environment(component, server_id))
    }

    /// The same, ignoring an invalid level in the environment.
    pub(crate) fn ignoring_environment(component: &'static str, server_id: &str) -> Self {
        Self {
            json: verbosity::is_log_json(),
            least: verbosity::chosen_level().unwrap_or(VerbosityLevel::Warn),
            component,
            server_id: server_id.to_owned(),
        }
    }

    /// Whether this level is printed.
    pub(crate) fn is_enabled(&self, level: VerbosityLevel) -> bool {
        level <= self.least
    }

    /// Whether lines are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a message.
    pub(crate) fn log(&self, level: VerbosityLevel, text: &str) {
        if !self.is_enabled(level) {
            return;
        }
        if self.json {
            return terminal_output::line(&self.object(level, text));
        }
        let text = terminal_output::sanitize(text);
        terminal_output::line(&match level {
            VerbosityLevel::Error => format!("error: {text}"),
            VerbosityLevel::Warn => format!("{}: warning: {text}", program_name::name()),
            VerbosityLevel::Info | VerbosityLevel::Debug | VerbosityLevel::Trace => {
                format!("{}: {text}", program_name::name())
            }
        });
    }

    /// Prints a message at any level except with --quiet.
    pub(crate) fn log_always(&self, text: &str) {
        // Such as the hub's address, which users need even where only warnings are printed.
        match (self.least, self.json) {
            (VerbosityLevel::Error, _) => {}
            (_, true) => terminal_output::line(&self.object(VerbosityLevel::Info, text)),
            (_, false) => terminal_output::line(&format!(
                "{}: {}",
                program_name::name(),
                terminal_output::sanitize(text)
            )),
        }
    }

    fn object(&self, level: VerbosityLevel, text: &str) -> String {
        let server_id = Some(self.server_id.as_str());
        let component = self.component;
        LogLine { level, component, server_id, message: text, hint: None, fields: &[] }.json()
    }
}

/// One line of a JSON log.
pub(crate) struct LogLine<'l> {
    pub(crate) level: VerbosityLevel,
    pub(crate) component: &'l str,
    /// The server concerned, in a process that runs in front of one.
    pub(crate) server_id: Option<&'l str>,
    pub(crate) message: &'l str,
    pub(crate) hint: Option<&'l str>,
    /// Further members.
    pub(crate) fields: &'l [(&'static str, Value)],
}

impl LogLine<'_> {
    /// The line, without its line ending.
    pub(crate) fn json(&self) -> String {
        let time = timestamp();
        let members = [
            ("timestamp", Some(time.as_str())),
            ("level", Some(self.level.name())),
            ("component", Some(self.component)),
            ("server_id", self.server_id),
            ("message", Some(self.message)),
            ("hint", self.hint),
        ];
        let members = members.iter().filter_map(|(name, value)| Some((*name, (*value)?.into())));
        let all = members.chain(self.fields.iter().cloned());
        Value::Object(all.map(|(name, value)| (name.to_owned(), value)).collect()).to_string()
    }
}

/// The current time, as in every log.
pub(crate) fn timestamp() -> String {
    let mut out = Vec::new();
    let now_us = tapegate_wire::clock::Clock::start().now().wall_us;
    write_rfc3339(&mut out, now_us, SubSecond::Micros);
    String::from_utf8_lossy(&out).into_owned()
}
