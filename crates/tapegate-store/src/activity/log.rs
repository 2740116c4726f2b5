//! Writes the log, possibly as one of several writers.
//!
//! Events are buffered until [`ActivityLog::commit`], which takes the file's lock, chains them to
//! the last line and hands them to the kernel in one call. The last line is already known unless
//! another process has written since. If the kernel does not take everything, the file is truncated
//! again, so it contains nothing that the caller was told has failed.

mod current;
mod error;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::chain::ChainLink;
use super::files::CURRENT;
use super::rotation::{self, LogRemoval};
use super::{line, notice, tail};
use crate::private_folder::FolderHandle;
use current::OpenFile;
use tapegate_core::activity::ActivityEvent;

pub use error::ActivityError;

/// How many times the current file may turn out to be another one before giving up.
const REOPENED_MAX: usize = 100;
/// How much memory the buffers keep between commits.
const KEPT_BYTES_MAX: usize = 512 * 1024;

/// Rotation and retention of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityLogOptions {
    /// A file of at least this size is rotated.
    pub rotate_bytes: u64,
    /// How long rotated files are kept; `None` keeps them all.
    pub retention: Option<Duration>,
}

/// A log that is open for writing.
#[derive(Debug)]
pub struct ActivityLog {
    folder: FolderHandle,
    options: ActivityLogOptions,
    open: Option<OpenFile>,
    /// The end of the chain, as far as this writer knows.
    link: ChainLink,
    pending: PendingEvents,
    second: line::SecondCache,
    out: Vec<u8>,
    /// Lines about the log itself that are still to be written.
    notices: Vec<Vec<u8>>,
    /// The line that links a new file to the rotated one.
    continued: Option<Vec<u8>>,
    /// Events that could not be written; the log reports them when it can be written again.
    lost: u64,
    /// Whether rotated files must still be checked for retention.
    retention_due: bool,
}

/// Events that wait for a commit: their texts, concatenated.
#[derive(Debug, Default)]
struct PendingEvents {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl PendingEvents {
    fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }
}

impl Default for ActivityLogOptions {
    fn default() -> Self {
        Self { rotate_bytes: 64 * 1024 * 1024, retention: None }
    }
}

impl ActivityLog {
    /// Opens the log in `folder`, creating it if needed.
    pub fn open(folder: &Path, options: ActivityLogOptions) -> Result<Self, ActivityError> {
        let opened = FolderHandle::create(folder)
            .map_err(|source| ActivityError::Open { path: folder.to_owned(), source })?;
        let mut log = Self {
            folder: opened,
            options,
            open: None,
            link: ChainLink::START,
            pending: PendingEvents::default(),
            second: line::SecondCache::default(),
            out: Vec::new(),
            notices: Vec::new(),
            continued: None,
            lost: 0,
            retention_due: options.retention.is_some(),
        };
        // Report problems now rather than when the first call waits for the log.
        log.lock()?;
        log.unlock();
        Ok(log)
    }

    /// The path of the current file.
    pub fn path(&self) -> PathBuf {
        self.folder.path_of(CURRENT)
    }

    /// The number and hash of the last line that this writer knows of.
    pub fn head(&self) -> ChainLink {
        self.link
    }

    /// Adds an event to the next commit.
    pub fn append(&mut self, event: &ActivityEvent<'_>) {
        line::write_at(event, &mut self.second, &mut self.pending.text);
        self.pending.ends.push(self.pending.text.len());
    }

    /// Writes all added events. After an error none of them is in the file, nor ever will be: what
    /// they record must not happen, or happens unlogged.
    pub fn commit(&mut self) -> Result<(), ActivityError> {
        if self.pending.ends.is_empty() {
            return Ok(());
        }
        let written = self.commit_all();
        if written.is_err() {
            // The next write that succeeds tells readers how many events are missing here.
            self.lost += self.pending.ends.len() as u64;
        }
        self.pending.text.clear();
        self.pending.text.shrink_to(KEPT_BYTES_MAX);
        self.pending.ends.clear();
        written
    }

    fn commit_all(&mut self) -> Result<(), ActivityError> {
        self.lock()?;
        // Under the lock, so that no other writer removes or rotates the same files.
        let removal = match (self.retention_due, self.options.retention) {
            (true, Some(retention)) => rotation::expired(&self.folder, retention),
            _ => LogRemoval::default(),
        };
        let link = self.seal_all(&removal);
        let written = match &mut self.open {
            Some(open) => open.append(&self.out),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        if written.is_ok() {
            (self.link, self.lost, self.retention_due) = (link, 0, false);
            self.notices.clear();
            self.continued = None;
            // Only after the line that names these files is written: a kill in between leaves too
            // many files, never a gap without an explanation.
            removal.apply(&self.folder);
        }
        self.unlock();
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES_MAX);
        written.map_err(|source| ActivityError::Write { path: self.path(), source })
    }

    /// Assembles the text to write: lines about the log itself, then the events.
    fn seal_all(&mut self, removal: &LogRemoval) -> ChainLink {
        let mut link = self.link;
        self.out.clear();
        // Its line end is missing, and the next line would be joined to it.
        if self.open.as_ref().is_some_and(|open| open.unended) {
            self.out.push(b'\n');
        }
        let (lost, removed) = (notice::lost_notice(self.lost), notice::removed_notice(removal));
        // `continued` must be the first line of its file, by which readers find the file before.
        let about = self.continued.iter().chain(&self.notices).chain(&lost).chain(&removed);
        link.seal(about.map(Vec::as_slice).chain(self.pending.bodies()), &mut self.out);
        link
    }

    /// Locks the current file, reopening it if it was rotated, and determines its end.
    fn lock(&mut self) -> Result<(), ActivityError> {
        for _ in 0..REOPENED_MAX {
            let open = match self.open.take() {
                Some(open) => open,
                None => OpenFile::new(&self.folder).map_err(|source| self.open_error(source))?,
            };
            if !open.lock() {
                return Err(ActivityError::Busy { path: self.path() });
            }
            // Only under the lock is it certain which file has this name.
            let there = self.folder.identity(CURRENT).map_err(|source| self.open_error(source))?;
            let Some(there) = there.filter(|there| open.is_same_file(there)) else {
                // Rotated or removed by another process; dropping the file releases the lock.
                continue;
            };
            let open = self.open.insert(open);
            // The same length means that no other process has written, so the end need not be read.
            if there.bytes != open.bytes
                && let Err(error) = self.find_end(there.bytes)
            {
                self.open = None;
                return Err(error);
            }
            // A file that cannot be rotated grows on: losing the rotation is better than losing
            // events.
            if !self.needs_rotation() || rotation::rotate(&self.folder).is_err() {
                return Ok(());
            }
            self.open = None;
            self.retention_due = self.options.retention.is_some();
        }
        Err(ActivityError::Busy { path: self.path() })
    }

    fn unlock(&mut self) {
        if let Some(open) = &self.open {
            open.unlock();
        }
    }

    /// Determines the end of the current file, and cuts off what a killed writer has left.
    fn find_end(&mut self, bytes: u64) -> Result<(), ActivityError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let found = match bytes {
            0 => Ok(None),
            bytes => tail::read(&open.file, bytes),
        };
        match found {
            Ok(Some(tail)) => {
                open.bytes = bytes - tail.torn.len() as u64;
                open.unended = tail.open;
                // Another writer may have begun the file meanwhile.
                self.continued = None;
                if !tail.torn.is_empty() {
                    let cut = open.file.set_len(open.bytes);
                    cut.map_err(|source| ActivityError::Write { path: self.path(), source })?;
                    self.notices.push(notice::torn_notice(&tail.torn));
                }
                match tail.link {
                    Some(link) if link.seq > self.link.seq => self.link = link,
                    // The file ends before a line that this writer wrote, so it was truncated by
                    // another process. Continuing from there would hide that.
                    Some(_) => {}
                    None => self.link_to_predecessor(),
                }
            }
            Ok(None) if bytes == 0 => {
                (open.bytes, open.unended) = (0, false);
                self.link_to_predecessor();
            }
            Ok(None) => return Err(ActivityError::NotALog { path: self.path() }),
            Err(source) => return Err(self.open_error(source)),
        }
        Ok(())
    }

    /// Chains an empty file to the last rotated one, or to this writer's own last line.
    fn link_to_predecessor(&mut self) {
        let Some((number, link)) = rotation::predecessor(&self.folder) else { return };
        // If this writer has written more than the rotated files hold, one of them was removed. Its
        // own last line then is the link, so that `check` finds the gap.
        if link.seq >= self.link.seq {
            self.link = link;
            self.continued = Some(notice::continued_notice(number));
        }
    }

    fn needs_rotation(&self) -> bool {
        let Some(open) = &self.open else { return false };
        let is_large = open.bytes >= self.options.rotate_bytes;
        let is_old = || match (self.retention_due, self.options.retention) {
            (true, Some(retention)) => rotation::is_older(&open.file, retention),
            _ => false,
        };
        // An incomplete line must be terminated first.
        open.bytes > 0 && !open.unended && (is_large || is_old())
    }

    fn open_error(&self, source: io::Error) -> ActivityError {
        ActivityError::Open { path: self.path(), source }
    }
}

#[cfg(test)]
mod tests;
