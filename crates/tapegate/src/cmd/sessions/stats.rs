//! `sessions stats`.

use std::io::Write;

use tapegate_bash::recording::session_reader;
use tapegate_bash::reports::since::window_name;
use tapegate_bash::reports::statistics::CommandStatistics;

use super::failure::{SessionsError, SessionsFailure};
use super::recordings::{ProgressLine, RecordingsArgs, print_empty, since_us};
use crate::exit::Exit;
use crate::screen::ScreenArgs;
use crate::views::sessions as view;

/// Show aggregate statistics across recordings
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate sessions stats
  tapegate sessions stats --since 30d
  tapegate sessions stats --format json | jq '.command_frequency[:3]'")]
pub(super) struct Args {
    /// Count commands since a date: YYYY-MM-DD, or 7d, 2w, 1m (a month of 30 days), 12h, 30min
    #[arg(long, value_name = "TEXT")]
    since: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value = "table")]
    format: SessionStatsFormat,
    #[command(flatten)]
    screen: ScreenArgs,
    #[command(flatten)]
    recordings: RecordingsArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SessionStatsFormat {
    Table,
    Json,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, SessionsError> {
    let since_us = since_us(args.since.as_deref())?;
    let recordings = args.recordings.open()?;
    let paths = recordings.paths()?;
    let mut statistics = CommandStatistics::default();
    let mut progress = ProgressLine::new(&recordings, paths.len());
    for session in &paths {
        let mut has_entries = false;
        let read = session_reader::entries(&session.path, &mut |entry| {
            if since_us.is_none_or(|since| entry.started_us >= since) {
                has_entries = true;
                statistics.add(&entry);
            }
            Ok(())
        });
        read.map_err(|error| SessionsFailure::file("read", &session.path, &error))?;
        // Sessions without a command in the window are not part of it.
        statistics.sessions += u64::from(has_entries);
        progress.step();
    }
    match args.format {
        SessionStatsFormat::Table if statistics.commands == 0 => print_empty(out)?,
        SessionStatsFormat::Table => {
            let window = window_name(args.since.as_deref());
            let text = view::stats_text(&statistics, &window, args.screen.palette());
            args.screen.pager(out).write_all(text.as_bytes())?;
        }
        SessionStatsFormat::Json => {
            let value = view::stats_json(&statistics, args.since.as_deref());
            out.write_all(format!("{value:#}\n").as_bytes())?;
        }
    }
    Ok(Exit::Ok)
}
