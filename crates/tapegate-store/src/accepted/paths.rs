//! The paths that a policy is known by.

use std::path::{Path, PathBuf};

use crate::user_state::canonical_path;

/// The paths that a policy is known by. Whoever can place a link could start over as new if it were
/// known by one of them alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyPaths {
    /// As it was asked for: absolute, links left as they are.
    pub written: PathBuf,
    /// Without links, except that the file itself may be one.
    pub real: PathBuf,
}

impl PolicyPaths {
    /// The paths of a policy. `working` is what the current folder was called by whoever went there,
    /// which may be by a link; it counts only if it leads there.
    pub fn of(policy: &Path, working: Option<&Path>) -> Self {
        let absolute = std::path::absolute(policy).unwrap_or_else(|_| policy.to_owned());
        let below = || {
            let working = working.filter(|path| path.is_absolute())?;
            let here = std::env::current_dir().ok()?;
            let same = working.canonicalize().ok()? == here.canonicalize().ok()?;
            let below = absolute.strip_prefix(&here).ok()?;
            same.then(|| working.join(below))
        };
        Self { written: below().unwrap_or_else(|| absolute.clone()), real: Self::resolve(policy) }
    }

    /// A path without links, except that the file itself may be one.
    pub(super) fn resolve(policy: &Path) -> PathBuf {
        match (policy.parent(), policy.file_name()) {
            (Some(folder), Some(name)) => {
                let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                canonical_path(here).join(name)
            }
            _ => canonical_path(policy),
        }
    }

    /// Whether both are the same policy by one of their paths.
    pub fn overlap(&self, other: &Self) -> bool {
        self.both().any(|path| other.both().any(|other| path == other))
    }

    /// Each path once, the real one first.
    pub(super) fn both(&self) -> impl Iterator<Item = &Path> {
        let written = (self.written != self.real).then_some(self.written.as_path());
        std::iter::once(self.real.as_path()).chain(written)
    }
}
