//! Errors of the activity log.

use std::io;
use std::path::PathBuf;

/// Why the log cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ActivityError {
    /// The folder or the file cannot be opened.
    #[error("cannot open `{}`: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// The file is not an activity log.
    #[error("`{}` is not an activity log; nothing is appended to it", path.display())]
    NotALog { path: PathBuf },
    /// Another process holds the lock.
    #[error("`{}` has been locked by another process for too long", path.display())]
    Busy { path: PathBuf },
    /// Writing failed.
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl ActivityError {
    /// A hint for the user, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotALog { .. } => Some("move the file away to start a new log"),
            Self::Busy { .. } => Some("a process that writes the log may be suspended"),
            Self::Open { .. } | Self::Write { .. } => None,
        }
    }
}
