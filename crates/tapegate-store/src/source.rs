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

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes_read += count as u64;
        (self.watch)(self.bytes_read, self.bytes_total);
        Ok(count)
    }
}

impl Source {
    /// Opens a tape; whether it is compressed is told from its first bytes, not from its name.
    pub fn open(path: &Path, watch: Watch) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes_total = file.metadata()?.len();
        let watched = Watched { file, bytes_read: 0, bytes_total, watch };
        let mut file = BufReader::with_capacity(READ_BYTES, watched);
        if file.fill_buf()?.starts_with(b"\x1f\x8b") {
            let (plain, cut_off) = GzipReader::new(file);
            let plain: Box<dyn BufRead> = Box::new(BufReader::with_capacity(READ_BYTES, plain));
            return Ok(Self { reader: Reader::new(plain), cut_off: Some(cut_off) });
        }
        let plain: Box<dyn BufRead> = Box::new(file);
        Ok(Self { reader: Reader::new(plain), cut_off: None })
    }

    /// Whether a compressed tape was found to be cut off, once it has been read to its end.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
