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
    /// How much was taken, and how much of that is in the file.
    bytes_taken: u64,
    bytes_written: u64,
    file: File,
    /// Where the member starts that ends the tape for now.
    ended_at: Option<u64>,
}

impl GzipFile {
    pub(crate) fn new(file: File) -> Self {
        let (bytes_taken, bytes_written) = (0, 0);
        let text = Vec::new();
        let waiting = Waiting { text, bytes_taken, bytes_written, file, ended_at: None };
        Self(Arc::new(Mutex::new(waiting)))
    }

    /// Takes text, and writes it at once if much has gathered: a large message makes several members.
    pub(crate) fn append(&self, text: &[u8]) -> io::Result<()> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for part in text.chunks(WAITING_BYTES_MAX) {
            waiting.text.extend_from_slice(part);
            waiting.bytes_taken += part.len() as u64;
            if waiting.text.len() >= WAITING_BYTES_MAX {
                waiting.write()?;
            }
        }
        Ok(())
    }

    /// How many bytes of text were taken, and how many of them are in the file.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (waiting.bytes_taken, waiting.bytes_written)
    }

    /// Writes what has gathered as a member of its own.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write()
    }

    /// Writes what has gathered and, as a member of its own, the last line, which goes when more comes.
    pub(crate) fn settle(&self, last: &[u8]) -> io::Result<()> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.text.is_empty() && waiting.ended_at.is_some() {
            return Ok(());
        }
        waiting.write()?;
        let start = waiting.file.stream_position()?;
        waiting.text.extend_from_slice(last);
        waiting.write()?;
        waiting.ended_at = Some(start);
        Ok(())
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
        if let Some(start) = self.ended_at.take() {
            self.file.set_len(start)?;
            self.file.seek(SeekFrom::Start(start))?;
        }
        let start = self.file.stream_position()?;
        if let Err(error) = self.file.write_all(&member) {
            // Half a member in the middle of a file would hide everything after it.
            let cut = self.file.set_len(start);
            cut.and_then(|()| self.file.seek(SeekFrom::Start(start))).ok();
            return Err(error);
        }
        self.text.clear();
        self.bytes_written = self.bytes_taken;
        Ok(())
    }
}

/// The most that a gzip file may unpack to: a small one may hold more than any disk.
pub(crate) const UNPACKED_BYTES_MAX: u64 = 64 << 30;

/// How much may come of a gzip file whatever its size.
const BOMB_BYTES_MIN: u64 = 1 << 30;
/// How many times its size a gzip file may unpack to beyond that. Tapes come to 5 to 50 times.
const BOMB_RATIO: u64 = 200;

/// Reads a gzip file up to where a crash cut it off.
pub(crate) struct GzipReader<R> {
    members: MultiGzDecoder<PackedBytes<R>>,
    cut_off: Arc<AtomicBool>,
    limits: UnpackLimits,
    bytes_unpacked: u64,
}

/// How much a gzip file may unpack to.
#[derive(Clone, Copy)]
struct UnpackLimits {
    bytes_max: u64,
    /// From how many bytes on the ratio counts.
    bomb_bytes_min: u64,
}

/// The compressed bytes, and how many of them have been used.
struct PackedBytes<R> {
    source: R,
    count: u64,
}

impl<R: io::BufRead> Read for PackedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

impl<R: io::BufRead> io::BufRead for PackedBytes<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.source.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.count += count as u64;
        self.source.consume(count);
    }
}

impl<R: io::BufRead> GzipReader<R> {
    /// A reader, and a flag that is set when the file turns out to be cut off.
    pub(crate) fn new(source: R) -> (Self, Arc<AtomicBool>) {
        let cut_off = Arc::new(AtomicBool::new(false));
        let members = MultiGzDecoder::new(PackedBytes { source, count: 0 });
        let limits = UnpackLimits { bytes_max: UNPACKED_BYTES_MAX, bomb_bytes_min: BOMB_BYTES_MIN };
        (Self { members, cut_off: Arc::clone(&cut_off), limits, bytes_unpacked: 0 }, cut_off)
    }

    /// An error if there is more in the file than in any tape of its size.
    fn refuse_bombs(&self) -> io::Result<()> {
        let UnpackLimits { bytes_max, bomb_bytes_min } = self.limits;
        if self.bytes_unpacked > bytes_max {
            let words = format!("it unpacks to more than {} GiB", bytes_max >> 30);
            return Err(io::Error::other(words));
        }
        let expected_max = self.members.get_ref().count.saturating_mul(BOMB_RATIO);
        if self.bytes_unpacked > expected_max.max(bomb_bytes_min) {
            let words = format!(
                "it unpacks to more than {BOMB_RATIO} times its size, which tapes do not; unpack \
                 it with `gzip -d` if you trust it"
            );
            return Err(io::Error::other(words));
        }
        Ok(())
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
                self.bytes_unpacked += count as u64;
                self.refuse_bombs()?;
                Ok(count)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bytes: usize) -> Vec<u8> {
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(&vec![b'x'; bytes]).unwrap();
        member.finish().unwrap()
    }

    fn unpack(packed: &[u8], limits: UnpackLimits) -> Result<usize, String> {
        let (mut reader, _) = GzipReader::new(packed);
        reader.limits = limits;
        reader.read_to_end(&mut Vec::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_that_unpacks_to_too_much_is_an_error_and_not_read_on() {
        let packed = packed(100_000);
        for (bytes_max, fits) in [(100_000, true), (99_999, false)] {
            let limits = UnpackLimits { bytes_max, bomb_bytes_min: BOMB_BYTES_MIN };
            let expected = Err("it unpacks to more than 0 GiB".to_owned());
            assert_eq!(unpack(&packed, limits), if fits { Ok(100_000) } else { expected });
        }
    }

    #[test]
    fn a_file_that_unpacks_to_far_more_than_its_size_is_taken_for_a_bomb() {
        let bomb = packed(1_000_000);
        assert!(bomb.len() < 5_000);
        let limits = |bomb_bytes_min| UnpackLimits { bytes_max: u64::MAX, bomb_bytes_min };
        assert_eq!(unpack(&bomb, limits(1_000_000)), Ok(1_000_000));
        let error = unpack(&bomb, limits(999_999)).unwrap_err();
        assert!(error.starts_with("it unpacks to more than 200 times its size"), "{error}");
        // What is compressed as tapes are is read however long it is.
        let random: String =
            (0..20_000u64).map(|n| (n * 0x9e37_79b9 % 100_003).to_string()).collect();
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(random.as_bytes()).unwrap();
        assert_eq!(unpack(&member.finish().unwrap(), limits(1)), Ok(random.len()));
    }
}
