//! The structure of a tape: header, footer, dialect, and lines that a crash cut short.
//!
//! Every reader of a whole tape needs it, for an audit as well as for a replay.

use super::TORN_TAIL;
use super::line::{Footer, Header, Line, Message, Version};
use super::reader::{Numbered, Problem};
use crate::side::Side;
use crate::time::read_rfc3339;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Unusual, but handled.
    Warning,
    /// The tape is not reliable.
    Error,
}

/// Something to report about a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1; 0 for the tape as a whole.
    pub line: u64,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub words: String,
}

/// Checks the structure of one tape, fed line by line.
#[derive(Debug, Default)]
pub struct Outline {
    findings: Vec<Finding>,
    thoughtjack: bool,
    overwatch: bool,
    headers: u64,
    /// Whether the tape ends in what may have become its first entry.
    begun: bool,
    part: Part,
    /// The index of the finding about the previous line, if that line was not JSON.
    broken: Option<usize>,
}

/// What has been seen since the last header.
#[derive(Debug, Default)]
struct Part {
    numbered: bool,
    client: u64,
    server: u64,
    footer: Option<u64>,
}

impl Outline {
    /// Checks the next line, or reports the problem with it.
    pub fn line(&mut self, next: &Result<Numbered<'_>, Problem>) {
        let broken = self.broken.take();
        match next {
            Ok(numbered) => {
                if let (Some(finding), Line::Bad(bad)) = (broken, &numbered.entry)
                    && bad.reason == TORN_TAIL
                {
                    self.findings[finding].severity = Severity::Warning;
                    self.findings[finding].words =
                        "a crash cut an entry short; recording continued after it".to_owned();
                }
                self.entry(numbered.line, &numbered.entry);
            }
            Err(Problem::Torn { line, bytes, entry_like, .. }) => {
                self.begun |= entry_like;
                let are = if *bytes == 1 { "byte is" } else { "bytes are" };
                let words =
                    format!("the tape ends in the middle of an entry; {bytes} {are} left out");
                self.say(*line, Severity::Warning, words);
            }
            Err(Problem::Line { line, fault }) => {
                self.broken = Some(self.findings.len());
                self.say(*line, Severity::Error, fault.to_string());
            }
            Err(Problem::Io { line, source }) => {
                self.say(*line, Severity::Error, format!("cannot read on: {source}"));
            }
        }
    }

    /// Counts a valid message line; it is numbered only in the thoughtjack dialect.
    pub fn message(&mut self, line: u64, from: Side, numbered: bool) {
        self.broken = None;
        if self.part.footer.is_some()
            || (if numbered { !self.thoughtjack } else { !self.overwatch })
        {
            self.unusual(line, numbered);
        }
        match from {
            Side::Client => self.part.client += 1,
            Side::Server => self.part.server += 1,
        }
        if numbered && !std::mem::replace(&mut self.part.numbered, true) && self.headers == 0 {
            let words = "there is no header; format 1.0 is assumed".to_owned();
            self.say(line, Severity::Warning, words);
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
    pub fn say(&mut self, line: u64, severity: Severity, words: String) {
        self.findings.push(Finding { line, severity, words });
    }

    /// All findings, by line.
    pub fn finish(mut self) -> Vec<Finding> {
        if !self.has_entries() {
            // A session without messages leaves an empty tape in the overwatch dialect.
            let (severity, words) = match self.findings.is_empty() || self.begun {
                true => (Severity::Warning, "the tape has no entries"),
                false => (Severity::Error, "this is not a tape: it has no entries"),
            };
            self.say(0, severity, words.to_owned());
        }
        if self.thoughtjack && !self.has_footer() {
            let words = "there is no footer: the recording did not end normally";
            self.say(0, Severity::Note, words.to_owned());
        }
        self.findings.sort_by_key(|finding| finding.line);
        self.findings
    }

    fn entry(&mut self, line: u64, entry: &Line<'_>) {
        match entry {
            Line::Message(Message { from, seq, .. }) => self.message(line, *from, seq.is_some()),
            Line::Header(header) => {
                self.dialect(line, true);
                self.header(line, header);
            }
            Line::Bad(_) => self.unusual(line, false),
            Line::Footer(footer) => {
                self.unusual(line, true);
                self.footer(line, footer);
            }
            Line::Unknown(kind) => {
                self.after_footer(line);
                let words = format!("a line of the unknown type `{kind}` is skipped");
                self.say(line, Severity::Warning, words);
            }
        }
    }

    fn unusual(&mut self, line: u64, thoughtjack: bool) {
        self.dialect(line, thoughtjack);
        self.after_footer(line);
    }

    fn after_footer(&mut self, line: u64) {
        if let Some(footer) = self.part.footer {
            self.say(line, Severity::Error, format!("an entry after the footer of line {footer}"));
        }
    }

    fn dialect(&mut self, line: u64, thoughtjack: bool) {
        if thoughtjack && !self.thoughtjack {
            self.thoughtjack = true;
        } else if !thoughtjack && !self.overwatch {
            self.overwatch = true;
        } else {
            return;
        }
        if self.thoughtjack && self.overwatch {
            self.say(line, Severity::Error, "two dialects in one tape".to_owned());
        }
    }

    fn header(&mut self, line: u64, header: &Header<'_>) {
        self.headers += 1;
        if self.headers > 1 {
            let words = "another header: a second recording begins here".to_owned();
            self.say(line, Severity::Warning, words);
        } else if self.part.numbered {
            self.say(line, Severity::Error, "the header is not the first line".to_owned());
        }
        self.part = Part::default();
        match header.format() {
            Version::Known => {}
            Version::Newer => {
                let words =
                    format!("format {} is newer than 1.0; unknown keys are kept", header.version);
                self.say(line, Severity::Note, words);
            }
            Version::Other(words) => self.say(line, Severity::Error, words),
        }
        if read_rfc3339(&header.recorded_at).is_none() {
            self.say(line, Severity::Error, "`recorded_at` is not an RFC 3339 time".to_owned());
        }
    }

    fn footer(&mut self, line: u64, footer: &Footer<'_>) {
        let counted = (self.part.client + self.part.server, self.part.client, self.part.server);
        let said = (footer.total_messages, footer.client_messages, footer.server_messages);
        if counted != said {
            let words = format!(
                "the footer counts {} messages ({} client, {} server), but there are {} ({}, {})",
                said.0, said.1, said.2, counted.0, counted.1, counted.2
            );
            self.say(line, Severity::Warning, words);
        }
        self.part.footer = Some(line);
    }
}
