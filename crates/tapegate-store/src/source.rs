//! Reading tapes, plain or compressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
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
    cut_off: CutOff,
}

/// The text of a tape, compressed or not.
pub(crate) struct Plain {
    pub(crate) text: Box<dyn BufRead>,
    cut_off: CutOff,
}

/// Whether a compressed tape was found to be cut off.
type CutOff = Option<Arc<AtomicBool>>;

/// Is told how many bytes of how many have been read.
pub type Watch = Box<dyn FnMut(u64, u64)>;

/// A file whose reading is watched.
struct Watched {
    file: File,
    bytes_read: u64,
    bytes_total: u64,
    watch: Watch,
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

impl Source {
    /// Opens a tape; whether it is compressed is told from its first bytes, not from its name.
    pub fn open(path: &Path, watch: Watch) -> io::Result<Self> {
        let Plain { text, cut_off } = Plain::read(File::open(path)?, watch)?;
        Ok(Self { reader: Reader::new(text), cut_off })
    }

    /// Whether a compressed tape was found to be cut off, once it has been read to its end.
    pub fn is_cut_off(&self) -> bool {
        is_set(&self.cut_off)
    }
}

impl Plain {
    /// Reads a file; whether it is compressed is told from its first bytes.
    pub(crate) fn read(file: File, watch: Watch) -> io::Result<Self> {
        let bytes_total = file.metadata()?.len();
        let watched = Watched { file, bytes_read: 0, bytes_total, watch };
        let mut file = BufReader::with_capacity(READ_BYTES, watched);
        if file.fill_buf()?.starts_with(b"\x1f\x8b") {
            let (members, cut_off) = GzipReader::new(file);
            let text = Box::new(BufReader::with_capacity(READ_BYTES, members));
            return Ok(Self { text, cut_off: Some(cut_off) });
        }
        Ok(Self { text: Box::new(file), cut_off: None })
    }

    /// Whether a compressed tape was found to be cut off, once it has been read to its end.
    pub(crate) fn is_cut_off(&self) -> bool {
        is_set(&self.cut_off)
    }
}

fn is_set(flag: &CutOff) -> bool {
    flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
}
