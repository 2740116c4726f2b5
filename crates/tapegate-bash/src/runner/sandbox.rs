//! What the kernel keeps a command from: files elsewhere, and the network.
//!
//! A runner restricts itself before it starts the shell, so everything that the command starts is
//! restricted too, and nothing of it can lift the restriction. Files are protected by Landlock, the
//! network by a seccomp filter that refuses all sockets but those of the Unix family.

use std::path::PathBuf;

#[cfg(target_os = "linux")]
#[path = "sandbox/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "sandbox/other.rs"]
mod system;

/// What a command may do; by default, everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The folders and files that may be changed; `None` for all.
    pub write_roots: Option<Vec<PathBuf>>,
    /// Whether the network may be used.
    pub network: bool,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { write_roots: None, network: true }
    }
}

impl Sandbox {
    /// Whether it restricts anything.
    pub fn is_active(&self) -> bool {
        self.write_roots.is_some() || !self.network
    }

    /// Makes the paths final, and checks that this system can enforce it. The error is for people.
    ///
    /// A path below another one is dropped: a command could replace it by a link to anywhere.
    pub fn prepare(&mut self) -> Result<(), String> {
        if let Some(roots) = &mut self.write_roots {
            for root in roots.iter_mut() {
                *root = root.canonicalize().map_err(|error| {
                    format!("`write_roots` has `{}`, which cannot be used: {error}", root.display())
                })?;
            }
            let all = roots.clone();
            roots.retain(|root| !all.iter().any(|other| root != other && root.starts_with(other)));
            roots.sort();
            roots.dedup();
        }
        if self.is_active() { system::check(self) } else { Ok(()) }
    }

    /// Restricts this process and what it starts.
    pub(super) fn apply(&self) -> Result<(), String> {
        if self.is_active() { system::apply(self) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_final_and_those_below_others_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("link")).unwrap();
        let paths = ["a/b", "link", "a/../a"].map(|path| root.join(path));
        let mut sandbox = Sandbox { write_roots: Some(paths.to_vec()), network: true };
        // Whether the kernel can enforce it is another question.
        let supported = sandbox.prepare();
        assert_eq!(sandbox.write_roots, Some(vec![root.join("a")]), "{supported:?}");
        let mut missing = Sandbox { write_roots: Some(vec![root.join("c")]), network: true };
        assert!(missing.prepare().unwrap_err().contains("c`, which cannot be used"));
        assert_eq!(Sandbox::default().prepare(), Ok(()));
    }
}
