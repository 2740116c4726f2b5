//! Reading tapes, plain or compressed, from files and from pipes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tapegate_core::tape::Reader;

use crate::gzip::GzipReader;

/// How much is read at a time.
const READ_BYTES: usize = 256 * 1024;

/// A tape opened for reading.
pub struct Source {
    /// Its entries.
    pub reader: Reader<Box<dyn BufRead>>,
    cut_off: Option<Arc<AtomicBool>>,
}

/// Is told how many bytes of how many have been read.
pub type Watch = Box<dyn FnMut(u64, u64)>;

/// A file whose reading is watched.
struct Watched {
    file: File,
    bytes_read: u64,
    bytes_total: u64,
    watch: Watch,
}

/// Keeps what is read in a file.
struct Tee {
    source: Box<dyn Read>,
    copy: File,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes_read += count as u64;
        // How much a pipe will yet give cannot be told.
        (self.watch)(self.bytes_read, self.bytes_total.max(self.bytes_read));
        Ok(count)
    }
}

impl Read for Tee {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.copy.write_all(&buffer[..count])?;
        Ok(count)
    }
}

impl Source {
    /// Opens a tape; whether it is compressed is told from its first bytes, not from its name.
    pub fn open(path: &Path, watch: Watch) -> io::Result<Self> {
        Self::of(File::open(path)?, watch, |_| Ok(None))
    }

    /// Reads a tape from `file`. `copy` is asked whether to keep what is read, and where, once it is
    /// known whether the tape is compressed.
    pub(crate) fn of(
        file: File,
        watch: Watch,
        copy: impl FnOnce(bool) -> io::Result<Option<File>>,
    ) -> io::Result<Self> {
        let bytes_total = file.metadata()?.len();
        let watched = Watched { file, bytes_read: 0, bytes_total, watch };
        let mut file = BufReader::with_capacity(READ_BYTES, watched);
        let compressed = file.fill_buf()?.starts_with(b"\x1f\x8b");
        let (mut plain, cut_off): (Box<dyn BufRead>, _) = if compressed {
            let (members, cut_off) = GzipReader::new(file);
            (Box::new(BufReader::with_capacity(READ_BYTES, members)), Some(cut_off))
        } else {
            (Box::new(file), None)
        };
        if let Some(copy) = copy(compressed)? {
            let tee = Tee { source: Box::new(plain), copy };
            plain = Box::new(BufReader::with_capacity(READ_BYTES, tee));
        }
        Ok(Self { reader: Reader::new(plain), cut_off })
    }

    /// Whether a compressed tape was found to be cut off, once it has been read to its end.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
