//! Splits a byte stream into lines, in bounded memory.
//!
//! The reader fills the buffer and the writer empties it; in between, complete lines are cut off its
//! front without copying. Only `\n` ends a line: a carriage return, a NUL or invalid UTF-8 is ordinary
//! content. A line over the limit is drained instead of kept, and yields one [`OversizeMessage`] when it ends.

use std::ops::Range;

use crate::frame::{EnvelopeSkimmer, PartialEnvelope};

/// How much of an oversize message is kept for the tape.
const HEAD_BYTES_MAX: usize = 4096;
/// The minimum free space for the next read.
const READ_BYTES: usize = 64 * 1024;
/// The maximum size of an empty buffer, in multiples of that space, so that a run of large messages does
/// not reallocate each time.
const KEPT_ROOMS_MAX: usize = 32;

/// The lines of one direction of a stream.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: Vec<u8>,
    /// Bytes before this have been returned and may be dropped by [`LineSplitter::release`].
    cut: usize,
    /// There is no line ending between `cut` and here.
    searched: usize,
    /// Bytes from here on are free.
    end: usize,
    line_bytes_max: usize,
    drain: Option<OversizeDrain>,
}

/// A piece cut off the front of the stream. Ranges are valid for [`LineSplitter::bytes`] until the next
/// release.
#[derive(Debug)]
pub enum StreamLine {
    /// A line within the limit, without its line ending; the byte after the range is `\n`.
    Line(Range<usize>),
    /// The rest of a stream that ended without a line ending.
    Unterminated(Range<usize>),
    /// A line over the limit, drained.
    Oversize(OversizeMessage),
}

/// A message that was too long to keep.
#[derive(Debug)]
pub struct OversizeMessage {
    /// Its first bytes.
    pub head: Vec<u8>,
    /// Its length without the line ending.
    pub bytes_total: u64,
    /// The parts of its envelope that could be read.
    pub envelope: PartialEnvelope,
}

/// Takes a message that is too long to keep, piece by piece, and keeps a summary.
#[derive(Debug, Default)]
pub struct OversizeDrain {
    head: Vec<u8>,
    bytes_total: u64,
    skim: EnvelopeSkimmer,
}

impl OversizeDrain {
    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        let keep = HEAD_BYTES_MAX.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..keep]);
        self.bytes_total += piece.len() as u64;
        self.skim.feed(piece);
    }

    /// The number of bytes taken so far.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// The summary of the message.
    pub fn into_oversize(self) -> OversizeMessage {
        let Self { head, bytes_total, skim } = self;
        OversizeMessage { head, bytes_total, envelope: skim.finish() }
    }
}

impl LineSplitter {
    /// An empty stream whose lines may have at most `line_bytes_max` bytes.
    pub fn new(line_bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), cut: 0, searched: 0, end: 0, line_bytes_max, drain: None }
    }

    /// Space to read into; call [`LineSplitter::filled`] with the number of bytes read.
    pub fn read_buffer(&mut self) -> &mut [u8] {
        let wanted = self.end + READ_BYTES;
        if self.buffer.len() < wanted {
            // Doubling is capped, so that a large message does not reserve twice its size.
            let grown = (self.buffer.len() * 2).min(self.buffer.len() + 1024 * 1024);
            self.buffer.resize(wanted.max(grown), 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Reports how many bytes were read into the free space.
    pub fn filled(&mut self, count: usize) {
        self.end += count;
    }

    /// Cuts off the next complete line, if there is one.
    pub fn next_line(&mut self) -> Option<StreamLine> {
        let found = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]);
        let Some(found) = found else {
            self.searched = self.end;
            // Drained as soon as it is over the limit, not when it ends: it may never end.
            if self.drain.is_some() || self.end - self.cut > self.line_bytes_max {
                self.drain_to(self.end);
            }
            return None;
        };
        let stop = self.searched + found;
        let line = self.cut..stop;
        self.searched = stop + 1;
        if self.drain.is_some() || line.len() > self.line_bytes_max {
            self.drain_to(stop);
            self.cut = stop + 1;
            return self.take_drained().map(StreamLine::Oversize);
        }
        self.cut = stop + 1;
        Some(StreamLine::Line(line))
    }

    /// Cuts off the rest. Call it once the stream has ended and no complete line is left.
    pub fn take_rest(&mut self) -> Option<StreamLine> {
        if self.drain.is_some() {
            self.drain_to(self.end);
            return self.take_drained().map(StreamLine::Oversize);
        }
        let rest = self.cut..self.end;
        (self.cut, self.searched) = (self.end, self.end);
        (!rest.is_empty()).then_some(StreamLine::Unterminated(rest))
    }

    /// The bytes of a range that was cut off.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Everything read and not yet released.
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    /// Drops everything that was cut off.
    pub fn release(&mut self) {
        if self.cut == self.end {
            (self.cut, self.searched, self.end) = (0, 0, 0);
            if self.has_excess_capacity() {
                self.buffer = Vec::new();
            }
        } else if self.cut > 0 && self.has_excess_capacity() {
            // Do not keep the memory of a large message as the buffer for small ones.
            self.buffer = self.buffer[self.cut..self.end].to_vec();
            self.end -= self.cut;
            self.searched -= self.cut;
            self.cut = 0;
        } else if self.cut > 0 {
            self.buffer.copy_within(self.cut..self.end, 0);
            self.end -= self.cut;
            self.searched -= self.cut;
            self.cut = 0;
        }
    }

    /// Whether the buffer is far larger than its unreleased content needs.
    fn has_excess_capacity(&self) -> bool {
        // Room for twice the content is kept, so that growing and shrinking do not alternate.
        self.buffer.len() > KEPT_ROOMS_MAX * READ_BYTES + 2 * (self.end - self.cut)
    }

    /// Moves the bytes of an oversize line up to `stop` into the drain. If they are the last that were
    /// read, their space is free again.
    fn drain_to(&mut self, stop: usize) {
        self.drain.get_or_insert_default().feed(&self.buffer[self.cut..stop]);
        // Only the last bytes can be freed at once; lines after them are still in the buffer.
        if stop == self.end {
            self.end = self.cut;
            self.searched = self.cut;
        }
    }

    fn take_drained(&mut self) -> Option<OversizeMessage> {
        self.drain.take().map(OversizeDrain::into_oversize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Everything that `stream` yields when it arrives in pieces of the given sizes.
    fn cut_all(stream: &[u8], sizes: &[usize], max: usize) -> Vec<String> {
        let mut lines = LineSplitter::new(max);
        let mut out = Vec::new();
        let mut rest = stream;
        let mut sizes = sizes.iter().copied().cycle();
        while !rest.is_empty() {
            let count =
                sizes.next().unwrap_or(1).clamp(1, rest.len()).min(lines.read_buffer().len());
            lines.read_buffer()[..count].copy_from_slice(&rest[..count]);
            lines.filled(count);
            rest = &rest[count..];
            while let Some(cut) = lines.next_line() {
                out.push(show(&lines, cut));
            }
            lines.release();
        }
        if let Some(cut) = lines.take_rest() {
            out.push(show(&lines, cut));
        }
        out
    }

    fn show(lines: &LineSplitter, cut: StreamLine) -> String {
        match cut {
            StreamLine::Line(range) => {
                format!("{:?}", lines.bytes(range).escape_ascii().to_string())
            }
            StreamLine::Unterminated(range) => {
                format!("rest {}", lines.bytes(range).escape_ascii())
            }
            StreamLine::Oversize(over) => {
                format!("over {} {:?}", over.bytes_total, over.envelope.id)
            }
        }
    }

    #[test]
    fn an_oversize_line_is_drained_and_the_next_one_fits() {
        let stream = b"{\"id\":1}\n{\"x\":\"aaaaaaaaaaaaaaaaaaaaaaaa\",\"id\":2}\nok\n";
        for size in 1..stream.len() {
            let out = cut_all(stream, &[size], 16);
            assert_eq!(out.len(), 3, "{out:?}");
            assert_eq!(out[1], "over 39 Some([50])");
            assert_eq!(out[2], "\"ok\"");
        }
    }

    #[test]
    fn the_limit_is_the_longest_line_that_passes() {
        assert_eq!(cut_all(b"1234\n12345\n", &[3], 4), ["\"1234\"", "over 5 None"]);
        assert_eq!(cut_all(b"12345", &[2], 4), ["over 5 None"]);
    }

    #[test]
    fn a_large_line_does_not_keep_its_memory_while_others_follow() {
        let mut lines = LineSplitter::new(1 << 30);
        let large = 64 * KEPT_ROOMS_MAX * READ_BYTES;
        let stream = [vec![b'x'; large], b"\nhal".to_vec()].concat();
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let count = lines.read_buffer().len().min(rest.len());
            lines.read_buffer()[..count].copy_from_slice(&rest[..count]);
            lines.filled(count);
            rest = &rest[count..];
        }
        let Some(StreamLine::Line(line)) = lines.next_line() else { panic!("no line") };
        assert_eq!(line.len(), large);
        lines.release();
        assert!(lines.buffer.capacity() < large / 8, "{}", lines.buffer.capacity());
        lines.read_buffer()[..2].copy_from_slice(b"f\n");
        lines.filled(2);
        let Some(cut) = lines.next_line() else { panic!("no line") };
        assert_eq!(show(&lines, cut), "\"half\"");
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            stream in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..300),
            sizes in proptest::collection::vec(1usize..40, 1..20),
            max in 1usize..60,
        ) {
            prop_assert_eq!(cut_all(&stream, &sizes, max), cut_all(&stream, &[stream.len().max(1)], max));
        }

        #[test]
        fn nothing_is_lost_or_changed(stream in proptest::collection::vec(any::<u8>(), 0..300), sizes in proptest::collection::vec(1usize..40, 1..20)) {
            let mut expected: Vec<String> = stream.split(|b| *b == b'\n').map(|l| format!("{:?}", l.escape_ascii().to_string())).collect();
            let rest = stream.rsplit(|b| *b == b'\n').next().unwrap_or_default();
            expected.pop();
            if !rest.is_empty() { expected.push(format!("rest {}", rest.escape_ascii())); }
            prop_assert_eq!(cut_all(&stream, &sizes, 1000), expected);
        }
    }
}
