//! The file that the log is currently written to, and its lock.

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::activity::files::CURRENT;
use crate::private_folder::{FileIdentity, FolderHandle};

/// How long to wait for another writer's lock. It is held for microseconds, unless a writer is
/// stopped.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long to spin before sleeping, and how long each sleep takes.
const SPIN: Duration = Duration::from_micros(50);

#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    device: u64,
    inode: u64,
    /// Its length when [`ActivityLog::link`](super::ActivityLog) was its end.
    pub(super) bytes: u64,
    /// Whether its last line lacks a line end.
    pub(super) unended: bool,
}

impl OpenFile {
    pub(super) fn new(folder: &FolderHandle) -> io::Result<Self> {
        // With O_APPEND, a writer without a lock can mix up lines, but never overwrite them.
        let file = folder.file(CURRENT, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        let FileIdentity { device, inode, .. } = FileIdentity::of(&rustix::fs::fstat(&file)?);
        // No real length, so the end of the file is read before the first write.
        Ok(Self { file, device, inode, bytes: u64::MAX, unended: false })
    }

    /// Whether the file found under its name is this one.
    pub(super) fn is_same_file(&self, existing: &FileIdentity) -> bool {
        (existing.device, existing.inode) == (self.device, self.inode)
    }

    /// Takes the lock; false if another process holds it for too long.
    pub(super) fn lock(&self) -> bool {
        let mut started = None;
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                // Logging must work on file systems without locks; a single writer is safe there.
                _ => return true,
            }
            let waited = started.get_or_insert_with(Instant::now).elapsed();
            match waited {
                // The lock is usually free again before a sleep would end.
                _ if waited < SPIN => std::thread::yield_now(),
                _ if waited < LOCK_WAIT_MAX => std::thread::sleep(SPIN),
                _ => return false,
            }
        }
    }

    /// Releases the lock.
    pub(super) fn unlock(&self) {
        // Closing the file releases it at the latest.
        flock(&self.file, FlockOperation::Unlock).ok();
    }

    /// Appends all of `text`, or nothing.
    pub(super) fn append(&mut self, text: &[u8]) -> io::Result<()> {
        match self.file.write_all(text) {
            Ok(()) => {
                self.bytes += text.len() as u64;
                self.unended = false;
                Ok(())
            }
            Err(error) => {
                if self.file.set_len(self.bytes).is_err() {
                    // The next reader of the file's end finds the remains and cuts them off.
                    self.bytes = u64::MAX;
                }
                Err(error)
            }
        }
    }
}
