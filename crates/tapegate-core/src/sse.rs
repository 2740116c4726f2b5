//! Splits a server-sent event stream into events, in bounded memory.
//!
//! Every byte of the stream belongs to exactly one piece, including comments and blank lines, so forwarding
//! the pieces forwards the stream. A line ends at `\n`, `\r\n` or `\r`, an event at a blank line, and a
//! comment between events at its line ending; several `data` lines form one text. Decoding is by whole
//! events, never by chunks.

mod event_writer;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::lines::{OversizeDrain, OversizeMessage};

pub use event_writer::{rewrite_event, write_event};

/// Events of at least this size take over the buffer instead of being copied.
const LARGE_BYTES: usize = 64 * 1024;
/// The maximum memory kept for future events.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// A stream of events.
#[derive(Debug)]
pub struct SseParser {
    buffer: Vec<u8>,
    /// Bytes before this have been returned.
    start: usize,
    /// Start of the first line that has not been processed.
    line: usize,
    /// No line ends between `line` and here, so a long line is searched only once.
    searched: usize,
    /// Whether the first line, which may start with a byte order mark, has been read.
    begun: bool,
    event_bytes_max: usize,
    fields: SseFields,
    skip: Option<OversizeSkip>,
}

/// A piece of the stream: an event, or other bytes such as a comment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SsePiece {
    /// The exact bytes.
    pub raw: Vec<u8>,
    /// The joined `data` lines; `None` if there were none.
    pub data: Option<Vec<u8>>,
    /// `event`.
    pub event: Option<Vec<u8>>,
    /// `id`, from which a stream is resumed.
    pub id: Option<Vec<u8>>,
    /// `retry`, in milliseconds.
    pub retry_ms: Option<u64>,
    /// Whether it has a line that is neither one of these fields nor a comment. Parsers with other rules for
    /// line endings or fields may read something into it.
    pub has_other_lines: bool,
}

#[derive(Debug, Default)]
struct SseFields {
    data: Option<Vec<u8>>,
    event: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
    retry_ms: Option<u64>,
    has_other_lines: bool,
}

/// Skips an event that is too large, byte by byte, keeping a summary of its data.
#[derive(Debug, Default)]
struct OversizeSkip {
    data: OversizeDrain,
    /// The length of the current line; `name` holds its first bytes.
    length: usize,
    name: Vec<u8>,
    after_return: bool,
}

impl SseParser {
    /// An empty stream whose events may have at most `event_bytes_max` bytes.
    pub fn new(event_bytes_max: usize) -> Self {
        let fields = SseFields::default();
        Self {
            buffer: Vec::new(),
            start: 0,
            line: 0,
            searched: 0,
            begun: false,
            event_bytes_max,
            fields,
            skip: None,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.line -= self.start;
            self.searched = self.searched.saturating_sub(self.start);
            self.start = 0;
            // Do not keep the memory of a large event as the buffer for small ones.
            self.buffer.shrink_to(KEPT_BYTES_MAX);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete piece. An event over the limit yields an error when it ends, and the stream
    /// continues after it.
    #[expect(clippy::should_implement_trait, reason = "more pieces may come after `None`")]
    pub fn next(&mut self) -> Option<Result<SsePiece, OversizeMessage>> {
        if self.skip.is_some() {
            return self.continue_skip().map(Err);
        }
        while let Some((line, after)) = self.next_line() {
            let first = line.start == self.start;
            let line = self.without_mark(line);
            self.line = after;
            // A comment between events is a keep-alive, so return it at once.
            let comment = first && self.buffer[line.start..].starts_with(b":");
            if line.is_empty() || comment {
                return Some(Ok(self.piece(after)));
            }
            self.field(line);
            // Stop early: one event may consist of very many short lines.
            if self.line - self.start > self.event_bytes_max {
                break;
            }
        }
        if self.buffer.len() - self.start <= self.event_bytes_max {
            return None;
        }
        // Scan the event again from its start, this time without keeping it.
        // The fields are read again by the skip, which keeps only a summary.
        self.fields = SseFields::default();
        self.begun = true;
        self.skip = Some(OversizeSkip::default());
        self.continue_skip().map(Err)
    }

    /// The rest of a stream that has ended. By the specification it is not an event, but some parsers treat
    /// it as one.
    pub fn take_rest(&mut self) -> Option<SsePiece> {
        let end = self.buffer.len();
        if end == self.start {
            return None;
        }
        let trimmed = self.buffer[self.line..end].strip_suffix(b"\r").map_or(end, |_| end - 1);
        let line = self.without_mark(self.line..trimmed);
        self.field(line);
        self.line = end;
        Some(self.piece(end))
    }

    fn continue_skip(&mut self) -> Option<OversizeMessage> {
        let skip = self.skip.as_mut()?;
        let end = self.buffer[self.start..].iter().position(|&byte| skip.byte(byte));
        let taken = end.map_or(self.buffer.len(), |end| self.start + end + 1);
        self.buffer.drain(..taken);
        (self.start, self.line, self.searched) = (0, 0, 0);
        end?;
        self.skip.take().map(|skip| skip.data.into_oversize())
    }

    /// The next complete line, and the start of the one after it.
    fn next_line(&mut self) -> Option<(Range<usize>, usize)> {
        let from = self.searched.max(self.line);
        let found = memchr::memchr2(b'\n', b'\r', &self.buffer[from..]);
        let end = found.map_or(self.buffer.len(), |length| from + length);
        self.searched = end;
        let after = match (self.buffer.get(end)?, self.buffer.get(end + 1)) {
            (b'\r', Some(b'\n')) => end + 2,
            // A trailing carriage return ends a blank line at once, so that no event is delayed; for any
            // other line, wait for the line feed that may follow.
            (b'\r', None) if end > self.line => return None,
            _ => end + 1,
        };
        Some((self.line..end, after))
    }

    /// A line without the byte order mark that a stream may begin with.
    fn without_mark(&mut self, line: Range<usize>) -> Range<usize> {
        let first = !std::mem::replace(&mut self.begun, true);
        let marked = first && self.buffer[line.clone()].starts_with(b"\xef\xbb\xbf");
        if marked { line.start + 3..line.end } else { line }
    }

    fn piece(&mut self, end: usize) -> SsePiece {
        // A large event takes the buffer over, so it is not held in memory twice.
        let raw = if self.start == 0 && end == self.buffer.len() && end >= LARGE_BYTES {
            (self.line, self.searched) = (0, 0);
            std::mem::take(&mut self.buffer)
        } else {
            let raw = self.buffer[self.start..end].to_vec();
            self.start = end;
            raw
        };
        let SseFields { data, event, id, retry_ms, has_other_lines } =
            std::mem::take(&mut self.fields);
        SsePiece { raw, data, event, id, retry_ms, has_other_lines }
    }

    fn field(&mut self, line: Range<usize>) {
        let line = &self.buffer[line];
        if let Some(value) = field_value(line, b"data") {
            match &mut self.fields.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.fields.data = Some(value.to_vec()),
            }
        } else if let Some(value) = field_value(line, b"event") {
            // An empty name counts as absent.
            self.fields.event = Some(value.to_vec()).filter(|name| !name.is_empty());
        } else if let Some(value) = field_value(line, b"id") {
            // By the standard, an id with a NUL is ignored.
            if !value.contains(&0) {
                self.fields.id = Some(value.to_vec());
            }
        } else if let Some(value) = field_value(line, b"retry") {
            let digits = std::str::from_utf8(value).ok();
            self.fields.retry_ms = digits.and_then(|text| text.parse().ok());
        } else if !line.is_empty() && !line.starts_with(b":") {
            self.fields.has_other_lines = true;
        }
    }
}

impl OversizeSkip {
    /// Takes a byte; returns true when it ends the event.
    fn byte(&mut self, byte: u8) -> bool {
        let after_return = std::mem::take(&mut self.after_return);
        // The line feed of a pair does not end a second line.
        if byte == b'\n' && after_return {
            return false;
        }
        if matches!(byte, b'\n' | b'\r') {
            self.after_return = byte == b'\r';
            self.name.clear();
            return std::mem::take(&mut self.length) == 0;
        }
        self.length += 1;
        if self.name == b"data:" {
            // The space after the colon is not part of the data.
            if self.length > 6 || byte != b' ' {
                self.data.feed(&[byte]);
            }
        } else if self.name.len() < 5 {
            self.name.push(byte);
        }
        false
    }
}

/// The value of a field line, if it is the field `name`.
fn field_value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    match rest.strip_prefix(b":") {
        Some(value) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        None if rest.is_empty() => Some(rest),
        None => None,
    }
}
