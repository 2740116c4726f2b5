//! Recordings: what every command was, and how it ended.
//!
//! A session is a file with one JSON object a line, one for each finished command, appended and
//! synced before the caller gets the result. Beside it are its metadata, the commands that still
//! run, and the index of all sessions; these three are replaced atomically and can be rebuilt. A
//! session has one writer, which holds a lock on its file: a session that is `active` without a
//! lock was interrupted.

/// One finished command.
pub mod entry;
/// Which variables are recorded.
pub mod env_capture;
/// The index of all sessions.
pub mod index;
/// The metadata of a session.
pub mod metadata;
mod pending;
/// The sessions of a running server.
pub mod recorder;
mod recovery;
/// Deletes old recordings.
pub mod retention;
mod session_file;
/// Ids of sessions and entries.
pub mod session_id;
/// Reads recordings.
pub mod session_reader;

use std::path::{Path, PathBuf};

/// The folder of recordings, and the paths in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingFolder {
    path: PathBuf,
}

impl RecordingFolder {
    /// The recordings below `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the sessions.
    pub fn sessions(&self) -> PathBuf {
        self.path.join("sessions")
    }

    pub fn index(&self) -> PathBuf {
        self.path.join("index.json")
    }

    /// The sessions that were found too old, and when.
    pub(crate) fn retention(&self) -> PathBuf {
        self.path.join("retention.json")
    }

    /// The entries of a session.
    pub fn entries(&self, session_id: &str) -> PathBuf {
        self.sessions().join(format!("{session_id}.jsonl"))
    }

    /// The metadata of a session.
    pub fn metadata(&self, session_id: &str) -> PathBuf {
        self.sessions().join(format!("{session_id}.meta.json"))
    }

    /// The commands of a session that still run.
    pub(crate) fn pending(&self, session_id: &str) -> PathBuf {
        self.sessions().join(format!("{session_id}.pending.json"))
    }
}
