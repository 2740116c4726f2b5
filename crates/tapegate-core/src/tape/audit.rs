//! Checks a whole tape and reports everything that is wrong with it.
//!
//! An error means that the tape does not show what it seems to; a warning, that something is
//! unusual but was handled; a note is merely worth knowing.

use std::collections::HashMap;

use super::line::{EntryTime, LineFault, MessageLine, TapeLine};
use super::outline::{TapeFinding, TapeOutline, TapeSeverity};
use super::reader::{LineProblem, NumberedLine};
use crate::frame::{Envelope, Frame, FrameBody, MessageKind};
use crate::json::JsonStr;
use crate::pending::IdKey;
use crate::side::Side;

/// The counts of a tape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TapeTotals {
    /// Messages from the client.
    pub client_messages: u64,
    /// Messages from the server.
    pub server_messages: u64,
    /// Frames that are not messages, and markers.
    pub anomalies: u64,
    /// Requests without an answer that were not cancelled.
    pub unanswered: u64,
    /// Whether it ends with a footer, for dialects that have one.
    pub footer: bool,
}

/// An audit of one tape, fed line by line.
#[derive(Debug, Default)]
pub struct TapeAudit {
    outline: TapeOutline,
    totals: TapeTotals,
    /// The number of the previous message in this recording.
    seq: Option<u64>,
    /// Requests without an answer, by asker, session and id.
    open: HashMap<(Side, Vec<u8>, IdKey), Vec<OpenRequest>>,
    /// The lines of this recording that are too long to be read: how many, and the last.
    too_long: (u64, u64),
}

/// A request that has no answer yet.
#[derive(Debug)]
struct OpenRequest {
    line: u64,
    seq: Option<u64>,
    /// A short description of it.
    label: String,
    cancelled: bool,
}

/// How many characters of an id or a name are shown.
const SHOWN_CHARS_MAX: usize = 60;

impl TapeAudit {
    /// Checks the next line, or reports the problem with it.
    pub fn line(&mut self, next: &Result<NumberedLine<'_>, LineProblem>) {
        self.outline.line(next);
        if let Err(LineProblem::Line { line, fault: LineFault::TooLong(_) }) = next {
            self.too_long = (self.too_long.0 + 1, *line);
            // It has a number, too.
            self.seq = Some(self.seq.unwrap_or(0).saturating_add(1));
        }
        let Ok(NumberedLine { line, entry, .. }) = next else { return };
        match entry {
            TapeLine::Header(_) => {
                // Numbers start again in each recording of a joined tape.
                self.seq = None;
                self.end_recording();
            }
            TapeLine::Message(message) => self.message(*line, message),
            TapeLine::Bad(bad) => {
                self.totals.anomalies += 1;
                self.stamp(*line, bad.ts);
            }
            TapeLine::Footer(_) | TapeLine::Unknown(_) => {}
        }
    }

    /// Ends the audit and returns its findings.
    pub fn finish(mut self) -> (Vec<TapeFinding>, TapeTotals) {
        self.end_recording();
        self.totals.footer = self.outline.has_footer();
        (self.outline.finish(), self.totals)
    }

    /// Reports requests without an answer: an answer cannot come from another recording.
    fn end_recording(&mut self) {
        let mut open: Vec<OpenRequest> = self.open.drain().flat_map(|(_, open)| open).collect();
        open.sort_unstable_by_key(|request| request.line);
        let (too_long_count, too_long_line) = std::mem::take(&mut self.too_long);
        let mut perhaps_answered = 0;
        for OpenRequest { line, label, cancelled, .. } in open {
            if cancelled {
                let message = format!("{label} was cancelled and not answered");
                self.report(line, TapeSeverity::Note, message);
                continue;
            }
            let message = match line < too_long_line {
                true => {
                    perhaps_answered += 1;
                    format!("{label} has no answer on the lines that can be read")
                }
                false => format!("{label} was never answered"),
            };
            self.totals.unanswered += 1;
            self.report(line, TapeSeverity::Note, message);
        }
        // Each line that is too long may be the answer to one of them.
        self.totals.unanswered -= too_long_count.min(perhaps_answered);
    }

    fn message(&mut self, line: u64, message: &MessageLine<'_>) {
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
            FrameBody::Message(_) => self.pair(line, message, &frame),
            FrameBody::Batch => {
                for element in crate::frame::elements(&message.msg) {
                    self.pair(line, message, &element);
                }
            }
            FrameBody::Garbage(garbage) => {
                self.totals.anomalies += 1;
                self.report(line, TapeSeverity::Warning, garbage.reason());
            }
        }
    }

    fn sequence(&mut self, line: u64, seq: u64) {
        match self.seq {
            Some(last) if Some(seq) != last.checked_add(1) => {
                self.report(line, TapeSeverity::Warning, format!("`seq` {seq} follows {last}"));
            }
            None if seq > 1 => {
                self.report(line, TapeSeverity::Warning, format!("`seq` starts at {seq}"));
            }
            _ => {}
        }
        self.seq = Some(seq);
    }

    fn pair(&mut self, line: u64, message: &MessageLine<'_>, frame: &Frame<'_>) {
        let Some(envelope) = frame.envelope() else { return };
        let session = message.session.clone().unwrap_or_default().into_owned();
        let answer = matches!(envelope.kind(), MessageKind::Response | MessageKind::Error);
        if message.latency_ms.is_some() && !answer {
            let message_text = "`latency_ms` on a message that is not an answer".to_owned();
            self.report(line, TapeSeverity::Warning, message_text);
        }
        match (envelope.kind(), envelope.id) {
            (MessageKind::Request, Some(id)) => {
                let key = (message.from, session, IdKey::new(id));
                let label = label(message.from, id, envelope);
                let request = OpenRequest { line, seq: message.seq, label, cancelled: false };
                self.open.entry(key).or_default().push(request);
            }
            // An error with a null id answers a message that could not be read, so it has no
            // request.
            (MessageKind::Response | MessageKind::Error, Some(id)) if id != b"null" => {
                let key = (message.from.other(), session, IdKey::new(id));
                let lines = self.open.get_mut(&key).filter(|lines| !lines.is_empty());
                match lines {
                    Some(lines) => {
                        // The answer names its request; otherwise it belongs to the oldest.
                        let named = lines.iter().position(|request| {
                            request.seq.is_some() && request.seq == message.req
                        });
                        lines.remove(named.unwrap_or(0));
                    }
                    None => {
                        let message_text =
                            "an answer to a request that is not on the tape".to_owned();
                        self.report(line, TapeSeverity::Note, message_text);
                    }
                }
            }
            (MessageKind::Notification, _) if envelope.is_method("notifications/cancelled") => {
                let Some(id) = envelope.request_id else { return };
                let key = (message.from, session, IdKey::new(id));
                let latest = self.open.get_mut(&key).and_then(|requests| requests.last_mut());
                latest.into_iter().for_each(|request| request.cancelled = true);
            }
            (MessageKind::Other, _) => {
                self.report(
                    line,
                    TapeSeverity::Note,
                    "an object but not a JSON-RPC message".to_owned(),
                );
            }
            _ => {}
        }
    }

    fn stamp(&mut self, line: u64, ts: EntryTime<'_>) {
        if ts.micros().is_none() {
            self.report(line, TapeSeverity::Error, "`ts` is not an RFC 3339 time".to_owned());
        }
    }

    fn report(&mut self, line: u64, severity: TapeSeverity, message_text: String) {
        self.outline.report(line, severity, message_text);
    }
}

/// A short description of a request: its sender, id, method and subject.
fn label(from: Side, id: &[u8], envelope: &Envelope<'_>) -> String {
    let whose = match from {
        Side::Client => "request",
        Side::Server => "the server's request",
    };
    let id: String = String::from_utf8_lossy(id).chars().take(SHOWN_CHARS_MAX).collect();
    let shown = |text: &JsonStr<'_>| -> String {
        text.decode().escape_debug().take(SHOWN_CHARS_MAX).collect()
    };
    let method = envelope.method.as_ref().map(shown).unwrap_or_default();
    match envelope.name.as_ref().or(envelope.uri.as_ref()).map(shown) {
        Some(name) => format!("{whose} {id} (`{method}` of `{name}`)"),
        None => format!("{whose} {id} (`{method}`)"),
    }
}
