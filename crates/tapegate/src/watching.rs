//! Tells when one of a few files changes, for whoever loads them anew then.
//!
//! Files are looked at by name, time, size and number: that sees whatever way an editor writes. The
//! system tells when something happens in their folders; as it does not tell of everything (a file
//! may be a link, or be changed by another machine), they are looked at now and then all the same. A
//! change is taken up once nothing has changed for a while, so that nobody loads half a file.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapegate_store::Watcher;
use tapegate_wire::port::Port;
use tokio::io::Interest;

/// How long files must stay as they are.
const SETTLED: Duration = Duration::from_millis(150);
/// How often files are looked at if nothing is told.
const SELDOM: Duration = Duration::from_secs(2);

/// What is known of a file: device, number, size, when it was written, and when anything of it changed,
/// which nobody can set back. `None` if it is not there.
type Stamp = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

/// Some files, and how they were.
pub(crate) struct Watch {
    files: Vec<(PathBuf, Stamp)>,
    /// What the system tells by; `None` if it has yet to be asked, or does not tell.
    told: Option<(Watcher, Port)>,
    asked: bool,
    /// The files that have changed and were not taken up yet.
    dirty: BTreeSet<PathBuf>,
}

impl Watch {
    /// Watches these files from now on.
    pub(crate) fn new(files: Vec<PathBuf>) -> Self {
        let mut watch =
            Self { files: Vec::new(), told: None, asked: false, dirty: BTreeSet::new() };
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
                self.asked = false;
            }
        }
    }

    /// Waits until files have changed and then stayed as they are; returns those that have.
    pub(crate) async fn changed(&mut self) -> BTreeSet<PathBuf> {
        if self.files.is_empty() {
            return std::future::pending().await;
        }
        loop {
            if !self.asked {
                (self.told, self.asked) = self.ask();
            }
            match self.look() {
                // A folder may be another one by now.
                true => self.asked = false,
                false if !self.dirty.is_empty() => return std::mem::take(&mut self.dirty),
                false => self.stirred().await,
            }
            // Whatever goes on in a folder, files are not looked at more often than this.
            tokio::time::sleep(SETTLED).await;
        }
    }

    /// Asks the system to tell of the folders that the files lie in, by their own names and, if they
    /// are links, by those of what they lead to. Also says whether all those folders were there.
    fn ask(&self) -> (Option<(Watcher, Port)>, bool) {
        let folder = |path: &Path| Some(Path::new(".").join(path.parent()?));
        let by_name = self.files.iter().filter_map(|(path, _)| folder(path));
        let led_to = self.files.iter().filter_map(|(path, _)| folder(&path.canonicalize().ok()?));
        let folders: BTreeSet<PathBuf> = by_name.chain(led_to).collect();
        let there: BTreeSet<&Path> = folders.iter().map(|folder| nearest(folder)).collect();
        let all = folders.iter().all(|folder| there.contains(&**folder));
        let watcher = Watcher::of_files(&there.into_iter().collect::<Vec<_>>());
        let told = watcher.handle().and_then(|fd| fd.try_clone_to_owned().ok());
        let told = told.and_then(|fd| Port::own(fd, Interest::READABLE).ok());
        (told.map(|told| (watcher, told)), all)
    }

    /// Waits until something may have changed.
    async fn stirred(&self) {
        let mut news = [0; 4096];
        if let Some((watcher, told)) = &self.told {
            // What was told does not matter, as the files are looked at; but it must be read to its
            // end, or the same news is not told again.
            drop(tokio::time::timeout(SELDOM, told.read(&mut news)).await);
            watcher.drain();
        }
    }

    /// The files that have changed and were not taken up yet, without waiting.
    pub(crate) fn changed_by_now(&mut self) -> BTreeSet<PathBuf> {
        self.look();
        std::mem::take(&mut self.dirty)
    }

    /// Whether a file is not as it was, and how they are now.
    fn look(&mut self) -> bool {
        let mut changed = false;
        for (path, known) in &mut self.files {
            let now = stamp(path);
            if now != *known {
                changed = true;
                self.dirty.insert(path.clone());
            }
            *known = now;
        }
        changed
    }
}

/// The folder, or the one in which it, or what it lies in, would appear.
fn nearest(folder: &Path) -> &Path {
    let there = folder.ancestors().find(|ancestor| ancestor.is_dir());
    there.unwrap_or(Path::new("."))
}

fn stamp(path: &Path) -> Stamp {
    let file = std::fs::metadata(path).ok()?;
    let written = (file.mtime(), file.mtime_nsec());
    Some((file.dev(), file.ino(), file.size(), written, (file.ctime(), file.ctime_nsec())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Whether a change is told within a moment, and so by the system.
    async fn told(watch: &mut Watch) -> bool {
        tokio::time::timeout(SELDOM / 2, watch.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn a_change_is_told_whatever_way_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("links").join("a"));
        std::fs::create_dir(link.parent().unwrap()).unwrap();
        std::fs::write(&file, "1").unwrap();
        symlink(&file, &link).unwrap();
        let mut watch = Watch::new(vec![link]);
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
        assert!(!told(&mut watch).await, "somebody else's files");
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
        let mut watch = Watch::new(vec![at("now").join("a")]);
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
        let mut watch = Watch::new(vec![file.clone()]);
        assert!(!told(&mut watch).await);
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "1").unwrap();
        assert!(told(&mut watch).await);
    }
}
