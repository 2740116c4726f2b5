//! Policies that a person accepted, or that were accepted on first use.
//!
//! A policy usually lies in the project, where the governed agent can write. So the texts that were
//! accepted are kept as a copy in the user's state folder, and the copy stays in force until a
//! person accepts another text.
//!
//! ```text
//! <user state>/policies/<16 hex digits>/accepted.json   the texts, their hash, when and how
//! ```

mod text;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags, renameat, unlinkat};
use rustix::io::Errno;

use crate::private::Folder;
use crate::user_state::{UserStateError, canonical_path, check_private, open_private};

/// The folder of the user's state folder that holds one folder per policy.
const POLICIES: &str = "policies";
/// The name of the copy.
const COPY: &str = "accepted.json";
/// How many hexadecimal digits of the hash name a policy.
const DIGITS: usize = 16;
/// How large a copy may be. A policy and its files are far smaller.
const BYTES_MAX: u64 = 256 << 20;

/// The texts of a policy that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedPolicy {
    /// The policy's file, by [`policy_path`].
    pub path: PathBuf,
    /// Microseconds since 1970.
    pub accepted_us: i64,
    /// Who or what accepted it.
    pub how: Acceptance,
    /// The texts by name: the policy's by its file name, those of its other files as the policy
    /// names them. A file that was missing is left out.
    pub texts: BTreeMap<String, String>,
}

/// How a policy came to be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// It was the first one seen under its path.
    FirstUse,
    /// A person ran `tapegate policy accept`.
    Person,
    /// A person at a terminal had Tapegate write it.
    Written,
    /// It permits nothing that the accepted one did not.
    Tighter,
}

/// The accepted policies of a user.
#[derive(Debug, Clone)]
pub struct AcceptedPolicies {
    folder: PathBuf,
}

/// Why accepted policies cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AcceptedError {
    /// The folder or the file is not private.
    #[error(transparent)]
    State(#[from] UserStateError),
    /// The copy is not what was written.
    #[error("the accepted copy `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The copy.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl AcceptedPolicies {
    /// The accepted policies below this user state folder, which need not exist yet.
    pub fn new(user_state: &Path) -> Self {
        Self { folder: user_state.join(POLICIES) }
    }

    /// Where the copy of a policy is or would be.
    pub fn copy_path(&self, policy: &Path) -> PathBuf {
        self.folder_of(policy).join(COPY)
    }

    /// The accepted texts of a policy, if there are any.
    pub fn get(&self, policy: &Path) -> Result<Option<AcceptedPolicy>, AcceptedError> {
        let path = self.folder_of(policy);
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            _ => {}
        }
        read(&open_private(&path)?)
    }

    /// Keeps the texts of a policy in the place of what was accepted before.
    pub fn put(&self, accepted: &AcceptedPolicy) -> Result<(), AcceptedError> {
        open_private(&self.folder)?;
        let folder = open_private(&self.folder_of(&accepted.path))?;
        let temporary = format!(".{COPY}.{}", std::process::id());
        let written = replace(&folder, &temporary, &text::write(accepted));
        if written.is_err() {
            // A torn file must not stay; the first error is the one to report.
            unlinkat(folder.handle(), &temporary, AtFlags::empty()).ok();
        }
        written.map_err(|source| io_error(&folder, source))
    }

    /// Forgets what was accepted of a policy; whether there was anything.
    pub fn forget(&self, policy: &Path) -> Result<bool, AcceptedError> {
        let path = self.folder_of(policy);
        if !path.exists() {
            return Ok(false);
        }
        let folder = open_private(&path)?;
        match unlinkat(folder.handle(), COPY, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(io_error(&folder, errno.into())),
        }
    }

    /// Every accepted policy, by path.
    pub fn list(&self) -> Result<Vec<AcceptedPolicy>, AcceptedError> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let all = open_private(&self.folder)?;
        let names = all.names().map_err(|source| io_error(&all, source))?;
        let mut list = Vec::new();
        for name in names.iter().filter(|name| !name.starts_with('.')) {
            list.extend(read(&open_private(&all.at(name))?)?);
        }
        list.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(list)
    }

    fn folder_of(&self, policy: &Path) -> PathBuf {
        let hash = blake3::hash(policy_path(policy).as_os_str().as_bytes()).to_hex();
        self.folder.join(&hash.as_str()[..DIGITS])
    }
}

/// The path that a policy is known by: without links, except that the file itself may be one. If a
/// link in its place led to another path, whoever can place a link could start over as new.
pub fn policy_path(policy: &Path) -> PathBuf {
    match (policy.parent(), policy.file_name()) {
        (Some(folder), Some(name)) => {
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            canonical_path(here).join(name)
        }
        _ => canonical_path(policy),
    }
}

impl AcceptedPolicy {
    /// The hash that these texts go by.
    pub fn hash(&self) -> String {
        text::hash(&self.texts)
    }
}

impl Acceptance {
    /// The word for it, in files and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::FirstUse => "first use",
            Self::Person => "person",
            Self::Written => "written",
            Self::Tighter => "tighter",
        }
    }

    fn of(word: &str) -> Option<Self> {
        let all = [Self::FirstUse, Self::Person, Self::Written, Self::Tighter];
        all.into_iter().find(|how| how.word() == word)
    }
}

fn read(folder: &Folder) -> Result<Option<AcceptedPolicy>, AcceptedError> {
    let file = match folder.file(COPY, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(folder, error)),
    };
    let path = folder.at(COPY);
    check_private(&path, &file)?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(|source| io_error(folder, source))?;
    match text::read(&bytes) {
        Ok(accepted) => Ok(Some(accepted)),
        Err(reason) => Err(AcceptedError::Damaged { path, reason }),
    }
}

fn replace(folder: &Folder, temporary: &str, bytes: &[u8]) -> io::Result<()> {
    unlinkat(folder.handle(), temporary, AtFlags::empty()).ok();
    let mut file = folder.file(temporary, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    renameat(folder.handle(), temporary, folder.handle(), COPY)?;
    Ok(())
}

fn io_error(folder: &Folder, source: io::Error) -> AcceptedError {
    UserStateError::Io { path: folder.at(COPY), source }.into()
}

#[cfg(test)]
mod tests;
