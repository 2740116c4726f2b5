//! What the bash tool logs. The binary decides which records are printed, and how.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// The severity of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogSeverity {
    /// The tool cannot do its work.
    Error,
    /// It works, but not as intended.
    Warn,
    /// A session or the settings have changed.
    Info,
    /// A command was run or recorded.
    Debug,
}

/// A message and its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRecord {
    pub severity: LogSeverity,
    pub message: &'static str,
    /// Its fields, in order.
    pub fields: Vec<(&'static str, Value)>,
}

/// Receives log records, on any thread.
#[derive(Clone)]
pub struct LogSink(Arc<dyn Fn(LogRecord) + Send + Sync>);

impl LogSink {
    /// A sink that calls a function.
    pub fn new(log: impl Fn(LogRecord) + Send + Sync + 'static) -> Self {
        Self(Arc::new(log))
    }

    /// Logs a message.
    pub fn log(
        &self,
        severity: LogSeverity,
        message: &'static str,
        fields: impl IntoIterator<Item = (&'static str, Value)>,
    ) {
        // Every line of the tool names it, so that mixed logs can be filtered.
        let plugin = ("plugin", Value::from("bash_recorder"));
        let fields = [plugin].into_iter().chain(fields).collect();
        (self.0)(LogRecord { severity, message, fields });
    }
}

impl fmt::Debug for LogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogSink")
    }
}
