//! Redacts a tape that was recorded without redaction.
//!
//! Every line is masked wherever it may contain a message or part of one, including keys that this
//! build does not know. A line in which nothing is masked is copied unchanged.

use std::borrow::Cow;
use std::io::{self, BufRead};

use tapegate_core::json::{self, compact, quoted};
use tapegate_core::tape::{
    BadFrame, ByteSink, FormatVersion, LineProblem, Mask, MessageLine, NumberedLine, TapeHeader,
    TapeLine, TapeReader, base64_decode, base64_encode,
};

use super::Redactor;
use super::header::{HeaderError, MEMBER};
use super::ordered_members::OrderedMembers;
use super::upstream::mask_upstream;

/// The result of redacting a tape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedactionReport {
    /// Lines that were written.
    pub lines: u64,
    /// Lines in which something was masked.
    pub lines_masked: u64,
    /// Places that were masked: values in messages, and whole texts that are not messages.
    pub places: u64,
    /// Headers that now contain the rules. An overwatch tape has no header, so its rules and key
    /// must be given again for replay.
    pub headers: u64,
    /// Bytes of an incomplete last line that was left out.
    pub torn_bytes: Option<usize>,
    /// The first lines that are not entries and were left out, apart from an incomplete last line.
    pub skipped: Vec<SkippedLine>,
    /// The number of such lines.
    pub skipped_lines: u64,
}

/// How many skipped lines are reported individually.
const SKIPPED_MAX: usize = 1000;
/// A file that begins with this many lines that are not entries is not a tape.
const NOT_A_TAPE_LINES: u64 = 20;

/// A line that was left out because it is not an entry and could not be masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLine {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub message_text: String,
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
    /// A header names a format that this build does not read.
    #[error("line {line}: {message_text}")]
    Version {
        /// The header's line.
        line: u64,
        /// The format, and those that are read.
        message_text: String,
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
pub fn redact_tape<R: BufRead>(
    mut reader: TapeReader<R>,
    out: &mut impl ByteSink,
    redactor: &Redactor,
) -> Result<RedactionReport, TapeError> {
    let mut report = RedactionReport::default();
    let mut current = Cow::Borrowed(redactor);
    while let Some(next) = reader.next() {
        match next {
            Ok(numbered) => {
                if let TapeLine::Header(header) = &numbered.entry {
                    if let FormatVersion::Other(message_text) = header.format_version() {
                        return Err(TapeError::Version { line: numbered.line, message_text });
                    }
                    let joined = redactor.with_tape_rules(&header.extra);
                    let line = numbered.line;
                    current =
                        Cow::Owned(joined.map_err(|source| TapeError::Header { line, source })?);
                }
                LineJob { redactor: &current, report: &mut report, masked: false }
                    .line(numbered, out);
            }
            Err(LineProblem::Torn { bytes, .. }) => report.torn_bytes = Some(bytes),
            Err(LineProblem::Line { line, fault }) => {
                report.skipped_lines += 1;
                if report.skipped.len() < SKIPPED_MAX {
                    report.skipped.push(SkippedLine { line, message_text: fault.to_string() });
                }
                if report.lines == 0 && report.skipped_lines >= NOT_A_TAPE_LINES {
                    return Err(TapeError::NotATape);
                }
            }
            Err(LineProblem::Io { line, source }) => return Err(TapeError::Io { line, source }),
        }
    }
    Ok(report)
}

/// The processing of one line.
struct LineJob<'a> {
    redactor: &'a Redactor,
    report: &'a mut RedactionReport,
    masked: bool,
}

impl LineJob<'_> {
    fn line(mut self, numbered: NumberedLine<'_>, out: &mut impl ByteSink) {
        let mut line = Vec::with_capacity(numbered.text.len() + 64);
        match numbered.entry {
            TapeLine::Header(header) => {
                self.header(header).write(&mut line);
                self.report.headers += 1;
            }
            TapeLine::Message(message) => {
                let message = self.message(message);
                match message.seq {
                    Some(_) => message.write_thoughtjack(&mut line),
                    None => message.write_overwatch(&mut line),
                }
            }
            TapeLine::Bad(bad) => self.mask_bad_line(bad).write(&mut line),
            TapeLine::Footer(mut footer) => {
                footer.extra = Cow::Owned(self.mask_extra(&footer.extra));
                footer.write(&mut line);
            }
            TapeLine::Unknown(_) => line = self.mask_unknown_line(numbered.text),
        }
        // A copied line is checked again as a whole: keys that a typed line drops must not bring a
        // secret back.
        let is_header = line.starts_with(b"{\"type\":\"header\"");
        if !self.masked && !is_header && self.redactor.mask_data(numbered.text) == numbered.text {
            line = compact(numbered.text).into_owned();
            line.push(b'\n');
        } else if !is_header && !self.masked {
            self.count_place();
        }
        self.report.lines += 1;
        self.report.lines_masked += u64::from(self.masked);
        out.put(&line);
    }

    fn header<'a>(&mut self, mut header: TapeHeader<'a>) -> TapeHeader<'a> {
        let upstream = mask_upstream(&header.upstream);
        if upstream != header.upstream {
            self.count_place();
        }
        header.upstream = Cow::Owned(upstream);
        header.name = header.name.map(|name| self.text(name));
        header.tags = header.tags.into_iter().map(|tag| self.text(tag)).collect();
        header.extra = self.mask_extra(&header.extra);
        header.extra.extend_from_slice(&self.redactor.header_extra());
        header
    }

    fn message<'a>(&mut self, mut message: MessageLine<'a>) -> MessageLine<'a> {
        let masked = self.redactor.message(&message.msg);
        let new: Vec<_> =
            masked.paths.into_iter().filter(|path| !message.redacted.contains(path)).collect();
        if let Cow::Owned(text) = masked.text {
            self.masked = true;
            // A value that an earlier redaction has masked may be masked again by another rule.
            self.report.places += new.len().max(1) as u64;
            message.msg = Cow::Owned(text);
        }
        message.redacted.extend(new);
        message.msg = Cow::Owned(compact(&message.msg).into_owned());
        message.raw = message.raw.map(|raw| {
            let masked = self.mask_bytes(raw.as_bytes());
            masked.map_or(raw, |masked| Cow::Owned(String::from_utf8_lossy(&masked).into_owned()))
        });
        message.session = message.session.map(|session| Cow::Owned(self.mask_data(&session)));
        message.extra = self.mask_extra(&message.extra);
        message
    }

    fn mask_bad_line<'a>(&mut self, mut bad: BadFrame<'a>) -> BadFrame<'a> {
        if let Some(masked) = self.mask_bytes(&bad.raw) {
            bad.raw = Cow::Owned(masked);
        }
        bad.reason = self.text(bad.reason);
        bad.session = bad.session.map(|session| Cow::Owned(self.mask_data(&session)));
        bad.extra = self.mask_extra(&bad.extra);
        bad
    }

    /// A line of an unknown type; each member is masked like a message.
    fn mask_unknown_line(&mut self, text: &[u8]) -> Vec<u8> {
        let Ok(members) = OrderedMembers::read_object(text) else { return Vec::new() };
        let members = self.members(members);
        let body = members.strip_prefix(b",").unwrap_or(&members);
        [b"{", body, b"}\n"].concat()
    }

    fn mask_extra(&mut self, extra: &[u8]) -> Vec<u8> {
        match OrderedMembers::read(extra) {
            Ok(members) => self.members(members),
            Err(_) => Vec::new(),
        }
    }

    /// Members as `,"key":value` text. A duplicate key may hide a second message or its bytes, so
    /// every value is masked as what it may be.
    fn members(&mut self, members: OrderedMembers) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, value) in members.0 {
            let value = match (key.as_str(), json::string(&value).map(Cow::into_owned)) {
                (MEMBER, _) => continue,
                ("raw", Some(text)) => {
                    let masked = self.mask_bytes(text.as_bytes());
                    masked.map_or(value, |text| quoted(&String::from_utf8_lossy(&text)))
                }
                ("raw_b64", Some(text)) => {
                    let masked = base64_decode(&text).and_then(|bytes| self.mask_bytes(&bytes));
                    masked.map_or(value, |bytes| quoted(&base64_encode(&bytes)))
                }
                _ => match self.redactor.message(&value).text {
                    Cow::Owned(masked) => {
                        self.count_place();
                        masked
                    }
                    Cow::Borrowed(_) => value,
                },
            };
            out.push(b',');
            out.extend_from_slice(&quoted(&self.text(Cow::Owned(key))));
            out.push(b':');
            out.extend_from_slice(&compact(&value));
        }
        out
    }

    fn mask_bytes(&mut self, raw: &[u8]) -> Option<Vec<u8>> {
        match self.redactor.non_message(raw) {
            Cow::Owned(masked) => {
                self.count_place();
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
        self.count_place();
        Cow::Owned(masked)
    }

    fn mask_data(&mut self, json: &[u8]) -> Vec<u8> {
        let masked = self.redactor.mask_data(json);
        if matches!(masked, Cow::Owned(_)) {
            self.count_place();
        }
        masked.into_owned()
    }

    fn count_place(&mut self) {
        self.masked = true;
        self.report.places += 1;
    }
}

#[cfg(test)]
mod tests;
