//! The commands of a session that still run: if the server is killed, they are the only trace.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use tapegate_core::time::read_rfc3339;
use tapegate_store::atomic_file;

use super::entry::{AgentContext, EntryFacts, RecordingEntry};
use super::session_id::timestamp;

/// A command that was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandStart {
    /// The command line.
    pub command: String,
    /// What the caller says it is for.
    pub description: Option<String>,
    /// Where it runs.
    pub working_directory: String,
    pub shell: String,
    /// How long it may take.
    pub timeout_seconds: u64,
    /// Whether the caller does not wait for it.
    pub background: bool,
    /// Who called.
    pub context: AgentContext,
}

/// A command that was started, with its place in the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingCommand {
    pub(super) entry_id: String,
    pub(super) started_us: i64,
    pub(super) start: CommandStart,
}

/// The running commands of a session, by sequence number.
pub(super) type PendingCommands = BTreeMap<u64, PendingCommand>;

/// Replaces the file. It is not synced: it matters only if this process is killed, not the machine.
pub(super) fn write(path: &Path, pending: &PendingCommands) -> io::Result<()> {
    if pending.is_empty() {
        // Most of the time nothing runs, and a folder of empty lists would be noise.
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let list: Vec<Value> = pending.iter().map(|(number, one)| one.to_json(*number)).collect();
    atomic_file::write_private(path, &serde_json::to_vec(&list)?)
}

/// Reads the file as entries of commands that never ended.
pub(super) fn read(path: &Path, session_id: &str) -> Vec<RecordingEntry> {
    let text = fs::read(path).unwrap_or_default();
    // A torn file loses the marks, never the session: entries are in a file of their own.
    let list: Vec<Value> = serde_json::from_slice(&text).unwrap_or_default();
    list.iter().filter_map(|one| interrupted_entry(one, session_id)).collect()
}

impl PendingCommand {
    fn to_json(&self, sequence_number: u64) -> Value {
        let Self { entry_id, started_us, start } = self;
        json!({
            "entry_id": entry_id,
            "sequence_number": sequence_number,
            "timestamp": timestamp(*started_us),
            "command": start.command,
            "description": start.description,
            "working_directory": start.working_directory,
            "shell": start.shell,
            "timeout_seconds": start.timeout_seconds,
            "background": start.background,
            "agent_id": start.context.agent_id,
            "conversation_id": start.context.conversation_id,
            "tool_call_id": start.context.tool_call_id,
            "trace_id": start.context.trace_id,
        })
    }
}

fn interrupted_entry(value: &Value, session_id: &str) -> Option<RecordingEntry> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let context = AgentContext {
        agent_id: text("agent_id"),
        conversation_id: text("conversation_id"),
        tool_call_id: text("tool_call_id"),
        trace_id: text("trace_id"),
    };
    let background = value.get("background") == Some(&Value::Bool(true));
    Some(RecordingEntry {
        entry_id: text("entry_id")?,
        session_id: session_id.to_owned(),
        sequence_number: value.get("sequence_number")?.as_u64()?,
        started_us: read_rfc3339(value.get("timestamp")?.as_str()?)?,
        command: text("command")?,
        description: text("description"),
        working_directory: text("working_directory")?,
        shell: text("shell")?,
        timeout_seconds: value.get("timeout_seconds")?.as_u64()?,
        context,
        facts: EntryFacts { interrupted: true, background, ..EntryFacts::default() },
        ..RecordingEntry::default()
    })
}
