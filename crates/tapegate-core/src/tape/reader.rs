//! Reads a tape of any dialect line by line, in bounded memory.
//!
//! An entry is normally one line, but a value that `jq` printed over several lines, and several values on
//! one line, are read too. A last line that does not parse is a torn tail, as a crash leaves it, and
//! affects nothing else; any other line that does not parse is a fault with its number.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::line::{LineFault, TapeLine};
use crate::json::{self, Cursor};

/// The maximum length of an entry, on one line or several, unless [`set_entry_bytes_max`] changes it.
const ENTRY_BYTES_MAX_DEFAULT: usize = 128 << 20;
static ENTRY_BYTES_MAX: AtomicUsize = AtomicUsize::new(ENTRY_BYTES_MAX_DEFAULT);

/// The maximum length of an entry in this process. Longer ones are not held in memory.
pub fn entry_bytes_max() -> usize {
    ENTRY_BYTES_MAX.load(Ordering::Relaxed)
}

/// Sets the maximum length of an entry for this process. `record` can write entries that few readers have
/// the memory for, so reading them is the user's decision.
pub fn set_entry_bytes_max(bytes_max: usize) {
    ENTRY_BYTES_MAX.store(bytes_max, Ordering::Relaxed);
}

/// How much of a line is read before checking whether it can be an entry at all.
const HEAD_BYTES: usize = 64 << 10;
/// The maximum memory kept for the next line.
const KEPT_BYTES: usize = 1 << 20;

/// Reads the lines of a tape.
pub struct TapeReader<R> {
    source: R,
    entry_bytes_max: usize,
    chunk: Vec<u8>,
    /// The values in `chunk` that have not been returned.
    values: VecDeque<Range<usize>>,
    /// The number of the current line of `chunk`, from 1.
    line: u64,
    /// Lines before this position are counted in `line`.
    counted: usize,
    lines_read: u64,
    /// The position of `chunk` in the file.
    offset: u64,
    offset_next: u64,
}

/// An entry and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberedLine<'a> {
    /// Its line, from 1.
    pub line: u64,
    /// The position of its text in the file.
    pub offset: u64,
    pub text: &'a [u8],
    /// The parsed entry.
    pub entry: TapeLine<'a>,
}

/// A problem with a line.
#[derive(Debug, thiserror::Error)]
pub enum LineProblem {
    /// The last line is incomplete; everything before it is intact.
    #[error("line {line}: the tape ends in the middle of an entry ({bytes} bytes left out)")]
    Torn {
        line: u64,
        /// How many bytes it has.
        bytes: usize,
        /// Its position in the file.
        offset: u64,
        /// Whether it begins like a line of a tape.
        entry_like: bool,
    },
    /// A line that is not an entry.
    #[error("line {line}: {fault}")]
    Line {
        line: u64,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// The file could not be read.
    #[error("cannot read beyond line {line}: {source}")]
    Io {
        /// The last line that was read.
        line: u64,
        /// Why.
        source: io::Error,
    },
}

impl LineProblem {
    /// The same problem for a reader that started `lines` and `bytes` further on.
    pub(super) fn shifted(mut self, lines: u64, bytes: u64) -> Self {
        match &mut self {
            Self::Torn { line, offset, .. } => {
                *line += lines;
                *offset += bytes;
            }
            Self::Line { line, .. } | Self::Io { line, .. } => *line += lines,
        }
        self
    }
}

impl<R: BufRead> TapeReader<R> {
    /// A reader at the start of `source`.
    pub fn new(source: R) -> Self {
        Self::with_limit(source, entry_bytes_max())
    }

    /// A reader that accepts entries of up to `entry_bytes_max` bytes.
    pub fn with_limit(source: R, entry_bytes_max: usize) -> Self {
        let (chunk, values) = (Vec::new(), VecDeque::new());
        let (line, counted, lines_read, offset, offset_next) = (0, 0, 0, 0, 0);
        Self {
            source,
            entry_bytes_max,
            chunk,
            values,
            line,
            counted,
            lines_read,
            offset,
            offset_next,
        }
    }

    /// The next entry, or the problem with the next line. After a fault, reading continues after it.
    #[expect(clippy::should_implement_trait, reason = "an entry borrows the reader's buffer")]
    pub fn next(&mut self) -> Option<Result<NumberedLine<'_>, LineProblem>> {
        let range = loop {
            if let Some(range) = self.values.pop_front() {
                break range;
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(problem) => return Some(Err(problem)),
            }
        };
        let passed = &self.chunk[self.counted..range.start];
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.counted = range.start;
        let (line, offset) = (self.line, self.offset + range.start as u64);
        let text = &self.chunk[range];
        match TapeLine::read(text) {
            Ok(entry) => Some(Ok(NumberedLine { line, offset, text, entry })),
            Err(fault) => Some(Err(LineProblem::Line { line, fault })),
        }
    }

    /// Whether all values of the lines read so far have been returned.
    pub(super) fn is_drained(&self) -> bool {
        self.values.is_empty()
    }

    /// How many bytes of the source have been read, up to the start of a line.
    pub(super) fn position(&self) -> u64 {
        self.offset_next
    }

    /// Reads the next chunk of complete values; false at the end of the file.
    fn fill(&mut self) -> Result<bool, LineProblem> {
        self.chunk.clear();
        // One long entry must not keep its memory for the rest of the tape.
        self.chunk.shrink_to(KEPT_BYTES);
        self.offset = self.offset_next;
        (self.line, self.counted) = (self.lines_read + 1, 0);
        if !self.append_line()? {
            return Ok(false);
        }
        loop {
            match json::check(&self.chunk).map(<[u8]>::len) {
                Ok(length) => {
                    let start = self.chunk.len() - self.chunk.trim_ascii_start().len();
                    self.values.push_back(start..start + length);
                    return Ok(true);
                }
                // A blank line between entries is not a fault.
                Err(_) if self.chunk.trim_ascii().is_empty() => return Ok(true),
                Err(fault) if fault.is_trailing() && self.split() => return Ok(true),
                Err(fault) => {
                    // The fault is at the end of the text, so more text may complete it.
                    let open = fault.at >= self.chunk.trim_ascii_end().len();
                    if open
                        && self.continues_value(b" \t}]")?
                        && self.chunk.len() < self.entry_bytes_max
                    {
                        self.append_rest()?;
                    } else {
                        return Err(self.broken_value(fault)?);
                    }
                }
            }
        }
    }

    /// Splits a chunk into several values; false if one of them is malformed.
    fn split(&mut self) -> bool {
        let Ok(mut cursor) = Cursor::new(&self.chunk) else { return false };
        let mut values = VecDeque::new();
        while cursor.expect_end().is_err() {
            let Ok(value) = cursor.value() else { return false };
            values.push_back(cursor.position() - value.len()..cursor.position());
        }
        self.values = values;
        true
    }

    /// Appends the lines that can only be inside a value, and the one that can end it. They are parsed
    /// together, since parsing after each line would take quadratic time.
    fn append_rest(&mut self) -> Result<(), LineProblem> {
        while self.continues_value(b" \t")? && self.chunk.len() < self.entry_bytes_max {
            self.append_line()?;
        }
        if self.continues_value(b"}]")? {
            self.append_line()?;
        }
        Ok(())
    }

    /// Whether the next line starts like a continuation of pretty-printed JSON: indented, or with a
    /// bracket.
    fn continues_value(&mut self, starts: &[u8]) -> Result<bool, LineProblem> {
        let line = self.lines_read;
        let ahead = self.source.fill_buf().map_err(|source| LineProblem::Io { line, source })?;
        Ok(ahead.first().is_some_and(|byte| starts.contains(byte)))
    }

    fn broken_value(&mut self, fault: json::JsonFault) -> Result<LineProblem, LineProblem> {
        let line = self.line;
        let ahead = self.source.fill_buf().map_err(|source| LineProblem::Io { line, source })?;
        // At the end of the file it is what a crash leaves; elsewhere it is damage.
        if ahead.is_empty() {
            let bytes = self.chunk.len();
            let like = |start: &[u8]| start.iter().zip(&self.chunk).all(|(ours, its)| ours == its);
            let entry_like = like(b"{\"type\":\"") || like(b"{\"ts\":\"");
            return Ok(LineProblem::Torn { line, bytes, offset: self.offset, entry_like });
        }
        Ok(LineProblem::Line { line, fault: LineFault::NotJson(fault) })
    }

    /// Appends the next line; false at the end of the file. If a line cannot be an entry or is too long,
    /// only as much is kept as it takes to notice.
    fn append_line(&mut self) -> Result<bool, LineProblem> {
        let is_first = self.chunk.is_empty();
        let head_bytes = if is_first { HEAD_BYTES.min(self.entry_bytes_max) } else { 0 };
        let mut count = self.read_up_to(head_bytes)?;
        let is_whole = count > 0 && self.chunk.ends_with(b"\n");
        // Checked before the rest is read: a huge file without line ends is not held in memory.
        if is_first && !is_whole && count == head_bytes && !may_be_entry(&self.chunk) {
            return Err(self.skip_junk(count)?);
        }
        if !is_whole {
            // One byte more than allowed shows that the line is too long.
            count += self.read_up_to(self.entry_bytes_max + 1 - head_bytes)?;
        }
        if count > self.entry_bytes_max {
            self.skip_line(count)?;
            let fault = LineFault::TooLong(self.entry_bytes_max);
            return Err(LineProblem::Line { line: self.lines_read, fault });
        }
        self.lines_read += u64::from(count > 0);
        self.offset_next += count as u64;
        Ok(count > 0)
    }

    fn read_up_to(&mut self, bytes_max: usize) -> Result<usize, LineProblem> {
        let line = self.lines_read;
        let read = self.source.by_ref().take(bytes_max as u64).read_until(b'\n', &mut self.chunk);
        read.map_err(|source| LineProblem::Io { line, source })
    }

    /// Skips a long line that cannot be an entry, of which `count` bytes have been read.
    fn skip_junk(&mut self, count: usize) -> Result<LineProblem, LineProblem> {
        let fault = json::check(&self.chunk).err();
        let offset = self.offset_next;
        self.skip_line(count)?;
        let line = self.lines_read;
        let ahead = self.source.fill_buf().map_err(|source| LineProblem::Io { line, source })?;
        if ahead.is_empty() {
            // A crash may leave zeros at the end of a file.
            let bytes = (self.offset_next - offset) as usize;
            return Ok(LineProblem::Torn { line, bytes, offset, entry_like: false });
        }
        let fault = fault.map_or(LineFault::TooLong(HEAD_BYTES), LineFault::NotJson);
        Ok(LineProblem::Line { line, fault })
    }

    /// Skips a line of which `count` bytes have been read.
    fn skip_line(&mut self, count: usize) -> Result<(), LineProblem> {
        let line = self.lines_read;
        let is_whole = self.chunk.ends_with(b"\n");
        self.chunk = Vec::new();
        let rest = if is_whole { Ok(0) } else { self.source.skip_until(b'\n') };
        let rest = rest.map_err(|source| LineProblem::Io { line, source })?;
        self.lines_read += 1;
        self.offset_next += (count + rest) as u64;
        Ok(())
    }
}

/// Whether a line with this beginning may be an entry, which is an object.
fn may_be_entry(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"{")
}

#[cfg(test)]
mod tests;
