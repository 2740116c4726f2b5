//! `sessions export`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tapegate_bash::recording::session_reader::{self, SessionPath, SessionSummary};
use tapegate_bash::reports::export::{SqliteExport, write_csv_entry, write_csv_header};

use super::failure::{SessionsError, SessionsFailure};
use super::recordings::{ProgressLine, RecordingsArgs, print_empty, since_us, summary};
use crate::exit::Exit;
use crate::output_file::file_only_parser;
use crate::terminal_output;
use crate::views::sessions as view;

/// The word for all sessions.
const ALL: &str = "all";
const NO_DASH: &str = "leave out --output to write to standard output";

/// Export recordings to various formats
///
/// json is `{"sessions": [{...metadata, "entries": [...]}]}`; csv has a row for each entry;
/// sqlite has the tables `sessions` and `entries`. Columns are the keys of an entry.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate sessions export 20260118_143052_a7b3c9d2 --format json
  tapegate sessions export all --since 7d --format csv > week.csv
  tapegate sessions export all --format sqlite --output recordings.db")]
pub(super) struct Args {
    /// Session ID, or any part of it that no other id has, or "last" for the newest session, or
    /// "all" for all sessions
    #[arg(value_name = "SESSION_ID")]
    session_id: String,
    /// Export format
    #[arg(long, value_enum, default_value = "json")]
    format: ExportFormat,
    /// Output file path [default: standard output]
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(NO_DASH))]
    output: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// Filter sessions since a date (when using "all"): YYYY-MM-DD, or 7d, 2w, 1m (a month of 30
    /// days), 12h, 30min
    #[arg(long, value_name = "TEXT")]
    since: Option<String>,
    #[command(flatten)]
    recordings: RecordingsArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    Json,
    Csv,
    Sqlite,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, SessionsError> {
    // Its first page is written last, which a pipe does not permit.
    if args.format == ExportFormat::Sqlite && args.output.is_none() {
        let remedy = "Example: --format sqlite --output recordings.db";
        return Err(SessionsFailure::option("--format sqlite requires --output", remedy));
    }
    if args.since.is_some() && args.session_id != ALL {
        let remedy = "Example: export all --since 7d";
        return Err(SessionsFailure::option("--since filters only the export of all", remedy));
    }
    let sessions = chosen_sessions(args)?;
    if sessions.is_empty() {
        print_empty(out)?;
        return Ok(Exit::Ok);
    }
    let Some(path) = &args.output else {
        write_text(args.format, &sessions, out)?;
        return Ok(Exit::Ok);
    };
    // Before anything is read, since an export may take minutes.
    if path.exists() && !args.force {
        let remedy = "Hint: add --force to replace it";
        let message = format!("{} exists already", path.display());
        return Err(SessionsFailure::option(&message, remedy));
    }
    write_file(args.format, &sessions, path)?;
    let entries: u64 = sessions.iter().map(|one| one.metadata.entry_count).sum();
    terminal_output::info(&format!(
        "exported {} with {} to {}",
        view::count(sessions.len() as u64, "session"),
        view::count(entries, "command"),
        path.display()
    ));
    Ok(Exit::Ok)
}

fn chosen_sessions(args: &Args) -> Result<Vec<SessionSummary>, SessionsError> {
    let since_us = since_us(args.since.as_deref())?;
    let recordings = args.recordings.open()?;
    let paths: Vec<SessionPath> = match args.session_id.as_str() {
        ALL => recordings.paths()?,
        id => vec![recordings.find(id)?],
    };
    let mut progress = ProgressLine::new(&recordings, paths.len());
    let mut sessions = Vec::new();
    for path in &paths {
        let summary = summary(path)?;
        if since_us.is_none_or(|since| summary.metadata.created_us >= since) {
            sessions.push(summary);
        }
        progress.step();
    }
    Ok(sessions)
}

/// Writes a file beside its final name, so that no reader sees half of it.
fn write_file(
    format: ExportFormat,
    sessions: &[SessionSummary],
    path: &Path,
) -> Result<(), SessionsError> {
    // In the same folder, or the rename could cross file systems.
    let partial = PathBuf::from(format!("{}.partial-{}", path.display(), std::process::id()));
    let written = match format {
        ExportFormat::Sqlite => write_sqlite(sessions, &partial),
        _ => File::create_new(&partial).and_then(|file| {
            let mut out = BufWriter::new(file);
            write_text(format, sessions, &mut out)?;
            out.flush()
        }),
    };
    let written = written.and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        std::fs::remove_file(&partial).ok();
        SessionsFailure::file("write", path, &error)
    })
}

fn write_text(
    format: ExportFormat,
    sessions: &[SessionSummary],
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        ExportFormat::Csv => {
            write_csv_header(out)?;
            for session in sessions {
                session_reader::entries(&session.path, &mut |entry| {
                    write_csv_entry(out, entry.line)
                })?;
            }
            Ok(())
        }
        _ => write_json(sessions, out),
    }
}

/// Writes entries as they come: a store may be larger than memory.
fn write_json(sessions: &[SessionSummary], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"sessions\": [")?;
    for (index, session) in sessions.iter().enumerate() {
        let metadata = session.metadata.to_json().to_string();
        // The object stays open for its entries.
        let metadata = metadata.trim_end_matches('}');
        write!(out, "{}\n  {metadata},\"entries\":[", if index > 0 { "," } else { "" })?;
        let mut is_first = true;
        session_reader::entries(&session.path, &mut |entry| {
            write!(out, "{}\n    ", if is_first { "" } else { "," })?;
            is_first = false;
            out.write_all(entry.line)
        })?;
        write!(out, "\n  ]}}")?;
    }
    writeln!(out, "\n]}}")
}

fn write_sqlite(sessions: &[SessionSummary], path: &Path) -> io::Result<()> {
    let mut export = SqliteExport::create(path)?;
    export.add_sessions(sessions.iter().map(|session| &session.metadata))?;
    for session in sessions {
        session_reader::entries(&session.path, &mut |entry| export.add_entry(entry.line))?;
    }
    export.finish()
}
