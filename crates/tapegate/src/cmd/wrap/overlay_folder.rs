//! The private folder of a session that leaves the configs alone.
//!
//! It is in the user's state folder, because a file in it has the servers of the agent with their
//! variables. It is locked as long as its session runs; one that is not locked is left over from a
//! session that was killed, and is removed by the next.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tapegate_store::state_dir;

use crate::exit::{Exit, Failure};

/// The folder of these folders.
const FOLDER: &str = "overlays";
/// How many names are tried.
const ATTEMPTS_MAX: usize = 1000;

/// A folder that is removed on drop.
pub(super) struct OverlayFolder {
    path: PathBuf,
    /// Locked.
    _handle: File,
    /// The file in it, and what was written to it.
    file: Option<(PathBuf, Vec<u8>)>,
}

impl OverlayFolder {
    /// The folder of all these folders; those of sessions that were killed are removed.
    pub(super) fn parent(user_state: &Path) -> Result<PathBuf, Failure> {
        let all = user_state.join(FOLDER);
        for folder in [user_state, &all] {
            state_dir::secure(folder).map_err(|error| Failure::new(Exit::Io, &error))?;
        }
        remove_left(user_state);
        Ok(all)
    }

    /// Creates a folder in the folder of all of them.
    pub(super) fn create(all: &Path) -> Result<Self, Failure> {
        let cannot = |error: io::Error| {
            let message = format!("cannot create a folder in `{}`: {error}", all.display());
            Failure::new(Exit::Io, message)
        };
        for number in 0..ATTEMPTS_MAX {
            let path = all.join(format!("{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created.map_err(cannot)?,
            }
            let handle = File::open(&path).map_err(cannot)?;
            flock(&handle, FlockOperation::NonBlockingLockExclusive)
                .map_err(|error| cannot(error.into()))?;
            // Another session may have removed it before it was locked.
            if path.is_dir() {
                return Ok(Self { path, _handle: handle, file: None });
            }
        }
        Err(cannot(io::Error::other("its names are in use")))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file for the agent.
    pub(super) fn write(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.path.join(name);
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(text.as_bytes())
        };
        write().map_err(|error| {
            Failure::new(Exit::Io, format!("cannot write `{}`: {error}", path.display()))
        })?;
        self.file = Some((path, text.as_bytes().to_owned()));
        Ok(())
    }

    /// Whether the agent has changed its file. The change ends with the session.
    pub(super) fn is_changed(&self) -> bool {
        self.file.as_ref().is_some_and(|(path, text)| fs::read(path).is_ok_and(|now| now != *text))
    }
}

impl Drop for OverlayFolder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Removes the folders of sessions that were killed.
pub(crate) fn remove_left(user_state: &Path) {
    for entry in fs::read_dir(user_state.join(FOLDER)).into_iter().flatten().flatten() {
        let Ok(handle) = File::open(entry.path()) else { continue };
        if flock(&handle, FlockOperation::NonBlockingLockExclusive).is_ok() {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
