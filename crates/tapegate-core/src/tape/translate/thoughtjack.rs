//! Conversion to thoughtjack: messages get numbers and latencies, and other lines go to the
//! anomalies file.

use std::borrow::Cow;

use super::extra_keys::{ExtraKeys, number};
use super::{CONVERTED, Translator};
use crate::frame;
use crate::json::{self, JsonObject};
use crate::side::Side;
use crate::tape::entry_writer::ByteSink;
use crate::tape::line::{BadFrame, EntryTime, MessageLine, TapeHeader};
use crate::tape::{BATCH, FORMAT_VERSION, LineFault};

impl Translator<'_> {
    /// Writes the header before the first line.
    pub(super) fn write_beginning(
        &mut self,
        ts: EntryTime<'_>,
        raw: Option<bool>,
        tape: &mut impl ByteSink,
    ) {
        if self.raw.is_some() {
            return;
        }
        self.raw = Some(raw.unwrap_or(false));
        if self.asides.front().is_some_and(|aside| aside.after == 0) {
            return self.restore_asides(0, tape);
        }
        let recorded_at = match ts {
            EntryTime::Text(text) if !text.is_empty() => text.to_owned(),
            _ => "1970-01-01T00:00:00.000Z".to_owned(),
        };
        let origin = JsonObject::new().text("from", "overwatch").flag("raw", raw == Some(true));
        let header = TapeHeader {
            version: FORMAT_VERSION.into(),
            name: Some(self.origin.name.clone().into()),
            tags: Vec::new(),
            recorded_at: recorded_at.into(),
            upstream: "unknown".into(),
            tool_version: self.origin.tool_version.clone().into(),
            extra: JsonObject::new().object(CONVERTED, origin).into_members(),
        };
        header.write(tape);
    }

    pub(super) fn restore_asides(&mut self, after: u64, tape: &mut impl ByteSink) {
        while let Some(aside) = self.asides.pop_front_if(|aside| aside.after <= after) {
            self.done.asides += 1;
            tape.put(&aside.line);
            tape.put(b"\n");
        }
    }

    pub(super) fn thoughtjack_line(
        &mut self,
        message: &MessageLine<'_>,
        tape: &mut impl ByteSink,
        anomaly_file: &mut impl ByteSink,
    ) -> Result<(), LineFault> {
        self.write_beginning(message.ts, Some(message.raw.is_some()), tape);
        self.restore_asides(self.done.messages, tape);
        match message.msg.first() {
            Some(b'{') => self.write_numbered(message, &message.msg, None, tape),
            Some(b'[') => {
                self.batches += 1;
                self.write_anomaly(&self.bad_of(message, BATCH), anomaly_file);
                for element in frame::elements(&message.msg) {
                    if element.envelope().is_some() {
                        self.write_numbered(message, element.bytes(), Some(self.batches), tape);
                    }
                }
            }
            _ => {
                let reason = "not a JSON-RPC message: neither an object nor an array";
                self.write_anomaly(&self.bad_of(message, reason), anomaly_file);
            }
        }
        Ok(())
    }

    /// Writes one message with its number.
    pub(super) fn write_numbered(
        &mut self,
        message: &MessageLine<'_>,
        msg: &[u8],
        batch: Option<u64>,
        tape: &mut impl ByteSink,
    ) {
        self.done.messages += 1;
        *(if message.from == Side::Client { &mut self.counts.0 } else { &mut self.counts.1 }) += 1;
        let mut line = message.clone();
        let mut extra = ExtraKeys::of(&line.extra);
        let seq = extra.take("seq").and_then(|seq| number(&seq));
        line.seq = Some(seq.unwrap_or(self.done.messages));
        if let (None, Some(raw)) = (batch, self.differing_raw(message)) {
            extra.put("raw", &raw);
        }
        line.extra = extra.text();
        line.batch = batch.or(line.batch);
        line.latency_ms = line.latency_ms.or_else(|| self.times.latency_ms(message, msg));
        line.msg = Cow::Borrowed(msg);
        line.write_thoughtjack(tape);
    }

    pub(super) fn write_anomaly(&mut self, bad: &BadFrame<'_>, anomaly_file: &mut impl ByteSink) {
        self.done.anomalies += u64::from(bad.reason != BATCH);
        self.times.note(bad.ts);
        let mut bad = bad.clone();
        bad.extra.extend(JsonObject::new().number("before", self.done.messages + 1).into_members());
        bad.write(anomaly_file);
    }

    /// The `raw` of a line, as JSON, if it is not the expected one.
    fn differing_raw(&self, message: &MessageLine<'_>) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(&message.msg);
        let expected = (self.raw == Some(true)).then_some(&*text);
        match message.raw.as_deref() {
            raw if raw == expected => None,
            Some(raw) => Some(json::quoted(raw)),
            None => Some(b"null".to_vec()),
        }
    }

    /// A line that is not a message, as it is written to the anomalies file.
    fn bad_of<'b>(&self, message: &'b MessageLine<'_>, reason: &'b str) -> BadFrame<'b> {
        let mut extra = rest(message);
        extra.extend_from_slice(b",\"parsed\":true");
        if let Some(raw) = self.differing_raw(message) {
            extra.extend_from_slice(b",\"raw_text\":");
            extra.extend_from_slice(&raw);
        }
        BadFrame {
            ts: message.ts,
            from: message.from,
            raw: Cow::Borrowed(&message.msg),
            reason: Cow::Borrowed(reason),
            bytes_total: None,
            session: message.session.as_deref().map(Cow::Borrowed),
            extra,
        }
    }
}

/// The other keys of a line, as unknown keys.
fn rest(message: &MessageLine<'_>) -> Vec<u8> {
    let bare =
        MessageLine { msg: Cow::Borrowed(b"0"), raw: None, session: None, ..message.clone() };
    let mut line = Vec::new();
    bare.write_overwatch(&mut line);
    let head = memchr::memmem::find(&line, b",\"parsed\":0").map_or(line.len(), |at| at + 11);
    line.get(head..).and_then(|rest| rest.strip_suffix(b"}\n")).unwrap_or_default().to_vec()
}
