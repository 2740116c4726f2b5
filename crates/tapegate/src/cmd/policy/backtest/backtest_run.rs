//! Feeds the messages of a tape to the gate, in order or in sections evaluated in parallel.

use std::io;
use std::path::Path;

use tapegate_core::tape::{
    BadFrame, EntryTime, LineProblem, MessageLine, NumberedLine, TOO_LARGE, TORN_TAIL, TapeLine,
    TapeSeverity, UNTERMINATED, read_section,
};
use tapegate_core::time::read_rfc3339;
use tapegate_policy::backtest::{
    BacktestConfig, BacktestFinding, BacktestItem, BacktestTally, FindingKind, FindingLocation,
    HistoryScope, PolicyTrial, TapeMessage, differ, findings_of,
};
use tapegate_policy::inspect::TransportKind;
use tapegate_store::sections::{self, TapeSection};
use tapegate_store::tape_writer;

use super::backtest_tape::BacktestTape;
use super::tape_preamble::TapePreamble;
use crate::exit::{Exit, Failure};
use crate::terminal_output;
use crate::views::backtest::BacktestOutline;

/// The `parse_error` of a batch in the file beside a tape; its elements are on the tape.
const BATCH: &str = "batch";

/// A tape to evaluate.
pub(super) struct BacktestRun<'a> {
    pub(super) tape: &'a BacktestTape,
    /// Its position among the tapes.
    pub(super) number: usize,
    pub(super) terms: &'a BacktestConfig,
    /// Another policy, whose decisions are compared as the earlier ones.
    pub(super) before: Option<&'a BacktestConfig>,
    /// What to list; `None` stands for changes.
    pub(super) show: &'a [Option<FindingKind>],
}

#[derive(Default)]
struct SectionResult {
    tally: BacktestTally,
    shown: Vec<BacktestFinding>,
    lines: u64,
    entries: u64,
    /// Messages that were too long to be recorded.
    oversize: u64,
    /// The first line that is not an entry, and how many there are.
    broken: Option<String>,
    broken_lines: u64,
}

/// The policies that messages are evaluated with.
struct TrialPair {
    trial: PolicyTrial,
    before: Option<PolicyTrial>,
}

/// Prints a listed finding.
type FindingPrinter<'p> = dyn FnMut(&BacktestFinding) -> io::Result<()> + 'p;

impl BacktestRun<'_> {
    /// Evaluates the tape and the file beside it, if there is one.
    pub(super) fn run(
        &self,
        tally: &mut BacktestTally,
        outline: &mut BacktestOutline,
        print: &mut FindingPrinter<'_>,
    ) -> anyhow::Result<()> {
        let path = &self.tape.path;
        let entries = self.run_file(path, tally, outline, print)?;
        if entries == 0 && self.tape.by_chance {
            terminal_output::warn(&format!("skipped `{}`: not a tape", path.display()));
            return Ok(());
        }
        if entries == 0 {
            let message_text =
                format!("`{}` is not a tape: nothing in it is an entry", path.display());
            return Err(Failure::new(Exit::Invalid, message_text).into());
        }
        outline.tapes += 1;
        let anomaly_file = tape_writer::anomaly_path(path);
        if anomaly_file.is_file() {
            self.run_file(&anomaly_file, tally, outline, print)?;
        }
        Ok(())
    }

    fn run_file(
        &self,
        path: &Path,
        tally: &mut BacktestTally,
        outline: &mut BacktestOutline,
        print: &mut FindingPrinter<'_>,
    ) -> anyhow::Result<u64> {
        let preamble = TapePreamble::of(path, self.required_context())?;
        let mut trials = self.bench();
        let (mut lines, mut entries, mut broken) = (0, 0, None);
        let take = |work: SectionWork| -> anyhow::Result<()> {
            let section_result = match work {
                SectionWork::Done(section_result) => *section_result,
                // Here, in the order of the tape, because the policy depends on all earlier
                // messages.
                SectionWork::Left(section) => self.judge(&section, &mut trials),
            };
            for mut finding in section_result.shown {
                // A section counts its lines from its own start.
                finding.location.line += lines;
                print(&finding)?;
                outline.shown += 1;
            }
            tally.add(section_result.tally, self.number, lines);
            outline.oversize += section_result.oversize;
            outline.broken_lines += section_result.broken_lines;
            broken =
                broken.take().or(section_result.broken.map(|message_text| (message_text, lines)));
            (lines, entries) = (lines + section_result.lines, entries + section_result.entries);
            Ok(())
        };
        let work = |section: TapeSection| match &preamble {
            Some(preamble) => {
                let mut trials = self.bench();
                self.set(preamble, section.offset, &mut trials);
                SectionWork::Done(Box::new(self.judge(&section, &mut trials)))
            }
            None => SectionWork::Left(section),
        };
        let name = path.display();
        let read = sections::read(path, terminal_output::progress(path), work, take);
        let findings = read.map_err(|error| match error.downcast::<io::Error>() {
            // A broken pipe comes from the output, not from the tape.
            Ok(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Failure::new(Exit::Io, format!("cannot read `{name}`: {error}")).into()
            }
            Ok(error) => error.into(),
            Err(error) => error,
        })?;
        for finding in findings.iter().filter(|finding| finding.severity != TapeSeverity::Note) {
            terminal_output::warn(&format!("{name}: {}", finding.message));
        }
        if let Some((message_text, _)) = broken.filter(|_| entries > 0) {
            terminal_output::warn(&format!("{name}: {message_text}; such lines are skipped"));
        }
        Ok(entries)
    }

    /// How much of the earlier messages the two policies need to know to decide about one.
    fn required_context(&self) -> HistoryScope {
        let before = self.before.map_or(HistoryScope::None, BacktestConfig::memory);
        self.terms.memory().max(before)
    }

    /// Feeds the messages that set the context before an offset of the tape.
    fn set(&self, preamble: &TapePreamble, offset: u64, trials: &mut TrialPair) {
        for tape_message in preamble.events_before(offset) {
            match tape_message {
                None => *trials = self.bench(),
                Some(tape_message) => {
                    trials.trial.judge(&tape_message);
                    trials.before.iter_mut().for_each(|trial| drop(trial.judge(&tape_message)));
                }
            }
        }
    }

    fn bench(&self) -> TrialPair {
        TrialPair { trial: self.terms.trial(), before: self.before.map(BacktestConfig::trial) }
    }

    /// Evaluates the messages of a section.
    fn judge(&self, section: &TapeSection, trials: &mut TrialPair) -> SectionResult {
        let mut section_result = SectionResult::default();
        let lines = read_section(&section.text, section.last, &mut |next| match next {
            Ok(numbered) => self.judge_entry(&numbered, trials, &mut section_result),
            // A crash may leave an incomplete last line, which is not a message.
            Err(LineProblem::Torn { .. }) => {}
            Err(problem) => {
                section_result.broken_lines += 1;
                section_result.broken.get_or_insert_with(|| match problem {
                    LineProblem::Line { fault, .. } => format!("a line is not an entry: {fault}"),
                    other => other.to_string(),
                });
            }
        });
        section_result.lines = lines;
        section_result
    }

    fn judge_entry(
        &self,
        numbered: &NumberedLine<'_>,
        trials: &mut TrialPair,
        section_result: &mut SectionResult,
    ) {
        section_result.entries += 1;
        let line = numbered.line;
        match &numbered.entry {
            TapeLine::Message(message) if !message.ours => {
                let place = FindingLocation { tape: self.number, line, seq: message.seq };
                self.message(message, place, trials, section_result);
            }
            TapeLine::Bad(bad) => {
                let place = FindingLocation { tape: self.number, line, seq: None };
                self.judge_bad_line(bad, place, trials, section_result);
            }
            // A header starts another recording, so the context starts empty.
            TapeLine::Header(_) => *trials = self.bench(),
            TapeLine::Message(_) | TapeLine::Footer(_) | TapeLine::Unknown(_) => {}
        }
    }

    fn message(
        &self,
        message: &MessageLine<'_>,
        place: FindingLocation,
        trials: &mut TrialPair,
        section_result: &mut SectionResult,
    ) {
        let lines = self.terms.settings.client == TransportKind::Lines;
        // A batch is one message on the wire, and several on a tape.
        let batch = message.batch.is_some() && lines && !message.msg.starts_with(b"[");
        let whole;
        let bytes = match &message.raw {
            Some(raw) => raw.as_bytes(),
            None if batch => {
                whole = [b"[", &*message.msg, b"]"].concat();
                &whole
            }
            None => &message.msg,
        };
        let tape_message = TapeMessage {
            wall_us: timestamp_us(message.ts),
            from: message.from,
            session: message.session.as_deref(),
            bytes,
            terminated: !message.unterminated,
        };
        self.judge_message(&tape_message, place, trials, section_result);
    }

    fn judge_bad_line(
        &self,
        bad: &BadFrame<'_>,
        place: FindingLocation,
        trials: &mut TrialPair,
        section_result: &mut SectionResult,
    ) {
        match &*bad.reason {
            TOO_LARGE => section_result.oversize += 1,
            // Not messages of their own: what they belong to is on the tape.
            UNTERMINATED | TORN_TAIL | BATCH => {}
            _ => {
                let tape_message = TapeMessage {
                    wall_us: timestamp_us(bad.ts),
                    from: bad.from,
                    session: bad.session.as_deref(),
                    bytes: &bad.raw,
                    terminated: true,
                };
                self.judge_message(&tape_message, place, trials, section_result);
            }
        }
    }

    fn judge_message(
        &self,
        tape_message: &TapeMessage<'_>,
        place: FindingLocation,
        trials: &mut TrialPair,
        section_result: &mut SectionResult,
    ) {
        let outcome = trials.trial.judge(tape_message);
        section_result.tally.count_message(&outcome, place);
        if let Some(trial) = &mut trials.before {
            let before = trial.judge(tape_message);
            if let Some(change) = differ(&before, &outcome) {
                section_result.tally.count_change(&change, place);
                if self.show.contains(&None) {
                    section_result.shown.push(BacktestFinding {
                        location: place,
                        item: BacktestItem::Changed(change),
                    });
                }
            }
            trial.recycle(before);
        }
        if self.show.iter().any(Option::is_some) {
            let all = findings_of(&outcome).into_iter();
            let wanted = all.filter(|detail| self.show.contains(&Some(detail.kind)));
            section_result.shown.extend(wanted.map(|detail| BacktestFinding {
                location: place,
                item: BacktestItem::Told(detail),
            }));
        }
        trials.trial.recycle(outcome);
    }
}

/// A section that is already evaluated, or still has to be evaluated in order.
enum SectionWork {
    Done(Box<SectionResult>),
    Left(TapeSection),
}

pub(super) fn timestamp_us(ts: EntryTime<'_>) -> i64 {
    match ts {
        EntryTime::At(wall_us) => wall_us,
        EntryTime::Text(text) => read_rfc3339(text).unwrap_or_default(),
    }
}
