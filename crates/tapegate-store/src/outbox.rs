//! A log whose lines are sent to a remote hub: written here first, then sent in order, each once.
//!
//! Shims with the same state folder share an outbox. The one that holds the lock sends; the kernel
//! releases the lock if that shim is killed. Every line keeps its number in the outbox's log, and
//! the hub accepts no number twice, so resending a line is harmless.
//!
//! ```text
//! activity.jsonl, activity-N.jsonl   the lines; files that were sent are removed
//! sent                               the name of the log, and the last number that the hub has taken
//! lock                               held by the shim that sends
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, OFlags, flock, unlinkat};
use rustix::io::Errno;

use crate::activity::{
    ActivityError, ActivityLog, ActivityLogOptions, CURRENT, LogFollower, LoggedEvent,
    LoggedEvents, is_log_id, new_log_id, open_file, parts,
};
use crate::private_folder::{FileIdentity, FolderHandle};
use crate::temporary_file::TemporaryFile;

const SENT: &str = "sent";
const LOCK: &str = "lock";
/// Larger than any valid file.
const SENT_BYTES_MAX: u64 = 4096;
/// Rotated files are removed once they were sent, so they are kept small.
const ROTATE_BYTES: u64 = 1024 * 1024;

/// How long to wait for a writer, which takes microseconds, and how often to check.
const LOCK_WAIT: Duration = Duration::from_millis(5);
const LOCK_INTERVAL: Duration = Duration::from_micros(100);

/// A log whose lines are to be sent.
#[derive(Debug)]
pub struct Outbox {
    folder: FolderHandle,
}

/// Sends the lines; holds the lock.
#[derive(Debug)]
pub struct OutboxSender {
    outbox: Outbox,
    id: String,
    /// The last number that the hub has confirmed.
    sent: u64,
    /// The last number that was read.
    read: u64,
    lines: LogFollower,
    _lock: File,
}

impl Outbox {
    /// Opens an outbox, creating it if needed.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let folder = FolderHandle::create(folder)?;
        folder.check_ownership()?;
        Ok(Self { folder })
    }

    /// The path of its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Opens the log for writing.
    pub fn log(&self) -> Result<ActivityLog, ActivityError> {
        let options = ActivityLogOptions { rotate_bytes: ROTATE_BYTES, retention: None };
        ActivityLog::open(self.folder.path(), options)
    }

    /// The number of the last line.
    pub fn last_line_number(&self) -> Result<u64, ActivityError> {
        Ok(self.log()?.head().seq)
    }

    /// How many of the lines up to this number are not sent yet.
    pub fn waiting_count(&self, end: u64) -> u64 {
        end.saturating_sub(self.read_sent().map_or(0, |(_, sent)| sent))
    }

    /// Starts sending, unless another process does.
    pub fn sender(&self) -> io::Result<Option<OutboxSender>> {
        // A lock file of its own: the log is locked for each write, and by other shims.
        let lock = self.folder.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        let outbox = Self { folder: FolderHandle::open(self.folder.path())? };
        let end = self.last_line_number().map_err(io::Error::other)?;
        // A log that ends before the last line sent was restarted, so its numbers belong to a new
        // log.
        let (id, sent) = match outbox.read_sent().filter(|(_, sent)| *sent <= end) {
            Some(found) => found,
            None => (new_log_id()?, 0),
        };
        let lines = LogFollower::new(self.folder.path());
        let sender = OutboxSender { outbox, id, sent, read: sent, lines, _lock: lock };
        // The id must be stored before the first line is sent.
        sender.save()?;
        Ok(Some(sender))
    }

    fn read_sent(&self) -> Option<(String, u64)> {
        let mut text = String::new();
        let file = self.folder.file(SENT, OFlags::RDONLY).ok()?;
        file.take(SENT_BYTES_MAX).read_to_string(&mut text).ok()?;
        let (id, sent) = text.trim_end().split_once(' ')?;
        is_log_id(id).then_some(())?;
        Some((id.to_owned(), sent.parse().ok()?))
    }
}

impl OutboxSender {
    /// The id of the log.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next lines with their numbers: at most `lines_max`, and not much more than `bytes_max`.
    pub fn next_lines(
        &mut self,
        lines_max: usize,
        bytes_max: usize,
    ) -> io::Result<Vec<(u64, LoggedEvent)>> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        // Under the lock, no line is visible that its writer may still have to truncate.
        let Some(_lock) = self.lock_log()? else { return Ok(found) };
        while found.len() < lines_max && bytes < bytes_max {
            let Some(line) = self.lines.next_line()? else { break };
            let Ok(line) = line else { continue };
            if let Some(seq) = line.number("seq").filter(|seq| *seq > self.read) {
                bytes += line.text().len();
                self.read = seq;
                found.push((seq, line));
            }
        }
        Ok(found)
    }

    /// Keeps writers out while lines are read. `None` if one is writing; the caller tries again
    /// later.
    fn lock_log(&self) -> io::Result<Option<Option<File>>> {
        let file = match self.outbox.folder.file(CURRENT, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(None)),
            Err(error) => return Err(error),
        };
        let began = Instant::now();
        while let Err(Errno::WOULDBLOCK | Errno::INTR) =
            flock(&file, FlockOperation::NonBlockingLockShared)
        {
            if began.elapsed() > LOCK_WAIT {
                return Ok(None);
            }
            std::thread::sleep(LOCK_INTERVAL);
        }
        // It may have been rotated before it was locked; then writers use the next one.
        let there = self.outbox.folder.identity(CURRENT)?;
        let ours = FileIdentity::of(&rustix::fs::fstat(&file)?);
        let is_current =
            |existing: FileIdentity| (existing.device, existing.inode) == (ours.device, ours.inode);
        Ok(there.is_some_and(is_current).then_some(Some(file)))
    }

    /// Records that the hub has accepted every line up to this number.
    pub fn confirm(&mut self, seq: u64) -> io::Result<()> {
        self.sent = seq.max(self.sent);
        // Save first: after a kill, lines that are gone must not count as waiting.
        self.save()?;
        self.remove_sent();
        Ok(())
    }

    fn save(&self) -> io::Result<()> {
        let mut temporary = TemporaryFile::in_folder(&self.outbox.folder, SENT)?;
        temporary.write(format!("{} {}\n", self.id, self.sent).as_bytes())?;
        temporary.replace(SENT)
    }

    /// Removes rotated files whose lines were all sent, except the newest: the log continues from
    /// its end.
    fn remove_sent(&self) {
        let Ok(parts) = parts(self.outbox.path()) else { return };
        let aside: Vec<&PathBuf> =
            parts.iter().filter(|part| !part.is_current()).map(|part| &part.path).collect();
        for (part, next) in aside.iter().zip(aside.iter().skip(1)) {
            let first =
                open_file(next).ok().and_then(|text| LoggedEvents::new(text).flatten().next());
            let first = first.and_then(|line| line.number("seq"));
            // The next file begins behind the last line sent, so this one is not sent completely.
            if first.is_none_or(|first| first > self.sent.saturating_add(1)) {
                return;
            }
            if let Some(name) = part.file_name() {
                // A file that cannot be removed is found again later.
                unlinkat(self.outbox.folder.handle(), name, AtFlags::empty()).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tapegate_core::activity::{ActivityEvent, ActivityKind};

    use super::*;

    fn write(log: &mut ActivityLog, numbers: std::ops::Range<u64>) {
        for number in numbers {
            log.append(&ActivityEvent {
                tape_seq: Some(number),
                kind: ActivityKind::Decision,
                ..ActivityEvent::default()
            });
        }
        log.commit().unwrap();
    }

    fn next(sender: &mut OutboxSender) -> (u64, Vec<u64>) {
        let lines = sender.next_lines(10, usize::MAX).unwrap();
        let last = lines.last().map_or(0, |(seq, _)| *seq);
        (last, lines.iter().filter_map(|(_, line)| line.number("tape_seq")).collect())
    }

    #[test]
    fn lines_are_sent_in_order_and_what_was_not_confirmed_is_sent_again() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path()).unwrap();
        let mut log = outbox.log().unwrap();
        write(&mut log, 0..15);
        let mut sender = outbox.sender().unwrap().unwrap();
        assert!(outbox.sender().unwrap().is_none(), "one sends at a time");
        let (last, first) = next(&mut sender);
        assert_eq!(first, (0..10).collect::<Vec<_>>());
        sender.confirm(last).unwrap();
        assert_eq!(next(&mut sender).1, (10..15).collect::<Vec<_>>());
        assert_eq!(outbox.waiting_count(outbox.last_line_number().unwrap()), 5);
        let id = sender.id().to_owned();
        drop(sender);
        write(&mut log, 15..17);
        let mut sender = outbox.sender().unwrap().unwrap();
        assert_eq!(sender.id(), id);
        let (last, rest) = next(&mut sender);
        assert_eq!(rest, (10..17).collect::<Vec<_>>());
        sender.confirm(last).unwrap();
        assert_eq!((outbox.waiting_count(last), next(&mut sender).1), (0, vec![]));
        write(&mut log, 17..18);
        assert_eq!(next(&mut sender).1, [17]);
    }

    #[test]
    fn files_that_were_sent_are_removed_and_numbers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path()).unwrap();
        let options = ActivityLogOptions { rotate_bytes: 700, retention: None };
        let mut log = ActivityLog::open(folder.path(), options).unwrap();
        let mut sender = outbox.sender().unwrap().unwrap();
        for round in 0..20 {
            write(&mut log, round * 5..round * 5 + 5);
            let (last, numbers) = next(&mut sender);
            assert_eq!(numbers, (round * 5..round * 5 + 5).collect::<Vec<_>>());
            sender.confirm(last).unwrap();
        }
        assert!(parts(folder.path()).unwrap().len() <= 3);
        drop(log);
        let end = outbox.log().unwrap().head().seq;
        assert!(end >= 100, "{end}");
    }

    #[test]
    fn a_log_that_begins_anew_has_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path()).unwrap();
        write(&mut outbox.log().unwrap(), 0..5);
        let mut sender = outbox.sender().unwrap().unwrap();
        let (last, _) = next(&mut sender);
        sender.confirm(last).unwrap();
        let id = sender.id().to_owned();
        drop(sender);
        std::fs::remove_file(folder.path().join(CURRENT)).unwrap();
        write(&mut outbox.log().unwrap(), 0..2);
        let mut sender = outbox.sender().unwrap().unwrap();
        assert_ne!(sender.id(), id);
        assert_eq!(next(&mut sender).1, [0, 1]);
    }
}
