//! The lock of a config.
//!
//! It is a file of its own: editors save by renaming a new file over the config, and a lock on the
//! config itself would stay with the old one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::with_suffix;

/// What is added to the name of a config for its lock.
const LOCK: &str = ".tapegate-lock";
/// How often the lock file may be removed by others while it is being locked.
const ATTEMPTS_MAX: usize = 100;

/// A lock on a config. Dropping it, or the end of the process, releases it.
#[derive(Debug)]
pub struct ConfigLock {
    /// The config itself, not a link to it.
    config: PathBuf,
    path: PathBuf,
    _file: File,
}

/// Why a config could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum ConfigLockError {
    /// Another process has it.
    #[error("`{}` is in use by another session", .0.display())]
    Taken(PathBuf),
    /// The lock file cannot be made.
    #[error("cannot lock `{}`: {source}", path.display())]
    Io {
        /// The config.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl ConfigLock {
    /// Locks a config.
    pub fn acquire(config: &Path) -> Result<Self, ConfigLockError> {
        // Two links may lead to the same config; the lock and the backup are beside what they lead
        // to. A config that is gone may have a backup.
        let config = fs::canonicalize(config).unwrap_or_else(|_| config.to_owned());
        let path = with_suffix(&config, LOCK);
        let cannot = |source| ConfigLockError::Io { path: config.clone(), source };
        for _ in 0..ATTEMPTS_MAX {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(&path)
                .map_err(cannot)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(ConfigLockError::Taken(config)),
                Err(error) => return Err(cannot(error.into())),
            }
            // The holder before may have removed the file after it was opened here.
            let own = file.metadata().map_err(cannot)?;
            let is_current = fs::symlink_metadata(&path)
                .is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino()));
            if is_current {
                return Ok(Self { config, path, _file: file });
            }
        }
        Err(cannot(io::Error::other("its lock file keeps being removed")))
    }

    /// The config.
    pub fn config(&self) -> &Path {
        &self.config
    }
}

impl Drop for ConfigLock {
    fn drop(&mut self) {
        // While it is still locked, so that no one else can hold a removed file. A lock file that
        // stays does no harm.
        fs::remove_file(&self.path).ok();
    }
}
