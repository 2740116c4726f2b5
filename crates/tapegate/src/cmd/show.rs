//! `tapegate show`: prints a tape as a timeline.

mod decisions;
mod filter;
mod live_tape;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use tapegate_core::tape::timeline::{RowKind, Timeline, TimelineOptions, TimelineRow};

use crate::entry_limit::EntryArgs;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::recorded_sessions::{self, ProjectSessions};
use crate::screen::{self, ScreenArgs};
use crate::state_folder::StateArgs;
use crate::tape_rows::{self, tape_name};
use crate::views::json_list::JsonList;
use crate::views::recorded_sessions as sessions_view;
use crate::views::timeline::TimelineView;
use crate::views::timeline_json;
use crate::zone::TimeZone;
use decisions::TapeDecisions;
use filter::{RowFilter, RowFilterArgs};

/// Show a tape as a timeline: requests, their results, and how long they took
///
/// Without a tape, lists the recorded sessions of this project, newest first. A session is shown by
/// its id, or the start of it, or as `last`; all its tapes are shown one after the other.
///
/// A request and its answer are one line, in the order of requests. Progress and requests from the
/// server are indented below it. Times are local. The decision about a call is shown if it is on
/// the tape or in the activity log of the tape's project.
///
/// A line is printed when its answer is known. While it waits, up to 1000 later lines wait with it;
/// then it is printed with "no answer yet", and the answer, or that there is none, gets its own line
/// later. Memory use does not depend on the size of the tape.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate show                      the recorded sessions of this project
  tapegate show last                 the tapes of the newest one
  tapegate show session.jsonl
  tapegate show --follow .tapegate/tapes/files/*.jsonl    a session that is running
  tapegate show --errors --full session.jsonl
  tapegate show --tool 'write_*' --slow=500 tapes/*.jsonl.gz
  tapegate show --grep 'no such file' session.jsonl
  tapegate show --format jsonl session.jsonl | jq 'select(.answer.latency_ms > 1000)'

Exit codes: 0 done, 2 a file is not a tape, 3 a file could not be read, 64 wrong usage.")]
pub(crate) struct Args {
    /// Tapes of any dialect, plain or gzip, folders of them, - for standard input, or sessions: `last`,
    /// or the start of an id
    #[arg(value_name = "TAPE")]
    tapes: Vec<PathBuf>,
    /// Follow the tape as it grows, until its recording ends or Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Print complete arguments and results in the text format; json and jsonl always have them
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    filter: RowFilterArgs,
    /// The output format: json is one document, jsonl one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: ShowFormat,
    /// The state folder with the sessions and the activity log [default: the one of the tape, or of
    /// the project]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    entries: EntryArgs,
    #[command(flatten)]
    screen: ScreenArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ShowFormat {
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
    let state = StateArgs::new(args.state.clone());
    if args.tapes.is_empty() {
        return list_sessions(args, &state, out);
    }
    let tapes = recorded_sessions::tapes(&args.tapes, &state)?;
    check_arguments(args, &tapes)?;
    let zone = TimeZone::system();
    let mut pager = match args.follow || args.format != ShowFormat::Text {
        true => args.screen.clone().without_pager().pager(out),
        false => args.screen.pager(out),
    };
    let mut buffered = BufWriter::with_capacity(OUT_BYTES, &mut pager);
    let mut list = match args.format {
        ShowFormat::Json => JsonList::document(&mut buffered),
        ShowFormat::Text | ShowFormat::Jsonl => JsonList::lines(&mut buffered),
    };
    let view = TimelineView {
        zone: &zone,
        palette: args.screen.palette(),
        columns: screen::columns(),
        full: args.full,
        day: String::new(),
    };
    let filter = args.filter.filter(args.follow)?;
    for path in &tapes {
        let mut printer = RowPrinter {
            args,
            tape: tape_name(path),
            filter: &filter,
            decisions: TapeDecisions::open(path, args.state.as_deref())?,
            heading: HeadingState::Due(None),
            out: &mut list,
            view: TimelineView { day: String::new(), ..view_of(&view) },
        };
        match args.follow {
            true => live_tape::run(path, args.timeline()?, &mut printer)?,
            false => {
                tape_rows::read(path, args.timeline()?, &mut |row| printer.row(row))?;
                printer.finish()?;
            }
        }
    }
    list.finish()?;
    Ok(Exit::Ok)
}

/// Lists the recorded sessions of the project.
fn list_sessions(args: &Args, state: &StateArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if args.follow || args.full || args.filter.filter(false)?.is_set() {
        let message = "only the messages of a tape can be filtered, followed or shown in full";
        return Err(Failure::new(Exit::Usage, message)
            .hint(format!("name a tape, or `{} last`", program_name::command("show")))
            .into());
    }
    let sessions = ProjectSessions::find(state)?;
    let mut list = match args.format {
        ShowFormat::Text => {
            let (zone, palette, columns) =
                (TimeZone::system(), args.screen.palette(), screen::columns());
            let others = sessions.others.len();
            let text = sessions_view::table(&sessions.own, others, &zone, palette, columns);
            args.screen.pager(out).write_all(text.as_bytes())?;
            return Ok(Exit::Ok);
        }
        ShowFormat::Json => JsonList::document(out),
        ShowFormat::Jsonl => JsonList::lines(out),
    };
    for session in &sessions.own {
        list.write_all(sessions_view::json_line(session).as_bytes())?;
    }
    list.finish()?;
    Ok(Exit::Ok)
}

/// A new view with the same settings.
fn view_of<'z>(view: &TimelineView<'z>) -> TimelineView<'z> {
    TimelineView { day: String::new(), ..*view }
}

fn check_arguments(args: &Args, tapes: &[PathBuf]) -> Result<(), Failure> {
    let is_input = tapes.iter().any(|tape| tape.as_os_str() == "-");
    let (message, hint) = match () {
        () if args.follow && tapes.len() > 1 => {
            ("--follow takes one tape", "name the one that is being written")
        }
        () if args.follow && is_input => {
            ("--follow takes a file", "standard input is read to its end anyway")
        }
        () if args.follow && args.format == ShowFormat::Json => {
            ("--format json is one document, which --follow never completes", "pass --format jsonl")
        }
        () => return Ok(()),
    };
    Err(Failure::new(Exit::Usage, message).hint(hint))
}

impl Args {
    fn timeline(&self) -> Result<Timeline, Failure> {
        Ok(Timeline::new(TimelineOptions {
            rows_max: ROWS_MAX,
            bytes_max: BYTES_MAX,
            chars_max: CHARS_MAX,
            whole: self.full || self.format != ShowFormat::Text,
            wanted: self.filter.build_search()?,
        }))
    }
}

/// The heading above the rows of a tape.
enum HeadingState {
    /// Not printed yet, with the header of the recording if it has been read.
    Due(Option<Box<TimelineRow>>),
    Printed,
}

struct RowPrinter<'p, 'o> {
    args: &'p Args,
    tape: String,
    filter: &'p RowFilter,
    decisions: TapeDecisions,
    heading: HeadingState,
    out: &'p mut JsonList<'o>,
    view: TimelineView<'p>,
}

impl RowPrinter<'_, '_> {
    fn row(&mut self, row: TimelineRow) -> io::Result<()> {
        self.decisions.advance();
        let is_text = self.args.format == ShowFormat::Text;
        // The first header is part of the heading.
        if let (HeadingState::Due(begin @ None), RowKind::Begin { .. }, true) =
            (&mut self.heading, &row.kind, is_text)
        {
            *begin = Some(Box::new(row));
            return Ok(());
        }
        let decided = |row: &TimelineRow| self.decisions.decision_of(row);
        let is_whole = self.filter.matches(&row, &decided);
        let keep = |child: &TimelineRow| is_whole || self.filter.matches(child, &decided);
        if !is_whole && !row.children.iter().any(keep) {
            return Ok(());
        }
        let text = match is_text {
            true => {
                let heading = match std::mem::replace(&mut self.heading, HeadingState::Printed) {
                    HeadingState::Due(begin) => self.view.heading(&self.tape, begin.as_deref()),
                    HeadingState::Printed => String::new(),
                };
                format!("{heading}{}", self.view.row(&row, &decided, &keep)).into_bytes()
            }
            false => timeline_json::line(&self.tape, &row, &decided, &keep),
        };
        self.out.write_all(&text)
    }

    /// Reports that there was nothing to print.
    fn finish(&mut self) -> io::Result<()> {
        if self.args.format != ShowFormat::Text {
            return Ok(());
        }
        if let HeadingState::Due(begin) =
            std::mem::replace(&mut self.heading, HeadingState::Printed)
        {
            let heading = self.view.heading(&self.tape, begin.as_deref());
            let message = if self.filter.is_set() { "nothing that matches" } else { "no messages" };
            self.out.write_all(format!("{heading}{message}\n").as_bytes())?;
        }
        Ok(())
    }
}
