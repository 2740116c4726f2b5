//! `tapegate log`: prints the activity log, for people and for other systems.

mod arguments;
mod filter;
mod ungoverned_sessions;

use std::collections::VecDeque;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tapegate_store::activity::{self, LogFollower, LoggedEvent, LoggedEvents, NotAnEvent};

use crate::exit::{Exit, Failure};
use crate::file_type;
use crate::program_name;
use crate::screen;
use crate::settings::state_folder::StateChoice;
use crate::state_folder::{StateArgs, now_us};
use crate::terminal_output;
use crate::views::json_list::JsonList;
use crate::views::palette::Palette;
use crate::views::{activity as view, ocsf, visible_text};
use crate::zone::TimeZone;
use arguments::ArgumentFinder;

/// Show, filter and follow the activity log
///
/// Reads the activity log of the project: the rotated files, oldest first, then the current one.
/// `tapegate check` detects whether the log was tampered with.
///
/// The log contains no arguments. The text format shows those of a call if its tape is beside the
/// log, masked as on the tape.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate log --tail 20
  tapegate log -f --decision deny,would_block
  tapegate log --since 1h --server files --tool 'delete_*'
  tapegate log --format ocsf --since 2026-03-20T00:00:00Z > events.ndjson
  tapegate log --format jsonl | jq -c 'select(.latency_us > 1000)'

Exit codes: 0 done, 1 some lines are not events, 2 a file is not a log, 3 a file could not be read,
64 wrong usage.")]
pub(crate) struct Args {
    /// Follow the log as it grows
    #[arg(short, long, conflicts_with = "files")]
    follow: bool,
    #[command(flatten)]
    filter: filter::LogFilterArgs,
    /// Show only this many events, the last ones
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// The output format: json is one document, jsonl one event per line as logged, ocsf one per
    /// line as API Activity of OCSF 1.3
    #[arg(long, value_enum, default_value = "text")]
    format: LogFormat,
    #[command(flatten)]
    state: StateArgs,
    /// Files to read instead of the project's log, plain or gzip
    #[arg(value_name = "FILE", conflicts_with = "state")]
    files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
    Jsonl,
    Ocsf,
}

/// The size of the output buffer.
const OUT_BYTES: usize = 64 * 1024;
/// A file that begins with this many lines that are not events is not a log.
const NOT_A_LOG_LINES: u64 = 20;
/// How many lines of a file that are not events are listed.
const FAULTS_SHOWN_MAX: u64 = 20;
/// The longest sleep while following.
const NAP: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if args.follow && args.format == LogFormat::Json {
        let message = "--format json is one document, which --follow never completes";
        return Err(Failure::new(Exit::Usage, message).hint("pass --format jsonl").into());
    }
    let out = &mut BufWriter::with_capacity(OUT_BYTES, out);
    let mut list = match args.format {
        LogFormat::Json => JsonList::document(out),
        _ => JsonList::lines(out),
    };
    let mut printer = LogPrinter {
        filter: args.filter.filter(now_us())?,
        format: args.format,
        palette: terminal_output::palette_of_output(),
        zone: TimeZone::system(),
        columns: screen::columns(),
        held: args.tail.map(|count| (count, VecDeque::new())),
        arguments: ArgumentFinder::default(),
        bad: 0,
        file: FileProgress::default(),
        out: &mut list,
    };
    match args.files.is_empty() {
        true => print_project(args, &mut printer)?,
        false => args.files.iter().try_for_each(|path| file(path, &mut printer))?,
    }
    printer.release()?;
    let bad = printer.bad;
    list.finish()?;
    Ok(if bad > 0 { Exit::Findings } else { Exit::Ok })
}

fn print_project(args: &Args, printer: &mut LogPrinter<'_>) -> anyhow::Result<()> {
    let StateChoice { folder, former, .. } = args.state.choice()?;
    report_former_folders(&former);
    // First, because agents do not show that a session has no policy.
    ungoverned_sessions::warn(&folder, now_us());
    printer.arguments = ArgumentFinder::in_state_folder(&folder);
    let mut follower = LogFollower::new(&folder);
    let none = || {
        terminal_output::info(&format!("there is no activity log in `{}` yet", folder.display()))
    };
    loop {
        let cannot = || format!("cannot read the activity log in `{}`", folder.display());
        while let Some(next) = follower.next_line().with_context(cannot)? {
            printer.next(follower.path().unwrap_or(&folder), next)?;
        }
        if follower.path().is_none() && !args.follow {
            none();
        }
        if !args.follow {
            return Ok(());
        }
        printer.release()?;
        match folder.is_dir() {
            true => follower.wait(NAP)?,
            false => {
                let message = format!("there is no folder `{}` to follow", folder.display());
                return Err(Failure::new(Exit::Io, message).into());
            }
        }
    }
}

/// Tells the user where earlier events are, if the project has used other state folders.
fn report_former_folders(former: &[PathBuf]) {
    for folder in former.iter().filter(|folder| !folder.exists()) {
        let name = folder.display();
        let line = program_name::command("log --state FOLDER".to_owned());
        terminal_output::suggest(&format!(
            "earlier events were in `{name}`, which is gone; if it was moved: {line}"
        ));
    }
    for folder in former.iter().filter(|folder| LogFollower::new(folder).has_files()) {
        let name = folder.display();
        let line = program_name::command(format!("log --state {name}"));
        terminal_output::suggest(&format!("earlier events are in `{name}`: {line}"));
    }
}

/// Prints a file given by name.
fn file(path: &Path, printer: &mut LogPrinter<'_>) -> anyhow::Result<()> {
    // Events of an earlier file may still be held back, but the tapes of all files are in one
    // folder.
    printer.arguments.add_log_folder(path);
    let text =
        activity::open_file(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    printer.file = FileProgress { is_named: true, ..FileProgress::default() };
    for (at, next) in LoggedEvents::new(text).enumerate() {
        if let (0, Ok(first)) = (at, &next)
            && file_type::seems_an_entry(first.text())
        {
            return Err(tape_given_failure(path).into());
        }
        if let Err(NotAnEvent::Io { source, .. }) = next {
            return Err(source).with_context(|| format!("cannot read `{}`", path.display()));
        }
        printer.next(path, next)?;
        if printer.file.events == 0 && printer.file.bad >= NOT_A_LOG_LINES {
            break;
        }
    }
    let FileProgress { events, bad, .. } = printer.file;
    let name = visible_text::path(path);
    if events == 0 && bad > 0 {
        let message = format!("`{name}` is not an activity log: nothing in it is an event");
        return Err(Failure::new(Exit::Invalid, message).into());
    }
    if events == 0 {
        terminal_output::info(&format!("`{name}` has no events"));
    } else if bad > FAULTS_SHOWN_MAX {
        let more = bad - FAULTS_SHOWN_MAX;
        terminal_output::warn(&format!("{name}: {more} more lines are not events"));
    }
    Ok(())
}

/// How many lines of a file were events, and how many were not.
#[derive(Debug, Default)]
struct FileProgress {
    /// Whether it was named on the command line, and so may be anything.
    is_named: bool,
    events: u64,
    bad: u64,
    /// Warnings about lines before the first event.
    held: Vec<String>,
}

/// Whether a line has what every event has. Any other JSON object would be shown as one.
fn is_event(logged: &LoggedEvent) -> bool {
    logged.members().any(|(key, _)| key == "kind")
}

fn tape_given_failure(path: &Path) -> Failure {
    let name = visible_text::path(path);
    let line = program_name::command(format!("show {name}"));
    Failure::new(Exit::Invalid, format!("`{name}` is a tape, not an activity log"))
        .hint(format!("`{line}` shows it"))
}

/// Prints the events that pass the filter.
struct LogPrinter<'a> {
    filter: filter::LogFilter,
    format: LogFormat,
    palette: Palette,
    zone: TimeZone,
    /// The width of the terminal.
    columns: Option<usize>,
    /// With `--tail`: how many events to keep until the end of the log, and those events.
    held: Option<(usize, VecDeque<LoggedEvent>)>,
    /// The arguments of calls, looked up on their tapes.
    arguments: ArgumentFinder,
    /// How many lines are not events.
    bad: u64,
    /// The lines of the file that is read.
    file: FileProgress,
    out: &'a mut dyn Write,
}

impl LogPrinter<'_> {
    fn next(&mut self, path: &Path, next: Result<LoggedEvent, NotAnEvent>) -> std::io::Result<()> {
        let logged = match next {
            Ok(logged) if is_event(&logged) => logged,
            Ok(logged) => {
                let line = logged.line;
                self.not_an_event(path, format_args!("line {line} is not an event"));
                return Ok(());
            }
            // The line is still being written, or was left incomplete by a crash.
            Err(NotAnEvent::Torn { .. }) => return Ok(()),
            Err(error) => {
                self.not_an_event(path, format_args!("{error}"));
                return Ok(());
            }
        };
        self.file.events += 1;
        self.file.held.drain(..).for_each(|warning| terminal_output::warn(&warning));
        if !self.filter.matches(&logged) {
            return Ok(());
        }
        let Some((count, held)) = &mut self.held else { return self.print(&logged) };
        held.push_back(logged);
        if held.len() > *count {
            held.pop_front();
        }
        Ok(())
    }

    fn not_an_event(&mut self, path: &Path, message: std::fmt::Arguments<'_>) {
        self.bad += 1;
        self.file.bad += 1;
        let warning = format!("{}: {message}", path.display());
        match self.file.is_named {
            true if self.file.bad > FAULTS_SHOWN_MAX => {}
            // A file of another kind gets one error, and no warning for each of its lines.
            true if self.file.events == 0 => self.file.held.push(warning),
            _ => terminal_output::warn(&warning),
        }
    }

    /// Prints the events held back, and holds back none from now on.
    fn release(&mut self) -> std::io::Result<()> {
        if let Some((_, held)) = self.held.take() {
            held.iter().try_for_each(|logged| self.print(logged))?;
        }
        self.out.flush()
    }

    fn print(&mut self, logged: &LoggedEvent) -> std::io::Result<()> {
        match self.format {
            LogFormat::Text => {
                let arguments = self.arguments.arguments_of(logged);
                let (zone, palette) = (&self.zone, self.palette);
                let line = view::line(logged, &arguments, zone, palette, self.columns);
                self.out.write_all(line.as_bytes())?;
            }
            LogFormat::Json | LogFormat::Jsonl => self.out.write_all(logged.text())?,
            LogFormat::Ocsf => self.out.write_all(&ocsf::event(logged))?,
        }
        self.out.write_all(b"\n")
    }
}
