//! Reads a tape line by line in bounded memory, whatever its dialect.
//!
//! One line is one entry, but what `jq` printed over several lines, or several values on one
//! line, is read too. A last line that does not parse is a torn tail, which a crash leaves behind
//! and which costs nothing else; any other line that does not parse is a fault with its number.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::ops::Range;

use super::line::{Line, LineFault};
use crate::json::{self, Cursor};

/// The most lines that are joined to one value.
pub(super) const JOINED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Reads the lines of a tape.
pub struct Reader<R> {
    source: R,
    chunk: Vec<u8>,
    /// The values of `chunk` that have not been given out.
    values: VecDeque<Range<usize>>,
    /// The number of the line that `chunk` is read at, from 1.
    line: u64,
    /// Lines up to here are counted in `line`.
    counted: usize,
    lines_read: u64,
    /// Where `chunk` starts in the file.
    offset: u64,
    offset_next: u64,
}

/// An entry and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered<'a> {
    /// Its line, from 1.
    pub line: u64,
    /// Where its text starts in the file.
    pub offset: u64,
    /// Its text.
    pub text: &'a [u8],
    /// What it says.
    pub entry: Line<'a>,
}

/// What can be wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The last line is incomplete; everything before it is good.
    #[error("line {line}: the tape ends in the middle of an entry ({bytes} bytes left out)")]
    Torn {
        /// The line.
        line: u64,
        /// How many bytes it has.
        bytes: usize,
        /// Where it starts in the file.
        offset: u64,
        /// Whether it begins as the lines of a tape do.
        entry_like: bool,
    },
    /// A line that is no entry.
    #[error("line {line}: {fault}")]
    Line {
        /// The line.
        line: u64,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// The file could not be read.
    #[error("cannot read on after line {line}: {source}")]
    Io {
        /// The last line that was read.
        line: u64,
        /// Why.
        source: io::Error,
    },
}

impl Problem {
    /// The same problem, of a reader that started `lines` and `bytes` further on.
    pub(super) fn moved(mut self, lines: u64, bytes: u64) -> Self {
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

impl<R: BufRead> Reader<R> {
    /// A reader at the start of `source`.
    pub fn new(source: R) -> Self {
        let (chunk, values) = (Vec::new(), VecDeque::new());
        let (line, counted, lines_read, offset, offset_next) = (0, 0, 0, 0, 0);
        Self { source, chunk, values, line, counted, lines_read, offset, offset_next }
    }

    /// The next entry, or what is wrong with the next line. After a fault reading goes on behind it.
    #[expect(clippy::should_implement_trait, reason = "an entry borrows the reader's buffer")]
    pub fn next(&mut self) -> Option<Result<Numbered<'_>, Problem>> {
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
        match Line::read(text) {
            Ok(entry) => Some(Ok(Numbered { line, offset, text, entry })),
            Err(fault) => Some(Err(Problem::Line { line, fault })),
        }
    }

    /// Whether all values of the lines that were read have been given out.
    pub(super) fn is_drained(&self) -> bool {
        self.values.is_empty()
    }

    /// How many bytes have been read of the source: up to the start of a line.
    pub(super) fn position(&self) -> u64 {
        self.offset_next
    }

    /// Reads the next chunk that holds whole values; false at the end of the file.
    fn fill(&mut self) -> Result<bool, Problem> {
        self.chunk.clear();
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
                Err(_) if self.chunk.trim_ascii().is_empty() => return Ok(true),
                Err(fault) if fault.is_trailing() && self.split() => return Ok(true),
                Err(fault) => {
                    let open = fault.at >= self.chunk.trim_ascii_end().len();
                    if open && self.continues(b" \t}]")? && self.chunk.len() < JOINED_BYTES_MAX {
                        self.append_rest()?;
                    } else {
                        return Err(self.broken(fault)?);
                    }
                }
            }
        }
    }

    /// Cuts a chunk of several values apart; false if one of them is broken.
    fn split(&mut self) -> bool {
        let Ok(mut cursor) = Cursor::new(&self.chunk) else { return false };
        let mut values = VecDeque::new();
        while cursor.end().is_err() {
            let Ok(value) = cursor.value() else { return false };
            values.push_back(cursor.position() - value.len()..cursor.position());
        }
        self.values = values;
        true
    }

    /// Appends the lines that can only be the middle of a value, and the one that can end it. They
    /// are looked at together: once a line would make a long value take for ever.
    fn append_rest(&mut self) -> Result<(), Problem> {
        while self.continues(b" \t")? && self.chunk.len() < JOINED_BYTES_MAX {
            self.append_line()?;
        }
        if self.continues(b"}]")? {
            self.append_line()?;
        }
        Ok(())
    }

    /// Whether the next line starts as pretty-printed JSON goes on: indented, or with a bracket.
    fn continues(&mut self, starts: &[u8]) -> Result<bool, Problem> {
        let line = self.lines_read;
        let ahead = self.source.fill_buf().map_err(|source| Problem::Io { line, source })?;
        Ok(ahead.first().is_some_and(|byte| starts.contains(byte)))
    }

    fn broken(&mut self, fault: json::Fault) -> Result<Problem, Problem> {
        let line = self.line;
        let ahead = self.source.fill_buf().map_err(|source| Problem::Io { line, source })?;
        if ahead.is_empty() {
            let bytes = self.chunk.len();
            let like = |start: &[u8]| start.iter().zip(&self.chunk).all(|(ours, its)| ours == its);
            let entry_like = like(b"{\"type\":\"") || like(b"{\"ts\":\"");
            return Ok(Problem::Torn { line, bytes, offset: self.offset, entry_like });
        }
        Ok(Problem::Line { line, fault: LineFault::NotJson(fault) })
    }

    fn append_line(&mut self) -> Result<bool, Problem> {
        let line = self.lines_read;
        let io = |source| Problem::Io { line, source };
        let limit = (JOINED_BYTES_MAX + 1) as u64;
        let count =
            self.source.by_ref().take(limit).read_until(b'\n', &mut self.chunk).map_err(io)?;
        self.lines_read += u64::from(count > 0);
        self.offset_next += count as u64;
        if count as u64 == limit {
            self.chunk.clear();
            self.offset_next += self.source.skip_until(b'\n').map_err(io)? as u64;
            return Err(Problem::Line {
                line: line + 1,
                fault: LineFault::TooLong(JOINED_BYTES_MAX),
            });
        }
        Ok(count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let mut reader = Reader::new(text.as_bytes());
        let mut out = Vec::new();
        while let Some(next) = reader.next() {
            out.push(match next {
                Ok(Numbered { line, offset, text, .. }) => {
                    format!("{line}@{offset} {}", text.escape_ascii())
                }
                Err(problem) => problem.to_string(),
            });
        }
        out
    }

    const A: &str = r#"{"ts":"t","direction":"client_to_server","parsed":1}"#;

    #[test]
    fn blank_lines_crlf_and_a_missing_last_line_end_are_fine() {
        assert_eq!(
            read(&format!("{A}\r\n\n  \n{A}")),
            [format!("1@0 {}", A.escape_default()), format!("4@58 {}", A.escape_default())]
                .map(|s| s.replace("\\\\", "\\"))
        );
    }

    #[test]
    fn pretty_values_and_several_on_a_line_are_read() {
        let pretty = "{\n  \"ts\": \"t\",\n  \"direction\": \"client_to_server\",\n  \"parsed\": [\n    1\n  ]\n}\n";
        let out = read(&format!("{pretty}{A} {A}\n"));
        assert_eq!(out.len(), 3, "{out:?}");
        assert!(out[0].starts_with("1@0 ") && out[1].starts_with("8@") && out[2].starts_with("8@"));
    }

    #[test]
    fn very_many_values_on_one_line_are_gone_through_once() {
        let out = read(&format!("{A}\n{}\n{A}", A.repeat(100_000)));
        assert_eq!(out.len(), 100_002);
        assert!(out[100_000].starts_with("2@") && out[100_001].starts_with("3@"));
    }

    #[test]
    fn a_long_pretty_value_is_looked_at_once_and_not_once_a_line() {
        let numbers: String = (0..60_000).map(|n| format!("    {n},\n")).collect();
        let pretty = format!(
            "{{\n  \"ts\": \"t\",\n  \"direction\": \"client_to_server\",\n  \"parsed\": [\n{numbers}    0\n  ]\n}}\n"
        );
        let out = read(&format!("{pretty}{A}\n"));
        assert_eq!(out.len(), 2);
        assert!(out[1].starts_with("60008@"), "{}", out[1]);
        // Values that are indented as a whole are told apart all the same.
        let indented = format!(
            "{{\n  \"ts\": \"t\",\n  \"direction\": \"client_to_server\",\n  \"parsed\": 1\n  }}\n  {A}\n"
        );
        assert_eq!(read(&indented).len(), 2);
    }

    #[test]
    fn ec_rec_002_a_torn_tail_is_told_from_a_fault_in_the_middle() {
        let torn = &A[..20];
        assert_eq!(
            read(&format!("{A}\n{torn}"))[1],
            "line 2: the tape ends in the middle of an entry (20 bytes left out)"
        );
        assert_eq!(
            read(&format!("{A}\n{torn}\n"))[1],
            "line 2: the tape ends in the middle of an entry (21 bytes left out)"
        );
        let middle = read(&format!("{A}\n{torn}\n{A}\n"));
        assert_eq!(middle[1], "line 2: not JSON: a raw control character in a string at byte 20");
        assert!(middle[2].starts_with("3@"));
    }
}
