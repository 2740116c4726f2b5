//! Looks over a whole tape and says everything that is wrong with it.
//!
//! An error means that the tape says less, or other things, than it seems to; a warning that
//! something is unusual and was coped with; a note is worth knowing.

use std::collections::HashMap;

use super::TORN_TAIL;
use super::line::{Footer, Header, Line, Message, Stamp};
use super::reader::{Numbered, Problem};
use crate::frame::{Body, Frame, Kind};
use crate::pending::IdKey;
use crate::side::Side;
use crate::time::read_rfc3339;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Unusual, and coped with.
    Warning,
    /// Not to be relied on.
    Error,
}

/// Something an audit reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1; 0 for the tape as a whole.
    pub line: u64,
    /// How bad it is.
    pub severity: Severity,
    /// What it is, in words.
    pub words: String,
}

/// What a tape holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages of the client.
    pub client_messages: u64,
    /// Messages of the server.
    pub server_messages: u64,
    /// Frames that are no messages, and markers.
    pub anomalies: u64,
    /// Requests without an answer.
    pub unanswered: u64,
    /// Whether it ends with a footer, for dialects that have one.
    pub footer: bool,
}

/// An audit of one tape, fed line by line.
#[derive(Debug, Default)]
pub struct Audit {
    findings: Vec<Finding>,
    totals: Totals,
    thoughtjack: bool,
    overwatch: bool,
    headers: u64,
    /// Whether the tape ends in what may have become its first entry.
    begun: bool,
    part: Part,
    /// The finding of the line before this one, if that line was no JSON.
    broken: Option<usize>,
    /// Requests without an answer, by asker, session and id.
    open: HashMap<(Side, Vec<u8>, IdKey), Vec<Asked>>,
}

/// A request: its line, and its number if it has one.
type Asked = (u64, Option<u64>);

/// What has been seen since the last header.
#[derive(Debug, Default)]
struct Part {
    seq: Option<u64>,
    client: u64,
    server: u64,
    footer: Option<u64>,
}

impl Audit {
    /// Looks at the next line, or at what was wrong with it.
    pub fn line(&mut self, next: &Result<Numbered<'_>, Problem>) {
        let broken = self.broken.take();
        match next {
            Ok(numbered) => {
                if let (Some(finding), Line::Bad(bad)) = (broken, &numbered.entry)
                    && bad.reason == TORN_TAIL
                {
                    self.findings[finding].severity = Severity::Warning;
                    self.findings[finding].words =
                        "a crash cut an entry short; recording went on behind it".to_owned();
                }
                self.entry(numbered.line, &numbered.entry);
            }
            Err(Problem::Torn { line, bytes, entry_like, .. }) => {
                self.begun |= entry_like;
                let words =
                    format!("the tape ends in the middle of an entry; {bytes} bytes are left out");
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

    /// Ends the audit.
    pub fn finish(mut self) -> (Vec<Finding>, Totals) {
        self.totals.unanswered = self.open.values().map(|lines| lines.len() as u64).sum();
        self.totals.footer = self.part.footer.is_some();
        if !self.thoughtjack && !self.overwatch {
            // A session in which nothing was said leaves an empty tape in the overwatch dialect.
            let (severity, words) = match self.findings.is_empty() || self.begun {
                true => (Severity::Warning, "the tape holds no entry"),
                false => (Severity::Error, "this is no tape: nothing in it is an entry"),
            };
            self.say(0, severity, words.to_owned());
        }
        if self.thoughtjack && self.part.footer.is_none() {
            let words = "there is no footer: the recording did not end in order";
            self.say(0, Severity::Note, words.to_owned());
        }
        let mut open: Vec<u64> = self.open.values().flatten().map(|(line, _)| *line).collect();
        open.sort_unstable();
        for line in open {
            self.say(line, Severity::Note, "the request was never answered".to_owned());
        }
        self.findings.sort_by_key(|finding| finding.line);
        (self.findings, self.totals)
    }

    fn entry(&mut self, line: u64, entry: &Line<'_>) {
        let thoughtjack = !matches!(entry, Line::Bad(_) | Line::Message(Message { seq: None, .. }));
        if !matches!(entry, Line::Unknown(_)) {
            self.dialect(line, thoughtjack);
        }
        if let (Some(footer), false) = (self.part.footer, matches!(entry, Line::Header(_))) {
            self.say(line, Severity::Error, format!("an entry after the footer of line {footer}"));
        }
        match entry {
            Line::Header(header) => self.header(line, header),
            Line::Message(message) => self.message(line, message),
            Line::Bad(bad) => {
                self.totals.anomalies += 1;
                self.stamp(line, bad.ts);
            }
            Line::Footer(footer) => self.footer(line, footer),
            Line::Unknown(kind) => {
                let words = format!("a line of the unknown type `{kind}` is passed over");
                self.say(line, Severity::Warning, words);
            }
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
        } else if self.part.seq.is_some() {
            self.say(line, Severity::Error, "the header is not the first line".to_owned());
        }
        self.part = Part::default();
        self.open.clear();
        match header.version.split_once('.') {
            Some(("1", minor)) if number(minor) => {
                if minor != "0" {
                    let words = format!(
                        "format {} is newer than 1.0; unknown keys are kept",
                        header.version
                    );
                    self.say(line, Severity::Note, words);
                }
            }
            Some((major, minor)) if number(major) && number(minor) => {
                let words = format!(
                    "the tape has format {}, but this build reads formats 1.x",
                    header.version
                );
                self.say(line, Severity::Error, words);
            }
            _ => {
                let words = format!("`version` is `{}`, not a number like 1.0", header.version);
                self.say(line, Severity::Error, words);
            }
        }
        if read_rfc3339(&header.recorded_at).is_none() {
            self.say(line, Severity::Error, "`recorded_at` is not an RFC 3339 time".to_owned());
        }
    }

    fn message(&mut self, line: u64, message: &Message<'_>) {
        self.stamp(line, message.ts);
        match message.from {
            Side::Client => (self.totals.client_messages += 1, self.part.client += 1),
            Side::Server => (self.totals.server_messages += 1, self.part.server += 1),
        };
        if let Some(seq) = message.seq {
            self.sequence(line, seq);
        }
        let frame = Frame::read(&message.msg);
        match frame.body() {
            Body::Message(_) => self.pair(line, message, &frame),
            Body::Batch => {
                for element in crate::frame::elements(&message.msg) {
                    self.pair(line, message, &element);
                }
            }
            Body::Garbage(garbage) => self.say(line, Severity::Warning, garbage.reason()),
        }
    }

    fn sequence(&mut self, line: u64, seq: u64) {
        if self.headers == 0 && self.part.seq.is_none() {
            let words = "there is no header; format 1.0 is assumed".to_owned();
            self.say(line, Severity::Warning, words);
        }
        match self.part.seq {
            Some(last) if Some(seq) != last.checked_add(1) => {
                self.say(line, Severity::Warning, format!("`seq` {seq} follows {last}"));
            }
            None if seq > 1 => {
                self.say(line, Severity::Warning, format!("`seq` starts at {seq}"));
            }
            _ => {}
        }
        self.part.seq = Some(seq);
    }

    fn pair(&mut self, line: u64, message: &Message<'_>, frame: &Frame<'_>) {
        let Some(said) = frame.envelope() else { return };
        let session = message.session.clone().unwrap_or_default().into_owned();
        let answer = matches!(said.kind(), Kind::Response | Kind::Error);
        if message.latency_ms.is_some() && !answer {
            let words = "`latency_ms` on a message that is no answer".to_owned();
            self.say(line, Severity::Warning, words);
        }
        match (said.kind(), said.id) {
            (Kind::Request, Some(id)) => {
                let key = (message.from, session, IdKey::new(id));
                self.open.entry(key).or_default().push((line, message.seq));
            }
            (Kind::Response | Kind::Error, Some(id)) if id != b"null" => {
                let key = (message.from.other(), session, IdKey::new(id));
                let lines = self.open.get_mut(&key).filter(|lines| !lines.is_empty());
                match lines {
                    Some(lines) => {
                        // The answer names its request, or else it is for the oldest.
                        let named =
                            lines.iter().position(|(_, seq)| seq.is_some() && *seq == message.req);
                        lines.remove(named.unwrap_or(0));
                    }
                    None => {
                        let words = "an answer to a request that is not on the tape".to_owned();
                        self.say(line, Severity::Note, words);
                    }
                }
            }
            (Kind::Other, _) => {
                self.say(line, Severity::Note, "an object that is no JSON-RPC message".to_owned());
            }
            _ => {}
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

    fn stamp(&mut self, line: u64, ts: Stamp<'_>) {
        if let Stamp::Text(text) = ts
            && read_rfc3339(text).is_none()
        {
            self.say(line, Severity::Error, "`ts` is not an RFC 3339 time".to_owned());
        }
    }

    fn say(&mut self, line: u64, severity: Severity, words: String) {
        self.findings.push(Finding { line, severity, words });
    }
}

fn number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
