//! Policies accepted by a person, or on first use.
//!
//! A policy is usually a file in the project, where the governed agent can write. So the accepted
//! texts are copied to the user's state folder, and the copy stays in force until a person accepts
//! another text.
//!
//! ```text
//! <user state>/policies/<16 hex digits>/accepted.json   the texts, their hash, when and how
//! ```

mod paths;
mod text;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags, unlinkat};
use rustix::io::Errno;

use crate::path_folders::PathFolders;
use crate::private_folder::FolderHandle;
use crate::temporary_file::{self, TemporaryFile};
use crate::user_state::{UserStateError, check_private, open_private};
pub use paths::PolicyPaths;

/// The folder of the user's state folder that holds one folder per policy.
const POLICIES: &str = "policies";
/// The name of the copy.
const COPY: &str = "accepted.json";
/// The largest copy. A policy and its files are far smaller.
const BYTES_MAX: u64 = 256 << 20;
/// How much of a copy is read for its path, which comes first. Enough for the longest path,
/// escaped.
const HEAD_BYTES: u64 = 32 << 10;

/// The texts of an accepted policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedPolicy {
    /// The policy's file, by one of its [`PolicyPaths`].
    pub path: PathBuf,
    /// Whether that path led to the file through a symbolic link when it was accepted.
    pub by_link: bool,
    /// Microseconds since 1970.
    pub accepted_us: i64,
    /// How it was accepted.
    pub how: Acceptance,
    /// Whether a person accepted it, or a policy that it only tightens. A policy that was merely
    /// found may have been written by the governed agent.
    pub by_person: bool,
    /// The texts by name: the policy's under its file name, those of its other files under the
    /// names in the policy. Missing files are left out.
    pub texts: BTreeMap<String, String>,
}

/// A path that a policy was accepted under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPath {
    path: PathBuf,
    by_link: bool,
}

/// How a policy came to be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// It was the first policy seen under its path.
    FirstUse,
    /// A person ran `tapegate policy accept`.
    Person,
    /// A user at a terminal had Tapegate write it.
    Written,
    /// It permits nothing that the accepted policy did not.
    Tighter,
}

/// The accepted policies of a user.
#[derive(Debug, Clone)]
pub struct AcceptedPolicies {
    folders: PathFolders,
}

/// Why accepted policies cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AcceptedError {
    /// The folder or the file is not private.
    #[error(transparent)]
    State(#[from] UserStateError),
    /// The copy is not as it was written.
    #[error("the accepted copy `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The copy.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Different policies were accepted under two paths that now lead to the same file.
    #[error(
        "`{}` and `{}` are the same file, but different policies were accepted for them; run \
         `tapegate policy accept` to accept one for both", one.display(), two.display()
    )]
    Ambiguous {
        /// A path of the policy.
        one: PathBuf,
        /// Another path of it.
        two: PathBuf,
    },
}

impl AcceptedPolicies {
    /// The accepted policies below this user state folder, which need not exist yet.
    pub fn new(user_state: &Path) -> Self {
        Self { folders: PathFolders::new(user_state.join(POLICIES)) }
    }

    /// The paths of a policy's copies, whether or not they exist.
    pub fn copy_paths(&self, policy: &PolicyPaths) -> Vec<PathBuf> {
        policy.iter().map(|path| self.folders.place_of(path).join(COPY)).collect()
    }

    /// The accepted version of a policy, if there is one.
    ///
    /// The one accepted under the path as written takes precedence, so a folder that has become a
    /// symbolic link, or a link with a new target, does not bring in another policy.
    pub fn get(&self, policy: &PolicyPaths) -> Result<Option<AcceptedPolicy>, AcceptedError> {
        self.get_known(policy, &self.known_paths())
    }

    /// Like [`Self::get`], for many policies: `known` is the result of [`Self::known_paths`].
    pub fn get_known(
        &self,
        policy: &PolicyPaths,
        known: &[KnownPath],
    ) -> Result<Option<AcceptedPolicy>, AcceptedError> {
        // The path as written first: an agent can point a link elsewhere, but not change what was
        // accepted under the link's own path.
        let own = self.read_at(&policy.written)?;
        if policy.written != policy.real && own.is_some() {
            return Ok(own);
        }
        let Some(real) = self.read_at(&policy.real)? else { return Ok(None) };
        match self.accepted_by_link(policy, known)?.into_iter().find(|two| two.texts != real.texts)
        {
            // Choosing either would let a new link replace a policy by another one.
            Some(two) => Err(AcceptedError::Ambiguous { one: real.path, two: two.path }),
            None => Ok(Some(real)),
        }
    }

    /// Policies accepted for other files whose paths now lead to this one through symbolic links.
    /// They are not accepted for this policy: placing a link must not accept anything.
    pub fn accepted_by_link(
        &self,
        policy: &PolicyPaths,
        known: &[KnownPath],
    ) -> Result<Vec<AcceptedPolicy>, AcceptedError> {
        let paths = paths_leading_to(policy, known).filter(|known| !known.by_link);
        let read = paths.map(|known| self.read_at(&known.path));
        Ok(read.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Stores the texts of a policy in place of what was accepted before, under its own paths and
    /// under those of `others` that lead to it.
    pub fn store(
        &self,
        policy: &PolicyPaths,
        accepted: &AcceptedPolicy,
        others: impl Fn(&AcceptedPolicy) -> bool,
    ) -> Result<(), AcceptedError> {
        let others = self.accepted_by_link(policy, &self.known_paths())?.into_iter().filter(others);
        let others = others.map(|other| other.path);
        for path in policy.iter().map(Path::to_owned).chain(others) {
            // Kept, so that later this path does not count as a policy of its own.
            let by_link = path != policy.real;
            self.write_at(&AcceptedPolicy { path, by_link, ..accepted.clone() })?;
        }
        Ok(())
    }

    /// Stores an accepted policy under the path as written, if nothing is stored there yet.
    pub fn store_path(
        &self,
        policy: &PolicyPaths,
        accepted: &AcceptedPolicy,
    ) -> Result<(), AcceptedError> {
        match self.read_at(&policy.written)? {
            Some(_) => Ok(()),
            None => {
                let path = policy.written.clone();
                let by_link = path != policy.real;
                self.write_at(&AcceptedPolicy { path, by_link, ..accepted.clone() })
            }
        }
    }

    /// The paths of all readable copies. An unreadable copy only affects the policy that it belongs
    /// to. The texts are not read: there is a copy for each project that ever had a policy.
    pub fn known_paths(&self) -> Vec<KnownPath> {
        let folders = self.folders.all().unwrap_or_default().into_iter();
        let copies = folders.filter_map(|place| {
            let folder = open_private(&place).ok()?;
            text::known_path(&read_bytes(&folder, HEAD_BYTES).ok()??)
        });
        copies.collect()
    }

    fn read_at(&self, path: &Path) -> Result<Option<AcceptedPolicy>, AcceptedError> {
        let Some(folder) = self.folders.existing(path)? else { return Ok(None) };
        temporary_file::remove_leftovers(folder.handle(), |name| {
            temporary_file::is_temporary_for(name, COPY)
        });
        read(&folder)
    }

    fn write_at(&self, accepted: &AcceptedPolicy) -> Result<(), AcceptedError> {
        let folder = self.folders.create(&accepted.path)?;
        // Under a temporary name and then renamed: half a copy would stop every session.
        let written = replace(&folder, &text::write(accepted));
        written.map_err(|source| io_error(&folder, source))
    }

    /// Removes the accepted versions of a policy under all of its paths; false if there were none.
    pub fn forget(&self, policy: &PolicyPaths) -> Result<bool, AcceptedError> {
        let known = self.known_paths();
        let others = paths_leading_to(policy, &known).map(|other| other.path.clone());
        let mut any = false;
        for path in policy.iter().map(Path::to_owned).chain(others) {
            any |= self.forget_at(&path)?;
        }
        Ok(any)
    }

    fn forget_at(&self, path: &Path) -> Result<bool, AcceptedError> {
        let Some(folder) = self.folders.existing(path)? else { return Ok(false) };
        match unlinkat(folder.handle(), COPY, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(io_error(&folder, errno.into())),
        }
    }

    /// All accepted policies, sorted by path.
    pub fn list(&self) -> Result<Vec<AcceptedPolicy>, AcceptedError> {
        let mut list = Vec::new();
        for place in self.folders.all()? {
            list.extend(read(&open_private(&place)?)?);
        }
        list.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(list)
    }
}

impl AcceptedPolicy {
    /// The hash that identifies these texts.
    pub fn hash(&self) -> String {
        text::hash(&self.texts)
    }
}

impl Acceptance {
    /// The name used in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstUse => "first use",
            Self::Person => "person",
            Self::Written => "written",
            Self::Tighter => "tighter",
        }
    }

    /// Whether a person accepted it.
    fn is_by_person(self) -> bool {
        matches!(self, Self::Person | Self::Written)
    }

    fn from_str_opt(word: &str) -> Option<Self> {
        let all = [Self::FirstUse, Self::Person, Self::Written, Self::Tighter];
        all.into_iter().find(|how| how.as_str() == word)
    }
}

/// Other known paths that now lead to the same file.
fn paths_leading_to<'k>(
    policy: &PolicyPaths,
    known: &'k [KnownPath],
) -> impl Iterator<Item = &'k KnownPath> {
    known.iter().filter(|one| {
        policy.iter().all(|own| own != one.path)
            && !PolicyPaths::is_of_this_process(&one.path)
            && PolicyPaths::resolve(&one.path) == policy.real
    })
}

fn read(folder: &FolderHandle) -> Result<Option<AcceptedPolicy>, AcceptedError> {
    let Some(bytes) = read_bytes(folder, BYTES_MAX)? else { return Ok(None) };
    match text::read(&bytes) {
        Ok(accepted) => Ok(Some(accepted)),
        Err(reason) => Err(AcceptedError::Damaged { path: folder.path_of(COPY), reason }),
    }
}

/// The first bytes of a copy, if it exists.
fn read_bytes(folder: &FolderHandle, bytes_max: u64) -> Result<Option<Vec<u8>>, AcceptedError> {
    let file = match folder.file(COPY, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(folder, error)),
    };
    check_private(&folder.path_of(COPY), &file)?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).map_err(|source| io_error(folder, source))?;
    Ok(Some(bytes))
}

fn replace(folder: &FolderHandle, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = TemporaryFile::in_folder(folder, COPY)?;
    temporary.write(bytes)?;
    // After a power failure, an empty copy would be damaged, and no session would start.
    temporary.file.sync_all()?;
    temporary.replace(COPY)
}

fn io_error(folder: &FolderHandle, source: io::Error) -> AcceptedError {
    UserStateError::Io { path: folder.path_of(COPY), source }.into()
}

#[cfg(test)]
mod tests;
