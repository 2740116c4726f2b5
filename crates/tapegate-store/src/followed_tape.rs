//! Reads a tape to its end and follows it as it grows.
//!
//! Only complete lines are returned, and only complete members of a compressed tape are read. If
//! another file takes the tape's name, the old one is read to its end and the new one from its
//! start.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::bufread::GzDecoder;
use tapegate_core::tape::entry_bytes_max;

use crate::folder_watcher::FolderWatcher;
use crate::input;

/// How much is read at a time.
const READ_BYTES: usize = 64 * 1024;
/// The most that a member of a compressed tape may unpack to. Ours have little more than 1 MiB.
const PART_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How much memory the line buffer keeps.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// A tape that is being followed.
#[derive(Debug)]
pub struct FollowedTape {
    path: PathBuf,
    watcher: FolderWatcher,
    file: Option<File>,
    /// How much of the file was read.
    bytes: u64,
    is_gzip: bool,
    /// Text that was read but not returned yet, and where it starts.
    text: Vec<u8>,
    used: usize,
    /// Whether that is the rest of a line that is too long.
    skips: bool,
    line: u64,
}

/// A line of a followed tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowedLine {
    /// The text without its line end.
    Whole(Vec<u8>),
    /// A line longer than the longest entry; its text is dropped.
    TooLong,
}

impl FollowedTape {
    /// Follows the tape with this name, which need not exist yet.
    pub fn new(path: &Path) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Start watching before reading, so that nothing is missed in between.
        let watcher = FolderWatcher::for_contents(folder.unwrap_or(Path::new(".")));
        Self {
            path: path.to_owned(),
            watcher,
            file: None,
            bytes: 0,
            is_gzip: false,
            text: Vec::new(),
            used: 0,
            skips: false,
            line: 0,
        }
    }

    /// The next complete line and its number, or `None` if there is none yet.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, FollowedLine)>> {
        let line_bytes_max = entry_bytes_max();
        loop {
            let rest = &self.text[self.used..];
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let is_too_long = std::mem::take(&mut self.skips) || end > line_bytes_max;
                let line = match is_too_long {
                    true => FollowedLine::TooLong,
                    false => FollowedLine::Whole(rest[..end].to_vec()),
                };
                self.used += end + 1;
                self.line += 1;
                return Ok(Some((self.line, line)));
            }
            if self.skips || rest.len() > line_bytes_max {
                // Drop what was read of it.
                (self.skips, self.used) = (true, self.text.len());
            }
            if !self.read_more()? && !self.reopen()? {
                return Ok(None);
            }
        }
    }

    /// Whether a process is writing the tape, judged by its lock; false if that cannot be
    /// determined.
    pub fn has_writer(&self) -> bool {
        let Some(file) = &self.file else { return false };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => false,
            Ok(()) => {
                file.unlock().ok();
                false
            }
        }
    }

    /// Waits until the tape may have grown, for at most `timeout`.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        self.watcher.wait(timeout)
    }

    /// Reads more of the file; false if there is no more.
    fn read_more(&mut self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        if file.metadata()?.len() < self.bytes {
            // The file was truncated, so everything in it is new.
            self.restart();
            return Ok(true);
        }
        self.text.drain(..self.used);
        self.text.shrink_to(KEPT_BYTES_MAX);
        self.used = 0;
        if self.bytes == 0 {
            let mut magic = [0; 2];
            self.is_gzip = file.read_at(&mut magic, 0)? == 2 && magic == [0x1f, 0x8b];
        }
        if self.is_gzip {
            return self.read_member();
        }
        let held = self.text.len();
        self.text.resize(held + READ_BYTES.max(held), 0);
        let count = file.read_at(&mut self.text[held..], self.bytes)?;
        self.text.truncate(held + count);
        self.bytes += count as u64;
        Ok(count > 0)
    }

    /// Unpacks the next member, if it is complete.
    fn read_member(&mut self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let packed = io::BufReader::new(FileFrom { file, at: self.bytes });
        let mut member = GzDecoder::new(packed);
        let held = self.text.len();
        let limit = PART_BYTES_MAX as u64 + 1;
        match member.by_ref().take(limit).read_to_end(&mut self.text) {
            Ok(count) if count as u64 == limit => {
                Err(io::Error::other(format!("a part unpacks to over {PART_BYTES_MAX} bytes")))
            }
            Ok(_) => {
                let reader = member.into_inner();
                let end = reader.get_ref().at - reader.buffer().len() as u64;
                let grown = end > self.bytes;
                self.bytes = end;
                Ok(grown)
            }
            // The writer is in the middle of this member, or was killed there.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.text.truncate(held);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Moves on to the file that now has the tape's name; false if it is the same one or does not
    /// exist.
    fn reopen(&mut self) -> io::Result<bool> {
        let there = match std::fs::metadata(&self.path) {
            Ok(there) => (there.dev(), there.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        if let Some(file) = &self.file {
            let ours = file.metadata()?;
            // More may have been written between the last read and the renaming.
            if (ours.dev(), ours.ino()) == there || ours.len() > self.bytes && !self.is_gzip {
                return Ok(ours.len() > self.bytes && !self.is_gzip);
            }
        }
        self.file = Some(input::open(&self.path)?);
        self.restart();
        Ok(true)
    }

    fn restart(&mut self) {
        (self.bytes, self.used, self.line, self.is_gzip) = (0, 0, 0, false);
        self.skips = false;
        self.text.clear();
    }
}

/// A file, read from an offset on.
struct FileFrom<'a> {
    file: &'a File,
    at: u64,
}

impl Read for FileFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn lines(tape: &mut FollowedTape) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some((number, line)) = tape.next_line().unwrap() {
            let FollowedLine::Whole(line) = line else { panic!("line {number} is too long") };
            lines.push(format!("{number} {}", String::from_utf8(line).unwrap()));
        }
        lines
    }

    #[test]
    fn a_tape_is_followed_as_it_grows_is_emptied_and_changes_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let mut tape = FollowedTape::new(&path);
        assert_eq!(lines(&mut tape), [""; 0]);
        let mut file = File::create(&path).unwrap();
        file.write_all(b"a\nb").unwrap();
        assert_eq!(lines(&mut tape), ["1 a"]);
        file.write_all(b"c\n").unwrap();
        assert_eq!(lines(&mut tape), ["2 bc"]);
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        file.write_all(b"d\n").unwrap();
        assert_eq!(lines(&mut tape), ["3 d"]);
        file.write_all(b"e\n").unwrap();
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(lines(&mut tape), ["4 e", "1 new"]);
        File::create(&path).unwrap();
        assert_eq!(lines(&mut tape), [""; 0]);
        std::fs::write(&path, "n\n").unwrap();
        assert_eq!(lines(&mut tape), ["1 n"]);
    }

    #[test]
    fn a_compressed_tape_is_followed_member_by_member() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl.gz");
        let member = |text: &[u8]| {
            let mut member = GzEncoder::new(Vec::new(), Compression::default());
            member.write_all(text).unwrap();
            member.finish().unwrap()
        };
        let mut file = File::create(&path).unwrap();
        let mut tape = FollowedTape::new(&path);
        file.write_all(&member(b"a\nb")).unwrap();
        assert_eq!(lines(&mut tape), ["1 a"]);
        let next = member(b"c\nd\n");
        file.write_all(&next[..9]).unwrap();
        assert_eq!(lines(&mut tape), [""; 0]);
        file.write_all(&next[9..]).unwrap();
        assert_eq!(lines(&mut tape), ["2 bc", "3 d"]);
        assert_eq!(lines(&mut tape), [""; 0]);
    }

    #[test]
    fn a_writer_is_known_by_its_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let file = File::create(&path).unwrap();
        let mut tape = FollowedTape::new(&path);
        assert_eq!(lines(&mut tape), [""; 0]);
        file.try_lock().unwrap();
        assert!(tape.has_writer());
        drop(file);
        assert!(!tape.has_writer());
    }
}
