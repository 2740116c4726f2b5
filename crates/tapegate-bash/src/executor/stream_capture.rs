//! Keeps the beginning, the end and the length of a stream while a command runs.

use std::collections::VecDeque;

/// How much of the end of a stream is kept.
const TAIL_BYTES: usize = 64 * 1024;

/// The kept part of a stream. Its memory is bounded, whatever the command writes.
#[derive(Debug)]
pub struct StreamCapture {
    head: Vec<u8>,
    head_max: usize,
    /// The last bytes after the head.
    tail: VecDeque<u8>,
    total: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub struct StreamPart {
    pub bytes: Vec<u8>,
    /// Where the next part begins.
    pub next_offset: u64,
    /// How many bytes before this part are lost.
    pub skipped_bytes: u64,
}

impl StreamCapture {
    /// Keeps the first `head_max` bytes, and the last 64 KiB after them.
    pub(crate) fn new(head_max: usize) -> Self {
        Self { head: Vec::new(), head_max, tail: VecDeque::new(), total: 0 }
    }

    /// Adds what was read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.head_max - self.head.len();
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        // Cut before it is copied: a single read may be longer than the tail.
        let rest = &rest[rest.len().saturating_sub(TAIL_BYTES)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// How long the stream is.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// The beginning, up to the limit.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether the stream is longer than the head.
    pub fn exceeds_head(&self) -> bool {
        self.total > self.head.len() as u64
    }

    /// The part that begins at `offset`, with at most `bytes_max` bytes. Bytes that are no longer
    /// kept are skipped.
    pub fn part(&self, offset: u64, bytes_max: usize) -> StreamPart {
        let offset = offset.min(self.total);
        let tail_start = self.total - self.tail.len() as u64;
        // A part never spans head and tail, because bytes between them may be lost.
        if offset < self.head.len() as u64 {
            let rest = &self.head[offset as usize..];
            let bytes = rest[..rest.len().min(bytes_max)].to_vec();
            return StreamPart {
                next_offset: offset + bytes.len() as u64,
                bytes,
                skipped_bytes: 0,
            };
        }
        let start = offset.max(tail_start);
        let bytes: Vec<u8> =
            self.tail.iter().skip((start - tail_start) as usize).take(bytes_max).copied().collect();
        let next_offset = start + bytes.len() as u64;
        StreamPart { bytes, next_offset, skipped_bytes: start - offset }
    }

    /// The last line that is not blank, for progress messages.
    pub(crate) fn last_line(&self, bytes_max: usize) -> Option<Vec<u8>> {
        let end = match self.tail.is_empty() {
            // Several times the length, since the last line may be followed by blank ones.
            true => self.head[self.head.len().saturating_sub(bytes_max * 4)..].to_vec(),
            false => {
                let skip = self.tail.len().saturating_sub(bytes_max * 4);
                self.tail.iter().skip(skip).copied().collect()
            }
        };
        // Progress bars overwrite a line with carriage returns.
        let mut lines = end.rsplit(|byte| matches!(byte, b'\n' | b'\r'));
        let line = lines.find(|line| !line.trim_ascii().is_empty())?;
        Some(line[..line.len().min(bytes_max)].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(head_max: usize, total: usize, piece: usize) -> (StreamCapture, Vec<u8>) {
        let all: Vec<u8> = (0..total).map(|at| (at % 251) as u8).collect();
        let mut capture = StreamCapture::new(head_max);
        all.chunks(piece).for_each(|piece| capture.push(piece));
        (capture, all)
    }

    #[test]
    fn the_memory_is_bounded_and_both_ends_are_kept() {
        for piece in [1, 1000, 500_000] {
            let (capture, all) = filled(1000, 300_000, piece);
            assert_eq!(capture.total_bytes(), 300_000);
            assert_eq!(capture.head(), &all[..1000]);
            assert!(capture.exceeds_head());
            let end = capture.part(300_000 - 10, 100);
            assert_eq!(end.bytes, &all[300_000 - 10..]);
            assert_eq!((end.next_offset, end.skipped_bytes), (300_000, 0));
            assert!(capture.tail.len() == TAIL_BYTES && capture.tail.capacity() < 4 * TAIL_BYTES);
        }
    }

    #[test]
    fn reading_on_from_the_last_offset_gives_everything_that_is_kept() {
        let (capture, all) = filled(1000, 1000 + TAIL_BYTES, 777);
        let (mut read, mut offset) = (Vec::new(), 0);
        loop {
            let part = capture.part(offset, 300);
            assert_eq!(part.skipped_bytes, 0);
            if part.bytes.is_empty() {
                break;
            }
            read.extend(part.bytes);
            offset = part.next_offset;
        }
        assert_eq!(read, all);
        let (capture, all) = filled(1000, 1005 + TAIL_BYTES, 777);
        let part = capture.part(1000, 3);
        assert_eq!((part.skipped_bytes, part.next_offset), (5, 1008));
        assert_eq!(part.bytes, &all[1005..1008]);
        assert_eq!(capture.part(u64::MAX, 3).bytes, b"");
    }

    #[test]
    fn the_last_line_is_the_last_that_says_something() {
        let line = |text: &str| {
            let mut capture = StreamCapture::new(1000);
            capture.push(text.as_bytes());
            capture.last_line(5).map(|line| String::from_utf8(line).unwrap())
        };
        assert_eq!(line("one\ntwo\n\n").as_deref(), Some("two"));
        assert_eq!(line("10%\r20%").as_deref(), Some("20%"));
        assert_eq!(line("longer line").as_deref(), Some("longe"));
        assert_eq!(line(" \n"), None);
    }
}
