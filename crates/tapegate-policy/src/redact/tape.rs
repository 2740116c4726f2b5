//! Redacts a tape that was recorded without redaction.
//!
//! Every line is masked wherever it may contain a message or part of one, including keys that this
//! build does not know. A line in which nothing is masked is copied unchanged.

use std::borrow::Cow;
use std::io::{self, BufRead};

use tapegate_core::json::{self, compact};
use tapegate_core::tape::{
    Bad, Header, Line, Mask, Message, Numbered, Problem, Reader, Sink, base64_decode, base64_encode,
};

use super::Redactor;
use super::header::{HeaderError, MEMBER};
use super::members::Members;
use super::placeholder::json_string;
use super::upstream::mask_upstream;

/// The result of redacting a tape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines that were written.
    pub lines: u64,
    /// Lines in which something was masked.
    pub lines_masked: u64,
    /// Places in messages that were masked.
    pub places: u64,
    /// Headers that now contain the rules. An overwatch tape has no header, so its rules and key
    /// must be given again for replay.
    pub headers: u64,
    /// Bytes of an incomplete last line that was left out.
    pub torn_bytes: Option<usize>,
    /// The first lines that are not entries and were left out, apart from an incomplete last line.
    pub skipped: Vec<Skipped>,
    /// The number of such lines.
    pub skipped_lines: u64,
}

/// How many skipped lines are reported individually.
const SKIPPED_MAX: usize = 1000;
/// A file that begins with this many lines that are not entries is not a tape.
const NOT_A_TAPE_LINES: u64 = 20;

/// A line that was left out because it is not an entry and could not be masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub words: String,
}

/// Why a tape cannot be redacted.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    /// The tape could not be read to its end.
    #[error("cannot read on after line {line}")]
    Io {
        /// The last line that was read.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// The file is not a tape.
    #[error("it is not a tape: none of its first {NOT_A_TAPE_LINES} lines is an entry")]
    NotATape,
    /// The tape was redacted before, in a way that cannot be extended.
    #[error("line {line}: the tape was redacted before")]
    Header {
        /// The header's line.
        line: u64,
        /// Why.
        source: HeaderError,
    },
}

/// Writes the tape of `reader` to `out`, in its own dialect, with its secrets masked.
///
/// The rules and the key of an earlier redaction are kept.
pub fn tape<R: BufRead>(
    mut reader: Reader<R>,
    out: &mut impl Sink,
    redactor: &Redactor,
) -> Result<Report, TapeError> {
    let mut report = Report::default();
    let mut current = Cow::Borrowed(redactor);
    while let Some(next) = reader.next() {
        match next {
            Ok(numbered) => {
                if let Line::Header(header) = &numbered.entry {
                    let joined = redactor.joined(&header.extra);
                    let line = numbered.line;
                    current =
                        Cow::Owned(joined.map_err(|source| TapeError::Header { line, source })?);
                }
                Job { redactor: &current, report: &mut report, masked: false }.line(numbered, out);
            }
            Err(Problem::Torn { bytes, .. }) => report.torn_bytes = Some(bytes),
            Err(Problem::Line { line, fault }) => {
                report.skipped_lines += 1;
                if report.skipped.len() < SKIPPED_MAX {
                    report.skipped.push(Skipped { line, words: fault.to_string() });
                }
                if report.lines == 0 && report.skipped_lines >= NOT_A_TAPE_LINES {
                    return Err(TapeError::NotATape);
                }
            }
            Err(Problem::Io { line, source }) => return Err(TapeError::Io { line, source }),
        }
    }
    Ok(report)
}

/// The processing of one line.
struct Job<'a> {
    redactor: &'a Redactor,
    report: &'a mut Report,
    masked: bool,
}

impl Job<'_> {
    fn line(mut self, numbered: Numbered<'_>, out: &mut impl Sink) {
        let mut line = Vec::with_capacity(numbered.text.len() + 64);
        match numbered.entry {
            Line::Header(header) => {
                self.header(header).write(&mut line);
                self.report.headers += 1;
            }
            Line::Message(message) => {
                let message = self.message(message);
                match message.seq {
                    Some(_) => message.write_thoughtjack(&mut line),
                    None => message.write_overwatch(&mut line),
                }
            }
            Line::Bad(bad) => self.bad(bad).write(&mut line),
            Line::Footer(mut footer) => {
                footer.extra = Cow::Owned(self.extra(&footer.extra));
                footer.write(&mut line);
            }
            Line::Unknown(_) => line = self.unknown(numbered.text),
        }
        // A copied line is checked again as a whole: keys that a typed line drops must not bring a
        // secret back.
        let is_header = line.starts_with(b"{\"type\":\"header\"");
        if !self.masked && !is_header && self.redactor.data(numbered.text) == numbered.text {
            line = compact(numbered.text).into_owned();
            line.push(b'\n');
        } else if !is_header {
            self.masked = true;
        }
        self.report.lines += 1;
        self.report.lines_masked += u64::from(self.masked);
        out.put(&line);
    }

    fn header<'a>(&mut self, mut header: Header<'a>) -> Header<'a> {
        let upstream = mask_upstream(&header.upstream);
        self.masked |= upstream != header.upstream;
        header.upstream = Cow::Owned(upstream);
        header.name = header.name.map(|name| self.text(name));
        header.tags = header.tags.into_iter().map(|tag| self.text(tag)).collect();
        header.extra = self.extra(&header.extra);
        header.extra.extend_from_slice(&self.redactor.header_extra());
        header
    }

    fn message<'a>(&mut self, mut message: Message<'a>) -> Message<'a> {
        let masked = self.redactor.message(&message.msg);
        let new: Vec<_> =
            masked.paths.into_iter().filter(|path| !message.redacted.contains(path)).collect();
        self.report.places += new.len() as u64;
        message.redacted.extend(new);
        if let Cow::Owned(text) = masked.text {
            self.masked = true;
            message.msg = Cow::Owned(text);
        }
        message.msg = Cow::Owned(compact(&message.msg).into_owned());
        message.raw = message.raw.map(|raw| {
            let masked = self.garbage(raw.as_bytes());
            masked.map_or(raw, |masked| Cow::Owned(String::from_utf8_lossy(&masked).into_owned()))
        });
        message.session = message.session.map(|session| Cow::Owned(self.data(&session)));
        message.extra = self.extra(&message.extra);
        message
    }

    fn bad<'a>(&mut self, mut bad: Bad<'a>) -> Bad<'a> {
        if let Some(masked) = self.garbage(&bad.raw) {
            bad.raw = Cow::Owned(masked);
        }
        bad.reason = self.text(bad.reason);
        bad.session = bad.session.map(|session| Cow::Owned(self.data(&session)));
        bad.extra = self.extra(&bad.extra);
        bad
    }

    /// A line of an unknown type; each member is masked like a message.
    fn unknown(&mut self, text: &[u8]) -> Vec<u8> {
        let Ok(members) = Members::read_object(text) else { return Vec::new() };
        let members = self.members(members);
        let body = members.strip_prefix(b",").unwrap_or(&members);
        [b"{", body, b"}\n"].concat()
    }

    fn extra(&mut self, extra: &[u8]) -> Vec<u8> {
        match Members::read(extra) {
            Ok(members) => self.members(members),
            Err(_) => Vec::new(),
        }
    }

    /// Members as `,"key":value` text. A duplicate key may hide a second message or its bytes, so
    /// every value is masked as what it may be.
    fn members(&mut self, members: Members) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, value) in members.0 {
            let value = match (key.as_str(), json::string(&value).map(Cow::into_owned)) {
                (MEMBER, _) => continue,
                ("raw", Some(text)) => {
                    let masked = self.garbage(text.as_bytes());
                    masked.map_or(value, |text| json_string(&String::from_utf8_lossy(&text)))
                }
                ("raw_b64", Some(text)) => {
                    let masked = base64_decode(&text).and_then(|bytes| self.garbage(&bytes));
                    masked.map_or(value, |bytes| json_string(&base64_encode(&bytes)))
                }
                _ => match self.redactor.message(&value).text {
                    Cow::Owned(masked) => {
                        self.masked = true;
                        masked
                    }
                    Cow::Borrowed(_) => value,
                },
            };
            out.push(b',');
            out.extend_from_slice(&json_string(&self.text(Cow::Owned(key))));
            out.push(b':');
            out.extend_from_slice(&compact(&value));
        }
        out
    }

    fn garbage(&mut self, raw: &[u8]) -> Option<Vec<u8>> {
        match self.redactor.garbage(raw) {
            Cow::Owned(masked) => {
                self.masked = true;
                Some(masked)
            }
            Cow::Borrowed(_) => None,
        }
    }

    fn text<'a>(&mut self, text: Cow<'a, str>) -> Cow<'a, str> {
        let masked = match self.redactor.text(&text) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => return text,
        };
        self.masked = true;
        Cow::Owned(masked)
    }

    fn data(&mut self, json: &[u8]) -> Vec<u8> {
        let masked = self.redactor.data(json);
        self.masked |= matches!(masked, Cow::Owned(_));
        masked.into_owned()
    }
}

#[cfg(test)]
mod tests;
