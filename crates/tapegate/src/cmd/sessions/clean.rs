//! `sessions clean`.

use std::io::{BufRead, IsTerminal, Write};

use tapegate_bash::recording::session_reader::SessionSummary;
use tapegate_bash::recording::{index, retention};

use super::failure::{SessionsError, SessionsFailure};
use super::recordings::{ProgressLine, Recordings, RecordingsArgs, time_us};
use crate::exit::Exit;
use crate::state_folder::now_us;
use crate::views::sessions as view;

/// Delete old recordings
///
/// The age of a session is that of its last command. A session that is being written is never
/// deleted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate sessions clean --dry-run
  tapegate sessions clean --older-than 90d
  tapegate sessions clean --force")]
pub(super) struct Args {
    /// Delete recordings older than a date: YYYY-MM-DD, or 7d, 2w, 1m (a month of 30 days), 12h,
    /// 30min [default: retention_days of the settings]
    #[arg(long, value_name = "TEXT")]
    older_than: Option<String>,
    /// Show what would be deleted without deleting
    #[arg(long)]
    dry_run: bool,
    /// Skip confirmation prompt
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    recordings: RecordingsArgs,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, SessionsError> {
    let recordings = args.recordings.open()?;
    let now = now_us();
    let days = recordings.retention_days;
    let before_us = match &args.older_than {
        Some(text) => time_us(text)?,
        // The settings keep everything, so only an age on the command line deletes.
        None if days == 0 => {
            writeln!(
                out,
                "Nothing to delete: retention_days is 0, which keeps recordings forever."
            )?;
            return Ok(Exit::Ok);
        }
        None => now - days as i64 * retention::DAY_US,
    };
    let folder = &recordings.folder;
    let old = retention::sessions_before(folder, before_us)
        .map_err(|error| SessionsFailure::file("read", folder.path(), &error))?;
    if old.is_empty() {
        writeln!(out, "Nothing to delete.")?;
        return Ok(Exit::Ok);
    }
    let bytes: u64 = old.iter().map(|summary| summary.file_bytes).sum();
    let amount = format!("{} ({})", view::count(old.len() as u64, "session"), view::bytes(bytes));
    // After the scan, so that it shows exactly what would go.
    if args.dry_run {
        out.write_all(view::list_table(&old, false).as_bytes())?;
        writeln!(out, "\nWould delete {amount}.")?;
        return Ok(Exit::Ok);
    }
    if !args.force && !confirm(out, &format!("Delete {amount}?"))? {
        writeln!(out, "Nothing was deleted.")?;
        return Ok(Exit::Ok);
    }
    delete(&recordings, &old)?;
    writeln!(out, "Deleted {amount}.")?;
    Ok(Exit::Ok)
}

/// Asks a person.
fn confirm(out: &mut dyn Write, question: &str) -> Result<bool, SessionsError> {
    // A script that waits for an answer would hang.
    if !std::io::stdin().is_terminal() {
        let remedy = "Hint: use --force, or --dry-run to see what would be deleted";
        return Err(SessionsFailure::option(
            "Cannot ask for confirmation without a terminal",
            remedy,
        ));
    }
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn delete(recordings: &Recordings, old: &[SessionSummary]) -> Result<(), SessionsError> {
    let folder = &recordings.folder;
    let mut progress = ProgressLine::new(recordings, old.len());
    for summary in old {
        retention::delete(folder, summary)
            .map_err(|error| SessionsFailure::delete(folder.path(), &error))?;
        progress.step();
    }
    // Once at the end: the index would otherwise be rewritten for each session.
    index::refresh(folder, now_us())
        .map_err(|error| SessionsFailure::file("update", &folder.index(), &error))
}
