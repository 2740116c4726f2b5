//! A hub's files: its endpoint, its tokens, and the lock that allows one hub per state folder.
//!
//! The state folder is usually inside the project, whose files a governed agent can read. The
//! tokens are therefore kept in the project's private folder below the user's state folder, next to
//! its key.
//!
//! Files are readable by their owner alone and are replaced atomically, and symbolic links are not
//! followed. The lock is a kernel lock, so a hub that is killed leaves only files that the next one
//! replaces.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use tapegate_store::atomic_file;
use tapegate_store::user_state::{PrivateDir, UserStateError};

use crate::token::HubTokens;

/// File names of the tokens in the project's private folder.
const TOKEN: &str = "hub-token";
const APPROVER_TOKEN: &str = "hub-approver-token";
/// How many hubs of sessions a state folder may have at once, besides its own.
const SESSION_HUBS_MAX: u32 = 64;

/// Token files named by the user, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedTokenFiles {
    /// The file for the shims' token.
    pub shims: Option<PathBuf>,
    /// The file for the approvers' token.
    pub approvers: Option<PathBuf>,
}

/// The exclusive claim to be the hub of a state folder. Dropping it removes the files it has
/// written.
#[derive(Debug)]
pub struct HubLock {
    endpoint: PathBuf,
    token: PathBuf,
    approver_token: PathBuf,
    old_token: Option<String>,
    _lock: File,
}

/// Why a state folder cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another hub has it.
    #[error("another hub is running for `{folder}`{}", at.as_deref().map(|at| format!(", at {at}")).unwrap_or_default())]
    Taken {
        /// The state folder.
        folder: PathBuf,
        /// Where that hub listens, if it has announced it.
        at: Option<String>,
    },
    /// Both tokens would be written to the same file.
    #[error("the shims' token and the approvers' token cannot share the file `{0}`")]
    OneFile(PathBuf),
    /// The private folder of the project cannot be used.
    #[error(transparent)]
    Private(#[from] UserStateError),
    /// A file operation failed.
    #[error("cannot use `{path}`: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        source: io::Error,
    },
}

/// The file in which the hub of a state folder announces its URL.
pub fn endpoint_file(state: &Path) -> PathBuf {
    state.join("hub/endpoint")
}

/// The default file of the shims' token.
pub fn token_file(user_state: &Path, state: &Path) -> PathBuf {
    PrivateDir::path_of(user_state, state).join(TOKEN)
}

/// The default file of the approvers' token.
pub fn approver_token_file(user_state: &Path, state: &Path) -> PathBuf {
    PrivateDir::path_of(user_state, state).join(APPROVER_TOKEN)
}

/// Where earlier versions kept the token: in the state folder, where agents can read it. No longer
/// used.
pub fn old_token_file(state: &Path) -> PathBuf {
    state.join("hub/token")
}

/// Reads a small file. Symbolic links are not followed; pipes and devices are refused.
pub fn read_small(path: &Path) -> io::Result<String> {
    // The path may be in the project: a pipe there must not block a command.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

impl HubLock {
    /// Claims the state folder `state`, creating it if needed. The tokens are kept in the `named`
    /// files, or else in the project's private folder below `user_state`.
    pub fn acquire(
        state: &Path,
        user_state: &Path,
        named: NamedTokenFiles,
    ) -> Result<Self, ClaimError> {
        Self::acquire_numbered(state, user_state, named, "")
    }

    /// Claims the state folder for the hub of one session. If another hub has it, the files of this
    /// one have a number in their names: sessions that share a folder must not end each other.
    pub fn acquire_for_session(state: &Path, user_state: &Path) -> Result<Self, ClaimError> {
        let acquire = |suffix: &str| {
            Self::acquire_numbered(state, user_state, NamedTokenFiles::default(), suffix)
        };
        let mut result = acquire("");
        for number in 2..=SESSION_HUBS_MAX {
            match result {
                Err(ClaimError::Taken { .. }) => result = acquire(&format!("-{number}")),
                _ => break,
            }
        }
        result
    }

    fn acquire_numbered(
        state: &Path,
        user_state: &Path,
        named: NamedTokenFiles,
        suffix: &str,
    ) -> Result<Self, ClaimError> {
        let lock = lock_file(state, suffix)?;
        let place = |named: Option<PathBuf>, name: &str| match named {
            Some(named) => Ok::<_, UserStateError>(named),
            None => {
                let name = format!("{name}{suffix}");
                Ok(PrivateDir::open(user_state, state)?.path().join(name))
            }
        };
        let token = place(named.shims, TOKEN)?;
        let approver_token = place(named.approvers, APPROVER_TOKEN)?;
        // The second token would overwrite the first, and shims could approve.
        if is_same_place(&token, &approver_token) {
            return Err(ClaimError::OneFile(token));
        }
        // Only under the lock: otherwise it could be the token of a running hub.
        let old_token = remove_old_token(state, &token);
        let endpoint = state.join(format!("hub/endpoint{suffix}"));
        Ok(Self { endpoint, token, approver_token, old_token, _lock: lock })
    }

    /// The file with the shims' token.
    pub fn token_path(&self) -> &Path {
        &self.token
    }

    /// The file with the approvers' token.
    pub fn approver_token_path(&self) -> &Path {
        &self.approver_token
    }

    /// A message about the token file that an earlier version left in the project, if there was
    /// one.
    pub fn old_token_notice(&self) -> Option<&str> {
        self.old_token.as_deref()
    }

    /// Writes the endpoint and the tokens, so that clients can find the hub.
    pub fn publish_endpoint(&self, endpoint: &str, tokens: &HubTokens) -> Result<(), ClaimError> {
        // The endpoint comes last: a client that finds it also finds the matching tokens.
        let files = [
            (&self.approver_token, tokens.approvers.reveal()),
            (&self.token, tokens.shims.reveal()),
            (&self.endpoint, endpoint),
        ];
        for (path, text) in files {
            replace(path, text).map_err(|source| ClaimError::Io { path: path.clone(), source })?;
        }
        Ok(())
    }
}

impl Drop for HubLock {
    fn drop(&mut self) {
        for path in [&self.endpoint, &self.token, &self.approver_token] {
            // A file that cannot be removed is replaced by the next hub.
            fs::remove_file(path).ok();
        }
    }
}

/// Locks the state folder, or with a suffix one of its places for hubs of sessions.
fn lock_file(state: &Path, suffix: &str) -> Result<File, ClaimError> {
    let folder = state.join("hub");
    let fault = |path: &Path| {
        let path = path.to_owned();
        move |source| ClaimError::Io { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(fault(&folder))?;
    // This file is never removed: another hub could then lock a new one of the same name.
    let path = folder.join(format!("lock{suffix}"));
    let lock = private_options().create(true).truncate(false).open(&path).map_err(fault(&path))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let at = read_small(&endpoint_file(state)).ok().filter(|at| !at.is_empty());
            Err(ClaimError::Taken { folder: state.to_owned(), at })
        }
        Err(error) => Err(fault(&path)(error.into())),
    }
}

/// Removes the token file that an earlier version left in the project, and returns a message about
/// it.
fn remove_old_token(state: &Path, token: &Path) -> Option<String> {
    let old = old_token_file(state);
    if old == token {
        return None;
    }
    let name = old.display();
    match fs::remove_file(&old) {
        Ok(()) => Some(format!("removed `{name}`: the hub's token is now kept elsewhere")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("cannot remove `{name}`, which is no longer used: {error}")),
    }
}

/// Whether two paths name the same file, which need not exist.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let folder = |path: &Path| path.parent().map(|folder| folder.canonicalize());
    let same_folder = matches!((folder(one), folder(other)), (Some(Ok(a)), Some(Ok(b))) if a == b);
    one == other || (same_folder && one.file_name() == other.file_name())
}

/// Replaces a file, or a symbolic link, with a one-line file.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    atomic_file::write_private(path, format!("{text}\n").as_bytes())
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

#[cfg(test)]
mod tests;
