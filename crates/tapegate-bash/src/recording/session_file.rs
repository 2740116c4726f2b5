//! The file of a session, while it is written.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

/// A session file that this process writes. Its lock says that the session has a writer.
#[derive(Debug)]
pub(super) struct SessionFile {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl SessionFile {
    /// Creates the file of a new session.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = open(path, OFlags::CREATE | OFlags::EXCL)?;
        // Waits for a reader that looks for a writer at this moment.
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { file, path: path.to_owned(), bytes: 0 })
    }

    /// Opens the file of a session that has no writer any more; `None` if it has one.
    pub(super) fn take_over(path: &Path) -> io::Result<Option<Self>> {
        let file = open(path, OFlags::empty())?;
        // The kernel releases the lock with its process, so a killed writer needs no time-out.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let bytes = file.metadata()?.len();
        let mut taken = Self { file, path: path.to_owned(), bytes };
        taken.cut_torn_line()?;
        Ok(Some(taken))
    }

    /// Removes a last line that its writer did not finish: it was never acknowledged.
    fn cut_torn_line(&mut self) -> io::Result<()> {
        let mut end = self.bytes;
        let mut buffer = [0; 4096];
        while end > 0 {
            let start = end.saturating_sub(buffer.len() as u64);
            let chunk = &mut buffer[..(end - start) as usize];
            // Backwards: the torn line is at the end of a file of any length.
            self.file.read_exact_at(chunk, start)?;
            if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
                end = start + at as u64 + 1;
                break;
            }
            end = start;
        }
        if end < self.bytes {
            self.file.set_len(end)?;
            self.bytes = end;
        }
        Ok(())
    }

    /// Appends a line, and returns when it is on disk. After an error the file is as before.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                self.bytes += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Without this, the next line would be appended to half of this one.
                self.file.set_len(self.bytes).ok();
                Err(error)
            }
        }
    }

    /// Whether the file is where readers look for it, and as long as what was written.
    pub(super) fn is_intact(&self) -> bool {
        let (Ok(there), Ok(own)) = (self.path.symlink_metadata(), self.file.metadata()) else {
            return false;
        };
        (there.dev(), there.ino(), there.len()) == (own.dev(), own.ino(), self.bytes)
    }

    /// How long the file is.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    // No link is followed, or a recording could be made to append to a file of the user.
    let flags = flags | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Whether a session has a writer.
pub(super) fn has_writer(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    // A shared lock, so that two readers do not take each other for writers.
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_cut_and_whole_lines_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let long = "x".repeat(10_000);
        for (text, expected) in [
            ("{}\n{\"a\"", "{}\n"),
            ("{}\n", "{}\n"),
            ("{\"torn", ""),
            ("", ""),
            (&format!("{{}}\n{long}"), "{}\n"),
        ] {
            std::fs::write(&path, text).unwrap();
            let mut file = SessionFile::take_over(&path).unwrap().unwrap();
            file.append(b"next\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{expected}next\n"));
            assert_eq!(file.bytes(), expected.len() as u64 + 5);
        }
    }

    #[test]
    fn a_file_that_is_gone_replaced_or_changed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let mut file = SessionFile::create(&path).unwrap();
        file.append(b"a\n").unwrap();
        assert!(file.is_intact());
        std::fs::write(&path, "b").unwrap();
        assert!(!file.is_intact(), "shorter");
        std::fs::remove_file(&path).unwrap();
        assert!(!file.is_intact(), "gone");
        std::fs::write(&path, "a\n").unwrap();
        assert!(!file.is_intact(), "another file");
    }

    #[test]
    fn a_session_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let file = SessionFile::create(&path).unwrap();
        assert!(has_writer(&path) && SessionFile::take_over(&path).unwrap().is_none());
        assert!(SessionFile::create(&path).is_err(), "the name is taken");
        drop(file);
        assert!(!has_writer(&path) && SessionFile::take_over(&path).unwrap().is_some());
    }
}
