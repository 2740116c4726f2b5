//! The file next to a tape for frames that its dialect cannot represent.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tapegate_core::tape::{ByteSink, Dialect};

use crate::tape_file::{self, OpenMode};

/// How much is buffered before it is written without waiting for the commit: frames may be large.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// The file for frames that the thoughtjack dialect cannot represent; created when first needed.
pub(crate) struct AnomalyFile {
    pub(crate) path: PathBuf,
    /// What the next commit writes.
    buffer: Vec<u8>,
    pub(crate) file: Option<File>,
    bytes_written: u64,
    /// Its length after the last commit.
    bytes_committed: u64,
    error: Option<io::Error>,
}

impl AnomalyFile {
    /// The file next to `tape`. For a new tape (`begins`), the file of an older one is removed.
    pub(crate) fn new(tape: &Path, begins: bool) -> Self {
        let path = anomaly_path(tape);
        // The two files belong together: old anomalies beside a new tape would mislead readers.
        if begins && path.symlink_metadata().is_ok_and(|there| there.is_file()) {
            std::fs::remove_file(&path).ok();
        }
        Self {
            path,
            buffer: Vec::new(),
            file: None,
            bytes_written: 0,
            bytes_committed: 0,
            error: None,
        }
    }

    /// Writes the buffer; [`AnomalyFile::settle`] commits it, [`AnomalyFile::truncate_uncommitted`] undoes it.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            let opened = tape_file::open(&self.path, OpenMode::Append(Dialect::Overwatch))
                .map_err(io::Error::other)?;
            if opened.torn {
                self.buffer.insert(0, b'\n');
            }
            self.file = Some(opened.file);
            (self.bytes_written, self.bytes_committed) = (opened.bytes, opened.bytes);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.buffer)?;
            self.bytes_written += self.buffer.len() as u64;
        }
        self.buffer.clear();
        self.buffer.shrink_to(WAITING_BYTES_MAX);
        Ok(())
    }

    /// Marks what was written as committed.
    pub(crate) fn settle(&mut self) {
        self.bytes_committed = self.bytes_written;
    }

    /// Undoes what was written since the last commit. A file in which nothing was committed is removed.
    pub(crate) fn truncate_uncommitted(&mut self) {
        self.buffer.clear();
        let bytes = self.bytes_committed;
        if bytes == 0 && self.file.take().is_some() {
            // An empty file is not a tape: every reader would report it as damaged.
            std::fs::remove_file(&self.path).ok();
            self.bytes_written = 0;
            return;
        }
        if let Some(file) = &mut self.file {
            let cut = file.set_len(bytes).and_then(|()| file.seek(SeekFrom::Start(bytes)));
            self.bytes_written = if cut.is_ok() { bytes } else { self.bytes_written };
        }
    }

    pub(crate) fn sync(&self) {
        if let Some(file) = &self.file {
            // Only the tape itself must be durable; its sync reports a failing disk.
            drop(file.sync_data());
        }
    }
}

impl ByteSink for AnomalyFile {
    fn put(&mut self, bytes: &[u8]) {
        if self.error.is_some() {
            return;
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WAITING_BYTES_MAX {
            self.error = self.write().err();
        }
    }
}

/// The path of the file for frames of `tape` that its dialect cannot represent.
pub fn anomaly_path(tape: &Path) -> PathBuf {
    let mut name = tape.as_os_str().to_owned();
    name.push(".anomalies.jsonl");
    name.into()
}
