//! The structure of a tape: header, footer, dialect, and lines that a crash cut short.
//!
//! Every reader of a whole tape needs it, for an audit as well as for a replay.

use super::TORN_TAIL;
use super::line::{FormatVersion, LineFault, MessageLine, TapeFooter, TapeHeader, TapeLine};
use super::reader::{LineProblem, NumberedLine};
use crate::side::Side;
use crate::time::read_rfc3339;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TapeSeverity {
    /// Worth knowing.
    Note,
    /// Unusual, but handled.
    Warning,
    /// The tape is not reliable.
    Error,
}

/// Something to report about a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeFinding {
    /// The line, from 1; 0 for the tape as a whole.
    pub line: u64,
    /// How bad it is.
    pub severity: TapeSeverity,
    /// What was found.
    pub message: String,
}

/// Checks the structure of one tape, fed line by line.
#[derive(Debug, Default)]
pub struct TapeOutline {
    findings: Vec<TapeFinding>,
    thoughtjack: bool,
    overwatch: bool,
    headers: u64,
    /// Whether the tape ends in what may have become its first entry.
    begun: bool,
    part: OutlinePart,
    /// The index of the finding about the previous line, if that line was not JSON.
    broken: Option<usize>,
}

/// What has been seen since the last header.
#[derive(Debug, Default)]
struct OutlinePart {
    numbered: bool,
    client: u64,
    server: u64,
    /// Entries that are too long to be read.
    too_long: u64,
    footer: Option<u64>,
}

impl TapeOutline {
    /// Checks the next line, or reports the problem with it.
    pub fn line(&mut self, next: &Result<NumberedLine<'_>, LineProblem>) {
        // Only the line right after the damage can explain it.
        let broken = self.broken.take();
        match next {
            Ok(numbered) => {
                if let (Some(finding), TapeLine::Bad(bad)) = (broken, &numbered.entry)
                    && bad.reason == TORN_TAIL
                {
                    // The marker says that the recorder noticed the damage and continued on
                    // purpose.
                    self.findings[finding].severity = TapeSeverity::Warning;
                    self.findings[finding].message =
                        "a crash cut an entry short; recording continued after it".to_owned();
                }
                self.entry(numbered.line, &numbered.entry);
            }
            Err(LineProblem::Torn { line, bytes, entry_like, .. }) => {
                self.begun |= entry_like;
                let are = if *bytes == 1 { "byte is" } else { "bytes are" };
                let message =
                    format!("the tape ends in the middle of an entry; {bytes} {are} left out");
                self.report(*line, TapeSeverity::Warning, message);
            }
            Err(LineProblem::Line { line, fault }) => {
                self.part.too_long += u64::from(matches!(fault, LineFault::TooLong(_)));
                self.broken = Some(self.findings.len());
                self.report(*line, TapeSeverity::Error, fault.to_string());
            }
            Err(LineProblem::Io { line, source }) => {
                self.report(*line, TapeSeverity::Error, format!("cannot read on: {source}"));
            }
        }
    }

    /// Counts a valid message line; it is numbered only in the thoughtjack dialect.
    pub fn message(&mut self, line: u64, from: Side, numbered: bool) {
        self.broken = None;
        if self.part.footer.is_some()
            || (if numbered { !self.thoughtjack } else { !self.overwatch })
        {
            self.report_unusual(line, numbered);
        }
        match from {
            Side::Client => self.part.client += 1,
            Side::Server => self.part.server += 1,
        }
        // Tapes may be cut with `jq`, so a missing header is not an error.
        if numbered && !std::mem::replace(&mut self.part.numbered, true) && self.headers == 0 {
            let message = "there is no header; format 1.0 is assumed".to_owned();
            self.report(line, TapeSeverity::Warning, message);
        }
    }

    /// Whether the tape has any entries.
    pub fn has_entries(&self) -> bool {
        self.thoughtjack || self.overwatch
    }

    /// Whether the last recording has a footer.
    pub fn has_footer(&self) -> bool {
        self.part.footer.is_some()
    }

    /// Adds a finding about a line.
    pub fn report(&mut self, line: u64, severity: TapeSeverity, message: String) {
        self.findings.push(TapeFinding { line, severity, message });
    }

    /// All findings, by line.
    pub fn finish(mut self) -> Vec<TapeFinding> {
        if !self.has_entries() {
            // A session without messages leaves an empty tape in the overwatch dialect.
            let (severity, message) = match self.findings.is_empty() || self.begun {
                true => (TapeSeverity::Warning, "the tape has no entries"),
                false => (TapeSeverity::Error, "this is not a tape: it has no entries"),
            };
            self.report(0, severity, message.to_owned());
        }
        // A killed recorder writes no footer, but everything it forwarded is on the tape.
        if self.thoughtjack && !self.has_footer() {
            let message = "there is no footer: the recording did not end normally";
            self.report(0, TapeSeverity::Note, message.to_owned());
        }
        self.findings.sort_by_key(|finding| finding.line);
        self.findings
    }

    fn entry(&mut self, line: u64, entry: &TapeLine<'_>) {
        match entry {
            TapeLine::Message(MessageLine { from, seq, .. }) => {
                self.message(line, *from, seq.is_some())
            }
            TapeLine::Header(header) => {
                self.check_dialect(line, true);
                self.header(line, header);
            }
            TapeLine::Bad(_) => self.report_unusual(line, false),
            TapeLine::Footer(footer) => {
                self.report_unusual(line, true);
                self.check_footer(line, footer);
            }
            TapeLine::Unknown(kind) => {
                self.check_after_footer(line);
                let message = format!("a line of the unknown type `{kind}` is skipped");
                self.report(line, TapeSeverity::Warning, message);
            }
        }
    }

    fn report_unusual(&mut self, line: u64, thoughtjack: bool) {
        self.check_dialect(line, thoughtjack);
        self.check_after_footer(line);
    }

    fn check_after_footer(&mut self, line: u64) {
        if let Some(footer) = self.part.footer {
            self.report(
                line,
                TapeSeverity::Error,
                format!("an entry after the footer of line {footer}"),
            );
        }
    }

    fn check_dialect(&mut self, line: u64, thoughtjack: bool) {
        if thoughtjack && !self.thoughtjack {
            self.thoughtjack = true;
        } else if !thoughtjack && !self.overwatch {
            self.overwatch = true;
        } else {
            return;
        }
        if self.thoughtjack && self.overwatch {
            self.report(line, TapeSeverity::Error, "two dialects in one tape".to_owned());
        }
    }

    fn header(&mut self, line: u64, header: &TapeHeader<'_>) {
        self.headers += 1;
        if self.headers > 1 {
            let message = "another header: a second recording begins here".to_owned();
            self.report(line, TapeSeverity::Warning, message);
        } else if self.part.numbered {
            self.report(line, TapeSeverity::Error, "the header is not the first line".to_owned());
        }
        self.part = OutlinePart::default();
        match header.format_version() {
            FormatVersion::Known => {}
            FormatVersion::Newer => {
                let message =
                    format!("format {} is newer than 1.0; unknown keys are kept", header.version);
                self.report(line, TapeSeverity::Note, message);
            }
            FormatVersion::Other(message) => self.report(line, TapeSeverity::Error, message),
        }
        if read_rfc3339(&header.recorded_at).is_none() {
            self.report(
                line,
                TapeSeverity::Error,
                "`recorded_at` is not an RFC 3339 time".to_owned(),
            );
        }
    }

    fn check_footer(&mut self, line: u64, footer: &TapeFooter<'_>) {
        let counted = (self.part.client + self.part.server, self.part.client, self.part.server);
        let stated = (footer.total_messages, footer.client_messages, footer.server_messages);
        // Entries that are too long count too, though their sender is unknown.
        let unread = self.part.too_long;
        let is_explained = unread > 0
            && counted.0 + unread == stated.0
            && counted.1 <= stated.1
            && counted.2 <= stated.2;
        if counted != stated && !is_explained {
            let message = format!(
                "the footer counts {} messages ({} client, {} server), but there are {} ({}, {})",
                stated.0, stated.1, stated.2, counted.0, counted.1, counted.2
            );
            self.report(line, TapeSeverity::Warning, message);
        }
        self.part.footer = Some(line);
    }
}
