//! Recordings as CSV and SQLite. Columns are the keys of an entry, in the order of the document.

use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;

use super::sqlite_file::{SqliteFile, SqliteValue};
use crate::recording::metadata::SessionMetadata;

pub const ENTRY_COLUMNS: [&str; 22] = [
    "entry_id",
    "session_id",
    "sequence_number",
    "timestamp",
    "duration_ms",
    "command",
    "description",
    "working_directory",
    "shell",
    "timeout_seconds",
    "timed_out",
    "exit_code",
    "stdout",
    "stderr",
    "output_truncated",
    "output_truncated_bytes",
    "environment",
    "agent_id",
    "conversation_id",
    "tool_call_id",
    "opencuff_version",
    "plugin_version",
];

const SESSION_COLUMNS: [&str; 12] = [
    "session_id",
    "created_at",
    "last_updated",
    "entry_count",
    "total_duration_ms",
    "status",
    "commands_succeeded",
    "commands_failed",
    "commands_timed_out",
    "working_directory",
    "agent_id",
    "conversation_id",
];

/// Writes the names of the columns as a line of CSV.
pub fn write_csv_header(out: &mut dyn Write) -> io::Result<()> {
    write_csv_row(out, ENTRY_COLUMNS.iter().map(|name| (*name).to_owned()))
}

/// Writes an entry as a line of CSV.
pub fn write_csv_entry(out: &mut dyn Write, line: &[u8]) -> io::Result<()> {
    let entry: Value = serde_json::from_slice(line)?;
    write_csv_row(out, ENTRY_COLUMNS.iter().map(|name| csv_text(entry.get(name))))
}

/// Writes a line of CSV: RFC 4180, with a line feed as its end.
pub fn write_csv_row(out: &mut dyn Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    let fields: Vec<String> = fields.map(|field| csv_field(&field)).collect();
    writeln!(out, "{}", fields.join(","))
}

fn csv_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn csv_field(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

/// A database with the tables `sessions` and `entries`.
#[derive(Debug)]
pub struct SqliteExport {
    file: SqliteFile,
}

impl SqliteExport {
    /// Creates the file, which must not exist.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: SqliteFile::create(path)? })
    }

    /// Adds the sessions. They come first, because a table is written as a whole.
    pub fn add_sessions<'m>(
        &mut self,
        sessions: impl Iterator<Item = &'m SessionMetadata>,
    ) -> io::Result<()> {
        self.file.begin_table("sessions", &column_types(&SESSION_COLUMNS))?;
        for session in sessions {
            let session = session.to_json();
            self.file.add_row(&SESSION_COLUMNS.map(|name| sqlite_value(session.get(name))))?;
        }
        self.file.begin_table("entries", &column_types(&ENTRY_COLUMNS))
    }

    pub fn add_entry(&mut self, line: &[u8]) -> io::Result<()> {
        let entry: Value = serde_json::from_slice(line)?;
        self.file.add_row(&ENTRY_COLUMNS.map(|name| sqlite_value(entry.get(name))))
    }

    /// Completes the file.
    pub fn finish(self) -> io::Result<()> {
        self.file.finish()
    }
}

fn column_types(columns: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    let numbers = [
        "sequence_number",
        "duration_ms",
        "timeout_seconds",
        "timed_out",
        "exit_code",
        "output_truncated",
        "output_truncated_bytes",
        "entry_count",
        "total_duration_ms",
        "commands_succeeded",
        "commands_failed",
        "commands_timed_out",
    ];
    let kind = |name: &str| if numbers.contains(&name) { "INTEGER" } else { "TEXT" };
    columns.iter().map(|name| (*name, kind(name))).collect()
}

fn sqlite_value(value: Option<&Value>) -> SqliteValue {
    match value {
        None | Some(Value::Null) => SqliteValue::Null,
        Some(Value::Bool(flag)) => SqliteValue::Integer(i64::from(*flag)),
        Some(Value::String(text)) => SqliteValue::Text(text.clone()),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(number) => SqliteValue::Integer(number),
            // Fractions and numbers beyond 64 bits keep their digits as text.
            None => SqliteValue::Text(number.to_string()),
        },
        Some(other) => SqliteValue::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::entry::RecordingEntry;

    #[test]
    fn csv_has_the_columns_of_the_document_and_quotes_what_needs_it() {
        let entry = RecordingEntry {
            entry_id: "e_1".to_owned(),
            command: "echo \"a, b\"\necho c".to_owned(),
            ..RecordingEntry::default()
        };
        let mut out = Vec::new();
        write_csv_header(&mut out).unwrap();
        write_csv_entry(&mut out, entry.to_json().to_string().as_bytes()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (head, row) = text.split_once('\n').unwrap();
        assert!(head.starts_with("entry_id,session_id,sequence_number,timestamp,"));
        assert_eq!(head.split(',').count(), 22);
        assert!(row.contains(",\"echo \"\"a, b\"\"\necho c\","), "{row}");
    }
}
