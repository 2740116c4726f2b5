//! Tells when one of a few files changes, for whoever loads them anew then.
//!
//! Files are looked at by name, time, size and number, a few times a second: that sees whatever way
//! an editor writes, by any file system. A change is taken up once nothing has changed for a while,
//! so that nobody loads half a file.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// How often files are looked at.
const EVERY: Duration = Duration::from_millis(150);

/// What is known of a file: device, number, size and time. `None` if it is not there.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// Some files, and how they were.
pub(crate) struct Watch {
    files: Vec<(PathBuf, Stamp)>,
}

impl Watch {
    /// Watches these files from now on.
    pub(crate) fn new(files: Vec<PathBuf>) -> Self {
        let mut watch = Self { files: Vec::new() };
        watch.also(files);
        watch
    }

    /// Watches these files too. Those that it knows were looked at before they were read, and so
    /// nothing is missed that happens meanwhile.
    pub(crate) fn also(&mut self, files: Vec<PathBuf>) {
        for path in files {
            if !self.files.iter().any(|(known, _)| *known == path) {
                let stamp = stamp(&path);
                self.files.push((path, stamp));
            }
        }
    }

    /// Waits until files have changed and then stayed as they are.
    pub(crate) async fn changed(&mut self) {
        if self.files.is_empty() {
            return std::future::pending().await;
        }
        let mut dirty = false;
        loop {
            tokio::time::sleep(EVERY).await;
            match (self.look(), dirty) {
                (true, _) => dirty = true,
                (false, true) => return,
                (false, false) => {}
            }
        }
    }

    /// Whether a file is not as it was, and how they are now.
    fn look(&mut self) -> bool {
        let mut changed = false;
        for (path, known) in &mut self.files {
            let now = stamp(path);
            changed |= now != *known;
            *known = now;
        }
        changed
    }
}

fn stamp(path: &std::path::Path) -> Stamp {
    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}
