//! Checks the state folder and the folders in it.
//!
//! Tapes and logs contain everything that was sent, and Tapegate relies on state that it reads back
//! from there. So such a folder must not be a symbolic link, belong to another user, or be writable
//! by others.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod, fstat};

use crate::private_folder::FolderHandle;

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be used: {source}", path.display())]
pub struct StateDirError {
    /// The folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub source: io::Error,
}

/// Makes sure that a folder exists, belongs to this user and is not writable by other users.
/// Returns a message about what had to be changed, if anything.
pub fn secure(path: &Path) -> Result<Option<String>, StateDirError> {
    // A trailing slash would make the kernel follow a symbolic link.
    let path: PathBuf = path.components().collect();
    secure_mode(&path).map_err(|source| StateDirError { path, source })
}

fn secure_mode(path: &Path) -> io::Result<Option<String>> {
    if path.is_symlink() {
        return Err(io::Error::other("it is a symbolic link, not a folder"));
    }
    let folder = FolderHandle::create(path)?;
    let stat = fstat(folder.handle())?;
    let us = rustix::process::geteuid().as_raw();
    if stat.st_uid != us && us != 0 {
        return Err(io::Error::other("it belongs to another user"));
    }
    let mode = stat.st_mode & 0o777;
    // Reading is left to the owner's choice; writing would let others forge the log.
    if mode & 0o022 == 0 {
        return Ok(None);
    }
    fchmod(folder.handle(), Mode::RWXU)?;
    Ok(Some(format!(
        "`{}` was writable by other users (mode {mode:o}); it is private now",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_can_write_is_made_private_and_that_is_said() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a/state");
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(secure(&path).unwrap(), None);
        assert_eq!(mode(), 0o700);
        for open in [0o777, 0o720, 0o702] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            let message = secure(&path).unwrap().unwrap();
            assert!(message.contains(&format!("mode {open:o}")) && mode() == 0o700, "{message}");
        }
        // Whether it is readable is up to its owner.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!((secure(&path).unwrap(), mode()), (None, 0o755));
    }

    #[test]
    fn a_link_or_a_file_is_no_folder_of_ours() {
        let top = tempfile::tempdir().unwrap();
        let (real, link) = (top.path().join("real"), top.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        let slash = PathBuf::from(format!("{}/", link.display()));
        for path in [&link, &slash] {
            let error = secure(path).unwrap_err().to_string();
            assert!(error.ends_with("it is a symbolic link, not a folder"), "{error}");
        }
        fs::write(top.path().join("file"), "").unwrap();
        assert!(secure(&top.path().join("file")).is_err());
        symlink(top.path().join("nowhere"), top.path().join("dangling")).unwrap();
        assert!(secure(&top.path().join("dangling")).is_err());
    }
}
