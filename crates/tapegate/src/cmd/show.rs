//! `tapegate show`: prints a tape as a timeline.

mod decisions;
mod filter;
mod follow;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use tapegate_core::tape::timeline::{Row, RowKind, Timeline, TimelineOptions};

use crate::entries::EntryArgs;
use crate::exit::{Exit, Failure};
use crate::reading::{self, tape_name};
use crate::screen::{self, ScreenArgs};
use crate::views::json_list::JsonList;
use crate::views::timeline::TimelineView;
use crate::views::timeline_json;
use crate::zone::Zone;
use decisions::Decisions;
use filter::{Filter, FilterArgs};

/// Show a tape as a timeline: requests, their results, and how long they took
///
/// A request and its answer are one line, in the order of requests. Progress and requests from the
/// server are indented below it. Times are local. The decision about a call is shown if it is on
/// the tape or in the activity log of the tape's project.
///
/// A line is printed when its answer is known. While it waits, up to 1000 later lines wait with it;
/// then it is printed with "no answer yet", and the answer gets its own line later. Memory use does
/// not depend on the size of the tape.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate show session.jsonl
  tapegate show --follow .tapegate/tapes/files/*.jsonl    a session that is running
  tapegate show --errors --full session.jsonl
  tapegate show --tool 'write_*' --slow=500 tapes/*.jsonl.gz
  tapegate show --grep 'no such file' session.jsonl
  tapegate show --format jsonl session.jsonl | jq 'select(.answer.latency_ms > 1000)'

Exit codes: 0 done, 2 a file is not a tape, 3 a file could not be read, 64 wrong usage.")]
pub(crate) struct Args {
    /// Tapes of any dialect, plain or gzip; - is standard input
    #[arg(required = true, value_name = "TAPE")]
    tapes: Vec<PathBuf>,
    /// Follow the tape as it grows, until its recording ends or Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Print complete arguments and results in the text format; json and jsonl always have them
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    filter: FilterArgs,
    /// The output format: json is one document, jsonl one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The state folder with the activity log [default: the one of the tape, or of the project]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    entries: EntryArgs,
    #[command(flatten)]
    screen: ScreenArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
    Jsonl,
}

/// How many rows may wait for the answer to an older one.
const ROWS_MAX: usize = 1000;
/// How many bytes these rows may take.
const BYTES_MAX: usize = 16 << 20;
/// The maximum length of arguments and results if there is no terminal width to cut them at.
const CHARS_MAX: usize = 200;
/// The size of the output buffer.
const OUT_BYTES: usize = 64 * 1024;

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    misuse(args)?;
    let zone = Zone::ours();
    let mut pager = match args.follow || args.format != Format::Text {
        true => args.screen.clone().unpaged().pager(out),
        false => args.screen.pager(out),
    };
    let mut buffered = BufWriter::with_capacity(OUT_BYTES, &mut pager);
    let mut list = match args.format {
        Format::Json => JsonList::document(&mut buffered),
        Format::Text | Format::Jsonl => JsonList::lines(&mut buffered),
    };
    let view = TimelineView {
        zone: &zone,
        palette: args.screen.palette(),
        columns: screen::columns(),
        full: args.full,
        day: String::new(),
    };
    let filter = args.filter.filter()?;
    for path in &args.tapes {
        let mut printer = Printer {
            args,
            tape: tape_name(path),
            filter: &filter,
            decisions: Decisions::open(path, args.state.as_deref())?,
            heading: Heading::Due(None),
            out: &mut list,
            view: TimelineView { day: String::new(), ..view_of(&view) },
        };
        match args.follow {
            true => follow::run(path, args.timeline()?, &mut printer)?,
            false => {
                reading::read(path, args.timeline()?, &mut |row| printer.row(row))?;
                printer.end()?;
            }
        }
    }
    list.finish()?;
    Ok(Exit::Ok)
}

/// A new view with the same settings.
fn view_of<'z>(view: &TimelineView<'z>) -> TimelineView<'z> {
    TimelineView { day: String::new(), ..*view }
}

fn misuse(args: &Args) -> Result<(), Failure> {
    let is_input = args.tapes.iter().any(|tape| tape.as_os_str() == "-");
    let (words, hint) = match () {
        () if args.follow && args.tapes.len() > 1 => {
            ("--follow takes one tape", "name the one that is being written")
        }
        () if args.follow && is_input => {
            ("--follow takes a file", "standard input is read to its end anyway")
        }
        () if args.follow && args.format == Format::Json => {
            ("--format json is one document, which --follow never completes", "pass --format jsonl")
        }
        () => return Ok(()),
    };
    Err(Failure::new(Exit::Usage, words).hint(hint))
}

impl Args {
    fn timeline(&self) -> Result<Timeline, Failure> {
        Ok(Timeline::new(TimelineOptions {
            rows_max: ROWS_MAX,
            bytes_max: BYTES_MAX,
            chars_max: CHARS_MAX,
            whole: self.full || self.format != Format::Text,
            wanted: self.filter.wanted()?,
        }))
    }
}

/// The heading above the rows of a tape.
enum Heading {
    /// Not printed yet, with the header of the recording if it has been read.
    Due(Option<Box<Row>>),
    Printed,
}

/// Prints rows.
struct Printer<'p, 'o> {
    args: &'p Args,
    tape: String,
    filter: &'p Filter,
    decisions: Decisions,
    heading: Heading,
    out: &'p mut JsonList<'o>,
    view: TimelineView<'p>,
}

impl Printer<'_, '_> {
    fn row(&mut self, row: Row) -> io::Result<()> {
        self.decisions.advance();
        let is_text = self.args.format == Format::Text;
        // The first header is part of the heading.
        if let (Heading::Due(begin @ None), RowKind::Begin { .. }, true) =
            (&mut self.heading, &row.kind, is_text)
        {
            *begin = Some(Box::new(row));
            return Ok(());
        }
        let decided = |row: &Row| self.decisions.of(row);
        let is_whole = self.filter.passes(&row, &decided);
        let keep = |child: &Row| is_whole || self.filter.passes(child, &decided);
        if !is_whole && !row.children.iter().any(keep) {
            return Ok(());
        }
        let text = match is_text {
            true => {
                let heading = match std::mem::replace(&mut self.heading, Heading::Printed) {
                    Heading::Due(begin) => self.view.heading(&self.tape, begin.as_deref()),
                    Heading::Printed => String::new(),
                };
                format!("{heading}{}", self.view.row(&row, &decided, &keep)).into_bytes()
            }
            false => timeline_json::line(&self.tape, &row, &decided, &keep),
        };
        self.out.write_all(&text)
    }

    /// Reports that there was nothing to print.
    fn end(&mut self) -> io::Result<()> {
        if self.args.format != Format::Text {
            return Ok(());
        }
        if let Heading::Due(begin) = std::mem::replace(&mut self.heading, Heading::Printed) {
            let heading = self.view.heading(&self.tape, begin.as_deref());
            let words = if self.filter.is_set() { "nothing that matches" } else { "no messages" };
            self.out.write_all(format!("{heading}{words}\n").as_bytes())?;
        }
        Ok(())
    }
}
