//! The project's key, from which everything that authenticates files of the project is derived.

use std::fmt;
use std::io::{self, Read, Write};

use rustix::fs::{AtFlags, OFlags, linkat, unlinkat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::{Intrusion, UserStateError, privacy};
use crate::private::Folder;

/// How long a key is.
pub const KEY_BYTES: usize = 32;

const KEY: &str = "key";

/// A project's key. It is never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ProjectKey([u8; KEY_BYTES]);

impl ProjectKey {
    /// A key with these bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, for a copy that a person keeps.
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// A key for one purpose. `context` names the purpose and is the same in every version.
    pub fn derive(&self, context: &str) -> [u8; KEY_BYTES] {
        blake3::derive_key(context, &self.0)
    }
}

impl fmt::Debug for ProjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProjectKey(…)")
    }
}

pub(super) fn load_or_create(folder: &Folder) -> Result<ProjectKey, UserStateError> {
    if let Some(key) = load(folder)? {
        return Ok(key);
    }
    create(folder).map_err(|source| UserStateError::Io { path: folder.at(KEY), source })?;
    // Another process may have been first; its key counts.
    load(folder)?.ok_or_else(|| refuse(folder, "it was removed just now"))
}

fn load(folder: &Folder) -> Result<Option<ProjectKey>, UserStateError> {
    let io = |source| UserStateError::Io { path: folder.at(KEY), source };
    let file = match folder.file(KEY, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(|errno| io(errno.into()))?;
    match privacy(stat.st_uid, stat.st_mode) {
        None => {}
        Some(Intrusion::Owner) => return Err(refuse(folder, "it belongs to another user")),
        Some(Intrusion::Mode) => {
            let reason = "other users can read it; remove it, and a new key is made";
            return Err(refuse(folder, reason));
        }
    }
    let mut bytes = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    match <[u8; KEY_BYTES]>::try_from(bytes) {
        Ok(bytes) => Ok(Some(ProjectKey(bytes))),
        Err(_) => {
            let reason = "it must be 32 bytes long; remove it, and a new key is made";
            Err(refuse(folder, reason))
        }
    }
}

/// Creates the key under another name and links it to its own, so that it appears whole and only
/// the first of several processes succeeds.
fn create(folder: &Folder) -> io::Result<()> {
    let mut bytes = [0; KEY_BYTES];
    fill_random(&mut bytes)?;
    let mut suffix = [0; 8];
    fill_random(&mut suffix)?;
    let temporary = format!(".key-{:016x}", u64::from_le_bytes(suffix));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = folder.file(&temporary, flags)?;
    let linked =
        file.write_all(&bytes).and_then(|()| file.sync_all()).and_then(|()| {
            match linkat(folder.handle(), &temporary, folder.handle(), KEY, AtFlags::empty()) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(errno.into()),
            }
        });
    // The name is of no further use, whether or not the link succeeded.
    unlinkat(folder.handle(), &temporary, AtFlags::empty()).ok();
    linked
}

fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(())
}

fn refuse(folder: &Folder, reason: &str) -> UserStateError {
    UserStateError::NotPrivate { path: folder.at(KEY), reason: reason.to_owned() }
}
