//! The paths that identify a policy.

use std::path::{Component, Path, PathBuf};

use crate::user_state::canonical_path;

/// How many symbolic links are followed, the same as in the kernel.
const LINKS_MAX: u32 = 40;

/// The paths that identify a policy. There are two, because otherwise an agent could make a known
/// policy look new by placing a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyPaths {
    /// As it was requested: absolute, with symbolic links unresolved.
    pub written: PathBuf,
    /// With symbolic links resolved, except that the file itself may be one.
    pub real: PathBuf,
}

impl PolicyPaths {
    /// The paths of a policy. `working` is the current folder as the shell names it, possibly
    /// through a symbolic link; it is ignored if it leads elsewhere.
    pub fn of(policy: &Path, working: Option<&Path>) -> Self {
        let absolute = std::path::absolute(policy).unwrap_or_else(|_| policy.to_owned());
        let below = || {
            let working = working.filter(|path| path.is_absolute())?;
            let here = std::env::current_dir().ok()?;
            // PWD is only a variable: it is believed only if it leads to the current folder.
            let same = working.canonicalize().ok()? == here.canonicalize().ok()?;
            let below = absolute.strip_prefix(&here).ok()?;
            same.then(|| working.join(below))
        };
        let real = Self::resolve(policy);
        let written = below().unwrap_or_else(|| absolute.clone());
        let written = if Self::is_of_this_process(&written) { real.clone() } else { written };
        Self { written, real }
    }

    /// Whether a path means something else in each process, such as `/proc/self/cwd`. A policy
    /// cannot be accepted under such a path.
    pub(super) fn is_of_this_process(path: &Path) -> bool {
        let mut links = 0;
        let mut left: Vec<PathBuf> = steps(path);
        let mut at = PathBuf::from("/");
        while let Some(step) = left.pop() {
            if step.as_os_str() == ".." {
                at.pop();
                continue;
            }
            at.push(step);
            // `/proc/self/cwd` and the like name another folder in each process.
            if at.starts_with("/proc") {
                return true;
            }
            let Ok(target) = at.read_link() else { continue };
            links += 1;
            if links > LINKS_MAX {
                return true;
            }
            at.pop();
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            left.extend(steps(&target));
        }
        false
    }

    /// Resolves symbolic links, except that the file itself may be one.
    pub(super) fn resolve(policy: &Path) -> PathBuf {
        match (policy.parent(), policy.file_name()) {
            (Some(folder), Some(name)) => {
                let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                canonical_path(here).join(name)
            }
            _ => canonical_path(policy),
        }
    }

    /// Whether both have a path in common.
    pub fn overlap(&self, other: &Self) -> bool {
        self.iter().any(|path| other.iter().any(|other| path == other))
    }

    /// Each distinct path, the real one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        let written = (self.written != self.real).then_some(self.written.as_path());
        std::iter::once(self.real.as_path()).chain(written)
    }
}

/// The components of a path without the root, in reverse order.
fn steps(path: &Path) -> Vec<PathBuf> {
    let is_step =
        |step: &Component<'_>| matches!(step, Component::Normal(_) | Component::ParentDir);
    path.components().rev().filter(is_step).map(|step| PathBuf::from(step.as_os_str())).collect()
}
