//! Prints what the bash tool logs.

use serde_json::Value;
use tapegate_bash::log_record::{LogRecord, LogSeverity, LogSink};

use crate::logs::{LogLine, VerbosityLevel};
use crate::terminal_output;
use crate::verbosity;

/// A sink that prints records of the chosen levels on standard error.
pub(super) fn sink() -> LogSink {
    LogSink::new(|record| {
        if verbosity::is_enabled(level(record.severity)) {
            terminal_output::line(&line(&record, verbosity::is_json()));
        }
    })
}

fn level(severity: LogSeverity) -> VerbosityLevel {
    match severity {
        LogSeverity::Error => VerbosityLevel::Error,
        LogSeverity::Warn => VerbosityLevel::Warn,
        LogSeverity::Info => VerbosityLevel::Info,
        LogSeverity::Debug => VerbosityLevel::Debug,
    }
}

fn line(record: &LogRecord, json: bool) -> String {
    let LogRecord { severity, message, fields } = record;
    if json {
        let (level, component) = (level(*severity), verbosity::component());
        return LogLine { level, component, server_id: None, message, hint: None, fields }.json();
    }
    let word = match severity {
        LogSeverity::Error => "ERROR",
        LogSeverity::Warn => "WARN ",
        LogSeverity::Info => "INFO ",
        LogSeverity::Debug => "DEBUG",
    };
    let mut text = format!("{word} bash_recorder: {message}");
    // The prefix names the plugin already.
    for (name, value) in fields.iter().filter(|(name, _)| *name != "plugin") {
        match value {
            Value::String(words) if words.contains([' ', '"']) => {
                text.push_str(&format!(" {name}={words:?}"));
            }
            Value::String(word) => text.push_str(&format!(" {name}={word}")),
            value => text.push_str(&format!(" {name}={value}")),
        }
    }
    terminal_output::sanitize(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_form_of_the_document() {
        let fields = vec![
            ("plugin", "bash_recorder".into()),
            ("session_id", "20260118_143052_a7b3c9d2-e4f5".into()),
            ("error", "disk full".into()),
            ("degraded", true.into()),
        ];
        let record =
            LogRecord { severity: LogSeverity::Warn, message: "Recording write failed", fields };
        assert_eq!(
            line(&record, false),
            "WARN  bash_recorder: Recording write failed \
             session_id=20260118_143052_a7b3c9d2-e4f5 error=\"disk full\" degraded=true"
        );
        let json: Value = serde_json::from_str(&line(&record, true)).unwrap();
        assert_eq!((&json["plugin"], &json["level"]), (&"bash_recorder".into(), &"warn".into()));
    }
}
