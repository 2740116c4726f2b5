//! The sessions of a running server: which commands run, and what is written when they end.
//!
//! Running a command comes before recording it. If something cannot be written, recording is
//! disabled, which the caller learns with each result, and every further command tries to enable
//! it again. Entries are written before their results are returned; metadata and index follow on
//! another thread, because readers can do without them.

mod degradation;
mod health;
mod open_session;
mod outcome;
mod publisher;

use std::collections::VecDeque;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use tapegate_store::atomic_file;

pub use super::pending::CommandStart;
use degradation::{AbandonedCommands, WriteFailure};
pub use health::RecordingHealth;
use open_session::{OpenSession, SessionKey};
pub use outcome::RecordingOutcome;

use super::entry::{EntryFacts, EntryOutput, RecordingEntry};
use super::metadata::{INTERRUPTED, SessionMetadata};
use super::{RecordingFolder, index, recovery, retention, session_id};
use crate::config::{RecordingConfig, SessionMode};
use crate::log_record::{LogSeverity, LogSink};
use crate::metrics::BashMetrics;

/// How many finished commands are remembered for `list_recent`.
const RECENT_MAX: usize = 1000;
/// After how long without a command a conversation's session is closed.
const IDLE_US: i64 = 3_600_000_000;
/// How many conversations have an open session at once.
const SESSIONS_MAX: usize = 64;

/// Records the commands of a server.
#[derive(Debug)]
pub struct SessionRecorder {
    state: Mutex<RecorderState>,
    /// Held while metadata and index are written, so that old ones never replace new ones.
    publishing: Mutex<()>,
    changed: Condvar,
    log: LogSink,
    metrics: Arc<BashMetrics>,
}

#[derive(Debug)]
struct RecorderState {
    config: RecordingConfig,
    folder: RecordingFolder,
    /// Why nothing can be recorded at the moment.
    fault: Option<String>,
    sessions: Vec<OpenSession>,
    abandoned: AbandonedCommands,
    /// Whether the disk was nearly full at the last look.
    is_disk_low: bool,
    recent: VecDeque<RecentCommand>,
    entries_recorded: u64,
    is_dirty: bool,
    is_closed: bool,
}

/// A recorded command, for `list_recent`.
#[derive(Debug, Clone)]
pub struct RecentCommand {
    pub session_id: String,
    pub entry_id: String,
    /// The command line.
    pub command: String,
    pub exit_code: Option<i32>,
    /// Whether it timed out.
    pub timed_out: bool,
    /// How long it took.
    pub duration_ms: u64,
    /// When it was started.
    pub started_us: i64,
}

/// The place of a running command in its session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryTicket {
    session_id: String,
    sequence_number: u64,
}

impl EntryTicket {
    /// The session that the command belongs to.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }
}

/// How a command ended, as it is recorded.
#[derive(Debug, Default)]
pub struct FinishedCommand {
    /// How long it took.
    pub duration_ms: u64,
    /// Whether it timed out.
    pub timed_out: bool,
    pub exit_code: Option<i32>,
    pub output: EntryOutput,
    /// Its environment, if it is recorded.
    pub environment: Option<Map<String, Value>>,
    /// Further facts.
    pub facts: EntryFacts,
}

impl SessionRecorder {
    /// Prepares the folder, closes what a killed server left, and opens the first session. A
    /// folder that cannot be used is logged; commands run all the same.
    pub fn start(
        config: RecordingConfig,
        first: &CommandStart,
        log: LogSink,
        metrics: Arc<BashMetrics>,
    ) -> Arc<Self> {
        let folder = RecordingFolder::new(&config.directory);
        let state = RecorderState {
            config,
            folder,
            fault: None,
            sessions: Vec::new(),
            abandoned: AbandonedCommands::default(),
            is_disk_low: false,
            recent: VecDeque::new(),
            entries_recorded: 0,
            is_dirty: false,
            is_closed: false,
        };
        let recorder = Arc::new(Self {
            state: Mutex::new(state),
            publishing: Mutex::new(()),
            changed: Condvar::new(),
            log,
            metrics,
        });
        // At once, so that a folder that cannot be written shows at the start and not with the
        // first result.
        recorder.open_folder(&mut recorder.state(), first);
        publisher::spawn(&recorder);
        recorder
    }

    fn state(&self) -> MutexGuard<'_, RecorderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares the folder and opens a session in it.
    fn open_folder(&self, state: &mut RecorderState, first: &CommandStart) {
        if !state.config.enabled {
            return;
        }
        let prepared = self.prepare_folder(state).and_then(|()| self.open_session(state, first));
        if let Err(error) = prepared {
            self.disable(state, &error, &WriteFailure::of(first));
        }
    }

    fn prepare_folder(&self, state: &RecorderState) -> io::Result<()> {
        // Metadata that another thread is about to write must not follow that of the recovery.
        let _order = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !state.folder.path().exists();
        for path in [state.folder.path(), &state.folder.sessions()] {
            make_private_folder(path)?;
        }
        if is_new {
            // An agent that runs `git add .` must not commit them. Recording works without it.
            atomic_file::write_private(&state.folder.path().join(".gitignore"), b"*\n").ok();
        }
        // Before the index is refreshed, which then already has the recovered sessions.
        for session_id in recovery::recover(&state.folder)? {
            let fields = [("session_id", session_id.into()), ("status", INTERRUPTED.into())];
            self.log.log(LogSeverity::Info, "Interrupted session closed", fields);
        }
        self.delete_old_sessions(state);
        index::refresh(&state.folder, now_us())
    }

    fn delete_old_sessions(&self, state: &RecorderState) {
        let days = state.config.retention_days;
        if days == 0 {
            return;
        }
        let now = now_us();
        let before_us = now - days as i64 * retention::DAY_US;
        // Failing to delete never stops recording.
        let old = retention::sessions_before(&state.folder, before_us).unwrap_or_default();
        let found = old.len();
        let due = retention::confirm(&state.folder, old, now).unwrap_or_default();
        let waiting = found - due.len();
        let deleted =
            due.iter().filter(|one| retention::delete(&state.folder, one).is_ok()).count();
        for (message, sessions) in
            [("Old recordings deleted", deleted), ("Old recordings will be deleted", waiting)]
        {
            if sessions > 0 {
                let fields = [("sessions", sessions.into()), ("retention_days", days.into())];
                self.log.log(LogSeverity::Info, message, fields);
            }
        }
    }

    /// Registers a command that is about to start. `None` means that it will not be recorded.
    pub fn begin(&self, start: CommandStart) -> Option<EntryTicket> {
        let now = now_us();
        let mut state = self.state();
        if !state.config.enabled || state.is_closed {
            return None;
        }
        // Tried with each command, since a full disk is often cleaned up while the server runs.
        if state.fault.is_some() && !self.try_to_recover(&mut state, &start) {
            return None;
        }
        self.check_disk_space(&mut state);
        // Before the session is chosen: after midnight, the one of yesterday must not take this
        // command.
        self.close_old_sessions(&mut state, now);
        let key = SessionKey::of(state.config.session_mode, &start, now);
        if !state.sessions.iter().any(|session| session.takes(&key))
            && let Err(error) = self.open_session(&mut state, &start)
        {
            self.disable(&mut state, &error, &WriteFailure::of(&start));
            return None;
        }
        let session = state.sessions.iter_mut().find(|session| session.takes(&key))?;
        let sequence_number = session.begin(start, now);
        Some(EntryTicket { session_id: session.metadata.session_id.clone(), sequence_number })
    }

    fn open_session(&self, state: &mut RecorderState, start: &CommandStart) -> io::Result<()> {
        let now = now_us();
        let key = SessionKey::of(state.config.session_mode, start, now);
        let session = OpenSession::create(&state.folder, key, start, now)?;
        let fields = [
            ("session_id", Value::from(session.metadata.session_id.as_str())),
            ("working_directory", start.working_directory.as_str().into()),
        ];
        self.log.log(LogSeverity::Info, "Session started", fields);
        state.sessions.push(session);
        self.metrics.set_active_sessions(state.sessions.len());
        self.mark_dirty(state);
        Ok(())
    }

    /// Closes sessions of past days and of conversations that have been silent.
    fn close_old_sessions(&self, state: &mut RecorderState, now: i64) {
        let today = session_id::date(now);
        for session in &mut state.sessions {
            let is_idle = now - session.last_used_us > IDLE_US;
            let is_over = match &session.key {
                SessionKey::Day(day) => *day != today,
                // Conversations have no end that a server could see.
                SessionKey::Conversation(_) => is_idle && session.pending.is_empty(),
                SessionKey::Server => false,
            };
            if is_over {
                session.closing = Some("complete");
            }
        }
        // Each open session holds a file, and clients choose the names of conversations.
        if state.sessions.len() >= SESSIONS_MAX {
            let idle = state.sessions.iter_mut().filter(|session| session.pending.is_empty());
            let oldest = idle.min_by_key(|session| session.last_used_us);
            oldest.into_iter().for_each(|session| session.closing = Some("complete"));
        }
        self.finalize_closing(state);
    }

    /// Records how a command ended.
    pub fn finish(
        &self,
        ticket: Option<EntryTicket>,
        finished: FinishedCommand,
    ) -> RecordingOutcome {
        let mut state = self.state();
        let reason = |state: &RecorderState| match &state.fault {
            Some(fault) => RecordingOutcome::Failed(fault.clone()),
            None => RecordingOutcome::Off,
        };
        let Some(ticket) = ticket else { return reason(&state) };
        // Recording was disabled while the command ran, and may work again by now.
        if let Some(fault) = state.abandoned.take(&ticket) {
            return RecordingOutcome::Failed(fault);
        }
        let position = state.sessions.iter().position(|session| session.has_id(&ticket.session_id));
        let Some(position) = position else { return reason(&state) };
        let failure = state.sessions[position].write_failure(ticket.sequence_number);
        let is_intact = state.sessions[position].is_intact();
        let renewed = if is_intact { Ok(()) } else { self.start_anew(&mut state, position) };
        let session = &mut state.sessions[position];
        match renewed.and_then(|()| session.finish(ticket.sequence_number, finished)) {
            Ok(Some(entry)) => {
                self.note_entry(&mut state, &entry);
                self.finalize_closing(&mut state);
                match is_intact {
                    true => RecordingOutcome::Recorded(entry.entry_id),
                    false => RecordingOutcome::RecordedAnew(entry.entry_id),
                }
            }
            Ok(None) => reason(&state),
            Err(error) => {
                self.disable(&mut state, &error, &failure);
                // Its outcome is this error, so it is not asked for again.
                state.abandoned.take(&ticket);
                reason(&state)
            }
        }
    }

    /// Opens new files for a session whose files a command has removed or changed.
    fn start_anew(&self, state: &mut RecorderState, position: usize) -> io::Result<()> {
        // Or what still runs would be recorded as interrupted, in the old session.
        state.sessions[position].drop_marks();
        self.prepare_folder(state)?;
        let session = &mut state.sessions[position];
        let old = session.metadata.session_id.clone();
        session.start_anew(now_us())?;
        let fields = [
            ("session_id", session.metadata.session_id.clone().into()),
            ("lost_session_id", old.into()),
        ];
        self.log.log(LogSeverity::Warn, "Recordings removed or changed", fields);
        Ok(())
    }

    fn note_entry(&self, state: &mut RecorderState, entry: &RecordingEntry) {
        state.entries_recorded += 1;
        self.metrics.count_entry();
        let total = entry.output.total_bytes.iter().sum();
        self.metrics.count_output(total, entry.is_truncated());
        if state.recent.len() == RECENT_MAX {
            state.recent.pop_front();
        }
        state.recent.push_back(RecentCommand {
            session_id: entry.session_id.clone(),
            entry_id: entry.entry_id.clone(),
            command: entry.command.clone(),
            exit_code: entry.exit_code,
            timed_out: entry.timed_out,
            duration_ms: entry.duration_ms,
            started_us: entry.started_us,
        });
        self.mark_dirty(state);
    }

    /// Forgets a command that was not started.
    pub fn forget(&self, ticket: Option<EntryTicket>) {
        let Some(ticket) = ticket else { return };
        let mut state = self.state();
        state.abandoned.take(&ticket);
        let session = state.sessions.iter_mut().find(|one| one.has_id(&ticket.session_id));
        session.into_iter().for_each(|session| session.forget(ticket.sequence_number));
        self.finalize_closing(&mut state);
    }

    /// Applies new settings.
    pub fn reload(&self, config: RecordingConfig, first: &CommandStart) {
        let mut state = self.state();
        let old = std::mem::replace(&mut state.config, config);
        let config = &state.config;
        let status = match (config.enabled, config.directory == old.directory) {
            (false, _) if old.enabled => "recording_disabled",
            (true, false) => "config_reload",
            (true, true) if config.session_mode != old.session_mode => "config_reload",
            (true, true) if !old.enabled => "config_reload",
            // Other settings apply to the sessions that are open.
            _ => return,
        };
        let enabled = config.enabled;
        let folder = RecordingFolder::new(&config.directory);
        // What still runs is recorded where it was started.
        state.sessions.iter_mut().for_each(|session| session.closing = Some(status));
        self.finalize_closing(&mut state);
        state.abandoned.drop_marks();
        (state.folder, state.fault) = (folder, None);
        if enabled {
            self.open_folder(&mut state, first);
        }
    }

    /// Ends every session. Commands that are still running are recorded as interrupted.
    pub fn shutdown(&self) {
        let mut state = self.state();
        // From here on, commands of calls that are still being started are not recorded.
        state.is_closed = true;
        for session in &mut state.sessions {
            session.interrupt_pending();
            // A reason that is already set tells more than the shutdown.
            session.closing.get_or_insert("shutdown");
        }
        self.finalize_closing(&mut state);
        state.abandoned.drop_marks();
        drop(state);
        self.changed.notify_all();
    }

    /// Writes the metadata of sessions that are to close and have no running command.
    fn finalize_closing(&self, state: &mut RecorderState) {
        let is_over = |one: &mut OpenSession| one.closing.is_some() && one.pending.is_empty();
        // Sessions with running commands stay until their last entry is written.
        let over: Vec<OpenSession> = state.sessions.extract_if(.., is_over).collect();
        if over.is_empty() {
            return;
        }
        let _order = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        for session in over {
            let fields = session.summary_fields();
            match session.finalize(now_us()) {
                Ok(()) => self.log.log(LogSeverity::Info, "Session finalized", fields),
                Err(error) => {
                    self.metrics.count_error(error_kind(&error));
                    let fields = [fields, vec![("error", error.to_string().into())]].concat();
                    self.log.log(LogSeverity::Warn, "Session not finalized", fields);
                }
            }
        }
        self.metrics.set_active_sessions(state.sessions.len());
    }

    fn mark_dirty(&self, state: &mut RecorderState) {
        state.is_dirty = true;
        self.changed.notify_all();
    }

    /// The session that a command of this caller would be recorded in.
    pub fn session_of(&self, start: &CommandStart) -> Option<SessionMetadata> {
        let state = self.state();
        let key = SessionKey::of(state.config.session_mode, start, now_us());
        let found = state.sessions.iter().find(|session| session.takes(&key));
        // Before its first command, a conversation has no session of its own.
        found.or(state.sessions.last()).map(|session| session.metadata.clone())
    }

    /// The last recorded commands of a session, newest first.
    pub fn recent(&self, session_id: &str, count: usize) -> Vec<RecentCommand> {
        let state = self.state();
        let of_session = state.recent.iter().rev().filter(|one| one.session_id == session_id);
        of_session.take(count).cloned().collect()
    }

    /// The session that was opened last.
    pub fn current_session(&self) -> Option<String> {
        self.state().sessions.last().map(|session| session.metadata.session_id.clone())
    }

    /// How sessions are formed.
    pub fn session_mode(&self) -> SessionMode {
        self.state().config.session_mode
    }
}

/// Creates a folder that only this user can use, and everything above it that is missing.
fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // A folder that another program made may be open to others, and output may contain secrets.
    if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn error_kind(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "disk_full",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "permission",
        _ => "io",
    }
}

/// The current time, in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

#[cfg(test)]
mod tests;
