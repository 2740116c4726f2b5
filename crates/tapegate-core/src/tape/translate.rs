//! A tape in the other dialect, without loss.
//!
//! Messages keep their text to the byte. What a dialect has no line for is kept beside the tape:
//! overwatch has no headers and footers, so those go to a file of [`Aside`]s; thoughtjack has no
//! lines for what is no message, so those go to the anomalies, each with the number of the message
//! it came before. On the way back everything is put where it was.

mod extra;
#[cfg(test)]
mod tests;
mod times;

use std::borrow::Cow;
use std::collections::VecDeque;

use super::line::{Bad, Footer, Header, Line, Message, Stamp};
use super::write::{Dialect, Sink};
use super::{FORMAT_VERSION, LineFault};
use crate::frame::{self, Frame};
use crate::json;
use crate::side::Side;
use extra::{Extra, object};
use times::{Times, micros};

/// A line that overwatch has no line for, and after how many messages it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside {
    /// How many messages came before it.
    pub after: u64,
    /// Its text.
    pub line: Vec<u8>,
}

/// What a new header says, where there is none to go by.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The tape's name.
    pub name: String,
    /// Which program writes it.
    pub tool_version: String,
}

/// What was translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Translated {
    /// Messages, each of a batch counted.
    pub messages: u64,
    /// Frames that are no messages.
    pub anomalies: u64,
    /// Lines that were kept aside, or were put back.
    pub asides: u64,
}

/// The `parse_error` that stands for a batch beside its messages.
const BATCH: &str = "batch";
/// The key of a header that says what the tape was before.
const CONVERTED: &str = "converted";

/// Writes a tape in the other dialect, line by line.
pub struct Translator<'a> {
    to: Dialect,
    origin: Origin,
    /// To be put back, or kept.
    asides: VecDeque<Aside>,
    /// The next line beside the tape that is read.
    beside: Box<dyn FnMut() -> Option<Vec<u8>> + 'a>,
    ahead: Option<Vec<u8>>,
    done: Translated,
    /// Whether good lines repeat their bytes, once it is known.
    raw: Option<bool>,
    /// Whether the tape was in overwatch before, so that what was computed is dropped again.
    returned: bool,
    batches: u64,
    /// The messages of a batch that is not over.
    batch: Option<(u64, Vec<u8>, Vec<Vec<u8>>)>,
    times: Times,
    counts: (u64, u64),
}

impl<'a> Translator<'a> {
    /// A translator. Asides are those of the tape that is read; `beside` yields the lines beside it.
    pub fn new(
        to: Dialect,
        origin: Origin,
        asides: Vec<Aside>,
        beside: Box<dyn FnMut() -> Option<Vec<u8>> + 'a>,
    ) -> Self {
        Self {
            to,
            origin,
            asides: asides.into(),
            beside,
            ahead: None,
            done: Translated::default(),
            raw: None,
            returned: false,
            batches: 0,
            batch: None,
            times: Times::default(),
            counts: (0, 0),
        }
    }

    /// Takes the next line.
    pub fn line(
        &mut self,
        text: &[u8],
        line: &Line<'_>,
        tape: &mut impl Sink,
        beside: &mut impl Sink,
    ) -> Result<(), LineFault> {
        match (self.to, line) {
            (Dialect::Overwatch, Line::Message(message)) => self.to_overwatch(message, tape),
            (Dialect::Overwatch, Line::Bad(bad)) => {
                self.done.anomalies += 1;
                bad.write(tape);
                Ok(())
            }
            (Dialect::Overwatch, other) => {
                self.close_batch(tape);
                if let Line::Header(header) = other {
                    self.hear(header);
                }
                self.aside(text);
                Ok(())
            }
            (Dialect::Thoughtjack, Line::Message(message)) => {
                self.to_thoughtjack(message, tape, beside)
            }
            (Dialect::Thoughtjack, Line::Bad(bad)) => {
                self.begin(bad.ts, None, tape);
                self.put_beside(bad, "", beside);
                Ok(())
            }
            (Dialect::Thoughtjack, _) => {
                tape.put(text);
                tape.put(b"\n");
                Ok(())
            }
        }
    }

    /// Ends the tape; returns what was done, and what must be kept aside.
    pub fn finish(mut self, tape: &mut impl Sink) -> (Translated, Vec<Aside>) {
        if self.to == Dialect::Overwatch {
            self.close_batch(tape);
            while let Some(line) = self.next_beside() {
                self.restore(&line, tape);
            }
            return (self.done, self.asides.into());
        }
        self.begin(Stamp::Text(""), None, tape);
        let had_footer =
            self.asides.iter().any(|aside| aside.line.starts_with(b"{\"type\":\"foot"));
        self.put_back(u64::MAX, tape);
        if !had_footer {
            let Times { first_us, last_us, .. } = self.times;
            let span_us = last_us.zip(first_us).map_or(0, |(last, first)| last - first);
            let footer = Footer {
                total_messages: self.counts.0 + self.counts.1,
                duration_ms: u64::try_from(span_us / 1000).unwrap_or(0),
                client_messages: self.counts.0,
                server_messages: self.counts.1,
                extra: Cow::Borrowed(b""),
            };
            footer.write(tape);
        }
        (self.done, Vec::new())
    }

    // From thoughtjack.

    fn hear(&mut self, header: &Header<'_>) {
        let whole = object(&header.extra);
        let before = json::member(&whole, CONVERTED);
        self.returned = before.is_some();
        self.raw = before.map(|before| json::member(before, "raw") == Some(b"true"));
    }

    fn aside(&mut self, text: &[u8]) {
        if self.returned && Frame::read(text).envelope().is_some() {
            // It was made up when the tape was translated, and is made up again.
            let kind = json::member(text, "type").and_then(json::string);
            if matches!(kind.as_deref(), Some("header" | "footer")) {
                return;
            }
        }
        self.done.asides += 1;
        self.asides.push_back(Aside { after: self.done.messages, line: text.to_vec() });
    }

    fn to_overwatch(
        &mut self,
        message: &Message<'_>,
        tape: &mut impl Sink,
    ) -> Result<(), LineFault> {
        let seq = message.seq.unwrap_or_default();
        if self.batch.as_ref().is_some_and(|(number, ..)| Some(*number) != message.batch) {
            self.close_batch(tape);
        }
        self.catch_up(seq, message, tape);
        self.done.messages += 1;
        if let (Some(number), Some((open, _, elements))) = (message.batch, &mut self.batch)
            && number == *open
        {
            elements.push(message.msg.to_vec());
            return Ok(());
        }
        let mut line = message.clone();
        let mut extra = Extra::of(&line.extra);
        let own = extra.take("raw");
        line.raw = match (own.as_deref(), self.raw) {
            (Some(b"null"), _) => None,
            (Some(raw), _) => json::string(raw).map(|raw| Cow::Owned(raw.into_owned())),
            (None, Some(true)) => Some(Cow::Owned(String::from_utf8_lossy(&line.msg).into_owned())),
            (None, _) => None,
        };
        if self.returned {
            line.latency_ms = None;
        }
        if seq != self.done.messages {
            extra.put("seq", seq.to_string().as_bytes());
        }
        line.extra = extra.text();
        line.write_overwatch(tape);
        Ok(())
    }

    /// Writes what stood beside the tape before a message.
    fn catch_up(&mut self, seq: u64, message: &Message<'_>, tape: &mut impl Sink) {
        while let Some(text) = self.next_beside() {
            let Ok(Line::Bad(bad)) = Line::read(&text) else { continue };
            let whole = object(&bad.extra);
            let before = json::member(&whole, "before").and_then(number);
            let is_due = match (before, micros(bad.ts), micros(message.ts)) {
                (Some(before), _, _) => before <= seq,
                (None, Some(bad), Some(message)) => bad <= message,
                _ => true,
            };
            if !is_due {
                self.ahead = Some(text);
                return;
            }
            match (bad.reason == BATCH, message.batch) {
                (true, Some(number)) if self.batch.is_none() => {
                    self.batch = Some((number, text, Vec::new()));
                    return;
                }
                _ => self.restore(&text, tape),
            }
        }
    }

    fn next_beside(&mut self) -> Option<Vec<u8>> {
        self.ahead.take().or_else(|| (self.beside)())
    }

    /// Writes a line that stood beside the tape, as it was before it did.
    fn restore(&mut self, text: &[u8], tape: &mut impl Sink) {
        let Ok(Line::Bad(mut bad)) = Line::read(text) else { return };
        let mut extra = Extra::of(&bad.extra);
        extra.take("before");
        self.done.anomalies += 1;
        if extra.take("parsed").is_some() {
            let line = Message { raw: None, ..message_of(&bad, &bad.raw, extra.text()) };
            return line.write_overwatch(tape);
        }
        bad.extra = extra.text();
        bad.write(tape);
    }

    /// Writes the batch that is over as one line.
    fn close_batch(&mut self, tape: &mut impl Sink) {
        let Some((_, text, elements)) = self.batch.take() else { return };
        let Ok(Line::Bad(bad)) = Line::read(&text) else { return };
        let joined = [b"[", elements.join(&b","[..]).as_slice(), b"]"].concat();
        let whole = json::compact(bad.raw.trim_ascii());
        let objects = frame::elements(&whole).iter().filter(|one| one.envelope().is_some()).count();
        let msg = if objects == elements.len() { whole.into_owned() } else { joined };
        let mut extra = Extra::of(&bad.extra);
        extra.take("before");
        let own = extra.take("raw_text");
        let mut line = message_of(&bad, &msg, extra.text());
        line.raw = match (own, self.raw) {
            (Some(raw), _) => json::string(&raw).map(|raw| Cow::Owned(raw.into_owned())),
            (None, Some(true)) => Some(String::from_utf8_lossy(&msg).into_owned().into()),
            (None, _) => None,
        };
        line.write_overwatch(tape);
    }

    // From overwatch.

    /// Writes what comes before the first line.
    fn begin(&mut self, ts: Stamp<'_>, raw: Option<bool>, tape: &mut impl Sink) {
        if self.raw.is_some() {
            return;
        }
        self.raw = Some(raw.unwrap_or(false));
        if self.asides.front().is_some_and(|aside| aside.after == 0) {
            return self.put_back(0, tape);
        }
        let recorded_at = match ts {
            Stamp::Text(text) if !text.is_empty() => text.to_owned(),
            _ => "1970-01-01T00:00:00.000Z".to_owned(),
        };
        let raw = if raw == Some(true) { "true" } else { "false" };
        let header = Header {
            version: FORMAT_VERSION.into(),
            name: Some(self.origin.name.clone().into()),
            tags: Vec::new(),
            recorded_at: recorded_at.into(),
            upstream: "unknown".into(),
            tool_version: self.origin.tool_version.clone().into(),
            extra: format!(",\"{CONVERTED}\":{{\"from\":\"overwatch\",\"raw\":{raw}}}")
                .into_bytes(),
        };
        header.write(tape);
    }

    fn put_back(&mut self, after: u64, tape: &mut impl Sink) {
        while let Some(aside) = self.asides.pop_front_if(|aside| aside.after <= after) {
            self.done.asides += 1;
            tape.put(&aside.line);
            tape.put(b"\n");
        }
    }

    fn to_thoughtjack(
        &mut self,
        message: &Message<'_>,
        tape: &mut impl Sink,
        beside: &mut impl Sink,
    ) -> Result<(), LineFault> {
        self.begin(message.ts, Some(message.raw.is_some()), tape);
        self.put_back(self.done.messages, tape);
        match message.msg.first() {
            Some(b'{') => self.numbered(message, &message.msg, None, tape),
            Some(b'[') => {
                self.batches += 1;
                let mut bad = bad_of(message, BATCH);
                let mut extra = Extra::of(&bad.extra);
                let whole = String::from_utf8_lossy(&message.msg);
                if let Some(raw) = message.raw.as_deref().filter(|raw| *raw != whole) {
                    let mut text = Vec::new();
                    json::write_str(&mut text, raw);
                    extra.put("raw_text", &text);
                }
                bad.extra = extra.text();
                self.put_beside(&bad, "", beside);
                for element in frame::elements(&message.msg) {
                    if element.envelope().is_some() {
                        self.numbered(message, element.bytes(), Some(self.batches), tape);
                    }
                }
            }
            _ => {
                let bad = bad_of(message, "not a JSON-RPC message: neither an object nor an array");
                self.put_beside(&bad, ",\"parsed\":true", beside);
            }
        }
        Ok(())
    }

    /// Writes one message with its number.
    fn numbered(
        &mut self,
        message: &Message<'_>,
        msg: &[u8],
        batch: Option<u64>,
        tape: &mut impl Sink,
    ) {
        self.done.messages += 1;
        *(if message.from == Side::Client { &mut self.counts.0 } else { &mut self.counts.1 }) += 1;
        let mut line = message.clone();
        let mut extra = Extra::of(&line.extra);
        let seq = extra.take("seq").and_then(|seq| number(&seq));
        line.seq = Some(seq.unwrap_or(self.done.messages));
        if batch.is_none() {
            let text = String::from_utf8_lossy(msg);
            match (&line.raw, self.raw == Some(true)) {
                (Some(raw), has) if !has || *raw != text => {
                    let mut quoted = Vec::new();
                    json::write_str(&mut quoted, raw);
                    extra.put("raw", &quoted);
                }
                (None, true) => extra.put("raw", b"null"),
                _ => {}
            }
        }
        line.extra = extra.text();
        line.batch = batch.or(line.batch);
        line.latency_ms = line.latency_ms.or_else(|| self.times.latency_ms(message, msg));
        line.msg = Cow::Borrowed(msg);
        line.write_thoughtjack(tape);
    }

    fn put_beside(&mut self, bad: &Bad<'_>, more: &str, beside: &mut impl Sink) {
        self.done.anomalies += u64::from(bad.reason != BATCH);
        self.times.note(bad.ts);
        let mut bad = bad.clone();
        bad.extra.extend_from_slice(more.as_bytes());
        bad.extra.extend_from_slice(format!(",\"before\":{}", self.done.messages + 1).as_bytes());
        bad.write(beside);
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn bad_of<'b>(message: &'b Message<'_>, reason: &'b str) -> Bad<'b> {
    Bad {
        ts: message.ts,
        from: message.from,
        raw: Cow::Borrowed(&message.msg),
        reason: Cow::Borrowed(reason),
        bytes_total: None,
        session: message.session.as_deref().map(Cow::Borrowed),
        extra: message.extra.clone(),
    }
}

fn message_of<'b>(bad: &'b Bad<'_>, msg: &'b [u8], extra: Vec<u8>) -> Message<'b> {
    Message {
        seq: None,
        ts: bad.ts,
        from: bad.from,
        msg: Cow::Borrowed(msg),
        raw: None,
        latency_ms: None,
        session: bad.session.as_deref().map(Cow::Borrowed),
        req: None,
        batch: None,
        ours: false,
        unterminated: false,
        resumed: false,
        redacted: Vec::new(),
        extra,
    }
}
