//! Watches a few files for changes, so that they can be reloaded.
//!
//! Files are compared by device, inode, size and times, which detects every way an editor may
//! write. The system reports events in their folders. It does not report everything (a file may be
//! a link, or be changed by another machine), so files are also polled. A change is reported once
//! nothing has changed for a while, so that no half-written file is loaded.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapegate_store::FolderWatcher;
use tapegate_wire::port::StreamPort;
use tokio::io::Interest;

/// How long files must stay unchanged.
const SETTLED: Duration = Duration::from_millis(150);
/// How often files are polled without events.
const SELDOM: Duration = Duration::from_secs(2);

/// The identity of a file: device, inode, size, modification time, and change time, which cannot be
/// set back. `None` if it does not exist.
type FileStamp = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

/// Some files and their last known state.
pub struct FileWatch {
    files: Vec<(PathBuf, FileStamp)>,
    /// The source of system events; `None` if not set up yet, or not available.
    notifier: Option<(FolderWatcher, StreamPort)>,
    is_subscribed: bool,
    /// The files that have changed but have not been reported yet.
    dirty: BTreeSet<PathBuf>,
}

impl FileWatch {
    /// Watches these files from now on.
    pub fn new(files: Vec<PathBuf>) -> Self {
        let mut watch = Self {
            files: Vec::new(),
            notifier: None,
            is_subscribed: false,
            dirty: BTreeSet::new(),
        };
        watch.add_files(files);
        watch
    }

    /// Watches these files too. Files already known keep the state taken before they were read, so
    /// that no change in the meantime is missed.
    pub fn add_files(&mut self, files: Vec<PathBuf>) {
        for path in files {
            if !self.files.iter().any(|(known, _)| *known == path) {
                let stamp = stamp(&path);
                self.files.push((path, stamp));
                // Its folder may not be watched yet.
                self.is_subscribed = false;
            }
        }
    }

    /// Waits until files have changed and then stayed unchanged; returns those files.
    pub async fn changed(&mut self) -> BTreeSet<PathBuf> {
        if self.files.is_empty() {
            return std::future::pending().await;
        }
        loop {
            if !self.is_subscribed {
                (self.notifier, self.is_subscribed) = self.subscribe();
            }
            match self.check_files() {
                // A folder may have been replaced.
                true => self.is_subscribed = false,
                false if !self.dirty.is_empty() => return std::mem::take(&mut self.dirty),
                false => self.may_have_changed().await,
            }
            // However busy a folder is, files are not checked more often than this.
            tokio::time::sleep(SETTLED).await;
        }
    }

    /// Subscribes to events in the folders of the files, and of the targets of links. Also returns
    /// whether all those folders exist.
    fn subscribe(&self) -> (Option<(FolderWatcher, StreamPort)>, bool) {
        let folder = |path: &Path| Some(Path::new(".").join(path.parent()?));
        let by_name = self.files.iter().filter_map(|(path, _)| folder(path));
        // Writing through a link changes the target's folder, and moving the link changes its own.
        let led_to = self.files.iter().filter_map(|(path, _)| folder(&path.canonicalize().ok()?));
        let folders: BTreeSet<PathBuf> = by_name.chain(led_to).collect();
        let there: BTreeSet<&Path> = folders.iter().map(|folder| nearest(folder)).collect();
        let all = folders.iter().all(|folder| there.contains(&**folder));
        let watcher = FolderWatcher::for_files(&there.into_iter().collect::<Vec<_>>());
        let notifier = watcher.handle().and_then(|fd| fd.try_clone_to_owned().ok());
        let notifier =
            notifier.and_then(|fd| StreamPort::from_own_descriptor(fd, Interest::READABLE).ok());
        (notifier.map(|notifier| (watcher, notifier)), all)
    }

    /// Waits until something may have changed.
    async fn may_have_changed(&self) {
        let mut news = [0; 4096];
        if let Some((watcher, notifier)) = &self.notifier {
            // The content of the events does not matter, since the files are checked; but they must
            // all be read, or the same event is not reported again.
            drop(tokio::time::timeout(SELDOM, notifier.read(&mut news)).await);
            watcher.drain();
        }
    }

    /// The files that have changed but have not been reported yet, without waiting.
    pub fn take_changes(&mut self) -> BTreeSet<PathBuf> {
        self.check_files();
        std::mem::take(&mut self.dirty)
    }

    /// Updates the state of all files; returns whether one has changed.
    fn check_files(&mut self) -> bool {
        let mut changed = false;
        for (path, known) in &mut self.files {
            let now = stamp(path);
            if now != *known {
                changed = true;
                self.dirty.insert(path.clone());
            }
            // Compared with the last check, not with the last report: a change counts once files
            // rest.
            *known = now;
        }
        changed
    }
}

/// The folder, or its nearest existing parent, in which it would appear.
fn nearest(folder: &Path) -> &Path {
    let there = folder.ancestors().find(|ancestor| ancestor.is_dir());
    there.unwrap_or(Path::new("."))
}

fn stamp(path: &Path) -> FileStamp {
    let file = std::fs::metadata(path).ok()?;
    let written = (file.mtime(), file.mtime_nsec());
    Some((file.dev(), file.ino(), file.size(), written, (file.ctime(), file.ctime_nsec())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Whether a change is reported too quickly to have been found by polling.
    async fn told(watch: &mut FileWatch) -> bool {
        tokio::time::timeout(SELDOM / 2, watch.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn a_change_is_told_whatever_way_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("links").join("a"));
        std::fs::create_dir(link.parent().unwrap()).unwrap();
        std::fs::write(&file, "1").unwrap();
        symlink(&file, &link).unwrap();
        let mut watch = FileWatch::new(vec![link]);
        assert!(!told(&mut watch).await, "nothing has happened");
        std::fs::write(&file, "22").unwrap();
        assert!(told(&mut watch).await, "written in place");
        std::fs::write(folder.path().join("b"), "333").unwrap();
        std::fs::rename(folder.path().join("b"), &file).unwrap();
        assert!(told(&mut watch).await, "put in its place");
        std::fs::remove_file(&file).unwrap();
        assert!(told(&mut watch).await, "taken away");
        for number in 0..300 {
            std::fs::write(folder.path().join(format!("c{number}")), "1").unwrap();
        }
        assert!(!told(&mut watch).await, "changes to other files");
        std::fs::write(&file, "4444").unwrap();
        assert!(told(&mut watch).await, "there again");
    }

    #[tokio::test]
    async fn a_folder_that_becomes_another_one_is_still_watched() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for (folder, text) in [("one", "1"), ("two", "22")] {
            std::fs::create_dir(at(folder)).unwrap();
            std::fs::write(at(folder).join("a"), text).unwrap();
        }
        symlink(at("one"), at("now")).unwrap();
        let mut watch = FileWatch::new(vec![at("now").join("a")]);
        assert!(!told(&mut watch).await);
        symlink(at("two"), at("next")).unwrap();
        std::fs::rename(at("next"), at("now")).unwrap();
        let change = tokio::time::timeout(2 * SELDOM, watch.changed()).await;
        assert!(change.is_ok(), "it is seen by looking");
        std::fs::write(at("two").join("a"), "333").unwrap();
        assert!(told(&mut watch).await, "and told from then on");
    }

    #[tokio::test]
    async fn a_file_in_a_folder_that_is_not_there_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new").join("a");
        let mut watch = FileWatch::new(vec![file.clone()]);
        assert!(!told(&mut watch).await);
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "1").unwrap();
        assert!(told(&mut watch).await);
    }
}
