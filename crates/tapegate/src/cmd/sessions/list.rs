//! `sessions list`.

use std::io::Write;

use tapegate_bash::recording::session_reader;

use super::failure::{SessionsError, SessionsFailure};
use super::recordings::{RecordingsArgs, print_empty, since_us, summary};
use crate::exit::Exit;
use crate::verbosity;
use crate::views::sessions as view;

/// List recording sessions, newest last
///
/// With --verbose, also the folder, agent, conversation and size of each.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate sessions list
  tapegate sessions list --since 7d --limit 50
  tapegate sessions list --format json")]
pub(super) struct Args {
    /// Show sessions since a date: YYYY-MM-DD, or 7d, 2w, 1m (a month of 30 days), 12h, 30min
    #[arg(long, value_name = "TEXT")]
    since: Option<String>,
    /// Show at most this many sessions, the newest
    #[arg(long, value_name = "INTEGER", default_value_t = 20)]
    limit: usize,
    /// The output format
    #[arg(long, value_enum, default_value = "table")]
    format: ListFormat,
    #[command(flatten)]
    recordings: RecordingsArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ListFormat {
    Table,
    Json,
    Jsonl,
    Csv,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, SessionsError> {
    if args.limit == 0 {
        return Err(SessionsFailure::option("--limit must be at least 1", "Example: --limit 50"));
    }
    let since_us = since_us(args.since.as_deref())?;
    let mut paths = args.recordings.open()?.paths()?;
    // The id has the second of the start, so older sessions need not be opened.
    let is_old = |id: &str| {
        let created = session_reader::created_from_id(id);
        created.zip(since_us).is_some_and(|(created, since)| created + 999_999 < since)
    };
    paths.retain(|session| !is_old(&session.session_id));
    // The newest are at the end, and only these are opened.
    let start = paths.len().saturating_sub(args.limit);
    let mut sessions = Vec::new();
    for path in &paths[start..] {
        let summary = summary(path)?;
        if since_us.is_none_or(|since| summary.metadata.created_us >= since) {
            sessions.push(summary);
        }
    }
    match args.format {
        ListFormat::Table if sessions.is_empty() => print_empty(out)?,
        ListFormat::Table => {
            let text = view::list_table(&sessions, verbosity::is_verbose());
            out.write_all(text.as_bytes())?;
        }
        ListFormat::Json => view::write_list_json(out, &sessions, false)?,
        ListFormat::Jsonl => view::write_list_json(out, &sessions, true)?,
        ListFormat::Csv => view::write_list_csv(out, &sessions)?,
    }
    Ok(Exit::Ok)
}
