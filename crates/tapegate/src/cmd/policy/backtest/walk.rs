//! Feeds the messages of a tape to the gate, in order or in sections evaluated in parallel.

use std::io;
use std::path::Path;

use tapegate_core::tape::{
    Bad, Line, Message, Numbered, Problem, Severity, Stamp, TOO_LARGE, TORN_TAIL, UNTERMINATED,
    read_section,
};
use tapegate_core::time::read_rfc3339;
use tapegate_policy::backtest::{
    Finding, Memory, Place, Said, Sort, Tally, Terms, Trial, What, differ, told,
};
use tapegate_policy::inspect::Carrier;
use tapegate_store::sections::{self, Section};
use tapegate_store::writer;

use super::scene::Scene;
use super::shelf::Tape;
use crate::exit::{Exit, Failure};
use crate::talk;
use crate::views::backtested::Outline;

/// The `parse_error` of a batch in the file beside a tape; its elements are on the tape.
const BATCH: &str = "batch";

/// A tape to evaluate.
pub(super) struct Walk<'a> {
    pub(super) tape: &'a Tape,
    /// Its position among the tapes.
    pub(super) number: usize,
    pub(super) terms: &'a Terms,
    /// Another policy, whose decisions are compared as the earlier ones.
    pub(super) before: Option<&'a Terms>,
    /// What to list; `None` stands for changes.
    pub(super) show: &'a [Option<Sort>],
}

/// The result of one section.
#[derive(Default)]
struct Sheet {
    tally: Tally,
    shown: Vec<Finding>,
    lines: u64,
    entries: u64,
    /// Messages that were too long to be recorded.
    oversize: u64,
    /// The first line that is not an entry, and how many there are.
    broken: Option<String>,
    broken_lines: u64,
}

/// The policies that messages are evaluated with.
struct Bench {
    trial: Trial,
    before: Option<Trial>,
}

/// Prints a listed finding.
type Print<'p> = dyn FnMut(&Finding) -> io::Result<()> + 'p;

impl Walk<'_> {
    /// Evaluates the tape and the file beside it, if there is one.
    pub(super) fn run(
        &self,
        tally: &mut Tally,
        outline: &mut Outline,
        print: &mut Print<'_>,
    ) -> anyhow::Result<()> {
        let path = &self.tape.path;
        let entries = self.file(path, tally, outline, print)?;
        if entries == 0 && self.tape.by_chance {
            talk::warn(&format!("skipped `{}`: not a tape", path.display()));
            return Ok(());
        }
        if entries == 0 {
            let words = format!("`{}` is not a tape: nothing in it is an entry", path.display());
            return Err(Failure::new(Exit::Invalid, words).into());
        }
        outline.tapes += 1;
        let beside = writer::beside(path);
        if beside.is_file() {
            self.file(&beside, tally, outline, print)?;
        }
        Ok(())
    }

    fn file(
        &self,
        path: &Path,
        tally: &mut Tally,
        outline: &mut Outline,
        print: &mut Print<'_>,
    ) -> anyhow::Result<u64> {
        let scene = Scene::of(path, self.memory())?;
        let mut bench = self.bench();
        let (mut lines, mut entries, mut broken) = (0, 0, None);
        let take = |work: Work| -> anyhow::Result<()> {
            let sheet = match work {
                Work::Done(sheet) => *sheet,
                Work::Left(section) => self.judge(&section, &mut bench),
            };
            for mut finding in sheet.shown {
                finding.place.line += lines;
                print(&finding)?;
                outline.shown += 1;
            }
            tally.add(sheet.tally, self.number, lines);
            outline.oversize += sheet.oversize;
            outline.broken_lines += sheet.broken_lines;
            broken = broken.take().or(sheet.broken.map(|words| (words, lines)));
            (lines, entries) = (lines + sheet.lines, entries + sheet.entries);
            Ok(())
        };
        let work = |section: Section| match &scene {
            Some(scene) => {
                let mut bench = self.bench();
                self.set(scene, section.offset, &mut bench);
                Work::Done(Box::new(self.judge(&section, &mut bench)))
            }
            None => Work::Left(section),
        };
        let name = path.display();
        let read = sections::read(path, talk::progress(path), work, take);
        let findings = read.map_err(|error| match error.downcast::<io::Error>() {
            Ok(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Failure::new(Exit::Io, format!("cannot read `{name}`: {error}")).into()
            }
            Ok(error) => error.into(),
            Err(error) => error,
        })?;
        for finding in findings.iter().filter(|finding| finding.severity != Severity::Note) {
            talk::warn(&format!("{name}: {}", finding.words));
        }
        if let Some((words, _)) = broken.filter(|_| entries > 0) {
            talk::warn(&format!("{name}: {words}; such lines are skipped"));
        }
        Ok(entries)
    }

    /// How much of the earlier messages the two policies need to know to decide about one.
    fn memory(&self) -> Memory {
        let before = self.before.map_or(Memory::None, Terms::memory);
        self.terms.memory().max(before)
    }

    /// Feeds the messages that set the context before an offset of the tape.
    fn set(&self, scene: &Scene, offset: u64, bench: &mut Bench) {
        for said in scene.before(offset) {
            match said {
                None => *bench = self.bench(),
                Some(said) => {
                    bench.trial.hear(&said);
                    bench.before.iter_mut().for_each(|trial| drop(trial.hear(&said)));
                }
            }
        }
    }

    fn bench(&self) -> Bench {
        Bench { trial: self.terms.trial(), before: self.before.map(Terms::trial) }
    }

    /// Evaluates the messages of a section.
    fn judge(&self, section: &Section, bench: &mut Bench) -> Sheet {
        let mut sheet = Sheet::default();
        let lines = read_section(&section.text, section.last, &mut |next| match next {
            Ok(numbered) => self.entry(&numbered, bench, &mut sheet),
            // A crash may leave an incomplete last line, which is not a message.
            Err(Problem::Torn { .. }) => {}
            Err(problem) => {
                sheet.broken_lines += 1;
                sheet.broken.get_or_insert_with(|| match problem {
                    Problem::Line { fault, .. } => format!("a line is not an entry: {fault}"),
                    other => other.to_string(),
                });
            }
        });
        sheet.lines = lines;
        sheet
    }

    fn entry(&self, numbered: &Numbered<'_>, bench: &mut Bench, sheet: &mut Sheet) {
        sheet.entries += 1;
        let line = numbered.line;
        match &numbered.entry {
            Line::Message(message) if !message.ours => {
                let place = Place { tape: self.number, line, seq: message.seq };
                self.message(message, place, bench, sheet);
            }
            Line::Bad(bad) => {
                let place = Place { tape: self.number, line, seq: None };
                self.bad(bad, place, bench, sheet);
            }
            // A header starts another recording, so the context starts empty.
            Line::Header(_) => *bench = self.bench(),
            Line::Message(_) | Line::Footer(_) | Line::Unknown(_) => {}
        }
    }

    fn message(&self, message: &Message<'_>, place: Place, bench: &mut Bench, sheet: &mut Sheet) {
        let lines = self.terms.settings.client == Carrier::Lines;
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
        let said = Said {
            wall_us: moment(message.ts),
            from: message.from,
            session: message.session.as_deref(),
            bytes,
            terminated: !message.unterminated,
        };
        self.said(&said, place, bench, sheet);
    }

    fn bad(&self, bad: &Bad<'_>, place: Place, bench: &mut Bench, sheet: &mut Sheet) {
        match &*bad.reason {
            TOO_LARGE => sheet.oversize += 1,
            UNTERMINATED | TORN_TAIL | BATCH => {}
            _ => {
                let said = Said {
                    wall_us: moment(bad.ts),
                    from: bad.from,
                    session: bad.session.as_deref(),
                    bytes: &bad.raw,
                    terminated: true,
                };
                self.said(&said, place, bench, sheet);
            }
        }
    }

    fn said(&self, said: &Said<'_>, place: Place, bench: &mut Bench, sheet: &mut Sheet) {
        let heard = bench.trial.hear(said);
        sheet.tally.hear(&heard, place);
        if let Some(trial) = &mut bench.before {
            let before = trial.hear(said);
            if let Some(change) = differ(&before, &heard) {
                sheet.tally.change(&change, place);
                if self.show.contains(&None) {
                    sheet.shown.push(Finding { place, what: What::Changed(change) });
                }
            }
            trial.done(before);
        }
        if self.show.iter().any(Option::is_some) {
            let all = told(&heard).into_iter();
            let wanted = all.filter(|told| self.show.contains(&Some(told.sort)));
            sheet.shown.extend(wanted.map(|told| Finding { place, what: What::Told(told) }));
        }
        bench.trial.done(heard);
    }
}

/// A section that is already evaluated, or still has to be evaluated in order.
enum Work {
    Done(Box<Sheet>),
    Left(Section),
}

pub(super) fn moment(ts: Stamp<'_>) -> i64 {
    match ts {
        Stamp::At(wall_us) => wall_us,
        Stamp::Text(text) => read_rfc3339(text).unwrap_or_default(),
    }
}
