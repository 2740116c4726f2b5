//! Watches folders for changes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often to check where changes cannot be watched.
const POLL: Duration = Duration::from_millis(200);
/// The most reads in one drain: a process that writes faster than this one reads must not block it.
const DRAIN_READS_MAX: usize = 256;

/// Reports that something may have changed in a folder.
///
/// To miss nothing, create the watcher first, then check the folder, then wait.
#[derive(Debug)]
pub struct FolderWatcher {
    handle: Option<OwnedFd>,
}

/// Which changes are reported.
#[derive(Debug, Clone, Copy)]
enum WatchScope {
    /// New names of files.
    Names,
    /// Changes of their contents, too.
    Contents,
    /// All changes, including removals.
    Everything,
}

impl FolderWatcher {
    /// Reports new names of files.
    pub(crate) fn for_names(folder: &Path) -> Self {
        Self { handle: watch(&[folder], WatchScope::Names) }
    }

    /// Reports changed contents, too.
    pub(crate) fn for_contents(folder: &Path) -> Self {
        Self { handle: watch(&[folder], WatchScope::Contents) }
    }

    /// Reports all changes of files in any of these folders.
    pub fn for_files(folders: &[&Path]) -> Self {
        Self { handle: watch(folders, WatchScope::Everything) }
    }

    /// Becomes readable when something has changed. `None` if watching is not supported or the
    /// system's limit is reached: then check every [`FolderWatcher::pause`].
    pub fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
    }

    /// How long to wait at most before the next check.
    pub fn pause(&self) -> Option<Duration> {
        self.handle.is_none().then_some(POLL)
    }

    /// Discards the changes so far, so that the handle reports only later ones.
    pub fn drain(&self) {
        let mut buffer = [0u8; 4096];
        if let Some(handle) = &self.handle {
            drain_by(|| rustix::io::read(handle, &mut buffer).is_ok_and(|count| count > 0));
        }
    }

    /// Waits until something has changed, for at most `timeout`.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        let Some(handle) = &self.handle else {
            std::thread::sleep(timeout.min(POLL));
            return Ok(());
        };
        let timeout = Timespec {
            tv_sec: timeout.as_secs().min(i32::MAX as u64) as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {
                self.drain();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads until there is nothing more, or the limit is reached.
fn drain_by(mut read: impl FnMut() -> bool) {
    for _ in 0..DRAIN_READS_MAX {
        if !read() {
            return;
        }
    }
}

#[cfg(target_os = "linux")]
fn watch(folders: &[&Path], watch_scope: WatchScope) -> Option<OwnedFd> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags as Flags, add_watch, init};
    let handle = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
    let wanted = Flags::CREATE | Flags::MOVED_TO | Flags::ONLYDIR;
    let wanted = match watch_scope {
        WatchScope::Names => wanted | Flags::DONT_FOLLOW,
        WatchScope::Contents => wanted | Flags::DONT_FOLLOW | Flags::MODIFY,
        // Without DONT_FOLLOW: a policy may be in a folder that is reached through a link.
        WatchScope::Everything => {
            let gone = Flags::DELETE | Flags::MOVED_FROM;
            wanted | Flags::MODIFY | Flags::CLOSE_WRITE | Flags::ATTRIB | gone
        }
    };
    for folder in folders {
        // If one folder cannot be watched, poll all: a missed change is worse than a slow one.
        add_watch(&handle, *folder, wanted).ok()?;
    }
    Some(handle)
}

#[cfg(not(target_os = "linux"))]
fn watch(_: &[&Path], _: WatchScope) -> Option<OwnedFd> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draining_stops_where_news_never_ends() {
        let mut reads = 0;
        drain_by(|| {
            reads += 1;
            true
        });
        assert_eq!(reads, DRAIN_READS_MAX);
        let mut left = 3;
        drain_by(|| {
            left -= 1;
            left > 0
        });
        assert_eq!(left, 0, "it ends with the news");
    }
}
