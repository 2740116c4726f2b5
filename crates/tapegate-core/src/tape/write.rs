//! Writes the entries of a live session line by line, in one of the dialects.

use std::borrow::Cow;

use super::line::{Bad, Footer, Header, Message, Stamp};
use super::{Element, Entry, Fate, TOO_LARGE, UNTERMINATED, What};
use crate::frame;
use crate::json;
use crate::side::{Lane, Side};
use crate::time::{At, SubSecond, write_rfc3339};

/// The dialect of a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Header, numbered messages, footer; frames that are not messages go to the anomalies file.
    Thoughtjack,
    /// One object per frame, valid or not, and nothing else.
    Overwatch,
}

impl Dialect {
    /// Its name.
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
pub trait Sink {
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Removes secrets from what is recorded. It does not affect what is sent.
pub trait Mask {
    /// Masks the secrets in a message.
    fn message<'a>(&self, msg: &'a [u8]) -> Masked<'a>;
    /// Masks everything that may be a secret in a frame that could not be parsed.
    fn garbage<'a>(&self, raw: &'a [u8]) -> Cow<'a, [u8]>;
}

/// A masked message, and where values were masked.
#[derive(Debug, Clone)]
pub struct Masked<'a> {
    /// JSON text.
    pub text: Cow<'a, [u8]>,
    /// The masked locations, as JSON pointers.
    pub paths: Vec<String>,
}

/// How the entries of a tape are written.
#[derive(Debug, Clone, Copy)]
pub struct ScribeOptions {
    /// The dialect.
    pub dialect: Dialect,
    /// Whether overwatch lines repeat the exact bytes in `raw`.
    pub raw: bool,
    /// Whether several clients may talk concurrently, so that answers must name their request.
    pub shared: bool,
}

/// Writes entries as lines.
pub struct Scribe {
    options: ScribeOptions,
    mask: Option<Box<dyn Mask>>,
    started: At,
    client_messages: u64,
    server_messages: u64,
    batches: u64,
    anomalies: u64,
    stamp: LastStamp,
}

/// The last timestamp that was written. All messages of one wake-up have the same.
struct LastStamp {
    wall_us: i64,
    text: String,
}

impl LastStamp {
    fn keep(&mut self, wall_us: i64, dialect: Dialect) {
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

impl Scribe {
    /// A writer for a session that started at `started`.
    pub fn new(options: ScribeOptions, mask: Option<Box<dyn Mask>>, started: At) -> Self {
        let (client_messages, server_messages, batches, anomalies) = (0, 0, 0, 0);
        let stamp = LastStamp { wall_us: 0, text: String::new() };
        Self { options, mask, started, client_messages, server_messages, batches, anomalies, stamp }
    }

    /// Writes the first line, if the dialect has one.
    pub fn open(&mut self, header: &Header<'_>, tape: &mut impl Sink) {
        if self.options.dialect == Dialect::Thoughtjack {
            header.write(tape);
        }
    }

    /// Writes one entry: its messages to `tape`, and what the dialect cannot express to `beside`.
    pub fn write(&mut self, entry: &Entry<'_>, tape: &mut impl Sink, beside: &mut impl Sink) {
        match &entry.what {
            What::Message(element) => {
                self.message(entry, &entry.bytes, *element, None, tape, beside)
            }
            What::Batch(elements) => self.batch(entry, elements, tape, beside),
            What::Garbage(reason) => {
                let reason = if entry.terminated { reason } else { UNTERMINATED };
                self.bad(entry, reason, None, tape, beside);
            }
            What::TooLarge { bytes_total } => {
                self.bad(entry, TOO_LARGE, Some(*bytes_total), tape, beside);
            }
        }
    }

    /// Writes the last line, if the dialect has one.
    pub fn close(&mut self, at: At, tape: &mut impl Sink) {
        if self.options.dialect == Dialect::Thoughtjack {
            let footer = Footer {
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

    /// How many frames were not messages.
    pub fn anomalies(&self) -> u64 {
        self.anomalies
    }

    fn message(
        &mut self,
        entry: &Entry<'_>,
        bytes: &[u8],
        element: Element,
        batch: Option<u64>,
        tape: &mut impl Sink,
        beside: &mut impl Sink,
    ) {
        if self.options.dialect == Dialect::Overwatch && !entry.terminated {
            return self.bad(entry, UNTERMINATED, None, tape, beside);
        }
        self.count(entry.from, 1);
        self.stamp.keep(entry.at.wall_us, self.options.dialect);
        let text = json::compact(bytes.trim_ascii());
        let masked = match &self.mask {
            Some(mask) => mask.message(&text),
            None => Masked { text: Cow::Borrowed(&text), paths: Vec::new() },
        };
        let reply = element.reply;
        let mut line = Message {
            seq: Some(element.n),
            ts: Stamp::Text(&self.stamp.text),
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
            extra: fate_text(&entry.fate),
        };
        match self.options.dialect {
            Dialect::Thoughtjack => {
                line.latency_ms = reply.map(|reply| reply.latency_ms);
                line.write_thoughtjack(tape);
            }
            Dialect::Overwatch => {
                line.req = None;
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

    fn batch(
        &mut self,
        entry: &Entry<'_>,
        elements: &[Option<Element>],
        tape: &mut impl Sink,
        beside: &mut impl Sink,
    ) {
        self.batches += 1;
        if self.options.dialect == Dialect::Overwatch {
            let whole = Element { n: 0, reply: None };
            return self.message(entry, &entry.bytes, whole, None, tape, beside);
        }
        self.bad(entry, super::BATCH, None, tape, beside);
        let batch = Some(self.batches);
        for (frame, element) in frame::elements(&entry.bytes).iter().zip(elements) {
            if let Some(element) = element {
                self.message(entry, frame.bytes(), *element, batch, tape, beside);
            }
        }
    }

    fn bad(
        &mut self,
        entry: &Entry<'_>,
        reason: &str,
        bytes_total: Option<u64>,
        tape: &mut impl Sink,
        beside: &mut impl Sink,
    ) {
        self.anomalies += 1;
        let raw = match &self.mask {
            Some(mask) => mask.garbage(&entry.bytes),
            None => Cow::Borrowed(entry.bytes.as_ref()),
        };
        let line = Bad {
            ts: Stamp::At(entry.at.wall_us),
            from: entry.from,
            raw,
            reason: Cow::Borrowed(reason),
            bytes_total,
            session: session_text(entry.lane),
            extra: Vec::new(),
        };
        match self.options.dialect {
            Dialect::Thoughtjack => line.write(beside),
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
fn fate_text(fate: &Fate) -> Vec<u8> {
    match fate {
        Fate::Sent => Vec::new(),
        Fate::Held => b",\"held\":true".to_vec(),
        Fate::HeldForList => b",\"held\":\"list\"".to_vec(),
        Fate::Rewritten => b",\"rewritten\":true".to_vec(),
        Fate::Refused(why) => {
            let mut text = b",\"refused\":".to_vec();
            json::write_str(&mut text, why);
            text
        }
    }
}

/// The name of a lane's session on its lines. The first session has no name, so that a tape of one
/// session looks exactly as documented.
fn session_text(lane: Lane) -> Option<Cow<'static, [u8]>> {
    (lane.session > 1).then(|| Cow::Owned(format!("\"s{}\"", lane.session).into_bytes()))
}
