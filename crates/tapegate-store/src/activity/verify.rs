//! Verifies a log: does each line follow from the one before?
//!
//! Lines that were changed, removed, inserted, repeated or moved are found, with one finding per
//! fault where possible, located to the line or to the few lines that share a seal. A truncated
//! end, or a log rewritten from its start, cannot be detected from the log alone: for that, its
//! head (the hash of the last line) must have been recorded elsewhere.

mod report;
mod unsealed_lines;

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use tapegate_core::tape::TapeSeverity;

use super::chain::{ChainLink, ChainedLine, HASH_CHARS, LineSeal};
use super::events::{LogLines, LoggedEvent, RawLogLine};
use super::notice;
use unsealed_lines::{SequenceGap, UnsealedLines};

pub use report::{ChainFault, ChainFinding, LogReport};

/// The most findings that are reported one by one.
const FOUND_MAX: usize = 10_000;
/// Part of every line that the log writes about itself, and of few others.
const NOTICE: &[u8] = b"\"kind\":\"log\"";

/// Verifies the files of a log, which are fed oldest first.
#[derive(Debug, Default)]
pub struct LogVerifier {
    report: LogReport,
    files: usize,
    /// What the first line links to, if it is not the beginning of a log.
    begins: Option<(u64, [u8; HASH_CHARS])>,
    /// What retention has removed, according to the log: the last line and its hash.
    removed: BTreeMap<u64, String>,
    expected: Option<String>,
    /// The actual hash of the line before, if it differs from the one it states.
    otherwise: Option<[u8; HASH_CHARS]>,
    /// The lines since the last seal.
    open: UnsealedLines,
    /// How many lines since the last event are not events.
    no_events: u64,
    /// Whether earlier files of the log are not verified.
    partial: bool,
    more: u64,
}

/// Verifies a single file as a whole log.
pub fn verify(text: impl BufRead) -> io::Result<LogReport> {
    let mut verifier = LogVerifier::default();
    verifier.file(text)?;
    Ok(verifier.finish())
}

impl LogVerifier {
    /// Also looks for a head that was recorded elsewhere.
    pub fn expect_head(mut self, hash: Option<String>) -> Self {
        self.expected = hash;
        self
    }

    /// Sets whether earlier files of the log exist but are not verified.
    pub fn with_partial(mut self, partial: bool) -> Self {
        self.partial = partial;
        self
    }

    /// Verifies the next file.
    pub fn file(&mut self, text: impl BufRead) -> io::Result<()> {
        // A write never spans two files, so the seal of these lines was removed.
        self.report_unsealed(TapeSeverity::Error);
        let mut lines = LogLines::new(text);
        loop {
            let number = lines.number + 1;
            match lines.next()? {
                None => break,
                Some(RawLogLine::Whole(line)) => self.line(number, line),
                Some(RawLogLine::TooLong) => self.report_not_an_event(number),
                Some(RawLogLine::Torn(line)) => self.report_torn(number, line),
            }
        }
        self.files += 1;
        Ok(())
    }

    /// Returns the findings.
    pub fn finish(mut self) -> LogReport {
        self.report_unsealed(TapeSeverity::Warning);
        self.check_beginning();
        if let Some(expected) = self.expected.take().filter(|_| self.report.since_head.is_none()) {
            let message = format!(
                "the head {expected} is not in the log: its end was cut off, or it was rewritten"
            );
            let file = self.files.saturating_sub(1);
            self.push(file, 0, TapeSeverity::Error, ChainFault::Head, message);
        }
        if self.more > 0 {
            let message = format!("… and {} more", self.more);
            let (file, severity) = (self.files.saturating_sub(1), TapeSeverity::Error);
            let fault = ChainFault::Changed;
            self.report.findings.push(ChainFinding { file, line: 0, severity, fault, message });
        }
        self.report
    }

    fn line(&mut self, number: u64, text: &[u8]) {
        let Some(chained) = ChainedLine::read(text) else {
            return self.report_not_an_event(number);
        };
        self.report.events += 1;
        let before = self.report.head.map(|head| head.seq);
        self.open.step(number, chained.seq, before, self.no_events);
        self.no_events = 0;
        // Most lines are not notices and need not be parsed.
        if chained.body.windows(NOTICE.len()).any(|window| window == NOTICE) {
            self.open.notices.extend(LoggedEvent::read(number, text));
        }
        if let Some(since) = &mut self.report.since_head {
            *since += 1;
        }
        match chained.seal {
            Some(seal) => self.check_seal(number, chained.seq, &seal),
            None => self.open.sealing.line(text),
        }
    }

    /// Handles a line that seals those before it.
    fn check_seal(&mut self, number: u64, seq: u64, seal: &LineSeal<'_>) {
        let mut open = std::mem::take(&mut self.open);
        let computed = open.sealing.close(seal);
        let link = ChainLink { seq, hash: seal.hash };
        if computed == seal.hash {
            // Only sealed notices count: a forged `retention` line could explain missing events.
            open.notices.iter().for_each(|logged| self.read_notice(logged));
            self.check_link(&open, seal.prev, link);
        } else {
            self.report_changed(number, &open, link);
            // The next line may link to the text as it is now. Then only this one was changed.
            self.otherwise = Some(computed);
        }
        // Compare with the computed hash: the stated one could be copied from elsewhere.
        if self.expected.as_deref().is_some_and(|expected| expected.as_bytes() == computed) {
            self.report.since_head = Some(0);
        }
    }

    /// Reports lines that do not match their seal.
    fn report_changed(&mut self, number: u64, open: &UnsealedLines, link: ChainLink) {
        let first = open.first.map_or(number, |(line, _)| line);
        let alone = first == number;
        if !alone && !open.steps.is_empty() {
            // The numbers tell which lines were added or removed.
            open.steps.iter().for_each(|(line, step)| self.report_number(*line, *step));
            self.report.head = Some(link);
            return;
        }
        // A line that could not be parsed was already reported, and explains the mismatch.
        if !open.spoiled {
            let message = match alone {
                true => "the line was changed: its hash does not match its text".to_owned(),
                false => format!(
                    "one of the lines {first} to {number} was changed: their hash does not match their text"
                ),
            };
            self.error(first, ChainFault::Changed, message);
        }
        // Its position counts, not the number it states.
        let seq = match (alone, self.report.head) {
            (true, Some(before)) => before.seq.wrapping_add(1),
            _ => link.seq,
        };
        self.report.head = Some(ChainLink { seq, ..link });
    }

    /// Checks that lines link to what comes before them.
    fn check_link(&mut self, open: &UnsealedLines, prev: [u8; HASH_CHARS], link: ChainLink) {
        let Some((line, first)) = open.first else { return };
        let Some(before) = self.report.head else {
            if prev != ChainLink::START.hash || first != 1 {
                self.begins = Some((first.wrapping_sub(1), prev));
            }
            self.report.head = Some(link);
            return;
        };
        open.steps.iter().for_each(|(line, step)| self.report_number(*line, *step));
        if matches!(open.steps.first(), Some((at, SequenceGap::Back { .. })) if *at == line) {
            // The next line is expected to continue from before these.
            return;
        }
        let expected = before.seq.wrapping_add(1);
        // Either is fine here, because a change of the line before is already reported.
        let follows = prev == before.hash || Some(prev) == self.otherwise;
        if first == expected && !follows {
            let message = "the line does not follow from the one before: one of them was replaced";
            self.error(line, ChainFault::Unlinked, message.to_owned());
        }
        (self.report.head, self.otherwise) = (Some(link), None);
    }

    /// Reports a line whose number is not the next one.
    fn report_number(&mut self, line: u64, step: SequenceGap) {
        match step {
            SequenceGap::Over { first, last } => {
                let message = match first == last {
                    true => format!("event {first} is missing before this one"),
                    false => format!("events {first} to {last} are missing before this one"),
                };
                self.error(line, ChainFault::Missing, message);
            }
            SequenceGap::Back { seq, before } => {
                let message = format!(
                    "event {seq} follows event {before}: it was moved, repeated or inserted"
                );
                self.error(line, ChainFault::OutOfOrder, message);
            }
        }
    }

    /// Reports lines without a seal at the end of a file or of the log.
    fn report_unsealed(&mut self, severity: TapeSeverity) {
        let open = std::mem::take(&mut self.open);
        let Some((line, _)) = open.first else { return };
        let lines = match open.lines {
            1 => "the last line has".to_owned(),
            lines => format!("the last {lines} lines have"),
        };
        let message = match severity {
            TapeSeverity::Error => format!("{lines} no seal: the lines that followed were removed"),
            _ => format!("{lines} no seal: their writer was killed, or is still writing"),
        };
        let file = self.files.saturating_sub(1);
        self.push(file, line, severity, ChainFault::Torn, message);
    }

    /// Evaluates what the log records about itself.
    fn read_notice(&mut self, logged: &LoggedEvent) {
        let number = logged.line;
        if logged.str("kind").as_deref() != Some("log") {
            return;
        }
        match logged.str("event").as_deref() {
            Some(notice::REMOVED) => {
                let hash = logged.str("removed_hash").map(|hash| hash.into_owned());
                let seq = logged.number("removed_seq");
                self.removed.extend(seq.zip(hash));
            }
            Some(notice::TORN) => {
                let bytes = logged.number("torn_bytes").unwrap_or(0);
                let message = format!(
                    "a writer was killed here; {bytes} bytes of an incomplete line were cut off"
                );
                self.warning(number, ChainFault::Torn, message);
            }
            Some(notice::LOST) => {
                let lost = logged.number("lost").unwrap_or(0);
                let message = format!("{lost} events before this one could not be written");
                self.warning(number, ChainFault::Lost, message);
            }
            _ => {}
        }
    }

    fn check_beginning(&mut self) {
        let Some((seq, hash)) = self.begins else { return };
        let removed = self.removed.get(&seq).is_some_and(|stated| stated.as_bytes() == hash);
        if removed {
            return;
        }
        let before = if seq == 1 { "event 1".to_owned() } else { format!("events 1 to {seq}") };
        let (severity, message) = match self.partial {
            true => {
                (TapeSeverity::Note, format!("{before} are in other files, which were not checked"))
            }
            false if seq == 0 => {
                (TapeSeverity::Error, "the first event is not the start of a log".to_owned())
            }
            false => (
                TapeSeverity::Error,
                format!("{before} are missing, and no event records that they expired"),
            ),
        };
        let finding =
            ChainFinding { file: 0, line: 1, severity, fault: ChainFault::Beginning, message };
        self.report.findings.insert(0, finding);
    }

    fn report_torn(&mut self, number: u64, text: &[u8]) {
        if ChainedLine::read(text).is_some_and(|chained| chained.seal.is_some()) {
            self.line(number, text);
            return self.warning(
                number,
                ChainFault::Torn,
                "the last line has no line end".to_owned(),
            );
        }
        // Unsealed lines before it come from the same write, and are reported together with it.
        let first = self.open.first.map_or(number, |(line, _)| line);
        self.open = UnsealedLines::default();
        let message = format!(
            "the last line, of {} bytes, has no end: its writer was killed, or is still writing",
            text.len()
        );
        self.warning(first, ChainFault::Torn, message);
    }

    fn report_not_an_event(&mut self, number: u64) {
        let message = "the line is not an event: it was changed or inserted".to_owned();
        self.error(number, ChainFault::NotAnEvent, message);
        self.open.spoiled = true;
        self.no_events += 1;
    }

    fn error(&mut self, line: u64, fault: ChainFault, message: String) {
        self.push(self.files, line, TapeSeverity::Error, fault, message);
    }

    fn warning(&mut self, line: u64, fault: ChainFault, message: String) {
        self.push(self.files, line, TapeSeverity::Warning, fault, message);
    }

    fn push(
        &mut self,
        file: usize,
        line: u64,
        severity: TapeSeverity,
        fault: ChainFault,
        message: String,
    ) {
        if self.report.findings.len() < FOUND_MAX {
            self.report.findings.push(ChainFinding { file, line, severity, fault, message });
        } else {
            self.more += 1;
        }
    }
}

#[cfg(test)]
mod tests;
