//! The file beside a tape, for what its dialect has no line for.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tapegate_core::tape::Dialect;

use crate::file::{self, Opening};

/// The file for what the thoughtjack dialect has no line for; made when it is first needed.
pub(crate) struct Beside {
    pub(crate) path: PathBuf,
    /// What is written by the next commit.
    pub(crate) buffer: Vec<u8>,
    pub(crate) file: Option<File>,
    /// Its length.
    pub(crate) bytes: u64,
}

impl Beside {
    /// The file beside `tape`; beside a tape that begins now, what an older one left is taken away.
    pub(crate) fn new(tape: &Path, begins: bool) -> Self {
        let path = beside(tape);
        if begins && path.symlink_metadata().is_ok_and(|there| there.is_file()) {
            std::fs::remove_file(&path).ok();
        }
        Self { path, buffer: Vec::new(), file: None, bytes: 0 }
    }

    pub(crate) fn commit(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            let opened = file::open(&self.path, Opening::Append(Dialect::Overwatch))
                .map_err(io::Error::other)?;
            if opened.torn {
                self.buffer.insert(0, b'\n');
            }
            (self.file, self.bytes) = (Some(opened.file), opened.bytes);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.buffer)?;
            self.bytes += self.buffer.len() as u64;
        }
        self.buffer.clear();
        Ok(())
    }

    /// Takes back what was written since the file had `bytes` bytes.
    pub(crate) fn cut_back(&mut self, bytes: u64) {
        self.buffer.clear();
        if let Some(file) = &mut self.file {
            let cut = file.set_len(bytes).and_then(|()| file.seek(SeekFrom::Start(bytes)));
            self.bytes = if cut.is_ok() { bytes } else { self.bytes };
        }
    }

    pub(crate) fn sync(&self) {
        if let Some(file) = &self.file {
            // The tape itself is what must last; its sync reports a dying disk.
            drop(file.sync_data());
        }
    }
}

/// Where the frames of `tape` lie that its dialect has no line for.
pub fn beside(tape: &Path) -> PathBuf {
    let mut name = tape.as_os_str().to_owned();
    name.push(".anomalies.jsonl");
    name.into()
}
