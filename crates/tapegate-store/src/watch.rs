//! Hearing of what happens in a folder as it happens.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often to look where the system does not tell.
const POLL: Duration = Duration::from_millis(200);
/// How many reads of news are enough. Another process may write faster than this one reads, and must not
/// keep it from everything else.
const DRAIN_READS_MAX: usize = 256;

/// Tells that something may have changed in the folder.
///
/// Whoever waits makes the watcher first, looks second and waits third; then nothing slips by.
#[derive(Debug)]
pub struct Watcher {
    handle: Option<OwnedFd>,
}

/// What is to be told.
#[derive(Debug, Clone, Copy)]
enum News {
    /// That files appear under a name.
    Names,
    /// That they grow, too.
    Contents,
    /// Whatever happens to them.
    Everything,
}

impl Watcher {
    /// Tells of files that appear under a name.
    pub(crate) fn of_names(folder: &Path) -> Self {
        Self { handle: watch(&[folder], News::Names) }
    }

    /// Tells of files that grow, too.
    pub(crate) fn of_contents(folder: &Path) -> Self {
        Self { handle: watch(&[folder], News::Contents) }
    }

    /// Tells of everything that happens to files in any of these folders.
    pub fn of_files(folders: &[&Path]) -> Self {
        Self { handle: watch(folders, News::Everything) }
    }

    /// What becomes readable when something has changed. `None` where the system does not tell, or
    /// has told too many already: then look every [`Watcher::pause`].
    pub fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
    }

    /// How long to wait at most before looking again.
    pub fn pause(&self) -> Option<Duration> {
        self.handle.is_none().then_some(POLL)
    }

    /// Takes note of what has changed so far, so that the handle tells of what comes after.
    pub fn drain(&self) {
        let mut buffer = [0u8; 4096];
        if let Some(handle) = &self.handle {
            drain_by(|| rustix::io::read(handle, &mut buffer).is_ok_and(|count| count > 0));
        }
    }

    /// Waits until something has changed, at most for `timeout`.
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

/// Reads until there is nothing more, or it is enough.
fn drain_by(mut read: impl FnMut() -> bool) {
    for _ in 0..DRAIN_READS_MAX {
        if !read() {
            return;
        }
    }
}

#[cfg(target_os = "linux")]
fn watch(folders: &[&Path], news: News) -> Option<OwnedFd> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags as Flags, add_watch, init};
    let handle = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
    let wanted = Flags::CREATE | Flags::MOVED_TO | Flags::ONLYDIR;
    let wanted = match news {
        News::Names => wanted | Flags::DONT_FOLLOW,
        News::Contents => wanted | Flags::DONT_FOLLOW | Flags::MODIFY,
        News::Everything => {
            let gone = Flags::DELETE | Flags::MOVED_FROM;
            wanted | Flags::MODIFY | Flags::CLOSE_WRITE | Flags::ATTRIB | gone
        }
    };
    for folder in folders {
        add_watch(&handle, *folder, wanted).ok()?;
    }
    Some(handle)
}

#[cfg(not(target_os = "linux"))]
fn watch(_: &[&Path], _: News) -> Option<OwnedFd> {
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
