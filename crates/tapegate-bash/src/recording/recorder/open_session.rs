//! A session that this server writes.

use std::io;

use serde_json::Value;

use super::degradation::WriteFailure;
use super::{CommandStart, FinishedCommand};
use crate::config::SessionMode;
use crate::recording::entry::{AgentContext, EntryFacts, RecordingEntry};
use crate::recording::index::{self, IndexedSession};
use crate::recording::metadata::SessionMetadata;
use crate::recording::pending::{self, PendingCommand, PendingCommands};
use crate::recording::session_file::SessionFile;
use crate::recording::{RecordingFolder, session_id};

/// What the commands of a session have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionKey {
    Conversation(String),
    Day(String),
    Server,
}

impl SessionKey {
    pub(super) fn of(mode: SessionMode, start: &CommandStart, now_us: i64) -> Self {
        let day = || Self::Day(session_id::date(now_us));
        match (mode, &start.context.conversation_id) {
            (SessionMode::Continuous, _) => Self::Server,
            (SessionMode::PerConversation, Some(id)) => Self::Conversation(id.clone()),
            (SessionMode::PerConversation, None) | (SessionMode::PerDay, _) => day(),
        }
    }
}

/// A session that this server writes.
#[derive(Debug)]
pub(super) struct OpenSession {
    pub(super) key: SessionKey,
    pub(super) metadata: SessionMetadata,
    pub(super) pending: PendingCommands,
    pub(super) last_used_us: i64,
    /// The status it gets as soon as no command runs in it.
    pub(super) closing: Option<&'static str>,
    pub(super) is_dirty: bool,
    folder: RecordingFolder,
    file: SessionFile,
    last_number: u64,
    /// The ids that it had before its files were removed.
    former_ids: Vec<String>,
}

impl OpenSession {
    pub(super) fn create(
        folder: &RecordingFolder,
        key: SessionKey,
        start: &CommandStart,
        now_us: i64,
    ) -> io::Result<Self> {
        let id = session_id::new_session_id(now_us)?;
        let file = SessionFile::create(&folder.entries(&id))?;
        let mut metadata = SessionMetadata::new(&id, now_us);
        metadata.working_directory.clone_from(&start.working_directory);
        metadata.agent_id.clone_from(&start.context.agent_id);
        metadata.conversation_id.clone_from(&start.context.conversation_id);
        // At once, so that a crash before the first command is recognized.
        metadata.write(&folder.metadata(&id))?;
        Ok(Self {
            key,
            metadata,
            pending: PendingCommands::new(),
            last_used_us: now_us,
            closing: None,
            is_dirty: true,
            folder: folder.clone(),
            file,
            last_number: 0,
            former_ids: Vec::new(),
        })
    }

    /// Whether new commands with this key belong here.
    pub(super) fn takes(&self, key: &SessionKey) -> bool {
        self.closing.is_none() && self.key == *key
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.metadata.session_id == id || self.former_ids.iter().any(|former| former == id)
    }

    /// Removes the marks of its running commands.
    pub(super) fn drop_marks(&self) {
        pending::write(&self.folder.pending(&self.metadata.session_id), &PendingCommands::new())
            .ok();
    }

    /// Whether its file is as this server has written it.
    pub(super) fn is_intact(&self) -> bool {
        self.file.is_intact()
    }

    /// Goes on in new files, because the old ones were removed or changed. Running commands come
    /// along.
    pub(super) fn start_anew(&mut self, now_us: i64) -> io::Result<()> {
        let start = CommandStart {
            working_directory: self.metadata.working_directory.clone(),
            context: AgentContext {
                agent_id: self.metadata.agent_id.clone(),
                conversation_id: self.metadata.conversation_id.clone(),
                ..AgentContext::default()
            },
            ..CommandStart::default()
        };
        let fresh = Self::create(&self.folder, self.key.clone(), &start, now_us)?;
        let old = std::mem::replace(self, fresh);
        self.former_ids = old.former_ids;
        self.former_ids.push(old.metadata.session_id);
        (self.pending, self.closing, self.last_number) =
            (old.pending, old.closing, old.last_number);
        self.write_marks();
        Ok(())
    }

    /// Marks a command as started; returns its sequence number.
    pub(super) fn begin(&mut self, start: CommandStart, now_us: i64) -> u64 {
        self.last_number += 1;
        self.last_used_us = now_us;
        // The server is started before its client says who it is.
        if self.metadata.entry_count == 0 && self.metadata.agent_id.is_none() {
            self.metadata.agent_id.clone_from(&start.context.agent_id);
        }
        let entry_id = session_id::entry_id(now_us, self.last_number);
        let pending = PendingCommand { entry_id, started_us: now_us, start };
        self.pending.insert(self.last_number, pending);
        self.write_marks();
        self.last_number
    }

    pub(super) fn forget(&mut self, number: u64) {
        self.pending.remove(&number);
        self.write_marks();
    }

    /// Appends the entry of a command that has ended; `None` if it is not known here.
    pub(super) fn finish(
        &mut self,
        number: u64,
        finished: FinishedCommand,
    ) -> io::Result<Option<RecordingEntry>> {
        // Removed only after the entry is on disk: a crash in between leaves the mark, and recovery
        // drops duplicates.
        let Some(pending) = self.pending.get(&number).cloned() else { return Ok(None) };
        let entry = self.entry(number, pending, finished);
        self.file.append(format!("{}\n", entry.to_json()).as_bytes())?;
        self.pending.remove(&number);
        self.write_marks();
        let ended_us = entry.started_us.saturating_add(entry.duration_ms as i64 * 1000);
        self.last_used_us = ended_us;
        self.metadata.updated_us = self.metadata.updated_us.max(ended_us);
        let exit_code = entry.exit_code.map(i64::from);
        self.metadata.add(entry.duration_ms, entry.timed_out, exit_code);
        self.is_dirty = true;
        Ok(Some(entry))
    }

    /// What the log says if the entry of this command cannot be written.
    pub(super) fn write_failure(&self, number: u64) -> WriteFailure {
        let pending = self.pending.get(&number);
        WriteFailure {
            session_id: Some(self.metadata.session_id.clone()),
            entry_id: pending.map(|pending| pending.entry_id.clone()),
            trace_id: pending.and_then(|pending| pending.start.context.trace_id.clone()),
        }
    }

    fn entry(&self, number: u64, one: PendingCommand, finished: FinishedCommand) -> RecordingEntry {
        let PendingCommand { entry_id, started_us, start } = one;
        let facts = EntryFacts { background: start.background, ..finished.facts };
        RecordingEntry {
            entry_id,
            session_id: self.metadata.session_id.clone(),
            sequence_number: number,
            started_us,
            duration_ms: finished.duration_ms,
            command: start.command,
            description: start.description,
            working_directory: start.working_directory,
            shell: start.shell,
            timeout_seconds: start.timeout_seconds,
            timed_out: finished.timed_out,
            exit_code: finished.exit_code,
            output: finished.output,
            environment: finished.environment,
            context: start.context,
            facts,
        }
    }

    /// Records every command that still runs as interrupted.
    pub(super) fn interrupt_pending(&mut self) {
        let numbers: Vec<u64> = self.pending.keys().copied().collect();
        for number in numbers {
            let facts = EntryFacts { interrupted: true, ..EntryFacts::default() };
            // If this fails, the mark stays, and the next start records it.
            self.finish(number, FinishedCommand { facts, ..FinishedCommand::default() }).ok();
        }
        // Even those that could not be written, or the session would never close.
        self.pending.clear();
    }

    /// A mark that cannot be written is not worth more than the command.
    fn write_marks(&self) {
        pending::write(&self.folder.pending(&self.metadata.session_id), &self.pending).ok();
    }

    pub(super) fn summary_fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("session_id", self.metadata.session_id.as_str().into()),
            ("entry_count", self.metadata.entry_count.into()),
            ("total_duration_ms", self.metadata.total_duration_ms.into()),
            ("status", self.closing.unwrap_or("active").into()),
        ]
    }

    /// The metadata and the index entry, as they are to be written.
    pub(super) fn snapshot(&self) -> (RecordingFolder, SessionMetadata, IndexedSession) {
        let indexed = IndexedSession {
            created_us: self.metadata.created_us,
            updated_us: self.metadata.updated_us,
            entry_count: self.metadata.entry_count,
            status: self.metadata.status.clone(),
            file_bytes: self.file.bytes(),
        };
        (self.folder.clone(), self.metadata.clone(), indexed)
    }

    /// Writes the final metadata. A session without commands leaves nothing behind.
    pub(super) fn finalize(mut self, now_us: i64) -> io::Result<()> {
        let id = self.metadata.session_id.clone();
        if self.metadata.entry_count == 0 {
            // Clients often start servers only to list their tools; that should leave no trace.
            std::fs::remove_file(self.folder.metadata(&id))?;
            std::fs::remove_file(self.folder.entries(&id))?;
            return index::update(&self.folder, now_us, |index| drop(index.remove(&id)));
        }
        self.metadata.status = self.closing.unwrap_or("complete").to_owned();
        let (folder, metadata, indexed) = self.snapshot();
        metadata.write(&folder.metadata(&id))?;
        index::update(&folder, now_us, |index| drop(index.insert(id, indexed)))
    }
}
