//! The file that a log is written to at present, and its lock.

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::activity::files::CURRENT;
use crate::private::{Folder, Identity};

/// How long another writer may hold the lock. It takes microseconds, unless it was stopped.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long it is waited for without sleeping, and how long a sleep is.
const SPIN: Duration = Duration::from_micros(50);

/// The file that is open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) file: File,
    device: u64,
    inode: u64,
    /// How long it was when [`ActivityLog::link`](super::ActivityLog) was its end.
    pub(super) bytes: u64,
    /// Whether its last line has no line end.
    pub(super) unended: bool,
}

impl Open {
    pub(super) fn new(folder: &Folder) -> io::Result<Self> {
        let file = folder.file(CURRENT, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        let Identity { device, inode, .. } = Identity::of(&rustix::fs::fstat(&file)?);
        Ok(Self { file, device, inode, bytes: u64::MAX, unended: false })
    }

    /// Whether it is this that was found under its name.
    pub(super) fn is(&self, there: &Identity) -> bool {
        (there.device, there.inode) == (self.device, self.inode)
    }

    /// Takes the lock; false if somebody else does not let go of it.
    pub(super) fn lock(&self) -> bool {
        let mut started = None;
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                // A file system without locks is no reason not to log; one writer does well there.
                _ => return true,
            }
            let waited = started.get_or_insert_with(Instant::now).elapsed();
            match waited {
                _ if waited < SPIN => std::thread::yield_now(),
                _ if waited < LOCK_WAIT_MAX => std::thread::sleep(SPIN),
                _ => return false,
            }
        }
    }

    /// Lets go of it.
    pub(super) fn unlock(&self) {
        // It goes with the file at the latest.
        flock(&self.file, FlockOperation::Unlock).ok();
    }

    /// Appends `text` as a whole, or nothing of it.
    pub(super) fn append(&mut self, text: &[u8]) -> io::Result<()> {
        match self.file.write_all(text) {
            Ok(()) => {
                self.bytes += text.len() as u64;
                self.unended = false;
                Ok(())
            }
            Err(error) => {
                if self.file.set_len(self.bytes).is_err() {
                    // What stayed is found, and dealt with, by the next who looks at the end.
                    self.bytes = u64::MAX;
                }
                Err(error)
            }
        }
    }
}
