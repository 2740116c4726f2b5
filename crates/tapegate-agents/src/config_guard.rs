//! A config that is rewritten for a session, and put back when the session ends, however it ends.
//!
//! Beside the config are two files while it is rewritten: a lock, which is held by the process, and
//! a backup with the original bytes. Both are found and used by the next process if this one is
//! killed. Nothing else is needed to put a config back: which entries were rewritten follows from
//! the backup and the config.

mod lock;
mod replace;
mod shimmed;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::rewrite::{EntryRewrite, RewriteError, put_back, rewrite};
use crate::tree::ConfigFormat;
pub use lock::{ConfigLock, ConfigLockError};

/// What is added to the name of a config for its backup.
const BACKUP: &str = ".tapegate-backup";

/// A config that is rewritten. Dropping it puts the config back.
#[derive(Debug)]
pub struct ConfigGuard {
    lock: ConfigLock,
    format: ConfigFormat,
    /// Whether the config is to stay as it is.
    is_kept: bool,
}

/// Why a config could not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The config cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The config.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The backup cannot be written.
    #[error("cannot write the backup `{}`: {source}", path.display())]
    Backup {
        /// The backup.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The config cannot be written. It is as it was.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The config.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The entries cannot be edited.
    #[error("`{}`: {source}", path.display())]
    Rewrite {
        /// The config.
        path: PathBuf,
        /// The cause.
        source: RewriteError,
    },
}

/// What became of a config that was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It is byte for byte as it was.
    Exactly,
    /// Others had changed it meanwhile. Their changes are kept, except for the entries named here,
    /// which are as they were.
    Merged(Vec<String>),
    /// Others had changed it so that it cannot be parsed. It is byte for byte as it was, and this
    /// file has the text that was there.
    Replaced(PathBuf),
    /// It had been removed, and is there again.
    Recreated,
}

impl ConfigGuard {
    /// Rewrites the entries of a locked config.
    pub fn rewrite(
        lock: ConfigLock,
        format: ConfigFormat,
        rewrites: &[EntryRewrite],
    ) -> Result<Self, GuardError> {
        let path = lock.config().to_owned();
        let original =
            read(&path).map_err(|source| GuardError::Read { path: path.clone(), source })?;
        let edited = rewrite(&original, format, rewrites)
            .map_err(|source| GuardError::Rewrite { path: path.clone(), source })?;
        let backup = backup_of(&path);
        replace::write_backup(&backup, &path, original.as_bytes())
            .map_err(|source| GuardError::Backup { path: backup.clone(), source })?;
        // From here on the guard puts things right, whatever fails.
        let mut guard = Self { lock, format, is_kept: false };
        if let Err(source) = replace::write(&path, edited.as_bytes()) {
            guard.restore().ok();
            return Err(GuardError::Write { path, source });
        }
        Ok(guard)
    }

    /// The config.
    pub fn config(&self) -> &Path {
        self.lock.config()
    }

    /// Leaves the config as it is. The backup stays, for `unwrap`.
    pub fn keep(mut self) {
        self.is_kept = true;
    }

    /// Puts the config back. A second call does nothing.
    pub fn restore(&mut self) -> io::Result<Option<RestoreOutcome>> {
        restore(&self.lock, self.format)
    }
}

impl Drop for ConfigGuard {
    fn drop(&mut self) {
        if !self.is_kept {
            // The caller restores by itself to learn of problems; this is for panics and early
            // returns. The backup stays if it fails.
            self.restore().ok();
        }
    }
}

/// Puts a config back if it has a backup. `None` if there is none.
pub fn restore(lock: &ConfigLock, format: ConfigFormat) -> io::Result<Option<RestoreOutcome>> {
    let path = lock.config();
    let backup = backup_of(path);
    let original = match read(&backup) {
        Ok(original) => original,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let restored = match read(path) {
        Ok(current) => restore_text(path, format, &original, &current)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            replace::write(path, original.as_bytes())?;
            replace::copy_permissions(&backup, path)?;
            RestoreOutcome::Recreated
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => set_aside(path, &original)?,
        Err(error) => return Err(error),
    };
    // Last: until the config is on the disk, the backup is the only copy.
    fs::remove_file(&backup)?;
    Ok(Some(restored))
}

fn restore_text(
    path: &Path,
    format: ConfigFormat,
    original: &str,
    current: &str,
) -> io::Result<RestoreOutcome> {
    if current == original {
        return Ok(RestoreOutcome::Exactly);
    }
    let rewrites = shimmed::rewritten_entries(original, current, format);
    let back = rewrites.and_then(|rewrites| put_back(original, current, format, &rewrites));
    let Some(back) = back else { return set_aside(path, original) };
    if back.text != current {
        replace::write(path, back.text.as_bytes())?;
    }
    Ok(match back.text == original {
        true => RestoreOutcome::Exactly,
        false => RestoreOutcome::Merged(back.conflicts),
    })
}

/// Puts the original in place of a config that cannot be parsed, which is kept under another name.
fn set_aside(path: &Path, original: &str) -> io::Result<RestoreOutcome> {
    let aside = replace::free_name(&with_suffix(path, ".tapegate-changed"));
    fs::copy(path, &aside)?;
    replace::write(path, original.as_bytes())?;
    Ok(RestoreOutcome::Replaced(aside))
}

/// Whether a config has a backup: it is rewritten now, or was when its process was killed.
pub fn has_backup(config: &Path) -> bool {
    backup_of(config).symlink_metadata().is_ok()
}

/// The path of the backup of a config.
pub fn backup_of(config: &Path) -> PathBuf {
    with_suffix(config, BACKUP)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Reads a file that must be text.
fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests;
