//! Reads the message bodies of a tape from its file on demand.
//!
//! One window of the file is buffered. It grows while bodies are read in the order of the tape,
//! which saves system calls, and is small for a body out of order, which avoids needless reading.
//! The file may be appended to during replay. If it is truncated or overwritten in place, reading a
//! body fails soon after, as far as that can be detected.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

use tapegate_core::tape::index::BodySource;

/// The most that is read at once, unless a body is longer.
const WINDOW_BYTES_MAX: usize = 256 * 1024;
/// How much is read for a body out of order.
const WINDOW_BYTES_MIN: usize = 512;
/// The most that is read ahead because of [`BodySource::expect`].
const EXPECTED_BYTES_MAX: u64 = 64 * 1024;
/// How long a check of the file stays valid; a check costs as much as reading a body.
const TRUST: Duration = Duration::from_millis(1);

/// A tape's file, for reading bodies.
#[derive(Debug)]
pub struct BodyReader {
    file: File,
    /// Size and time of the file when it was indexed.
    known: FileStat,
    /// When the file was last found unchanged.
    seen: Option<Instant>,
    window: Vec<u8>,
    /// Where the window starts in the file.
    start: u64,
    /// The window's intended size.
    width: usize,
    /// The offset and length of what is expected to be read next.
    expected: (u64, usize),
}

/// Detects changes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStat {
    bytes: u64,
    modified: (i64, i64),
}

impl FileStat {
    fn of(metadata: &Metadata) -> Self {
        Self { bytes: metadata.size(), modified: (metadata.mtime(), metadata.mtime_nsec()) }
    }
}

impl BodyReader {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let known = FileStat::of(&file.metadata()?);
        let (seen, window) = (None, Vec::new());
        let expected = (0, 0);
        Ok(Self { file, known, seen, window, start: 0, width: WINDOW_BYTES_MIN, expected })
    }

    /// The length of the file when it was indexed.
    pub(crate) fn bytes(&self) -> u64 {
        self.known.bytes
    }

    /// Moves the window to `offset`, where at least `length` bytes must follow.
    fn fill(&mut self, offset: u64, length: usize) -> io::Result<()> {
        self.check_unchanged()?;
        self.width = self.width_at(offset);
        let expected = if self.expected.0 == offset { self.expected.1 } else { 0 };
        let wanted = length.max(self.width).max(expected);
        // One huge body must not keep its memory for the rest of the replay.
        if self.window.capacity() > wanted.max(WINDOW_BYTES_MAX) {
            self.window = Vec::new();
        }
        self.window.resize(wanted, 0);
        let mut filled = 0;
        while filled < length {
            match self.file.read_at(&mut self.window[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.window.clear();
                    return Err(error);
                }
            }
        }
        self.window.truncate(filled);
        self.start = offset;
        if filled < length { Err(changed_error("was truncated")) } else { Ok(()) }
    }

    /// Checks that the file is still the one that was indexed.
    fn check_unchanged(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.seen.is_some_and(|seen| now.duration_since(seen) < TRUST) {
            return Ok(());
        }
        let stat = FileStat::of(&self.file.metadata()?);
        if stat.bytes < self.known.bytes {
            return Err(changed_error("was truncated"));
        }
        // A longer file was appended to, which leaves the indexed bodies as they were.
        if stat.bytes == self.known.bytes && stat != self.known {
            return Err(changed_error("was rewritten"));
        }
        self.seen = Some(now);
        Ok(())
    }

    /// The window size for `offset`: larger if it continues the current window.
    fn width_at(&self, offset: u64) -> usize {
        let reach = self.start + (self.window.len() + self.width) as u64;
        if (self.start..=reach).contains(&offset) {
            (self.width * 2).min(WINDOW_BYTES_MAX)
        } else {
            WINDOW_BYTES_MIN
        }
    }
}

impl BodySource for BodyReader {
    fn body(&mut self, offset: u64, length: u32) -> io::Result<&[u8]> {
        let length = length as usize;
        let end = self.start + self.window.len() as u64;
        if offset < self.start || offset.saturating_add(length as u64) > end {
            self.fill(offset, length)?;
        }
        let ahead = (offset - self.start) as usize;
        let body = &self.window[ahead..ahead + length];
        // A message is a JSON object, so anything else was written over it.
        if length > 0 && !(body.starts_with(b"{") && body.ends_with(b"}")) {
            return Err(changed_error("was rewritten"));
        }
        Ok(body)
    }

    fn expect(&mut self, offset: u64, length: u64) {
        let fits = length <= EXPECTED_BYTES_MAX;
        self.expected = (offset, if fits { length as usize } else { 0 });
    }
}

fn changed_error(how: &str) -> io::Error {
    io::Error::other(format!("the tape {how} while it was played"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn reel(text: &[u8]) -> (tempfile::NamedTempFile, BodyReader) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let body_reader = BodyReader::new(file.reopen().unwrap()).unwrap();
        (file, body_reader)
    }

    #[test]
    fn bodies_are_read_in_any_order_and_large_ones_do_not_keep_their_memory() {
        let large = format!("{{{}}}", " ".repeat(3 * WINDOW_BYTES_MAX));
        let text = format!("{{\"a\":1}}\n{large}\n{{\"b\":2}}\n");
        let (_file, mut body_reader) = reel(text.as_bytes());
        let last = text.len() as u64 - 8;
        for _ in 0..2 {
            assert_eq!(body_reader.body(last, 7).unwrap(), b"{\"b\":2}");
            assert_eq!(body_reader.body(8, large.len() as u32).unwrap(), large.as_bytes());
            assert_eq!(body_reader.body(0, 7).unwrap(), b"{\"a\":1}");
            assert!(body_reader.window.capacity() <= WINDOW_BYTES_MAX);
        }
    }

    #[test]
    fn the_window_widens_in_order_and_is_narrow_out_of_order() {
        let text = "{\"a\":1}\n".repeat(200_000);
        let (_file, mut body_reader) = reel(text.as_bytes());
        let mut fills = 0;
        for offset in (0..text.len() as u64).step_by(8) {
            let start = body_reader.start;
            body_reader.body(offset, 7).unwrap();
            fills += u32::from(body_reader.start != start);
        }
        assert!(fills < 14, "{fills}");
        for offset in [800_000, 80_000, 1_200_000, 160_000] {
            body_reader.body(offset, 7).unwrap();
            assert_eq!((body_reader.start, body_reader.window.len()), (offset, WINDOW_BYTES_MIN));
        }
    }

    #[test]
    fn what_is_expected_is_read_at_once_unless_it_is_much() {
        let text = format!("{{\"a\":1}}\n{}{{\"b\":2}}\n", " ".repeat(20_000)).repeat(9);
        let (_file, mut body_reader) = reel(text.as_bytes());
        let pair = text.len() as u64 / 9;
        for offset in [7, 2, 5].map(|nth| nth * pair) {
            body_reader.expect(offset, pair);
            assert_eq!(body_reader.body(offset, 7).unwrap(), b"{\"a\":1}");
            assert_eq!(body_reader.body(offset + pair - 8, 7).unwrap(), b"{\"b\":2}");
            assert_eq!((body_reader.start, body_reader.window.len() as u64), (offset, pair));
        }
        body_reader.expect(0, 4 * pair);
        body_reader.body(0, 7).unwrap();
        assert_eq!(body_reader.window.len(), WINDOW_BYTES_MIN);
    }

    #[test]
    fn a_tape_that_grows_is_read_on_and_one_that_shrinks_is_an_error() {
        let (mut file, mut body_reader) = reel(b"{\"a\":1}\n{\"b\":2}\n");
        file.write_all(b"{\"c\":3}\n").unwrap();
        assert_eq!(body_reader.body(8, 7).unwrap(), b"{\"b\":2}");
        file.as_file().set_len(8).unwrap();
        // Truncation is noticed at the latest when the missing bytes are read.
        let error =
            [0, 8].into_iter().find_map(|offset| body_reader.body(offset, 7).err()).unwrap();
        assert_eq!(error.to_string(), "the tape was truncated while it was played");
    }

    #[test]
    fn other_bytes_in_the_place_of_a_message_are_noticed() {
        let (file, mut body_reader) = reel(b"{\"a\":1}\n{\"b\":2}\n");
        file.as_file().write_all_at(b"xxxxxxxxxxxxxxxxxxxxxxxx", 0).unwrap();
        let error = body_reader.body(0, 7).unwrap_err().to_string();
        assert_eq!(error, "the tape was rewritten while it was played");
    }
}
