//! A private folder that exists for one session.
//!
//! It is removed when the session ends. A session that is killed leaves it; the next one removes
//! folders without a session. Each session holds a lock, which the kernel releases with its
//! process, so neither process ids nor times decide.
//!
//! ```text
//! <user state>/sessions/<pid>-<random>/lock   held while the session runs
//! <user state>/sessions/<pid>-<random>/…      the files of the session, 0600
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::private_folder::FolderHandle;
use crate::random;
use crate::user_state::{UserStateError, open_private};

/// The folder of the user's state folder that holds one folder per session.
const SESSIONS: &str = "sessions";
/// The file that is locked while a session runs.
const LOCK: &str = "lock";
/// How often a folder may be taken for a leftover before it is locked.
const TRIES_MAX: usize = 100;

/// The folder of a session. Dropping it removes it.
#[derive(Debug)]
pub struct SessionFolder {
    folder: FolderHandle,
    /// Locked while it is open.
    _lock: File,
}

impl SessionFolder {
    /// Creates a folder for this session, and removes those of sessions that were killed.
    pub fn create(user_state: &Path) -> Result<Self, UserStateError> {
        let all = open_private(&user_state.join(SESSIONS))?;
        remove_leftovers(all.path());
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TRIES_MAX {
            let id = random::id().map_err(|source| io_error(all.path(), source))?;
            let path = all.path_of(&format!("{}-{id}", std::process::id()));
            // Another session may take it for a leftover, and remove it before it is locked.
            let folder = match open_private(&path) {
                Ok(folder) => folder,
                Err(UserStateError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            match lock(&folder) {
                Ok(Some(lock)) => return Ok(Self { folder, _lock: lock }),
                Ok(None) => {}
                Err(error) => last = error,
            }
        }
        Err(io_error(all.path(), last))
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file that only this user can read, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, UserStateError> {
        let path = self.folder.path_of(name);
        let write = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            self.folder.file(name, flags)?.write_all(text.as_bytes())
        };
        write().map_err(|source| io_error(&path, source))?;
        Ok(path)
    }
}

impl Drop for SessionFolder {
    fn drop(&mut self) {
        // What cannot be removed is removed by a later session.
        fs::remove_dir_all(self.folder.path()).ok();
    }
}

fn io_error(path: &Path, source: io::Error) -> UserStateError {
    UserStateError::Io { path: path.to_owned(), source }
}

/// Locks a folder; `None` if it is gone meanwhile, or locked by another process.
fn lock(folder: &FolderHandle) -> io::Result<Option<File>> {
    let file = folder.file(LOCK, OFlags::WRONLY | OFlags::CREATE)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    Ok(folder.path_of(LOCK).exists().then_some(file))
}

/// Removes the folders that no session holds.
fn remove_leftovers(all: &Path) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for entry in entries.flatten() {
        let Ok(folder) = open_private(&entry.path()) else { continue };
        // One that is being created has no lock yet, and gets one here; its session tries again.
        if let Ok(Some(_lock)) = lock(&folder) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_private_and_goes_with_its_session() {
        let top = tempfile::tempdir().unwrap();
        let session = SessionFolder::create(top.path()).unwrap();
        let file = session.write("mcp.json", "{\"secret\":1}").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(session.path()), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read_to_string(&file).unwrap(), "{\"secret\":1}");
        let path = session.path().to_owned();
        drop(session);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_session_left_is_removed_by_the_next_and_nothing_else() {
        let top = tempfile::tempdir().unwrap();
        let running = SessionFolder::create(top.path()).unwrap();
        let left = top.path().join("sessions/7-0123");
        fs::create_dir(&left).unwrap();
        fs::set_permissions(&left, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(left.join("lock"), "").unwrap();
        fs::write(left.join("mcp.json"), "{}").unwrap();
        let next = SessionFolder::create(top.path()).unwrap();
        assert!(!left.exists());
        assert!(running.path().exists() && next.path().exists());
        assert_ne!(running.path(), next.path());
    }

    #[test]
    fn sessions_that_start_at_once_keep_their_folders() {
        let top = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let session = SessionFolder::create(top.path()).unwrap();
                        let file = session.write("f", "x").unwrap();
                        assert!(file.exists());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(top.path().join("sessions")).unwrap().count(), 0);
    }
}
