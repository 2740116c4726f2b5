//! What happens when recordings cannot be written, and when they can be written again.

use std::collections::BTreeMap;
use std::io;

use serde_json::Value;

use super::{CommandStart, EntryTicket, RecorderState, SessionRecorder, error_kind, health};
use crate::log_record::LogSeverity;
use crate::recording::RecordingFolder;
use crate::recording::pending::{self, PendingCommands};

/// Commands that were running when their session was given up. They are not recorded, even if
/// recording works again when they end: their session has been closed by then.
#[derive(Debug, Default)]
pub(super) struct AbandonedCommands {
    /// Why each of them is not recorded.
    faults: BTreeMap<EntryTicket, String>,
    /// Sessions whose marks of running commands could not be removed yet.
    marked: Vec<(RecordingFolder, String)>,
}

impl AbandonedCommands {
    /// Why the command is not recorded, if it is one of these. Forgets it.
    pub(super) fn take(&mut self, ticket: &EntryTicket) -> Option<String> {
        self.faults.remove(ticket)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.marked.is_empty()
    }

    /// Removes the marks of these commands, or they would be recorded as interrupted.
    pub(super) fn drop_marks(&mut self) {
        self.marked.retain(|(folder, session_id)| {
            pending::write(&folder.pending(session_id), &PendingCommands::new()).is_err()
        });
    }
}

/// Which command could not be recorded, as far as that is known.
#[derive(Debug, Default)]
pub(super) struct WriteFailure {
    pub(super) session_id: Option<String>,
    pub(super) entry_id: Option<String>,
    pub(super) trace_id: Option<String>,
}

impl WriteFailure {
    /// No session could be opened for this command.
    pub(super) fn of(start: &CommandStart) -> Self {
        Self { trace_id: start.context.trace_id.clone(), ..Self::default() }
    }
}

impl SessionRecorder {
    /// Stops recording because something cannot be written.
    pub(super) fn disable(
        &self,
        state: &mut RecorderState,
        error: &io::Error,
        failure: &WriteFailure,
    ) {
        let kind = error_kind(error);
        self.metrics.count_error(kind);
        // An error about the folder belongs to no session; the log then names the one it affects.
        let current = state.sessions.first().map(|session| session.metadata.session_id.clone());
        let severity = match kind {
            "permission" => LogSeverity::Error,
            _ => LogSeverity::Warn,
        };
        let fields = [
            ("session_id", failure.session_id.clone().or(current).into()),
            ("entry_id", failure.entry_id.clone().into()),
            ("trace_id", failure.trace_id.clone().into()),
            ("error", format!("{}: {error}", state.folder.path().display()).into()),
            ("error_type", kind.into()),
            ("degraded", true.into()),
        ];
        let fields = fields.into_iter().filter(|(_, value): &(_, Value)| !value.is_null());
        self.log.log(severity, "Recording write failed", fields);
        state.fault = Some(error.to_string());
        for session in &state.sessions {
            let session_id = &session.metadata.session_id;
            for number in session.pending.keys() {
                let ticket =
                    EntryTicket { session_id: session_id.clone(), sequence_number: *number };
                state.abandoned.faults.insert(ticket, error.to_string());
            }
            state.abandoned.marked.push((state.folder.clone(), session_id.clone()));
        }
        // While we hold the locks: a server that starts now would record what is marked.
        state.abandoned.drop_marks();
        // The files keep what was written. Without a writer they count as interrupted, which the
        // next start, or the recovery below, also writes into their metadata.
        state.sessions.clear();
        self.metrics.set_active_sessions(0);
    }

    /// Tries to record again; returns whether that works.
    pub(super) fn try_to_recover(&self, state: &mut RecorderState, start: &CommandStart) -> bool {
        if !health::is_writable(&state.folder) {
            return false;
        }
        // Before the sessions are taken over.
        state.abandoned.drop_marks();
        let prepared = self.prepare_folder(state).and_then(|()| self.open_session(state, start));
        if prepared.is_err() {
            return false;
        }
        state.fault = None;
        let session_id = state.sessions.last().map(|session| session.metadata.session_id.clone());
        let fields = [("session_id", session_id.into())];
        self.log.log(LogSeverity::Warn, "Recording recovered from disabled state", fields);
        true
    }

    /// Warns when the disk gets nearly full, once until it has room again.
    pub(super) fn check_disk_space(&self, state: &mut RecorderState) {
        // A file system that cannot be asked shows its faults when it is written to.
        if let Some(free_bytes) = health::free_bytes(&state.folder) {
            self.note_free_space(state, free_bytes);
        }
    }

    pub(super) fn note_free_space(&self, state: &mut RecorderState, free_bytes: u64) {
        let is_low = free_bytes < health::FREE_BYTES_MIN;
        if is_low && !state.is_disk_low {
            let session_id = state.sessions.last().map(|one| one.metadata.session_id.clone());
            let fields = [
                ("session_id", session_id.into()),
                ("directory", state.folder.path().display().to_string().into()),
                ("free_bytes", free_bytes.into()),
            ];
            let fields = fields.into_iter().filter(|(_, value): &(_, Value)| !value.is_null());
            self.log.log(LogSeverity::Warn, "Disk space low", fields);
        }
        state.is_disk_low = is_low;
    }
}
