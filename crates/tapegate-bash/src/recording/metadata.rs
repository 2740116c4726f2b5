//! The metadata of a session.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use tapegate_core::time::read_rfc3339;
use tapegate_store::atomic_file;

use super::session_id::timestamp;

/// What is known of a session as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionMetadata {
    pub session_id: String,
    /// When it began.
    pub created_us: i64,
    /// When the last command was recorded.
    pub updated_us: i64,
    /// How many commands were recorded.
    pub entry_count: u64,
    /// How long they took together.
    pub total_duration_ms: u64,
    /// Whether it is active, and otherwise why it ended.
    pub status: String,
    /// How many commands exited with 0.
    pub succeeded: u64,
    /// How many did not.
    pub failed: u64,
    /// How many timed out.
    pub timed_out: u64,
    /// The first working directory.
    pub working_directory: String,
    pub agent_id: Option<String>,
    pub conversation_id: Option<String>,
}

/// The status of a session that is still written.
pub const ACTIVE: &str = "active";
/// The status of a session whose writer disappeared, or could not write any more.
pub const INTERRUPTED: &str = "interrupted";

impl SessionMetadata {
    /// The metadata of a session without commands.
    pub fn new(session_id: &str, created_us: i64) -> Self {
        Self {
            session_id: session_id.to_owned(),
            created_us,
            updated_us: created_us,
            entry_count: 0,
            total_duration_ms: 0,
            status: ACTIVE.to_owned(),
            succeeded: 0,
            failed: 0,
            timed_out: 0,
            working_directory: String::new(),
            agent_id: None,
            conversation_id: None,
        }
    }

    /// Counts a command.
    pub fn add(&mut self, duration_ms: u64, timed_out: bool, exit_code: Option<i64>) {
        self.entry_count += 1;
        self.total_duration_ms += duration_ms;
        match (timed_out, exit_code) {
            // A timeout comes first: the exit code of a killed shell says nothing about the
            // command.
            (true, _) => self.timed_out += 1,
            (false, Some(0)) => self.succeeded += 1,
            (false, _) => self.failed += 1,
        }
    }

    /// Its JSON form.
    pub fn to_json(&self) -> Value {
        json!({
            "session_id": self.session_id,
            "created_at": timestamp(self.created_us),
            "last_updated": timestamp(self.updated_us),
            "entry_count": self.entry_count,
            "total_duration_ms": self.total_duration_ms,
            "status": self.status,
            "commands_succeeded": self.succeeded,
            "commands_failed": self.failed,
            "commands_timed_out": self.timed_out,
            "working_directory": self.working_directory,
            "agent_id": self.agent_id,
            "conversation_id": self.conversation_id,
        })
    }

    /// Reads its JSON form.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let created_us = read_rfc3339(value.get("created_at")?.as_str()?)?;
        let updated = value.get("last_updated").and_then(Value::as_str).and_then(read_rfc3339);
        Some(Self {
            session_id: text("session_id")?,
            created_us,
            // Keys that older writers leave out are optional; without the others the file is
            // rebuilt.
            updated_us: updated.unwrap_or(created_us),
            entry_count: number("entry_count")?,
            total_duration_ms: number("total_duration_ms").unwrap_or(0),
            status: text("status")?,
            succeeded: number("commands_succeeded").unwrap_or(0),
            failed: number("commands_failed").unwrap_or(0),
            timed_out: number("commands_timed_out").unwrap_or(0),
            working_directory: text("working_directory").unwrap_or_default(),
            agent_id: text("agent_id"),
            conversation_id: text("conversation_id"),
        })
    }

    /// Reads the file, if there is one that can be used.
    pub fn read(path: &Path) -> Option<Self> {
        Self::from_json(&serde_json::from_slice(&std::fs::read(path).ok()?).ok()?)
    }

    /// Replaces the file.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        write_json(path, &self.to_json())
    }
}

/// Replaces a file with a JSON text.
pub(super) fn write_json(path: &Path, value: &Value) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    atomic_file::write_private_synced(path, &text)
}
