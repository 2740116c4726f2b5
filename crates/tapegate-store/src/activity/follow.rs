//! Reads a log from its oldest file on, and continues as it grows and is rotated.
//!
//! Only whole lines are read. A torn end left by a killed writer is skipped once the next writer
//! has cut it off and continued in its place.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::events::{Logged, NotAnEvent};
use super::files::{Part, parts};
use crate::watch::Watcher;

/// How much is read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Longer than any valid line.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many rotations to tolerate while looking for the next file, before trying again later.
const TRIES_MAX: usize = 100;

/// A log that is read to its end and followed from there.
#[derive(Debug)]
pub struct Follower {
    folder: PathBuf,
    watcher: Watcher,
    reading: Option<Reading>,
}

/// The file that is being read.
#[derive(Debug)]
struct Reading {
    part: Part,
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
enum Next {
    /// The same file under a new name.
    Renamed(Part),
    /// Another file.
    Other(Reading),
}

impl Follower {
    /// Follows the log in `folder` from its start.
    pub fn new(folder: &Path) -> Self {
        // Start watching before reading, so that nothing is missed in between.
        let watcher = Watcher::of_contents(folder);
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
    pub fn next_line(&mut self) -> io::Result<Option<Result<Logged, NotAnEvent>>> {
        loop {
            if let Some(reading) = &mut self.reading
                && let Some(logged) = reading.next()?
            {
                return Ok(Some(logged));
            }
            if !self.turn_over()? {
                return Ok(None);
            }
        }
    }

    /// Waits until the log may have grown, for at most `timeout`.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        self.watcher.wait(timeout)
    }

    /// Moves on to the file after the one that was read to its end; false if there is none.
    fn turn_over(&mut self) -> io::Result<bool> {
        let folder = self.folder.clone();
        self.turn_over_among(&mut || match parts(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            parts => parts,
        })
    }

    /// Like [`Follower::turn_over`], with the files listed by `look`.
    fn turn_over_among(
        &mut self,
        look: &mut dyn FnMut() -> io::Result<Vec<Part>>,
    ) -> io::Result<bool> {
        let mut parts = look()?;
        for _ in 0..TRIES_MAX {
            let next = self.following(parts.clone())?;
            // If a file was rotated meanwhile, the file found may not be the next one.
            let by_now = look()?;
            if by_now == parts {
                let found = next.is_some();
                match next {
                    Some(Next::Renamed(part)) => {
                        self.reading.iter_mut().for_each(|reading| reading.part = part.clone());
                    }
                    Some(Next::Other(reading)) => self.reading = Some(reading),
                    None => {}
                }
                return Ok(found);
            }
            parts = by_now;
        }
        Ok(false)
    }

    /// Determines what comes after the current file among these parts.
    fn following(&self, mut parts: Vec<Part>) -> io::Result<Option<Next>> {
        if let Some(reading) = &self.reading {
            let ours = identity(&reading.file)?;
            let place = parts.iter().position(|part| {
                part.path.symlink_metadata().is_ok_and(|there| (there.dev(), there.ino()) == ours)
            });
            match place {
                // Lines may have been added before it was rotated, so it is read to its end once
                // more under its new name.
                Some(place) if parts[place] != reading.part => {
                    return Ok(Some(Next::Renamed(parts.swap_remove(place))));
                }
                Some(place) => drop(parts.drain(..=place)),
                None => parts.retain(|part| part.number >= reading.part.number),
            }
        }
        Ok(first_of(parts)?.map(Next::Other))
    }
}

/// Opens the first of these files that still exists.
fn first_of(parts: Vec<Part>) -> io::Result<Option<Reading>> {
    for part in parts {
        match super::files::open(&part.path) {
            Ok(file) => {
                let buffer = Vec::new();
                return Ok(Some(Reading { part, file, bytes: 0, line: 0, buffer, used: 0 }));
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

impl Reading {
    fn next(&mut self) -> io::Result<Option<Result<Logged, NotAnEvent>>> {
        loop {
            let rest = &self.buffer[self.used..];
            let end = rest.iter().position(|byte| *byte == b'\n');
            if let Some(end) = end {
                self.line += 1;
                let line = self.line;
                let logged = Logged::read(line, &rest[..end]);
                self.used += end + 1;
                self.bytes += end as u64 + 1;
                return Ok(Some(logged.map_err(|source| NotAnEvent::Json { line, source })));
            }
            if !self.read_on()? {
                return Ok(None);
            }
        }
    }

    /// Reads more; false if there is none. An incomplete line is read again the next time.
    fn read_on(&mut self) -> io::Result<bool> {
        let held = self.buffer.len() - self.used;
        if held > LINE_BYTES_MAX {
            // Not a valid line: skip it piece by piece; its remains are not valid either.
            self.bytes += held as u64;
            self.buffer.clear();
            self.used = 0;
            return self.read_on();
        }
        self.buffer.drain(..self.used);
        self.used = 0;
        self.buffer.resize(held + READ_BYTES.max(held), 0);
        let count = self.file.read_at(&mut self.buffer[held..], self.bytes + held as u64)?;
        self.buffer.truncate(held + count);
        if count > 0 {
            return Ok(true);
        }
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

    use super::*;
    use crate::activity::{ActivityLog, Event, Options};

    fn write(log: &mut ActivityLog, number: u64) {
        log.append(&Event { tape_seq: Some(number), kind: "decision", ..Event::default() });
        log.commit().unwrap();
    }

    /// The numbers of the events that can be read.
    fn read(follower: &mut Follower) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(next) = follower.next_line().unwrap() {
            numbers.extend(next.unwrap().number("tape_seq"));
        }
        numbers
    }

    #[test]
    fn a_log_is_followed_over_every_file_that_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { rotate_bytes: 700, retention: None };
        let mut follower = Follower::new(folder.path());
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
        let late: Vec<u64> = read(&mut Follower::new(folder.path()));
        assert_eq!(late, (0..expected).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_missed_when_files_are_put_aside_while_the_next_is_looked_for() {
        for first in [1, 4] {
            let folder = tempfile::tempdir().unwrap();
            let options = Options { rotate_bytes: 700, retention: None };
            let mut log = ActivityLog::open(folder.path(), options).unwrap();
            let mut follower = Follower::new(folder.path());
            (0..first).for_each(|number| write(&mut log, number));
            assert_eq!(read(&mut follower).len() as u64, first);
            // The first listing is outdated as soon as it is returned.
            let mut late = first..first + 9;
            follower
                .turn_over_among(&mut || {
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
        let mut log = ActivityLog::open(folder.path(), Options::default()).unwrap();
        let mut follower = Follower::new(folder.path());
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
        let mut log = ActivityLog::open(folder.path(), Options::default()).unwrap();
        let mut follower = Follower::new(folder.path());
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
        let mut log = ActivityLog::open(folder.path(), Options::default()).unwrap();
        let follower = Follower::new(folder.path());
        write(&mut log, 1);
        let started = std::time::Instant::now();
        follower.wait(Duration::from_secs(600)).unwrap();
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
