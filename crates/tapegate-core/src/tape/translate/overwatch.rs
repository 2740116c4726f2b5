//! To overwatch: what stood beside the tape goes back to its place, and headers go aside.

use std::borrow::Cow;

use super::extra::{Extra, number, object};
use super::times::micros;
use super::{Aside, BATCH, CONVERTED, Translator};
use crate::frame::{self, Frame};
use crate::json;
use crate::tape::LineFault;
use crate::tape::line::{Bad, Header, Line, Message};
use crate::tape::write::Sink;

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
            match (bad.reason == BATCH, message.batch) {
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
            let line = Message { raw: None, ..message_of(&bad, &bad.raw, extra.text()) };
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
