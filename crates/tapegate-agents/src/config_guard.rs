//! A config that is rewritten for a session, and put back when the session ends, however it ends.
//!
//! Beside the config are two files while it is rewritten: a lock, which is held by the process, and
//! a backup with the original bytes. Both are found and used by the next process if this one is
//! killed. Nothing else is needed to put a config back: which entries were rewritten follows from
//! the backup and the config.

mod lock;
pub(crate) mod replace;
mod seed_backup;
pub(crate) mod shimmed;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::rewrite::{EntryRewrite, RewriteError, put_back, rewrite};
use crate::tree::ConfigFormat;
pub use lock::{ConfigLock, ConfigLockError, has_lock_file};

/// What is added to the name of a config for its backup.
const BACKUP: &str = ".tapegate-backup";
/// What is added to the name of what was in the place of a config and is not one.
const CHANGED: &str = ".tapegate-changed";

/// A config that is rewritten. Dropping it puts the config back.
#[derive(Debug)]
pub struct ConfigGuard {
    lock: ConfigLock,
    format: ConfigFormat,
    /// What the config was. The backup is for other processes: an agent can remove or change it.
    original: String,
    /// The mark of the shims' hub.
    hub: Option<String>,
    /// Whether the config is to stay as it is.
    is_kept: bool,
    is_restored: bool,
}

/// Why a config could not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The config cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The config.
        path: PathBuf,
        source: io::Error,
    },
    /// Its user has made it read-only.
    #[error("`{}` is read-only", path.display())]
    ReadOnly {
        /// The config.
        path: PathBuf,
    },
    /// The backup cannot be written.
    #[error("cannot write the backup `{}`: {source}", path.display())]
    Backup {
        /// The backup.
        path: PathBuf,
        source: io::Error,
    },
    /// The config cannot be written. It is as it was.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The config.
        path: PathBuf,
        source: io::Error,
    },
    /// The entries cannot be edited.
    #[error("`{}`: {source}", path.display())]
    Rewrite {
        /// The config.
        path: PathBuf,
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
        // `rename` needs rights to the folder alone, so it would not fail.
        if replace::is_read_only(&path) {
            return Err(GuardError::ReadOnly { path });
        }
        let edited = rewrite(&original, format, rewrites)
            .map_err(|source| GuardError::Rewrite { path: path.clone(), source })?;
        // Before the config is touched: a rewritten config must never be without its original.
        let backup = backup_of(&path);
        replace::write_backup(&backup, &path, original.as_bytes())
            .map_err(|source| GuardError::Backup { path: backup.clone(), source })?;
        // From here on the guard puts things right, whatever fails.
        let mut guard = Self {
            lock,
            format,
            original,
            hub: shimmed::hub(rewrites),
            is_kept: false,
            is_restored: false,
        };
        if let Err(source) = replace::write(&path, edited.as_bytes()) {
            // A write in place may have left half of the new text.
            guard.restore().ok();
            return Err(GuardError::Write { path, source });
        }
        Ok(guard)
    }

    pub fn config(&self) -> &Path {
        self.lock.config()
    }

    /// Leaves the config as it is. The backup stays, for `unwrap`.
    pub fn keep(mut self) {
        self.is_kept = true;
    }

    /// Puts the config back. A second call does nothing.
    pub fn restore(&mut self) -> io::Result<Option<RestoreOutcome>> {
        if self.is_restored {
            return Ok(None);
        }
        let hub = self.hub.as_deref();
        let outcome = restore_original(&self.lock, self.format, &self.original, hub)?;
        self.is_restored = true;
        Ok(Some(outcome))
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
    let Some(backup) = existing_backup(path) else { return Ok(None) };
    // A link could lead to a secret, and a pipe would never end.
    if !fs::symlink_metadata(&backup)?.is_file() {
        return Err(io::Error::other("its backup is not a regular file"));
    }
    let original = read(&backup)?;
    let is_own = backup == backup_of(path);
    let is_rewritten =
        |current: &String| !is_own && seed_backup::is_only_rewritten(&original, current, format);
    if read(path).is_ok_and(|current| is_rewritten(&current)) {
        replace::write(path, original.as_bytes())?;
    }
    let outcome = restore_original(lock, format, &original, None)?;
    if !is_own {
        fs::remove_file(&backup)?;
    }
    Ok(Some(outcome))
}

/// Puts a config back to a text that was kept elsewhere: its backup may have been changed or removed.
pub fn restore_to(
    lock: &ConfigLock,
    format: ConfigFormat,
    original: &str,
) -> io::Result<RestoreOutcome> {
    restore_original(lock, format, original, None)
}

/// Whether servers of a config are behind shims of a session, and were not in this text.
pub fn is_rewritten(config: &Path, format: ConfigFormat, original: &str) -> bool {
    match read(config) {
        Ok(current) => {
            let rewrites = shimmed::rewritten_entries(original, &current, format);
            shimmed::hub(&rewrites.unwrap_or_default()).is_some()
        }
        Err(_) => false,
    }
}

/// The backup beside a config: ours, or that of ThoughtGate.
fn existing_backup(config: &Path) -> Option<PathBuf> {
    let backups = [backup_of(config), with_suffix(config, seed_backup::BACKUP)];
    backups.into_iter().find(|backup| backup.symlink_metadata().is_ok())
}

/// Puts a config back to this text, and removes the backup. Copies of entries are known by the hub of
/// their shims.
fn restore_original(
    lock: &ConfigLock,
    format: ConfigFormat,
    original: &str,
    hub: Option<&str>,
) -> io::Result<RestoreOutcome> {
    let path = lock.config();
    let backup = backup_of(path);
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let restored = match read(path) {
        // Emptied, as after a write that failed: no client takes that for a config.
        Ok(current) if current.trim().is_empty() && !original.trim().is_empty() => {
            replace::write(path, original.as_bytes())?;
            RestoreOutcome::Recreated
        }
        Ok(current) => restore_text(path, format, (original, hub), &current)?,
        Err(error) if is_missing(&error) => {
            replace::write(path, original.as_bytes())?;
            match replace::copy_permissions(&backup, path) {
                // Removed as well. The new file is private.
                Err(error) if is_missing(&error) => {}
                copied => copied?,
            }
            RestoreOutcome::Recreated
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => set_aside(path, original)?,
        // Reading a pipe would block.
        Err(_) if is_special(path) => {
            let aside = replace::free_name(&with_suffix(path, CHANGED));
            fs::rename(path, &aside)?;
            replace::write(path, original.as_bytes())?;
            RestoreOutcome::Replaced(aside)
        }
        Err(error) => return Err(error),
    };
    // Last: until the config is on the disk, the backup is the only copy.
    match fs::remove_file(&backup) {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(restored),
    }
}

fn restore_text(
    path: &Path,
    format: ConfigFormat,
    (original, hub): (&str, Option<&str>),
    current: &str,
) -> io::Result<RestoreOutcome> {
    if current == original {
        return Ok(RestoreOutcome::Exactly);
    }
    let rewrites = shimmed::rewritten_entries(original, current, format);
    let known = || shimmed::hub(rewrites.as_deref().unwrap_or_default());
    let hub = hub.map(str::to_owned).or_else(known);
    let back = rewrites.and_then(|rewrites| put_back(original, current, format, &rewrites));
    // An agent that cannot read its config would start without servers, or not at all.
    let Some(mut back) = back else { return set_aside(path, original) };
    if let Some(hub) = hub {
        let (text, conflicts) = shimmed::without_copies(original, back.text, format, &hub);
        back.text = text;
        back.conflicts.extend(conflicts);
    }
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
    let aside = replace::free_name(&with_suffix(path, CHANGED));
    // A copy, not a rename: at no time may the config be missing.
    fs::copy(path, &aside)?;
    replace::write(path, original.as_bytes())?;
    Ok(RestoreOutcome::Replaced(aside))
}

/// Whether a config has a backup: it is rewritten now, or was when its process was killed.
pub fn has_backup(config: &Path) -> bool {
    existing_backup(config).is_some()
}

/// The text of a config before the session that has rewritten it.
pub(crate) fn backup_text(config: &Path) -> Option<String> {
    fs::read_to_string(existing_backup(config)?).ok()
}

/// The path of the backup of a config.
pub fn backup_of(config: &Path) -> PathBuf {
    with_suffix(config, BACKUP)
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Reads a file that must be text. Opening a pipe does not wait for its other end.
fn read(path: &Path) -> io::Result<String> {
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    io::read_to_string(file)
}

/// Whether there is something that is neither a file nor a folder, such as a pipe or a socket.
fn is_special(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| {
        let kind = about.file_type();
        !kind.is_file() && !kind.is_dir() && !kind.is_symlink()
    })
}

#[cfg(test)]
mod tests;
