//! Writes a whole tape. It appears under its name when it is complete, or not at all.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use tapegate_core::tape::ByteSink;

use crate::gzip::GzipFile;
use crate::tape_file::{self, OpenError};
use crate::temporary_file::TemporaryFile;

const BUFFER_BYTES: usize = 256 * 1024;

/// A tape without a name yet. Dropped without [`ReplacementFile::commit`], it leaves nothing behind.
pub struct ReplacementFile {
    path: PathBuf,
    temporary: TemporaryFile,
    gzip: Option<GzipFile>,
    buffer: Vec<u8>,
    error: Option<io::Error>,
    /// The file to replace, locked to make sure that no recorder writes it.
    replaced: Option<File>,
}

impl ReplacementFile {
    /// Creates a tape that will be named `path`; a name that ends in `.gz` makes it compressed. An
    /// existing file is only replaced with `force`.
    pub fn create(path: &Path, force: bool) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let replaced = tape_file::lock_existing(path)?;
        if replaced.is_some() && !force {
            return Err(OpenError::Exists { path: path.to_owned() });
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
        }
        let temporary = TemporaryFile::next_to(path, Mode::RUSR | Mode::WUSR).map_err(io)?;
        let compressed = path.extension().is_some_and(|extension| extension == "gz");
        let gzip = match compressed {
            true => Some(GzipFile::new(temporary.file.try_clone().map_err(io)?)),
            false => None,
        };
        let (path, buffer) = (path.to_owned(), Vec::with_capacity(BUFFER_BYTES));
        Ok(Self { path, temporary, gzip, buffer, error: None, replaced })
    }

    /// Writes what is left, syncs it, and gives the tape its name.
    pub fn commit(mut self) -> Result<(), OpenError> {
        self.write_out();
        let flushed = self.gzip.iter().try_for_each(GzipFile::flush);
        let written = match self.error.take() {
            Some(error) => Err(error),
            None => flushed.and_then(|()| self.temporary.file.sync_all()),
        };
        let name = self.path.file_name().unwrap_or_default();
        let named = written.and_then(|()| match self.replaced {
            Some(_) => self.temporary.replace(name),
            None => self.temporary.rename_new(name),
        });
        match named {
            Ok(()) => {
                tape_file::sync_folder(&self.path);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpenError::Exists { path: self.path.clone() })
            }
            Err(source) => Err(OpenError::Io { path: self.path.clone(), source }),
        }
    }

    fn write_out(&mut self) {
        if self.error.is_none() {
            let written = match &self.gzip {
                Some(gzip) => gzip.append(&self.buffer),
                None => self.temporary.file.write_all(&self.buffer),
            };
            self.error = written.err();
        }
        self.buffer.clear();
    }
}

impl ByteSink for ReplacementFile {
    fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES {
            self.write_out();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_tape_appears_when_it_is_complete_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let mut tape = ReplacementFile::create(&path, false).unwrap();
        tape.put(b"one\n");
        assert!(!path.exists());
        tape.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_replaced_without_force_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        fs::write(&path, "old").unwrap();
        assert!(matches!(ReplacementFile::create(&path, false), Err(OpenError::Exists { .. })));
        let mut tape = ReplacementFile::create(&path, true).unwrap();
        tape.put(b"new");
        drop(tape);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let mut tape = ReplacementFile::create(&path, true).unwrap();
        tape.put(b"new");
        tape.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_name_taken_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let tape = ReplacementFile::create(&path, false).unwrap();
        fs::write(&path, "other").unwrap();
        assert!(matches!(tape.commit(), Err(OpenError::Exists { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"other");
    }

    #[test]
    fn links_and_tapes_in_use_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("t.jsonl"), folder.path().join("l.jsonl"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        assert!(matches!(ReplacementFile::create(&link, true), Err(OpenError::NotAFile { .. })));
        let recorder = File::open(&path).unwrap();
        recorder.lock().unwrap();
        assert!(matches!(ReplacementFile::create(&path, true), Err(OpenError::Busy { .. })));
    }
}
