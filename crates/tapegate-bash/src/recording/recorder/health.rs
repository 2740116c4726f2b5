//! Whether recordings can be written.

use std::io::Write;

use serde_json::{Value, json};

use super::SessionRecorder;
use crate::recording::RecordingFolder;

/// Below this, a disk counts as full.
pub(super) const FREE_BYTES_MIN: u64 = 10 << 20;
/// How much is written to find out whether more can be.
const PROBE_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingHealth {
    /// Whether recordings are written now.
    pub recording_enabled: bool,
    /// Whether the folder can be written to.
    pub directory_writable: bool,
    /// Whether the disk has room.
    pub disk_space_ok: bool,
    /// The session that was opened last.
    pub current_session: Option<String>,
    /// How many entries were written.
    pub entries_recorded: u64,
}

impl RecordingHealth {
    /// Its JSON form.
    pub fn to_json(&self) -> Value {
        json!({
            "healthy": self.directory_writable && self.disk_space_ok,
            "recording_enabled": self.recording_enabled,
            "directory_writable": self.directory_writable,
            "disk_space_ok": self.disk_space_ok,
            "current_session": self.current_session,
            "entries_recorded": self.entries_recorded,
        })
    }
}

impl SessionRecorder {
    /// The health now.
    pub fn health(&self) -> RecordingHealth {
        let state = self.state();
        RecordingHealth {
            recording_enabled: state.config.enabled && state.fault.is_none(),
            directory_writable: is_writable(&state.folder),
            disk_space_ok: has_space(&state.folder),
            current_session: state.sessions.last().map(|it| it.metadata.session_id.clone()),
            entries_recorded: state.entries_recorded,
        }
    }
}

/// Whether a file can be written in the folder. Only writing shows that: the user may be root, and
/// the disk full.
pub(super) fn is_writable(folder: &RecordingFolder) -> bool {
    // Servers that share the folder must not remove each other's probe.
    let path = folder.path().join(format!(".probe-{}", std::process::id()));
    std::fs::remove_file(&path).ok();
    let mut options = std::fs::OpenOptions::new();
    let written = options.write(true).create_new(true).open(&path).and_then(|mut file| {
        file.write_all(&[0; PROBE_BYTES])?;
        // Some file systems report a full disk only when data is synced.
        file.sync_all()
    });
    std::fs::remove_file(&path).ok();
    // A folder that does not exist yet is created before anything is written.
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            super::make_private_folder(folder.path()).is_ok()
        }
        written => written.is_ok(),
    }
}

fn has_space(folder: &RecordingFolder) -> bool {
    free_bytes(folder).is_some_and(|bytes| bytes >= FREE_BYTES_MIN)
}

/// How much this user may still write to the folder's disk.
pub(super) fn free_bytes(folder: &RecordingFolder) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder.path()).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
