//! Gzip tapes: one member a flush, so that a crash costs at most what was not flushed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

/// What may wait in memory before it is compressed without waiting for the interval.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// A gzip file that is appended to by two threads.
#[derive(Debug, Clone)]
pub(crate) struct GzipFile(Arc<Mutex<Waiting>>);

#[derive(Debug)]
struct Waiting {
    text: Vec<u8>,
    file: File,
}

impl GzipFile {
    pub(crate) fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(Waiting { text: Vec::new(), file })))
    }

    /// Takes text, and writes it at once if much has gathered.
    pub(crate) fn append(&self, text: &[u8]) -> io::Result<()> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.text.extend_from_slice(text);
        if waiting.text.len() >= WAITING_BYTES_MAX { waiting.write() } else { Ok(()) }
    }

    /// Writes what has gathered as a member of its own.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write()
    }
}

impl Waiting {
    fn write(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(&self.text)?;
        let member = member.finish()?;
        let start = self.file.stream_position()?;
        if let Err(error) = self.file.write_all(&member) {
            // Half a member in the middle of a file would hide everything after it.
            let cut = self.file.set_len(start);
            cut.and_then(|()| self.file.seek(SeekFrom::Start(start))).ok();
            return Err(error);
        }
        self.text.clear();
        Ok(())
    }
}

/// The most that a gzip file may unpack to: a small one may hold more than any disk.
pub(crate) const UNPACKED_BYTES_MAX: u64 = 64 << 30;

/// Reads a gzip file up to where a crash cut it off.
pub(crate) struct GzipReader<R> {
    members: MultiGzDecoder<R>,
    cut_off: Arc<AtomicBool>,
    /// How much more it may give.
    bytes_left: u64,
}

impl<R: io::BufRead> GzipReader<R> {
    /// A reader, and a flag that is set when the file turns out to be cut off.
    pub(crate) fn new(source: R) -> (Self, Arc<AtomicBool>) {
        let cut_off = Arc::new(AtomicBool::new(false));
        let members = MultiGzDecoder::new(source);
        let bytes_left = UNPACKED_BYTES_MAX;
        (Self { members, cut_off: Arc::clone(&cut_off), bytes_left }, cut_off)
    }
}

impl<R: io::BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cut_off.load(Ordering::Relaxed) {
            return Ok(0);
        }
        match self.members.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut_off.store(true, Ordering::Relaxed);
                Ok(0)
            }
            Ok(count) => {
                let bytes_left = self.bytes_left.checked_sub(count as u64);
                self.bytes_left = bytes_left.ok_or_else(too_much)?;
                Ok(count)
            }
            Err(error) => Err(error),
        }
    }
}

fn too_much() -> io::Error {
    io::Error::other(format!("it unpacks to more than {} GiB", UNPACKED_BYTES_MAX >> 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_unpacks_to_too_much_is_an_error_and_not_read_on() {
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(&[b'x'; 100_000]).unwrap();
        let packed = member.finish().unwrap();
        for (bytes_left, fits) in [(100_000, true), (99_999, false)] {
            let (mut reader, _) = GzipReader::new(&packed[..]);
            reader.bytes_left = bytes_left;
            let read = reader.read_to_end(&mut Vec::new());
            let read = read.map_err(|error| error.to_string());
            let expected = Err("it unpacks to more than 64 GiB".to_owned());
            assert_eq!(read, if fits { Ok(100_000) } else { expected });
        }
    }
}
