//! The index of all sessions. It is a cache: it is rebuilt whenever it is missing, broken or
//! behind.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value, json};
use tapegate_core::time::read_rfc3339;

use super::RecordingFolder;
use super::metadata::write_json;
use super::session_id::timestamp;
use super::session_reader::{self, SessionSummary};

/// The version of its format.
const VERSION: &str = "1.0";
/// How long to wait for another server that updates it.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// A session, as the index shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedSession {
    /// When it began.
    pub created_us: i64,
    /// When the last command was recorded.
    pub updated_us: i64,
    /// How many commands it has.
    pub entry_count: u64,
    pub status: String,
    /// How long its file is.
    pub file_bytes: u64,
}

/// The sessions by id.
pub type SessionIndex = BTreeMap<String, IndexedSession>;

impl From<&SessionSummary> for IndexedSession {
    fn from(summary: &SessionSummary) -> Self {
        let metadata = &summary.metadata;
        Self {
            created_us: metadata.created_us,
            updated_us: metadata.updated_us,
            entry_count: metadata.entry_count,
            status: metadata.status.clone(),
            file_bytes: summary.file_bytes,
        }
    }
}

/// Changes the index. Servers that share a folder wait for each other.
pub(super) fn update(
    folder: &RecordingFolder,
    now_us: i64,
    change: impl FnOnce(&mut SessionIndex),
) -> io::Result<()> {
    // Held from reading to replacing, or the entry of another server would be lost.
    let _lock = lock(folder)?;
    let mut index = match read(folder) {
        Some(index) => index,
        None => rebuild(folder)?,
    };
    change(&mut index);
    write(folder, &index, now_us)
}

/// Rebuilds the index unless it matches the files.
pub fn refresh(folder: &RecordingFolder, now_us: i64) -> io::Result<()> {
    let _lock = lock(folder)?;
    let known = read(folder);
    let files: BTreeMap<String, u64> = session_reader::sessions(folder)?
        .into_iter()
        .filter_map(|one| Some((one.session_id, fs::metadata(one.path).ok()?.len())))
        .collect();
    let is_current = known.as_ref().is_some_and(|index| {
        // Lengths are enough: session files only grow, and their last length is in the index.
        index.len() == files.len()
            && index.iter().all(|(id, one)| files.get(id) == Some(&one.file_bytes))
    });
    if is_current {
        return Ok(());
    }
    write(folder, &rebuild(folder)?, now_us)
}

/// Reads the index; `None` if it is missing or broken.
pub fn read(folder: &RecordingFolder) -> Option<SessionIndex> {
    let value: Value = serde_json::from_slice(&fs::read(folder.index()).ok()?).ok()?;
    // Rebuilt rather than converted, since the sessions have everything.
    if value.get("version")?.as_str()? != VERSION {
        return None;
    }
    let sessions = value.get("sessions")?.as_object()?;
    sessions.iter().map(|(id, one)| Some((id.clone(), read_session(one)?))).collect()
}

fn read_session(value: &Value) -> Option<IndexedSession> {
    let time = |name: &str| read_rfc3339(value.get(name)?.as_str()?);
    let number = |name: &str| value.get(name)?.as_u64();
    Some(IndexedSession {
        created_us: time("created_at")?,
        updated_us: time("last_updated")?,
        entry_count: number("entry_count")?,
        status: value.get("status")?.as_str()?.to_owned(),
        file_bytes: number("file_size_bytes")?,
    })
}

fn rebuild(folder: &RecordingFolder) -> io::Result<SessionIndex> {
    let mut index = SessionIndex::new();
    for session in session_reader::sessions(folder)? {
        // A session that disappears meanwhile is not part of the index.
        if let Ok(summary) = session_reader::summary(&session) {
            index.insert(session.session_id, IndexedSession::from(&summary));
        }
    }
    Ok(index)
}

fn write(folder: &RecordingFolder, index: &SessionIndex, now_us: i64) -> io::Result<()> {
    let sessions: Map<String, Value> = index
        .iter()
        .map(|(id, one)| {
            let value = json!({
                "session_id": id,
                "created_at": timestamp(one.created_us),
                "last_updated": timestamp(one.updated_us),
                "entry_count": one.entry_count,
                "status": one.status,
                "file_size_bytes": one.file_bytes,
            });
            (id.clone(), value)
        })
        .collect();
    let total: u64 = index.values().map(|one| one.entry_count).sum();
    let value = json!({
        "version": VERSION,
        "last_updated": timestamp(now_us),
        "total_sessions": index.len(),
        "total_entries": total,
        "sessions": sessions,
    });
    write_json(&folder.index(), &value)
}

/// Locks the folder, since the file itself is replaced.
fn lock(folder: &RecordingFolder) -> io::Result<File> {
    // A lock on the file would be on the old file once it is replaced.
    let handle = File::open(folder.path())?;
    let began = Instant::now();
    loop {
        match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_INTERVAL);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(io::ErrorKind::TimedOut.into()),
            // Some network file systems cannot lock folders.
            Ok(()) | Err(_) => return Ok(handle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_or_old_index_is_rebuilt_from_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::new(folder.path());
        fs::create_dir(folder.sessions()).unwrap();
        let id = "20260118_143052_a7b3c9d2-e4f5";
        fs::write(folder.entries(id), "").unwrap();
        for broken in ["{", "{}", "{\"version\":\"9\",\"sessions\":{}}", ""] {
            fs::write(folder.index(), broken).unwrap();
            assert!(read(&folder).is_none());
            refresh(&folder, 0).unwrap();
            assert_eq!(read(&folder).unwrap().keys().collect::<Vec<_>>(), [id], "{broken}");
        }
        fs::remove_file(folder.entries(id)).unwrap();
        refresh(&folder, 0).unwrap();
        assert!(read(&folder).unwrap().is_empty());
    }
}
