//! To overwatch: what stood beside the tape goes back to its place, and headers go aside.

use std::borrow::Cow;

use super::extra::{Extra, number, object};
use super::times::micros;
use super::{Aside, CONVERTED, Translator};
use crate::frame::{self, Frame};
use crate::json;
use crate::tape::line::{Bad, Header, Line, Message};
use crate::tape::write::Sink;
use crate::tape::{BATCH, LineFault};

impl Translator<'_> {
    pub(super) fn hear(&mut self, header: &Header<'_>) {
        let whole = object(&header.extra);
        let before = json::member(&whole, CONVERTED);
        self.returned = before.is_some();
        self.raw = before.map(|before| json::member(before, "raw") == Some(b"true"));
    }

    pub(super) fn aside(&mut self, text: &[u8]) {
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

    pub(super) fn overwatch_line(
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
        line.raw = self.raw_of(extra.take("raw"), &line.msg);
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
    pub(super) fn catch_up(&mut self, seq: u64, message: &Message<'_>, tape: &mut impl Sink) {
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
            // A batch without a message in it is no message's batch.
            match (bad.reason == BATCH && objects(&bad.raw) > 0, message.batch) {
                (true, Some(number)) if self.batch.is_none() => {
                    self.batch = Some((number, text, Vec::new()));
                    return;
                }
                _ => self.restore(&text, tape),
            }
        }
    }

    pub(super) fn next_beside(&mut self) -> Option<Vec<u8>> {
        self.ahead.take().or_else(|| (self.beside)())
    }

    /// Writes a line that stood beside the tape, as it was before it did.
    pub(super) fn restore(&mut self, text: &[u8], tape: &mut impl Sink) {
        let Ok(Line::Bad(mut bad)) = Line::read(text) else { return };
        let mut extra = Extra::of(&bad.extra);
        extra.take("before");
        self.done.anomalies += 1;
        if extra.take("parsed").is_some() {
            let raw = self.raw_of(extra.take("raw_text"), &bad.raw);
            let line = Message { raw, ..message_of(&bad, &bad.raw, extra.text()) };
            return line.write_overwatch(tape);
        }
        bad.extra = extra.text();
        bad.write(tape);
    }

    /// Writes the batch that is over as one line.
    pub(super) fn close_batch(&mut self, tape: &mut impl Sink) {
        let Some((_, text, elements)) = self.batch.take() else { return };
        let Ok(Line::Bad(bad)) = Line::read(&text) else { return };
        let joined = [b"[", elements.join(&b","[..]).as_slice(), b"]"].concat();
        let whole = json::compact(bad.raw.trim_ascii());
        let msg = if objects(&whole) == elements.len() { whole.into_owned() } else { joined };
        let mut extra = Extra::of(&bad.extra);
        extra.take("before");
        extra.take("parsed");
        let raw = self.raw_of(extra.take("raw_text"), &msg);
        let line = Message { raw, ..message_of(&bad, &msg, extra.text()) };
        line.write_overwatch(tape);
    }

    /// The bytes that a good line repeats: those that were kept, or its text if lines do so.
    fn raw_of(&self, kept: Option<Vec<u8>>, text: &[u8]) -> Option<Cow<'static, str>> {
        let text = match kept {
            Some(kept) => json::string(&kept)?.into_owned(),
            None if self.raw == Some(true) => String::from_utf8_lossy(text).into_owned(),
            None => return None,
        };
        Some(Cow::Owned(text))
    }
}

/// How many messages a batch has.
fn objects(batch: &[u8]) -> usize {
    frame::elements(batch).iter().filter(|one| one.envelope().is_some()).count()
}

fn message_of<'b>(bad: &'b Bad<'_>, msg: &'b [u8], extra: Vec<u8>) -> Message<'b> {
    Message {
        session: bad.session.as_deref().map(Cow::Borrowed),
        extra,
        ..Message::bare(bad.ts, bad.from, Cow::Borrowed(msg))
    }
}
