//! Reads tapes to be shown or summarized, row by row and in bounded memory.

use std::io::{self, BufRead};
use std::path::Path;

use anyhow::Context;
use tapegate_core::tape::timeline::{Timeline, TimelineRow};
use tapegate_core::tape::{
    BashCommand, BashSession, LineFault, LineProblem, TapeLine, TapeReader, TapeSeverity,
};
use tapegate_store::tape_source::{TapeSource, TapeText};
use tapegate_store::tape_writer;

use crate::exit::{Exit, Failure};
use crate::file_type;
use crate::program_name;
use crate::tape_loader;
use crate::terminal_output;
use crate::views::visible_text;

/// After this many invalid lines without a valid entry, the file is not a tape.
const FAULTS_MAX: u64 = 20;
/// The anomaly for a batch, whose messages are on the tape individually.
const BATCH: &str = "batch";

/// Receives rows.
pub(crate) type EachRow<'r> = dyn FnMut(TimelineRow) -> io::Result<()> + 'r;

/// The name of a tape for display.
pub(crate) fn tape_name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// Passes the rows of a tape of any dialect, plain or compressed, to `each`; `-` is standard input.
pub(crate) fn read(path: &Path, timeline: Timeline, each: &mut EachRow<'_>) -> anyhow::Result<()> {
    let name = visible_text::inline(&tape_name(path), usize::MAX / 8);
    let cannot = || format!("cannot read `{name}`");
    let mut plain = TapeText::open(path, terminal_output::progress(path)).with_context(cannot)?;
    let (good, bad, held) = (0, 0, Vec::new());
    let mut feed = TimelineFeed { timeline, each, good, bad, held, name: &name, path };
    if is_bash_session(&mut *plain.text).with_context(cannot)? {
        feed.commands(&mut *plain.text)?;
    } else {
        let anomaly_file = AnomalyReader::open(path);
        feed.entries(TapeReader::new(plain.text), anomaly_file)?;
    }
    feed.finish()?;
    for finding in plain.oddities.findings() {
        if finding.severity != TapeSeverity::Note {
            terminal_output::warn(&format!("{name}: {}", finding.message));
        }
    }
    Ok(())
}

/// Whether the text starts like a recorded bash session.
fn is_bash_session(text: &mut dyn BufRead) -> io::Result<bool> {
    let start = text.fill_buf()?.trim_ascii_start();
    let end = start.iter().position(|byte| *byte == b'\n').unwrap_or(start.len());
    Ok(BashSession::is_entry(&start[..end]))
}

/// Feeds a tape into a timeline.
struct TimelineFeed<'f, 'e> {
    timeline: Timeline,
    each: &'f mut EachRow<'e>,
    good: u64,
    bad: u64,
    /// Rows held back until the first valid entry.
    held: Vec<TimelineRow>,
    name: &'f str,
    path: &'f Path,
}

impl TimelineFeed<'_, '_> {
    fn entries(
        &mut self,
        mut reader: TapeReader<Box<dyn BufRead>>,
        mut anomalies: AnomalyReader,
    ) -> anyhow::Result<()> {
        while let Some(next) = reader.next() {
            if let Ok(numbered) = &next {
                tape_loader::check_version(self.name, numbered.line, &numbered.entry)?;
                let until = match &numbered.entry {
                    TapeLine::Message(message) => message.ts.micros().map(|at| (at, message.seq)),
                    TapeLine::Footer(_) => Some((i64::MAX, None)),
                    _ => None,
                };
                until.into_iter().for_each(|at| anomalies.add_until(at, &mut self.timeline));
            }
            if let Err(problem @ LineProblem::Line { fault: LineFault::TooLong(_), .. }) = &next {
                terminal_output::warn(&format!("{}: left out: {problem}", self.name));
            }
            self.timeline.line(&next);
            match next {
                Err(LineProblem::Io { source, .. }) => {
                    return Err(source).with_context(|| format!("cannot read `{}`", self.name));
                }
                next => self.count(next.is_ok())?,
            }
        }
        anomalies.add_until((i64::MAX, None), &mut self.timeline);
        Ok(())
    }

    fn commands(&mut self, text: &mut dyn BufRead) -> anyhow::Result<()> {
        for next in tapegate_store::tape_source::lines(text) {
            let (number, line) = next.with_context(|| format!("cannot read `{}`", self.name))?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let read = BashCommand::read(&line);
            match &read {
                Ok(command) => self.timeline.command(number, command),
                Err(fault) => self.timeline.add_unreadable(number, fault.to_string()),
            }
            self.count(read.is_ok())?;
        }
        Ok(())
    }

    fn count(&mut self, is_good: bool) -> anyhow::Result<()> {
        *(if is_good { &mut self.good } else { &mut self.bad }) += 1;
        if self.good == 0 && self.bad >= FAULTS_MAX {
            return Err(self.not_a_tape());
        }
        Ok(self.emit_rows()?)
    }

    fn emit_rows(&mut self) -> io::Result<()> {
        while let Some(row) = self.timeline.next_row() {
            self.held.push(row);
        }
        // A file that is not a tape gets one error, not twenty rows of garbage before it.
        if self.good > 0 {
            for row in self.held.drain(..) {
                (self.each)(row)?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<()> {
        self.timeline.finish();
        if self.good == 0 && self.bad > 0 {
            return Err(self.not_a_tape());
        }
        Ok(self.emit_rows()?)
    }

    fn not_a_tape(&self) -> anyhow::Error {
        let message_text = format!("`{}` is not a tape: nothing in it is an entry", self.name);
        let failure = Failure::new(Exit::Invalid, message_text);
        let name = self.name;
        let hint = match () {
            () if file_type::seems_an_activity_log(self.path) => {
                format!(
                    "this is an activity log: run `{}`",
                    program_name::command(format!("log {name}"))
                )
            }
            () if file_type::seems_utf16(self.path) => {
                "it is UTF-16 text, and tapes are UTF-8: convert it with `iconv -f UTF-16 -t UTF-8`"
                    .to_owned()
            }
            () if file_type::seems_a_scenario(self.path) => {
                let line = program_name::command(format!("serve {name}"));
                format!("this seems to be a scenario: run `{line}`")
            }
            () => return failure.into(),
        };
        failure.hint(hint).into()
    }
}

/// The frames that were not messages, from the file beside a thoughtjack tape.
struct AnomalyReader {
    source: Option<TapeSource>,
    /// The next one: its line number and text.
    next: Option<(u64, Vec<u8>)>,
}

impl AnomalyReader {
    fn open(path: &Path) -> Self {
        let anomaly_file = tape_writer::anomaly_path(path);
        let found = path != Path::new("-") && anomaly_file.is_file();
        let source =
            found.then(|| TapeSource::open(&anomaly_file, Box::new(|_, _| ())).ok()).flatten();
        Self { source, next: None }
    }

    /// Adds everything that came before a message with this time and number to the timeline.
    fn add_until(&mut self, (until_us, seq): (i64, Option<u64>), timeline: &mut Timeline) {
        loop {
            if self.next.is_none() {
                self.next = self.read();
            }
            let Some((line, text)) = &self.next else { return };
            if let Ok(entry) = TapeLine::read(text) {
                if matches!(&entry, TapeLine::Bad(bad) if !bad.precedes(Some(until_us), seq)) {
                    return;
                }
                timeline.entry(*line, &entry);
            }
            self.next = None;
        }
    }

    fn read(&mut self) -> Option<(u64, Vec<u8>)> {
        loop {
            let Ok(numbered) = self.source.as_mut()?.reader.next()? else { continue };
            if let TapeLine::Bad(bad) = &numbered.entry
                && bad.reason != BATCH
            {
                return Some((numbered.line, numbered.text.to_vec()));
            }
        }
    }
}
