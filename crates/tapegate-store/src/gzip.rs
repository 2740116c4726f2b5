//! Gzip tapes, with one member per flush, so that a crash loses at most what was not flushed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

/// How much text may be buffered before it is compressed without waiting for the flush interval.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// A gzip file that two threads write to.
#[derive(Debug, Clone)]
pub(crate) struct GzipFile(Arc<Mutex<GzipBuffer>>);

#[derive(Debug)]
struct GzipBuffer {
    text: Vec<u8>,
    /// How much text was accepted, and how much of it is in the file.
    bytes_taken: u64,
    bytes_written: u64,
    file: File,
    /// The offset of the member that ends the tape, until more is written.
    ended_at: Option<u64>,
}

impl GzipFile {
    pub(crate) fn new(file: File) -> Self {
        let (bytes_taken, bytes_written) = (0, 0);
        let text = Vec::new();
        let waiting = GzipBuffer { text, bytes_taken, bytes_written, file, ended_at: None };
        Self(Arc::new(Mutex::new(waiting)))
    }

    /// Buffers text, and writes it out if there is much: a large message makes several members.
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

    /// How many bytes of text were accepted, and how many of them are in the file.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (waiting.bytes_taken, waiting.bytes_written)
    }

    /// Writes the buffered text as a member of its own.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write()
    }

    /// Writes the buffered text and, as its own member, the last line; the next write replaces that
    /// line.
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

impl GzipBuffer {
    fn write(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(&self.text)?;
        let member = member.finish()?;
        // Only after the new member is packed, so that the tape is without an end as briefly as
        // possible.
        if let Some(start) = self.ended_at.take() {
            self.file.set_len(start)?;
            self.file.seek(SeekFrom::Start(start))?;
        }
        let start = self.file.stream_position()?;
        if let Err(error) = self.file.write_all(&member) {
            // A partial member in the middle of a file would hide everything after it.
            let cut = self.file.set_len(start);
            cut.and_then(|()| self.file.seek(SeekFrom::Start(start))).ok();
            return Err(error);
        }
        self.text.clear();
        self.bytes_written = self.bytes_taken;
        Ok(())
    }
}

/// The most that a gzip file may unpack to: a small one could otherwise fill any disk.
pub(crate) const UNPACKED_BYTES_MAX: u64 = 64 << 30;

/// How much any gzip file may unpack to, whatever its size.
const BOMB_BYTES_MIN: u64 = 1 << 30;
/// The largest ratio of unpacked to packed size beyond that. Tapes reach 5 to 50.
const BOMB_RATIO: u64 = 200;

/// Reads a gzip file up to where a crash truncated it.
pub(crate) struct GzipReader<R> {
    members: MultiGzDecoder<PackedBytes<R>>,
    cut_off: Arc<AtomicBool>,
    limits: UnpackLimits,
    bytes_unpacked: u64,
}

#[derive(Clone, Copy)]
struct UnpackLimits {
    bytes_max: u64,
    /// The ratio is checked from this size on.
    bomb_bytes_min: u64,
}

/// The compressed bytes, and how many of them have been consumed.
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
    /// Returns a reader, and a flag that is set if the file turns out to be truncated.
    pub(crate) fn new(source: R) -> (Self, Arc<AtomicBool>) {
        let cut_off = Arc::new(AtomicBool::new(false));
        let members = MultiGzDecoder::new(PackedBytes { source, count: 0 });
        let limits = UnpackLimits { bytes_max: UNPACKED_BYTES_MAX, bomb_bytes_min: BOMB_BYTES_MIN };
        (Self { members, cut_off: Arc::clone(&cut_off), limits, bytes_unpacked: 0 }, cut_off)
    }

    /// Fails if the file unpacks to more than any tape of its size.
    fn refuse_bombs(&self) -> io::Result<()> {
        let UnpackLimits { bytes_max, bomb_bytes_min } = self.limits;
        if self.bytes_unpacked > bytes_max {
            let message = format!("it unpacks to more than {} GiB", bytes_max >> 30);
            return Err(io::Error::other(message));
        }
        let expected_max = self.members.get_ref().count.saturating_mul(BOMB_RATIO);
        if self.bytes_unpacked > expected_max.max(bomb_bytes_min) {
            let message = format!(
                "it unpacks to more than {BOMB_RATIO} times its size, which tapes do not; unpack \
                 it with `gzip -d` if you trust it"
            );
            return Err(io::Error::other(message));
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
            // A recorder that was killed leaves this; all members before it are whole.
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
        // A file with the usual compression ratio is read whatever its length.
        let random: String =
            (0..20_000u64).map(|n| (n * 0x9e37_79b9 % 100_003).to_string()).collect();
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(random.as_bytes()).unwrap();
        assert_eq!(unpack(&member.finish().unwrap(), limits(1)), Ok(random.len()));
    }
}
