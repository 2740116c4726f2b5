//! Writes the entries of a live session line by line, in one of the dialects.

use std::borrow::Cow;

use super::line::{BadFrame, EntryTime, MessageLine, TapeFooter, TapeHeader};
use super::{EntryBody, EntryElement, GateOutcome, TOO_LARGE, TapeEntry, UNTERMINATED};
use crate::frame;
use crate::json::{self, JsonObject};
use crate::side::{Lane, Side};
use crate::time::{SubSecond, Timestamp, write_rfc3339};

/// The dialect of a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Header, numbered messages, footer; frames that are not messages go to the anomalies file.
    Thoughtjack,
    /// One object per frame, valid or not, and nothing else.
    Overwatch,
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Self::Thoughtjack => "thoughtjack",
            Self::Overwatch => "overwatch",
        }
    }

    /// The precision of timestamps in the dialect.
    fn sub_second(self) -> SubSecond {
        match self {
            Self::Thoughtjack => SubSecond::Micros,
            Self::Overwatch => SubSecond::Millis,
        }
    }
}

/// A target that bytes are appended to.
pub trait ByteSink {
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);
}

impl ByteSink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Removes secrets from what is recorded. It does not affect what is sent.
pub trait Mask {
    /// Masks the secrets in a message.
    fn message<'a>(&self, msg: &'a [u8]) -> MaskedMessage<'a>;
    /// Masks everything that may be a secret in a frame that could not be parsed.
    fn non_message<'a>(&self, raw: &'a [u8]) -> Cow<'a, [u8]>;
    /// Masks the secrets in a text, such as a name in a header.
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str>;
    /// The members of a header that say how secrets are masked.
    fn header_extra(&self) -> Vec<u8>;
}

/// A masked message, and where values were masked.
#[derive(Debug, Clone)]
pub struct MaskedMessage<'a> {
    /// JSON text.
    pub text: Cow<'a, [u8]>,
    /// The masked locations, as JSON pointers.
    pub paths: Vec<String>,
}

/// How the entries of a tape are written.
#[derive(Debug, Clone, Copy)]
pub struct EntryWriterOptions {
    pub dialect: Dialect,
    /// Whether overwatch lines repeat the exact bytes in `raw`.
    pub raw: bool,
    /// Whether several clients may talk concurrently, so that answers must name their request.
    pub shared: bool,
}

/// Writes entries as lines.
pub struct EntryWriter {
    options: EntryWriterOptions,
    mask: Option<Box<dyn Mask>>,
    started: Timestamp,
    client_messages: u64,
    server_messages: u64,
    batches: u64,
    /// Frames that are not messages; a batch is not one of them.
    anomalies: u64,
    /// The number of the last message.
    last_seq: u64,
    stamp: LastStamp,
}

/// The last timestamp that was written. All messages of one wake-up have the same.
struct LastStamp {
    wall_us: i64,
    text: String,
}

impl LastStamp {
    fn update(&mut self, wall_us: i64, dialect: Dialect) {
        if self.wall_us == wall_us && !self.text.is_empty() {
            return;
        }
        let mut text = std::mem::take(&mut self.text).into_bytes();
        text.clear();
        write_rfc3339(&mut text, wall_us, dialect.sub_second());
        self.wall_us = wall_us;
        self.text = String::from_utf8(text).unwrap_or_default();
    }
}

impl EntryWriter {
    /// A writer for a session that started at `started`.
    pub fn new(
        options: EntryWriterOptions,
        mask: Option<Box<dyn Mask>>,
        started: Timestamp,
    ) -> Self {
        Self {
            options,
            mask,
            started,
            client_messages: 0,
            server_messages: 0,
            batches: 0,
            anomalies: 0,
            last_seq: 0,
            stamp: LastStamp { wall_us: 0, text: String::new() },
        }
    }

    /// Writes the first line, if the dialect has one.
    pub fn open(&mut self, header: &TapeHeader<'_>, tape: &mut impl ByteSink) {
        if self.options.dialect == Dialect::Thoughtjack {
            header.write(tape);
        }
    }

    /// Writes one entry: its messages to `tape`, and what the dialect cannot express to
    /// `anomaly_file`.
    pub fn write(
        &mut self,
        entry: &TapeEntry<'_>,
        tape: &mut impl ByteSink,
        anomaly_file: &mut impl ByteSink,
    ) {
        match &entry.body {
            EntryBody::Message(element) => {
                self.message(entry, &entry.bytes, *element, None, tape, anomaly_file)
            }
            EntryBody::Batch(elements) => self.write_batch(entry, elements, tape, anomaly_file),
            EntryBody::Garbage(reason) => {
                let reason = if entry.terminated { reason } else { UNTERMINATED };
                self.write_bad(entry, reason, None, tape, anomaly_file);
            }
            EntryBody::TooLarge { bytes_total } => {
                self.write_bad(entry, TOO_LARGE, Some(*bytes_total), tape, anomaly_file);
            }
        }
    }

    /// Writes the last line, if the dialect has one.
    pub fn close(&mut self, at: Timestamp, tape: &mut impl ByteSink) {
        if self.options.dialect == Dialect::Thoughtjack {
            let footer = TapeFooter {
                total_messages: self.client_messages + self.server_messages,
                duration_ms: at.ms_since(self.started),
                client_messages: self.client_messages,
                server_messages: self.server_messages,
                extra: Cow::Borrowed(b""),
            };
            footer.write(tape);
        }
    }

    /// How many messages were written, from the client and from the server.
    pub fn messages(&self) -> (u64, u64) {
        (self.client_messages, self.server_messages)
    }

    /// How many frames were not messages. The messages of a batch are on the tape.
    pub fn anomalies(&self) -> u64 {
        self.anomalies
    }

    /// How many batches were written beside the tape as they were sent.
    pub fn batches_beside(&self) -> u64 {
        if self.options.dialect == Dialect::Thoughtjack { self.batches } else { 0 }
    }

    fn message(
        &mut self,
        entry: &TapeEntry<'_>,
        bytes: &[u8],
        element: EntryElement,
        batch: Option<u64>,
        tape: &mut impl ByteSink,
        anomaly_file: &mut impl ByteSink,
    ) {
        if self.options.dialect == Dialect::Overwatch && !entry.terminated {
            return self.write_bad(entry, UNTERMINATED, None, tape, anomaly_file);
        }
        self.count(entry.from, 1);
        self.last_seq = element.n;
        self.stamp.update(entry.at.wall_us, self.options.dialect);
        // A tape line is one line; `raw` below keeps the exact bytes.
        let text = json::compact(bytes.trim_ascii());
        let masked = match &self.mask {
            Some(mask) => mask.message(&text),
            None => MaskedMessage { text: Cow::Borrowed(&text), paths: Vec::new() },
        };
        let reply = element.reply;
        let mut line = MessageLine {
            seq: Some(element.n),
            ts: EntryTime::Text(&self.stamp.text),
            from: entry.from,
            raw: None,
            latency_ms: None,
            session: session_text(entry.lane),
            req: reply.filter(|_| self.options.shared).map(|reply| reply.to),
            batch,
            ours: entry.ours,
            unterminated: !entry.terminated,
            resumed: entry.resumed,
            redacted: masked.paths,
            msg: masked.text,
            extra: gate_outcome_text(&entry.gate_outcome),
        };
        match self.options.dialect {
            Dialect::Thoughtjack => {
                line.latency_ms = reply.map(|reply| reply.latency_ms);
                line.write_thoughtjack(tape);
            }
            Dialect::Overwatch => {
                // The dialect has no numbers that an answer could refer to.
                line.req = None;
                // Exact bytes would reveal what was masked.
                line.raw = match line.redacted.is_empty() {
                    _ if !self.options.raw => None,
                    // The bytes as received, or their masked text.
                    true => Some(String::from_utf8_lossy(&entry.bytes)),
                    false => Some(Cow::Owned(String::from_utf8_lossy(&line.msg).into_owned())),
                };
                line.write_overwatch(tape);
            }
        }
    }

    fn write_batch(
        &mut self,
        entry: &TapeEntry<'_>,
        elements: &[Option<EntryElement>],
        tape: &mut impl ByteSink,
        anomaly_file: &mut impl ByteSink,
    ) {
        self.batches += 1;
        // The dialect has a line for each frame, so a batch stays whole.
        if self.options.dialect == Dialect::Overwatch {
            let whole = EntryElement { n: 0, reply: None };
            return self.message(entry, &entry.bytes, whole, None, tape, anomaly_file);
        }
        // The schema demands objects. The batch as sent goes beside the tape
        // (docs/decisions/anomalies-beside-the-tape.md).
        self.write_bad(entry, super::BATCH, None, tape, anomaly_file);
        let batch = Some(self.batches);
        for (frame, element) in frame::elements(&entry.bytes).iter().zip(elements) {
            if let Some(element) = element {
                self.message(entry, frame.bytes(), *element, batch, tape, anomaly_file);
            }
        }
    }

    fn write_bad(
        &mut self,
        entry: &TapeEntry<'_>,
        reason: &str,
        bytes_total: Option<u64>,
        tape: &mut impl ByteSink,
        anomaly_file: &mut impl ByteSink,
    ) {
        self.anomalies += u64::from(reason != super::BATCH);
        self.stamp.update(entry.at.wall_us, self.options.dialect);
        let is_beside_tape = self.options.dialect == Dialect::Thoughtjack;
        let raw = match &self.mask {
            Some(mask) => mask.non_message(&entry.bytes),
            None => Cow::Borrowed(entry.bytes.as_ref()),
        };
        let line = BadFrame {
            ts: EntryTime::Text(&self.stamp.text),
            from: entry.from,
            raw,
            reason: Cow::Borrowed(reason),
            bytes_total,
            session: session_text(entry.lane),
            // Everything of one wake-up has the same time, so only the number shows the place.
            extra: match is_beside_tape {
                true => JsonObject::new().number("after", self.last_seq).into_members(),
                false => Vec::new(),
            },
        };
        match self.options.dialect {
            Dialect::Thoughtjack => line.write(anomaly_file),
            Dialect::Overwatch => line.write(tape),
        }
    }

    fn count(&mut self, from: Side, messages: u64) {
        match from {
            Side::Client => self.client_messages += messages,
            Side::Server => self.server_messages += messages,
        }
    }
}

/// What the gate did with a message, as a key of its line.
fn gate_outcome_text(gate_outcome: &GateOutcome) -> Vec<u8> {
    match gate_outcome {
        GateOutcome::Sent => Vec::new(),
        GateOutcome::Held => b",\"held\":true".to_vec(),
        GateOutcome::HeldForList => b",\"held\":\"list\"".to_vec(),
        GateOutcome::Rewritten => b",\"rewritten\":true".to_vec(),
        GateOutcome::Refused(cause_text) => {
            JsonObject::new().text("refused", cause_text).into_members()
        }
    }
}

/// The name of a lane's session on its lines. The first session has no name, so that a tape of one
/// session looks exactly as documented.
fn session_text(lane: Lane) -> Option<Cow<'static, [u8]>> {
    (lane.session > 1).then(|| Cow::Owned(format!("\"s{}\"", lane.session).into_bytes()))
}
