//! A private folder for each path, named by a hash of the path.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::private_folder::FolderHandle;
use crate::user_state::{UserStateError, open_private};

/// How many hexadecimal digits of the hash name a folder.
const DIGITS: usize = 16;

/// The folders below one folder, which need not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct PathFolders {
    folder: PathBuf,
}

impl PathFolders {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where the folder of a path is, whether or not it exists.
    pub(crate) fn place_of(&self, path: &Path) -> PathBuf {
        let hash = blake3::hash(path.as_os_str().as_bytes()).to_hex();
        self.folder.join(&hash.as_str()[..DIGITS])
    }

    /// The folder of a path, if it exists.
    pub(crate) fn existing(&self, path: &Path) -> Result<Option<FolderHandle>, UserStateError> {
        let place = self.place_of(path);
        match place.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Anything else that is wrong with it must be reported, not taken for its absence.
            _ => open_private(&place).map(Some),
        }
    }

    /// The folder of a path, which is created if it does not exist.
    pub(crate) fn create(&self, path: &Path) -> Result<FolderHandle, UserStateError> {
        open_private(&self.folder)?;
        open_private(&self.place_of(path))
    }

    /// The places of all folders.
    pub(crate) fn all(&self) -> Result<Vec<PathBuf>, UserStateError> {
        // Opening would create it.
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let all = open_private(&self.folder)?;
        let names = all.names().map_err(|source| {
            let path = self.folder.clone();
            UserStateError::Io { path, source }
        })?;
        // Other names are not ours.
        let names = names.iter().filter(|name| name.len() == DIGITS);
        Ok(names.map(|name| all.path_of(name)).collect())
    }
}
