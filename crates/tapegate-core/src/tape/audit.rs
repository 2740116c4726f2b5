//! Looks over a whole tape and says everything that is wrong with it.
//!
//! An error means that the tape says less, or other things, than it seems to; a warning that
//! something is unusual and was coped with; a note is worth knowing.

use std::collections::HashMap;

use super::line::{Line, Message, Stamp};
use super::outline::{Finding, Outline, Severity};
use super::reader::{Numbered, Problem};
use crate::frame::{Body, Frame, Kind};
use crate::pending::IdKey;
use crate::side::Side;
use crate::time::read_rfc3339;

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
    outline: Outline,
    totals: Totals,
    /// The number of the message before, in this recording.
    seq: Option<u64>,
    /// Requests without an answer, by asker, session and id.
    open: HashMap<(Side, Vec<u8>, IdKey), Vec<Asked>>,
}

/// A request: its line, and its number if it has one.
type Asked = (u64, Option<u64>);

impl Audit {
    /// Looks at the next line, or at what was wrong with it.
    pub fn line(&mut self, next: &Result<Numbered<'_>, Problem>) {
        self.outline.line(next);
        let Ok(Numbered { line, entry, .. }) = next else { return };
        match entry {
            Line::Header(_) => {
                self.seq = None;
                self.open.clear();
            }
            Line::Message(message) => self.message(*line, message),
            Line::Bad(bad) => {
                self.totals.anomalies += 1;
                self.stamp(*line, bad.ts);
            }
            Line::Footer(_) | Line::Unknown(_) => {}
        }
    }

    /// Ends the audit.
    pub fn finish(mut self) -> (Vec<Finding>, Totals) {
        self.totals.unanswered = self.open.values().map(|lines| lines.len() as u64).sum();
        self.totals.footer = self.outline.has_footer();
        let mut open: Vec<u64> = self.open.values().flatten().map(|(line, _)| *line).collect();
        open.sort_unstable();
        for line in open {
            self.say(line, Severity::Note, "the request was never answered".to_owned());
        }
        (self.outline.finish(), self.totals)
    }

    fn message(&mut self, line: u64, message: &Message<'_>) {
        self.stamp(line, message.ts);
        match message.from {
            Side::Client => self.totals.client_messages += 1,
            Side::Server => self.totals.server_messages += 1,
        }
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
        match self.seq {
            Some(last) if Some(seq) != last.checked_add(1) => {
                self.say(line, Severity::Warning, format!("`seq` {seq} follows {last}"));
            }
            None if seq > 1 => {
                self.say(line, Severity::Warning, format!("`seq` starts at {seq}"));
            }
            _ => {}
        }
        self.seq = Some(seq);
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

    fn stamp(&mut self, line: u64, ts: Stamp<'_>) {
        if let Stamp::Text(text) = ts
            && read_rfc3339(text).is_none()
        {
            self.say(line, Severity::Error, "`ts` is not an RFC 3339 time".to_owned());
        }
    }

    fn say(&mut self, line: u64, severity: Severity, words: String) {
        self.outline.say(line, severity, words);
    }
}
