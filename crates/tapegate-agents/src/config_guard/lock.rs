//! The lock of a config.
//!
//! It is a file of its own: editors save by renaming a new file over the config, and a lock on the
//! config itself would stay with the old one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::{seed_backup, with_suffix};

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
    /// The lock of ThoughtGate, if there is one.
    _seed_file: Option<File>,
}

/// Why a config could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum ConfigLockError {
    /// Another process has it.
    #[error("`{}` is in use by another session{}", config.display(), process_text(*process))]
    Taken {
        config: PathBuf,
        /// The process, as far as it is known.
        process: Option<u32>,
    },
    /// The lock file cannot be made.
    #[error("cannot lock `{}`: {source}", path.display())]
    Io {
        /// The config.
        path: PathBuf,
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
        // A running session of ThoughtGate would overwrite what we write.
        let seed_file = match File::open(with_suffix(&config, seed_backup::LOCK)) {
            Ok(mut file) => match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let process = read_holder(&mut file);
                    return Err(ConfigLockError::Taken { config, process });
                }
                _ => Some(file),
            },
            Err(_) => None,
        };
        for _ in 0..ATTEMPTS_MAX {
            let mut file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(&path)
                .map_err(cannot)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let process = read_holder(&mut file);
                    return Err(ConfigLockError::Taken { config, process });
                }
                Err(error) => return Err(cannot(error.into())),
            }
            // The holder before may have removed the file after it was opened here.
            let own = file.metadata().map_err(cannot)?;
            let is_current = fs::symlink_metadata(&path)
                .is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino()));
            if is_current {
                // Only for the message to others; a full disk must not prevent a restore.
                remove_unfinished(&config);
                file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).ok();
                return Ok(Self { config, path, _file: file, _seed_file: seed_file });
            }
        }
        Err(cannot(io::Error::other("its lock file keeps being removed")))
    }

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

/// Removes what a process that was killed while it wrote has left. Only under the lock.
fn remove_unfinished(config: &Path) {
    for suffix in [".tapegate-new", ".tapegate-backup-new"] {
        fs::remove_file(with_suffix(config, suffix)).ok();
    }
}

/// Whether a session has left its lock beside a config, because it was killed or still runs.
pub fn has_lock_file(config: &Path) -> bool {
    with_suffix(config, LOCK).symlink_metadata().is_ok()
}

/// The process that a lock file names. The holder may not have written it yet.
fn read_holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn process_text(process: Option<u32>) -> String {
    process.map_or_else(String::new, |id| format!(" (process {id})"))
}
