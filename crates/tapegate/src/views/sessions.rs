//! Recorded bash sessions as tables, text, JSON, CSV and YAML, in the forms of the document.

mod amounts;
mod entry;
mod yaml;

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Value, json};
use tapegate_bash::recording::metadata::SessionMetadata;
use tapegate_bash::recording::session_id::{short_id, timestamp};
use tapegate_bash::recording::session_reader::SessionSummary;
use tapegate_bash::reports::export::write_csv_row;
use tapegate_bash::reports::statistics::CommandStatistics;

pub(crate) use amounts::{bytes, count};
use amounts::{duration, seconds, share, thousands};
pub(crate) use entry::entry_text;
pub(crate) use yaml::yaml;

use super::palette::Palette;
use super::visible_text;

/// How many commands are listed by frequency.
pub(crate) const TOP_MAX: usize = 5;
/// The length limit of a command in a list.
const COMMAND_CHARS_MAX: usize = 60;
/// The width of the longest bar.
const BAR_COLUMNS: u64 = 20;
const LIST_HEAD: &str =
    "Session ID                    Started              Commands  Duration   Status";
const LIST_RULE_COLUMNS: usize = 79;

/// A time as tables show it, in UTC as in the id.
fn time(at_us: i64) -> String {
    timestamp(at_us)[..19].replace('T', " ")
}

/// The table of sessions.
pub(crate) fn list_table(sessions: &[SessionSummary], is_verbose: bool) -> String {
    let mut text = format!("{LIST_HEAD}\n{}\n", "─".repeat(LIST_RULE_COLUMNS));
    for SessionSummary { metadata, file_bytes, .. } in sessions {
        let id = visible_text::inline(short_id(&metadata.session_id), 60);
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{id:<29}{}{:>9}{:>10}    {}",
            time(metadata.created_us),
            thousands(metadata.entry_count),
            duration(metadata.total_duration_ms),
            visible_text::inline(&metadata.status, 30),
        );
        if is_verbose {
            let optional = |text: &Option<String>| match text {
                Some(text) => visible_text::inline(text, 100),
                None => "-".to_owned(),
            };
            let _ = writeln!(
                text,
                "    {}  agent: {}  conversation: {}  size: {}\n    {}",
                visible_text::inline(&metadata.session_id, 60),
                optional(&metadata.agent_id),
                optional(&metadata.conversation_id),
                bytes(*file_bytes),
                visible_text::inline(&metadata.working_directory, 300),
            );
        }
    }
    text
}

fn list_value(summary: &SessionSummary) -> Value {
    let mut value = summary.metadata.to_json();
    value["file_size_bytes"] = summary.file_bytes.into();
    value
}

/// The sessions as one JSON document, or one object a line.
pub(crate) fn write_list_json(
    out: &mut dyn Write,
    sessions: &[SessionSummary],
    is_lines: bool,
) -> io::Result<()> {
    if is_lines {
        return sessions.iter().try_for_each(|session| writeln!(out, "{}", list_value(session)));
    }
    let list: Vec<Value> = sessions.iter().map(list_value).collect();
    writeln!(out, "{:#}", Value::from(list))
}

/// The sessions as CSV.
pub(crate) fn write_list_csv(out: &mut dyn Write, sessions: &[SessionSummary]) -> io::Result<()> {
    let head = SessionMetadata::new("", 0);
    let head =
        list_value(&SessionSummary { path: Default::default(), file_bytes: 0, metadata: head });
    let names: Vec<String> =
        head.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    write_csv_row(out, names.iter().cloned())?;
    for session in sessions {
        let value = list_value(session);
        let text = |name: &String| match &value[name.as_str()] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        write_csv_row(out, names.iter().map(text))?;
    }
    Ok(())
}

/// A session as text.
pub(crate) fn session_text(
    metadata: &SessionMetadata,
    statistics: &CommandStatistics,
    palette: Palette,
) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Session: {}",
        palette.bold(&visible_text::inline(&metadata.session_id, 100))
    );
    let _ = writeln!(text, "Started: {}", time(metadata.created_us));
    let _ = writeln!(text, "Duration: {}", duration(metadata.total_duration_ms));
    let folder = visible_text::inline(&metadata.working_directory, 300);
    let _ = writeln!(text, "Working Directory: {folder}");
    let _ = writeln!(text, "Status: {}", visible_text::inline(&metadata.status, 30));
    for (name, value) in
        [("Agent", &metadata.agent_id), ("Conversation", &metadata.conversation_id)]
    {
        if let Some(value) = value {
            let _ = writeln!(text, "{name}: {}", visible_text::inline(value, 100));
        }
    }
    let _ = writeln!(text, "\nCommands: {} total", thousands(metadata.entry_count));
    let _ = writeln!(text, "  {} Succeeded: {}", palette.green("✓"), thousands(metadata.succeeded));
    let _ = writeln!(text, "  {} Failed: {}", palette.red("✗"), thousands(metadata.failed));
    let _ = writeln!(text, "  {} Timed out: {}", palette.cyan("⏱"), thousands(metadata.timed_out));
    let top = frequencies(statistics);
    if !top.is_empty() {
        let width = top.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0).max(19);
        text.push_str("\nTop Commands:\n");
        for (label, count) in &top {
            let plural = if *count == 1 { "call" } else { "calls" };
            let _ = writeln!(text, "  {label:<width$} - {} {plural}", thousands(*count));
        }
    }
    text
}

/// The most frequent commands, in a visible form.
fn frequencies(statistics: &CommandStatistics) -> Vec<(String, u64)> {
    let all = statistics.frequencies();
    let top = all.into_iter().take(TOP_MAX);
    top.map(|(label, count)| (visible_text::inline(label, COMMAND_CHARS_MAX), count)).collect()
}

/// Statistics as text.
pub(crate) fn stats_text(statistics: &CommandStatistics, window: &str, palette: Palette) -> String {
    let title = format!("Recording Statistics ({window})");
    let rule = "─".repeat(title.chars().count());
    let mut text = format!("{}\n{rule}\n\n", palette.bold(&title));
    let total = statistics.commands;
    let _ = writeln!(text, "Sessions: {}", thousands(statistics.sessions));
    let _ = writeln!(text, "Total Commands: {}", thousands(total));
    let _ = writeln!(text, "Total Duration: {}", duration(statistics.duration_ms));
    let top = frequencies(statistics);
    let largest = top.first().map_or(1, |(_, count)| *count);
    text.push_str("\nCommand Frequency:\n");
    write_bars(&mut text, &top, (total, largest), palette);
    let others = statistics.frequencies().len().saturating_sub(top.len());
    if others > 0 {
        let _ = writeln!(text, "  ... and {} others", thousands(others as u64));
    }
    let exits = statistics.exits;
    let buckets = [
        ("0 (success)".to_owned(), exits.success),
        ("1 (error)".to_owned(), exits.error),
        ("2+ (other)".to_owned(), exits.other),
    ];
    let largest = exits.success.max(exits.error).max(exits.other);
    text.push_str("\nExit Code Distribution:\n");
    write_bars(&mut text, &buckets, (total, largest), palette);
    let _ = writeln!(text, "\nAverage Duration: {}", seconds(statistics.average_ms()));
    if let Some((command, longest_ms)) = &statistics.longest {
        let command = visible_text::inline(command, COMMAND_CHARS_MAX);
        let _ = writeln!(text, "Longest Command: {command} ({})", seconds(*longest_ms));
    }
    text
}

/// Lines such as `git status - 312 (20.5%)`, with a bar for each.
fn write_bars(
    text: &mut String,
    rows: &[(String, u64)],
    (total, largest): (u64, u64),
    palette: Palette,
) {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(17);
    let numbers: Vec<String> = rows
        .iter()
        .map(|(_, count)| format!("{} ({})", thousands(*count), share(*count, total)))
        .collect();
    let number_width = numbers.iter().map(String::len).max().unwrap_or(0);
    for ((name, count), number) in rows.iter().zip(&numbers) {
        let filled = (count * BAR_COLUMNS).div_ceil(largest.max(1)) as usize;
        let bar = palette.cyan(&"█".repeat(filled));
        let line = format!("  {name:<width$} - {number:<number_width$}  {bar}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Statistics as JSON.
pub(crate) fn stats_json(statistics: &CommandStatistics, since: Option<&str>) -> Value {
    let frequencies: Vec<Value> = statistics
        .frequencies()
        .iter()
        .map(|(command, count)| json!({"command": command, "count": count}))
        .collect();
    let exits = statistics.exits;
    let longest = statistics.longest.as_ref();
    json!({
        "since": since,
        "sessions": statistics.sessions,
        "total_commands": statistics.commands,
        "total_duration_ms": statistics.duration_ms,
        "average_duration_ms": statistics.average_ms(),
        "command_frequency": frequencies,
        "exit_codes": {"0": exits.success, "1": exits.error, "2+": exits.other},
        "timed_out": exits.timed_out,
        "longest_command": longest.map(|(command, longest_ms)| {
            json!({"command": command, "duration_ms": longest_ms})
        }),
    })
}

#[cfg(test)]
mod tests;
