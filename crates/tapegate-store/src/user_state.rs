//! The user's own state, kept out of every project.
//!
//! An agent can usually write the files of the project it works in. Everything that must not be
//! forged (keys, approvals, accepted policies) is therefore kept in a private folder per project
//! below the user's state folder, and is refused if another user could have put it there.
//!
//! ```text
//! <user state>/private/<16 hex digits>/project             the state folder of the project, as text
//! <user state>/private/<16 hex digits>/key                 32 random bytes
//! <user state>/private/<16 hex digits>/hub-token           the shims' token of the hub that runs, if one does
//! <user state>/private/<16 hex digits>/hub-approver-token  the approvers' token
//! <user state>/projects/<16 hex digits>                    which state folder a project uses
//! ```

pub mod hint;
mod key;
mod project_states;

use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::private_folder::FolderHandle;

pub use key::{KEY_BYTES, ProjectKey};
pub use project_states::ProjectStates;

/// The folder of the user's state folder that holds one private folder per project.
const PRIVATE: &str = "private";
/// Tells a reader which project a private folder belongs to.
const PROJECT: &str = "project";
/// How many hexadecimal digits of the hash name a project.
const DIGITS: usize = 16;

/// Why private state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UserStateError {
    /// The path exists, but is not private to this user.
    #[error("cannot trust `{}`: {reason}", path.display())]
    NotPrivate {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        reason: String,
    },
    /// The operating system refused.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason given.
        source: io::Error,
    },
}

/// The private folder of one project.
#[derive(Debug)]
pub struct PrivateDir {
    folder: FolderHandle,
}

impl PrivateDir {
    /// Opens the private folder of the project whose state folder is `state_folder`, and creates it
    /// with mode 0700 if it does not exist.
    pub fn open(user_state: &Path, state_folder: &Path) -> Result<Self, UserStateError> {
        let canonical = canonical_path(state_folder);
        let all = user_state.join(PRIVATE);
        open_private(&all)?;
        let folder = open_private(&all.join(project_name(&canonical)))?;
        let dir = Self { folder };
        dir.write_project(&canonical)?;
        Ok(dir)
    }

    /// Where the private folder of a project is or would be.
    pub fn path_of(user_state: &Path, state_folder: &Path) -> PathBuf {
        user_state.join(PRIVATE).join(project_name(&canonical_path(state_folder)))
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The project's key, created on first use. Processes that race for it all get the same one.
    pub fn key(&self) -> Result<ProjectKey, UserStateError> {
        key::load_or_create(&self.folder)
    }

    /// The file is for people only, so an existing one is left as it is.
    fn write_project(&self, canonical: &Path) -> Result<(), UserStateError> {
        let io = |source| UserStateError::Io { path: self.folder.path_of(PROJECT), source };
        if self.folder.stat(PROJECT).map_err(io)?.is_some() {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let mut text = canonical.as_os_str().as_bytes().to_vec();
        text.push(b'\n');
        let mut file = self.folder.file(PROJECT, flags).map_err(io)?;
        file.write_all(&text).map_err(io)
    }
}

/// Opens a folder that must belong to this user alone, and creates it if it does not exist.
pub(crate) fn open_private(path: &Path) -> Result<FolderHandle, UserStateError> {
    let io = |source| UserStateError::Io { path: path.to_owned(), source };
    let refuse = |reason: &str| {
        Err(UserStateError::NotPrivate { path: path.to_owned(), reason: reason.to_owned() })
    };
    if path.is_symlink() {
        return refuse("it is a symbolic link");
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    let folder = FolderHandle::open(path).map_err(io)?;
    let stat = rustix::fs::fstat(folder.handle()).map_err(|errno| io(errno.into()))?;
    match privacy(stat.st_uid, stat.st_mode) {
        None => Ok(folder),
        Some(PrivacyFault::Owner) => refuse("it belongs to another user"),
        Some(PrivacyFault::Mode) => {
            refuse("other users can access it; if its content is yours, run `chmod 700` on it")
        }
    }
}

/// Checks that an open file belongs to this user alone.
pub(crate) fn check_private(path: &Path, file: &std::fs::File) -> Result<(), UserStateError> {
    let io = |source| UserStateError::Io { path: path.to_owned(), source };
    let stat = rustix::fs::fstat(file).map_err(|errno| io(errno.into()))?;
    let reason = match privacy(stat.st_uid, stat.st_mode) {
        None => return Ok(()),
        Some(PrivacyFault::Owner) => "it belongs to another user",
        Some(PrivacyFault::Mode) => {
            "other users can access it; if its content is yours, run `chmod 600` on it"
        }
    };
    Err(UserStateError::NotPrivate { path: path.to_owned(), reason: reason.to_owned() })
}

/// Why a file or folder is not private.
enum PrivacyFault {
    /// Another user owns it.
    Owner,
    /// Its mode lets other users in.
    Mode,
}

fn privacy(owner: u32, mode: u32) -> Option<PrivacyFault> {
    let us = rustix::process::geteuid().as_raw();
    if owner != us && us != 0 {
        return Some(PrivacyFault::Owner);
    }
    (mode & 0o077 != 0).then_some(PrivacyFault::Mode)
}

/// The name of a project's private folder: a hash, because the folders of all projects are siblings
/// and project names may collide.
fn project_name(canonical: &Path) -> String {
    let hash = blake3::hash(canonical.as_os_str().as_bytes()).to_hex();
    hash.as_str()[..DIGITS].to_owned()
}

/// The path without links. The state folder may not exist yet, so only its existing part is
/// resolved; the rest cannot contain links.
pub(crate) fn canonical_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in absolute.ancestors() {
        if let Ok(resolved) = existing.canonicalize() {
            return match absolute.strip_prefix(existing) {
                Ok(rest) if !rest.as_os_str().is_empty() => resolved.join(rest),
                _ => resolved,
            };
        }
    }
    absolute
}

#[cfg(test)]
mod tests;
