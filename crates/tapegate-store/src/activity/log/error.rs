//! Why the log cannot be written.

use std::io;
use std::path::PathBuf;

/// Why the log cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ActivityError {
    /// The folder or the file cannot be opened.
    #[error("cannot open `{}`: {source}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds something that is no activity log.
    #[error("`{}` holds something else than an activity log, so nothing is appended to it", path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
    },
    /// Another process has not let go of it.
    #[error("`{}` has been locked by another process for too long", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The system did not take what was written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ActivityError {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotALog { .. } => Some("move the file away, and a new log begins"),
            Self::Busy { .. } => Some("a process that writes the log may have been stopped"),
            Self::Open { .. } | Self::Write { .. } => None,
        }
    }
}
