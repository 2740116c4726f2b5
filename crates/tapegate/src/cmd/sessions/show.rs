//! `sessions show`.

use std::io::Write;

use serde_json::{Value, json};
use tapegate_bash::recording::session_reader::{self, SkippedLines};
use tapegate_bash::reports::statistics::CommandStatistics;

use super::failure::{SessionsError, SessionsFailure};
use super::recordings::{RecordingsArgs, summary};
use crate::exit::Exit;
use crate::screen::ScreenArgs;
use crate::terminal_output;
use crate::views::sessions as view;

/// Show a recording session and its commands
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate sessions show 20260118_143052_a7b3c9d2
  tapegate sessions show last
  tapegate sessions show 143052 --entries
  tapegate sessions show 143052 --entries --output
  tapegate sessions show 143052 --entries --format json | jq '.entries[].command'")]
pub(super) struct Args {
    /// The session id, or any part of it that no other id has, or "last" for the newest session
    #[arg(value_name = "SESSION_ID")]
    session_id: String,
    /// Show individual command entries
    #[arg(long)]
    entries: bool,
    /// Show command output (requires --entries)
    #[arg(long)]
    output: bool,
    /// The output format
    #[arg(long, value_enum, default_value = "table")]
    format: SessionShowFormat,
    #[command(flatten)]
    screen: ScreenArgs,
    #[command(flatten)]
    recordings: RecordingsArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SessionShowFormat {
    Table,
    Json,
    Yaml,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, SessionsError> {
    if args.output && !args.entries {
        let remedy = "Hint: add --entries, which shows the commands that the output belongs to";
        return Err(SessionsFailure::option("--output requires --entries", remedy));
    }
    let session = args.recordings.open()?.find(&args.session_id)?;
    let summary = summary(&session)?;
    let mut statistics = CommandStatistics::of_session();
    let mut entries: Vec<Value> = Vec::new();
    let skipped = session_reader::entries(&session.path, &mut |entry| {
        // Counted in any case; the entries themselves are kept only if they are shown.
        statistics.add(&entry);
        if args.entries {
            let mut value: Value = serde_json::from_slice(entry.line)?;
            if !args.output && args.format == SessionShowFormat::Table {
                // Output may be large, and the table does not show it.
                value["stdout"] = Value::Null;
                value["stderr"] = Value::Null;
            }
            entries.push(value);
        }
        Ok(())
    });
    let skipped = skipped.map_err(|error| SessionsFailure::file("read", &session.path, &error))?;
    warn_of_skipped(skipped);
    // The file has the order of the ends.
    entries.sort_by_key(|entry| entry["sequence_number"].as_u64());
    let palette = args.screen.palette();
    match args.format {
        SessionShowFormat::Table => {
            let mut text = view::session_text(&summary.metadata, &statistics, palette);
            let shown = entries.iter().map(|entry| view::entry_text(entry, args.output, palette));
            if args.entries {
                text.push_str("\nEntries:\n");
            }
            text.extend(shown);
            args.screen.pager(out).write_all(text.as_bytes())?;
        }
        SessionShowFormat::Json | SessionShowFormat::Yaml => {
            let mut value = summary.metadata.to_json();
            let top = statistics.frequencies();
            let top = top.iter().take(view::TOP_MAX);
            value["top_commands"] =
                top.map(|(command, count)| json!({"command": command, "count": count})).collect();
            if args.entries {
                value["entries"] = entries.into();
            }
            let text = match args.format {
                SessionShowFormat::Yaml => view::yaml(&value),
                _ => format!("{value:#}\n"),
            };
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(Exit::Ok)
}

fn warn_of_skipped(skipped: SkippedLines) {
    if skipped.is_torn {
        terminal_output::warn("the last line is incomplete and was skipped");
    }
    if skipped.invalid > 0 {
        terminal_output::warn(&format!(
            "{} lines are not entries and were skipped",
            skipped.invalid
        ));
    }
}
