//! Reads a log from its oldest file on, and continues as it grows and is rotated.
//!
//! Only whole lines are read. A torn end left by a killed writer is skipped once the next writer
//! has cut it off and continued in its place.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::events::{LoggedEvent, NotAnEvent};
use super::files::{LogFile, parts};
use crate::folder_watcher::FolderWatcher;

/// How much is read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Longer than any valid line.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many rotations to tolerate while looking for the next file, before trying again later.
const TRIES_MAX: usize = 100;

/// A log that is read to its end and followed from there.
#[derive(Debug)]
pub struct LogFollower {
    folder: PathBuf,
    watcher: FolderWatcher,
    reading: Option<OpenLogFile>,
}

/// The file that is being read.
#[derive(Debug)]
struct OpenLogFile {
    part: LogFile,
    file: File,
    /// The offset behind the last line returned.
    bytes: u64,
    line: u64,
    /// Bytes read from the file.
    buffer: Vec<u8>,
    /// How many of them have been returned.
    used: usize,
}

/// Where reading continues.
enum NextFile {
    /// The same file under a new name.
    Renamed(LogFile),
    /// Another file.
    Other(OpenLogFile),
}

impl LogFollower {
    /// Follows the log in `folder` from its start.
    pub fn new(folder: &Path) -> Self {
        // Start watching before reading, so that nothing is missed in between.
        let watcher = FolderWatcher::for_contents(folder);
        Self { folder: folder.to_owned(), watcher, reading: None }
    }

    /// Whether the log has any files.
    pub fn has_files(&self) -> bool {
        parts(&self.folder).is_ok_and(|parts| !parts.is_empty())
    }

    /// The file that was last read.
    pub fn path(&self) -> Option<&Path> {
        self.reading.as_ref().map(|reading| reading.part.path.as_path())
    }

    /// The next line, or `None` if there is none yet.
    pub fn next_line(&mut self) -> io::Result<Option<Result<LoggedEvent, NotAnEvent>>> {
        loop {
            if let Some(reading) = &mut self.reading
                && let Some(logged) = reading.next()?
            {
                return Ok(Some(logged));
            }
            if !self.open_next_file()? {
                return Ok(None);
            }
        }
    }

    /// Waits until the log may have grown, for at most `timeout`.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        self.watcher.wait(timeout)
    }

    /// Moves on to the file after the one that was read to its end; false if there is none.
    fn open_next_file(&mut self) -> io::Result<bool> {
        let folder = self.folder.clone();
        self.open_next_file_of(&mut || match parts(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            parts => parts,
        })
    }

    /// Like [`LogFollower::open_next_file`], with the files listed by `look`.
    fn open_next_file_of(
        &mut self,
        look: &mut dyn FnMut() -> io::Result<Vec<LogFile>>,
    ) -> io::Result<bool> {
        let mut parts = look()?;
        for _ in 0..TRIES_MAX {
            let next = self.next_after(parts.clone())?;
            // If a file was rotated meanwhile, the file found may not be the next one.
            let by_now = look()?;
            if by_now == parts {
                let found = next.is_some();
                match next {
                    Some(NextFile::Renamed(part)) => {
                        self.reading.iter_mut().for_each(|reading| reading.part = part.clone());
                    }
                    Some(NextFile::Other(reading)) => self.reading = Some(reading),
                    None => {}
                }
                return Ok(found);
            }
            parts = by_now;
        }
        Ok(false)
    }

    /// Determines what comes after the current file among these parts.
    fn next_after(&self, mut parts: Vec<LogFile>) -> io::Result<Option<NextFile>> {
        if let Some(reading) = &self.reading {
            let ours = identity(&reading.file)?;
            let index = parts.iter().position(|part| {
                part.path.symlink_metadata().is_ok_and(|there| (there.dev(), there.ino()) == ours)
            });
            match index {
                // Lines may have been added before it was rotated, so it is read to its end once
                // more under its new name.
                Some(index) if parts[index] != reading.part => {
                    return Ok(Some(NextFile::Renamed(parts.swap_remove(index))));
                }
                Some(index) => drop(parts.drain(..=index)),
                // The file was removed, for example by retention; earlier ones have been read.
                None => parts.retain(|part| part.number >= reading.part.number),
            }
        }
        Ok(open_first(parts)?.map(NextFile::Other))
    }
}

/// Opens the first of these files that still exists.
fn open_first(parts: Vec<LogFile>) -> io::Result<Option<OpenLogFile>> {
    for part in parts {
        match super::files::open(&part.path) {
            Ok(file) => {
                let buffer = Vec::new();
                return Ok(Some(OpenLogFile { part, file, bytes: 0, line: 0, buffer, used: 0 }));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let there = file.metadata()?;
    Ok((there.dev(), there.ino()))
}

impl OpenLogFile {
    fn next(&mut self) -> io::Result<Option<Result<LoggedEvent, NotAnEvent>>> {
        loop {
            let rest = &self.buffer[self.used..];
            let end = rest.iter().position(|byte| *byte == b'\n');
            if let Some(end) = end {
                self.line += 1;
                let line = self.line;
                let logged = LoggedEvent::read(line, &rest[..end]);
                self.used += end + 1;
                self.bytes += end as u64 + 1;
                return Ok(Some(logged.map_err(|source| NotAnEvent::Json { line, source })));
            }
            if !self.read_more()? {
                return Ok(None);
            }
        }
    }

    /// Reads more; false if there is none. An incomplete line is read again the next time.
    fn read_more(&mut self) -> io::Result<bool> {
        let held = self.buffer.len() - self.used;
        if held > LINE_BYTES_MAX {
            // Not a valid line: skip it piece by piece; its remains are not valid either.
            self.bytes += held as u64;
            self.buffer.clear();
            self.used = 0;
            return self.read_more();
        }
        self.buffer.drain(..self.used);
        self.used = 0;
        self.buffer.resize(held + READ_BYTES.max(held), 0);
        let count = self.file.read_at(&mut self.buffer[held..], self.bytes + held as u64)?;
        self.buffer.truncate(held + count);
        if count > 0 {
            return Ok(true);
        }
        // An incomplete line is forgotten, since its writer may be killed and the next one cuts it
        // off.
        self.buffer.clear();
        if self.file.metadata()?.len() < self.bytes {
            // The file was truncated, so everything in it is new.
            (self.bytes, self.line) = (0, 0);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tapegate_core::activity::{ActivityEvent, ActivityKind};

    use super::*;
    use crate::activity::{ActivityLog, ActivityLogOptions};

    fn write(log: &mut ActivityLog, number: u64) {
        log.append(&ActivityEvent {
            tape_seq: Some(number),
            kind: ActivityKind::Decision,
            ..ActivityEvent::default()
        });
        log.commit().unwrap();
    }

    /// The numbers of the events that can be read.
    fn read(follower: &mut LogFollower) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(next) = follower.next_line().unwrap() {
            numbers.extend(next.unwrap().number("tape_seq"));
        }
        numbers
    }

    #[test]
    fn a_log_is_followed_over_every_file_that_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let options = ActivityLogOptions { rotate_bytes: 700, retention: None };
        let mut follower = LogFollower::new(folder.path());
        assert_eq!(read(&mut follower), [0u64; 0]);
        let mut log = ActivityLog::open(folder.path(), options).unwrap();
        let mut expected = 0;
        for batch in [1, 0, 2, 1, 9, 1, 4] {
            (expected..expected + batch).for_each(|number| write(&mut log, number));
            let wanted: Vec<u64> = (expected..expected + batch).collect();
            assert_eq!(read(&mut follower), wanted);
            expected += batch;
        }
        assert!(parts(folder.path()).unwrap().len() > 4);
        let late: Vec<u64> = read(&mut LogFollower::new(folder.path()));
        assert_eq!(late, (0..expected).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_missed_when_files_are_put_aside_while_the_next_is_looked_for() {
        for first in [1, 4] {
            let folder = tempfile::tempdir().unwrap();
            let options = ActivityLogOptions { rotate_bytes: 700, retention: None };
            let mut log = ActivityLog::open(folder.path(), options).unwrap();
            let mut follower = LogFollower::new(folder.path());
            (0..first).for_each(|number| write(&mut log, number));
            assert_eq!(read(&mut follower).len() as u64, first);
            // The first listing is outdated as soon as it is returned.
            let mut late = first..first + 9;
            follower
                .open_next_file_of(&mut || {
                    let found = parts(folder.path());
                    late.by_ref().for_each(|number| write(&mut log, number));
                    found
                })
                .unwrap();
            assert_eq!(read(&mut follower), (first..first + 9).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_torn_end_is_waited_for_and_passed_over_when_it_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
        let mut follower = LogFollower::new(folder.path());
        write(&mut log, 1);
        let mut file = std::fs::OpenOptions::new().append(true).open(log.path()).unwrap();
        file.write_all(b"{\"timestamp\":\"2").unwrap();
        assert_eq!(read(&mut follower), [1]);
        write(&mut log, 2);
        assert_eq!(read(&mut follower), [2]);
    }

    #[test]
    fn a_log_that_was_removed_or_emptied_is_followed_in_its_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
        let mut follower = LogFollower::new(folder.path());
        write(&mut log, 1);
        assert_eq!(read(&mut follower), [1]);
        std::fs::remove_file(log.path()).unwrap();
        write(&mut log, 2);
        assert_eq!(read(&mut follower), [2]);
        std::fs::File::create(log.path()).unwrap();
        assert_eq!(read(&mut follower), [0u64; 0]);
        write(&mut log, 3);
        assert_eq!(read(&mut follower), [3]);
    }

    #[test]
    fn waiting_ends_when_something_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
        let follower = LogFollower::new(folder.path());
        write(&mut log, 1);
        let started = std::time::Instant::now();
        follower.wait(Duration::from_secs(600)).unwrap();
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
