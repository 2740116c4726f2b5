//! Stores texts that are too large for a scenario in a folder beside it.
//!
//! Existing files are never overwritten, so a scenario that refers to them keeps working until the
//! new one is complete. Dropping the folder without [`AssetFolder::commit`] removes what it wrote.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tapegate_scenario::convert::AssetSink;

/// How many files may have nearly the same name.
const TRIES_MAX: u32 = 10_000;

/// The folder for the files of one scenario.
pub(super) struct AssetFolder {
    path: PathBuf,
    made: bool,
    written: Vec<PathBuf>,
    /// The paths in the scenario, of files that were written or already existed.
    named: HashSet<String>,
}

impl AssetFolder {
    /// The folder beside a scenario.
    pub(super) fn next_to(output: &Path) -> Self {
        let mut name = output.as_os_str().to_owned();
        name.push(".assets");
        Self { path: name.into(), made: false, written: Vec::new(), named: HashSet::new() }
    }

    /// Whether the scenario refers to this path and its file has the right content.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.named.contains(path)
    }

    /// Syncs the files to disk, all together: one by one would take minutes.
    pub(super) fn sync(&self) -> io::Result<()> {
        if self.written.is_empty() {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(File::open(&self.path)?)?;
        #[cfg(not(target_os = "linux"))]
        for path in &self.written {
            File::open(path)?.sync_all()?;
        }
        Ok(())
    }

    /// Keeps the written files.
    pub(super) fn commit(mut self) {
        self.written.clear();
        self.made = false;
    }

    fn create(&mut self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Ok(()) => self.made = true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.path.is_dir() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl AssetSink for AssetFolder {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<String> {
        if self.written.is_empty() {
            self.create()?;
        }
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "txt"));
        for attempt in 1..TRIES_MAX {
            let name = match attempt {
                1 => name.to_owned(),
                _ => format!("{stem}-{attempt}.{ending}"),
            };
            let path = self.path.join(&name);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => {
                    // Before writing, so that a file that is cut off by a full disk is removed
                    // again.
                    self.written.push(path);
                    file.write_all(bytes)?;
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // The same text was written by an earlier conversion, and can be shared.
                    if !file_has_contents(&path, bytes) {
                        continue;
                    }
                }
                Err(error) => return Err(error),
            }
            let folder = self.path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{folder}/{name}");
            self.named.insert(name.clone());
            return Ok(name);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Whether a file has exactly this content.
fn file_has_contents(path: &Path, bytes: &[u8]) -> bool {
    let is_like =
        |existing: fs::Metadata| existing.is_file() && existing.len() == bytes.len() as u64;
    path.symlink_metadata().is_ok_and(is_like)
        && fs::read(path).is_ok_and(|existing| existing == bytes)
}

impl Drop for AssetFolder {
    fn drop(&mut self) {
        for path in &self.written {
            // A file that cannot be removed does no harm: no scenario refers to it.
            drop(fs::remove_file(path));
        }
        if self.made {
            drop(fs::remove_dir(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_kept_or_taken_back_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("s.yaml");
        let mut assets = AssetFolder::next_to(&output);
        assert_eq!(assets.put("a-1.txt", b"one").unwrap(), "s.yaml.assets/a-1.txt");
        drop(assets);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut assets = AssetFolder::next_to(&output);
        assets.put("a-1.txt", b"one").unwrap();
        assets.commit();
        let mut assets = AssetFolder::next_to(&output);
        assert_eq!(assets.put("a-1.txt", b"one").unwrap(), "s.yaml.assets/a-1.txt");
        assert_eq!(assets.put("a-1.txt", b"two").unwrap(), "s.yaml.assets/a-1-2.txt");
        drop(assets);
        let left = fs::read(folder.path().join("s.yaml.assets/a-1.txt")).unwrap();
        assert_eq!(left, b"one");
        assert_eq!(fs::read_dir(folder.path().join("s.yaml.assets")).unwrap().count(), 1);
    }
}
