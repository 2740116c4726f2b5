//! The project's key, from which everything that authenticates files of the project is derived.

use std::fmt;
use std::io::{self, Read};

use rustix::fs::OFlags;

use super::{PrivacyFault, UserStateError, privacy};
use crate::private_folder::FolderHandle;
use crate::random;
use crate::temporary_file::{self, TemporaryFile};

/// The length of a key.
pub const KEY_BYTES: usize = 32;

const KEY: &str = "key";

/// A project's key. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProjectKey([u8; KEY_BYTES]);

impl ProjectKey {
    /// Creates a key from its bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, for a backup by the user.
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Derives a key for one purpose. `context` names the purpose and never changes between
    /// versions.
    pub fn derive(&self, context: &str) -> [u8; KEY_BYTES] {
        blake3::derive_key(context, &self.0)
    }
}

impl fmt::Debug for ProjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProjectKey(…)")
    }
}

pub(super) fn load_or_create(folder: &FolderHandle) -> Result<ProjectKey, UserStateError> {
    // A key is written only once, so no later write would remove what a killed writer has left.
    temporary_file::remove_leftovers(folder.handle(), |name| {
        temporary_file::is_temporary_for(name, KEY) || is_of_earlier_version(name)
    });
    if let Some(key) = load(folder)? {
        return Ok(key);
    }
    create(folder).map_err(|source| UserStateError::Io { path: folder.path_of(KEY), source })?;
    // Another process may have been first; its key counts.
    load(folder)?.ok_or_else(|| refuse(folder, "it was removed just now"))
}

fn load(folder: &FolderHandle) -> Result<Option<ProjectKey>, UserStateError> {
    let io = |source| UserStateError::Io { path: folder.path_of(KEY), source };
    let file = match folder.file(KEY, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(|errno| io(errno.into()))?;
    match privacy(stat.st_uid, stat.st_mode) {
        None => {}
        Some(PrivacyFault::Owner) => return Err(refuse(folder, "it belongs to another user")),
        Some(PrivacyFault::Mode) => {
            let reason = "other users can read it; remove it to create a new key";
            return Err(refuse(folder, reason));
        }
    }
    let mut bytes = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    match <[u8; KEY_BYTES]>::try_from(bytes) {
        Ok(bytes) => Ok(Some(ProjectKey(bytes))),
        Err(_) => {
            let reason = "it must be 32 bytes long; remove it to create a new key";
            Err(refuse(folder, reason))
        }
    }
}

/// Creates the key under a temporary name and links it to its own, so that it appears complete and
/// only the first of several processes succeeds.
fn create(folder: &FolderHandle) -> io::Result<()> {
    let bytes: [u8; KEY_BYTES] = random::bytes()?;
    let mut temporary = TemporaryFile::in_folder(folder, KEY)?;
    temporary.write(&bytes)?;
    temporary.file.sync_all()?;
    // Another process may have been first; its key counts.
    temporary.link(KEY).map(drop)
}

/// Earlier versions wrote to `.key-` and 16 hexadecimal digits.
fn is_of_earlier_version(name: &[u8]) -> bool {
    let digits = name.strip_prefix(b".key-");
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

fn refuse(folder: &FolderHandle, reason: &str) -> UserStateError {
    UserStateError::NotPrivate { path: folder.path_of(KEY), reason: reason.to_owned() }
}
