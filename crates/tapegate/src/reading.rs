//! Reads tapes to be shown or summarized, row by row and in bounded memory.

use std::io::{self, BufRead};
use std::path::Path;

use anyhow::Context;
use tapegate_core::tape::timeline::{Row, Timeline};
use tapegate_core::tape::{
    BashCommand, Line, LineFault, Problem, Reader, Session, Severity, Stamp,
};
use tapegate_core::time::read_rfc3339;
use tapegate_store::source::{Plain, Source};
use tapegate_store::writer;

use crate::called;
use crate::exit::{Exit, Failure};
use crate::sniff;
use crate::talk;
use crate::views::visible;

/// After this many invalid lines without a valid entry, the file is not a tape.
const FAULTS_MAX: u64 = 20;
/// The anomaly for a batch, whose messages are on the tape individually.
const BATCH: &str = "batch";

/// Receives rows.
pub(crate) type EachRow<'r> = dyn FnMut(Row) -> io::Result<()> + 'r;

/// The name of a tape for display.
pub(crate) fn tape_name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// Passes the rows of a tape of any dialect, plain or compressed, to `each`; `-` is standard input.
pub(crate) fn read(path: &Path, timeline: Timeline, each: &mut EachRow<'_>) -> anyhow::Result<()> {
    let name = visible::inline(&tape_name(path), usize::MAX / 8);
    let cannot = || format!("cannot read `{name}`");
    let mut plain = Plain::open(path, talk::progress(path)).with_context(cannot)?;
    let (good, bad, held) = (0, 0, Vec::new());
    let mut feed = Feed { timeline, each, good, bad, held, name: &name, path };
    if is_bash_session(&mut *plain.text).with_context(cannot)? {
        feed.commands(&mut *plain.text)?;
    } else {
        let beside = Beside::open(path);
        feed.entries(Reader::new(plain.text), beside)?;
    }
    feed.finish()?;
    for finding in plain.oddities.findings() {
        if finding.severity != Severity::Note {
            talk::warn(&format!("{name}: {}", finding.words));
        }
    }
    Ok(())
}

/// Whether the text starts like a recorded bash session.
fn is_bash_session(text: &mut dyn BufRead) -> io::Result<bool> {
    let start = text.fill_buf()?.trim_ascii_start();
    let end = start.iter().position(|byte| *byte == b'\n').unwrap_or(start.len());
    Ok(Session::is_entry(&start[..end]))
}

/// Feeds a tape into a timeline.
struct Feed<'f, 'e> {
    timeline: Timeline,
    each: &'f mut EachRow<'e>,
    good: u64,
    bad: u64,
    /// Rows held back until the first valid entry.
    held: Vec<Row>,
    name: &'f str,
    path: &'f Path,
}

impl Feed<'_, '_> {
    fn entries(
        &mut self,
        mut reader: Reader<Box<dyn BufRead>>,
        mut beside: Beside,
    ) -> anyhow::Result<()> {
        while let Some(next) = reader.next() {
            if let Ok(numbered) = &next {
                let until = match &numbered.entry {
                    Line::Message(message) => moment(message.ts),
                    Line::Footer(_) => Some(i64::MAX),
                    _ => None,
                };
                until.into_iter().for_each(|at| beside.before(at, &mut self.timeline));
            }
            if let Err(problem @ Problem::Line { fault: LineFault::TooLong(_), .. }) = &next {
                talk::warn(&format!("{}: left out: {problem}", self.name));
            }
            self.timeline.line(&next);
            match next {
                Err(Problem::Io { source, .. }) => {
                    return Err(source).with_context(|| format!("cannot read `{}`", self.name));
                }
                next => self.count(next.is_ok())?,
            }
        }
        beside.before(i64::MAX, &mut self.timeline);
        Ok(())
    }

    fn commands(&mut self, text: &mut dyn BufRead) -> anyhow::Result<()> {
        for next in tapegate_store::source::lines(text) {
            let (number, line) = next.with_context(|| format!("cannot read `{}`", self.name))?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let read = BashCommand::read(&line);
            match &read {
                Ok(command) => self.timeline.command(number, command),
                Err(fault) => self.timeline.fault(number, fault.to_string()),
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
        Ok(self.hand_out()?)
    }

    fn hand_out(&mut self) -> io::Result<()> {
        while let Some(row) = self.timeline.next_row() {
            self.held.push(row);
        }
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
        Ok(self.hand_out()?)
    }

    fn not_a_tape(&self) -> anyhow::Error {
        let words = format!("`{}` is not a tape: nothing in it is an entry", self.name);
        let failure = Failure::new(Exit::Invalid, words);
        let name = self.name;
        let hint = match () {
            () if sniff::seems_an_activity_log(self.path) => {
                format!("this is an activity log: run `{}`", called::command(format!("log {name}")))
            }
            () if sniff::seems_a_scenario(self.path) => {
                let line = called::command(format!("serve {name}"));
                format!("this seems to be a scenario: run `{line}`")
            }
            () => return failure.into(),
        };
        failure.hint(hint).into()
    }
}

fn moment(stamp: Stamp<'_>) -> Option<i64> {
    match stamp {
        Stamp::At(at_us) => Some(at_us),
        Stamp::Text(text) => read_rfc3339(text),
    }
}

/// The frames that were not messages, from the file beside a thoughtjack tape.
struct Beside {
    source: Option<Source>,
    /// The next one: its line number, text and time.
    next: Option<(u64, Vec<u8>, i64)>,
}

impl Beside {
    fn open(path: &Path) -> Self {
        let beside = writer::beside(path);
        let found = path != Path::new("-") && beside.is_file();
        let source = found.then(|| Source::open(&beside, Box::new(|_, _| ())).ok()).flatten();
        Self { source, next: None }
    }

    /// Adds everything up to a point in time to the timeline.
    fn before(&mut self, until_us: i64, timeline: &mut Timeline) {
        loop {
            if self.next.is_none() {
                self.next = self.read();
            }
            let Some((line, text, at_us)) = &self.next else { return };
            // These times have only millisecond precision.
            if *at_us > until_us {
                return;
            }
            if let Ok(entry) = Line::read(text) {
                timeline.entry(*line, &entry);
            }
            self.next = None;
        }
    }

    fn read(&mut self) -> Option<(u64, Vec<u8>, i64)> {
        loop {
            let Ok(numbered) = self.source.as_mut()?.reader.next()? else { continue };
            if let Line::Bad(bad) = &numbered.entry
                && bad.reason != BATCH
            {
                let at_us = moment(bad.ts).unwrap_or(i64::MIN);
                return Some((numbered.line, numbered.text.to_vec(), at_us));
            }
        }
    }
}
