//! Converts a tape to the other dialect, without loss.
//!
//! Messages keep their exact text. Lines that a dialect cannot express are kept beside the tape:
//! overwatch has no headers and footers, so those go to a file of [`AsideLine`]s; thoughtjack has no
//! lines for frames that are not messages, so those go to the anomalies file, each with the number
//! of the message it preceded. Converting back restores everything to its place.

mod extra_keys;
mod overwatch;
mod tape_times;
#[cfg(test)]
mod tests;
mod thoughtjack;

use std::borrow::Cow;
use std::collections::VecDeque;

use super::LineFault;
use super::entry_writer::{ByteSink, Dialect};
use super::line::{EntryTime, TapeFooter, TapeLine};
use tape_times::TapeTimes;

/// A line that overwatch cannot express, and the number of messages before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsideLine {
    /// How many messages precede it.
    pub after: u64,
    /// Its text.
    pub line: Vec<u8>,
}

/// The content of a new header, if the tape has none.
#[derive(Debug, Clone, Default)]
pub struct HeaderOrigin {
    /// The tape's name.
    pub name: String,
    /// The program that writes it.
    pub tool_version: String,
}

/// The counts of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TranslationStats {
    /// Messages, counting each message of a batch.
    pub messages: u64,
    /// Frames that are not messages.
    pub anomalies: u64,
    /// Lines that were set aside or restored.
    pub asides: u64,
}

/// The key of a header that says what the tape was converted from.
const CONVERTED: &str = "converted";

/// Converts a tape to the other dialect, line by line.
pub struct Translator<'a> {
    to: Dialect,
    origin: HeaderOrigin,
    /// The lines to restore, or those that were set aside.
    asides: VecDeque<AsideLine>,
    /// Returns the next line of the anomalies file that is read.
    anomaly_file: Box<dyn FnMut() -> Option<Vec<u8>> + 'a>,
    ahead: Option<Vec<u8>>,
    done: TranslationStats,
    /// Whether message lines repeat their bytes in `raw`, once that is known.
    raw: Option<bool>,
    /// Whether the tape was converted from overwatch before, so that computed values are dropped
    /// again.
    returned: bool,
    batches: u64,
    /// The messages of the current batch.
    batch: Option<(u64, Vec<u8>, Vec<Vec<u8>>)>,
    times: TapeTimes,
    counts: (u64, u64),
}

impl<'a> Translator<'a> {
    /// Creates a translator. `asides` belong to the tape that is read; `anomaly_file` yields the
    /// lines of its anomalies file.
    pub fn new(
        to: Dialect,
        origin: HeaderOrigin,
        asides: Vec<AsideLine>,
        anomaly_file: Box<dyn FnMut() -> Option<Vec<u8>> + 'a>,
    ) -> Self {
        Self {
            to,
            origin,
            asides: asides.into(),
            anomaly_file,
            ahead: None,
            done: TranslationStats::default(),
            raw: None,
            returned: false,
            batches: 0,
            batch: None,
            times: TapeTimes::default(),
            counts: (0, 0),
        }
    }

    /// Converts the next line.
    pub fn line(
        &mut self,
        text: &[u8],
        line: &TapeLine<'_>,
        tape: &mut impl ByteSink,
        anomaly_file: &mut impl ByteSink,
    ) -> Result<(), LineFault> {
        match (self.to, line) {
            (Dialect::Overwatch, TapeLine::Message(message)) => self.overwatch_line(message, tape),
            (Dialect::Overwatch, TapeLine::Bad(bad)) => {
                self.done.anomalies += 1;
                bad.write(tape);
                Ok(())
            }
            (Dialect::Overwatch, other) => {
                self.close_batch(tape);
                if let TapeLine::Header(header) = other {
                    self.learn_header(header);
                }
                self.keep_aside(text);
                Ok(())
            }
            (Dialect::Thoughtjack, TapeLine::Message(message)) => {
                self.thoughtjack_line(message, tape, anomaly_file)
            }
            (Dialect::Thoughtjack, TapeLine::Bad(bad)) => {
                self.write_beginning(bad.ts, None, tape);
                self.write_anomaly(bad, anomaly_file);
                Ok(())
            }
            (Dialect::Thoughtjack, _) => {
                tape.put(text);
                tape.put(b"\n");
                Ok(())
            }
        }
    }

    /// Ends the tape; returns the counts, and the lines to set aside.
    pub fn finish(mut self, tape: &mut impl ByteSink) -> (TranslationStats, Vec<AsideLine>) {
        if self.to == Dialect::Overwatch {
            self.close_batch(tape);
            while let Some(line) = self.next_anomaly() {
                self.restore_anomaly(&line, tape);
            }
            return (self.done, self.asides.into());
        }
        self.write_beginning(EntryTime::Text(""), None, tape);
        let had_footer =
            self.asides.iter().any(|aside| aside.line.starts_with(b"{\"type\":\"foot"));
        self.restore_asides(u64::MAX, tape);
        if !had_footer {
            let TapeTimes { first_us, last_us, .. } = self.times;
            let span_us = last_us.zip(first_us).map_or(0, |(last, first)| last - first);
            let footer = TapeFooter {
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
}
