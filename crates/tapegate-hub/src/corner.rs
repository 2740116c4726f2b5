//! The hub's corner of a state folder: where it is found, the secret, and that there is only one.
//!
//! Files are readable by their owner alone, are written beside and moved into place, and links are
//! not followed. The lock is the kernel's, so that nothing is left of a hub that was killed but
//! files that the next one replaces.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::token::Token;

/// A claim to be the only hub of a state folder. What it has written is taken away with it.
#[derive(Debug)]
pub struct Corner {
    endpoint: PathBuf,
    token: PathBuf,
    _lock: File,
}

/// Why a state folder cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another hub has it.
    #[error("another hub is running for `{folder}`{}", at.as_deref().map(|at| format!(", at {at}")).unwrap_or_default())]
    Taken {
        /// The state folder.
        folder: PathBuf,
        /// Where that hub listens, if it has said so.
        at: Option<String>,
    },
    /// The system refused.
    #[error("cannot use `{path}`: {source}")]
    Io {
        /// What could not be used.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Where the hub of a state folder says that it listens.
pub fn endpoint_file(state: &Path) -> PathBuf {
    state.join("hub/endpoint")
}

/// Where the hub of a state folder keeps its token.
pub fn token_file(state: &Path) -> PathBuf {
    state.join("hub/token")
}

/// Reads a small file of ours. Links are not followed.
pub fn read_small(path: &Path) -> io::Result<String> {
    let no_link = OFlags::NOFOLLOW.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(no_link).open(path)?;
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

impl Corner {
    /// Claims the state folder `state`, which is made if it is not there. The token will be kept in
    /// `token`, or where it is looked for.
    pub fn claim(state: &Path, token: Option<&Path>) -> Result<Self, ClaimError> {
        let folder = state.join("hub");
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| ClaimError::Io { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(fault(&folder))?;
        let path = folder.join("lock");
        let lock = private().create(true).truncate(false).open(&path).map_err(fault(&path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let at = read_small(&endpoint_file(state)).ok().filter(|at| !at.is_empty());
                return Err(ClaimError::Taken { folder: state.to_owned(), at });
            }
            Err(error) => return Err(fault(&path)(error.into())),
        }
        let token = token.map_or_else(|| token_file(state), Path::to_owned);
        Ok(Self { endpoint: endpoint_file(state), token, _lock: lock })
    }

    /// Where the token is.
    pub fn token_path(&self) -> &Path {
        &self.token
    }

    /// Lets others find us.
    pub fn announce(&self, endpoint: &str, token: &Token) -> Result<(), ClaimError> {
        // Whoever finds an endpoint finds the token that belongs to it.
        for (path, text) in [(&self.token, token.reveal()), (&self.endpoint, endpoint)] {
            replace(path, text).map_err(|source| ClaimError::Io { path: path.clone(), source })?;
        }
        Ok(())
    }
}

impl Drop for Corner {
    fn drop(&mut self) {
        for path in [&self.endpoint, &self.token] {
            // What cannot be taken away is replaced by the next hub.
            fs::remove_file(path).ok();
        }
    }
}

/// Puts a file with one line in the place of what is there, even a link.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    // What a process with our number has left behind.
    fs::remove_file(&temporary).ok();
    let mut file = private().create_new(true).open(&temporary)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    fs::rename(&temporary, path)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_has_one_hub_which_can_be_found_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("deep/state");
        let first = Corner::claim(&state, None).unwrap();
        let early = Corner::claim(&state, None).unwrap_err().to_string();
        assert_eq!(early, format!("another hub is running for `{}`", state.display()));
        let token = Token::fresh().unwrap();
        first.announce("http://127.0.0.1:1", &token).unwrap();
        let late = Corner::claim(&state, None).unwrap_err().to_string();
        assert!(late.ends_with(", at http://127.0.0.1:1"), "{late}");
        assert_eq!(read_small(&token_file(&state)).unwrap(), token.reveal());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state.join("hub")), 0o700);
        assert_eq!((mode(&token_file(&state)), mode(&endpoint_file(&state))), (0o600, 0o600));
        drop(first);
        assert!(!token_file(&state).exists() && !endpoint_file(&state).exists());
        Corner::claim(&state, None).unwrap();
    }

    #[test]
    fn links_are_neither_written_through_nor_read() {
        let folder = tempfile::tempdir().unwrap();
        let (state, victim) = (folder.path().join("state"), folder.path().join("victim"));
        fs::create_dir_all(state.join("hub")).unwrap();
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, token_file(&state)).unwrap();
        assert!(read_small(&token_file(&state)).is_err());
        let corner = Corner::claim(&state, None).unwrap();
        corner.announce("http://127.0.0.1:1", &Token::fresh().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!fs::symlink_metadata(token_file(&state)).unwrap().is_symlink());
        drop(corner);
        symlink(&victim, state.join("hub/lock.new")).unwrap();
        fs::rename(state.join("hub/lock.new"), state.join("hub/lock")).unwrap();
        assert!(matches!(Corner::claim(&state, None), Err(ClaimError::Io { .. })));
    }
}
