//! One recorded command for people.

use std::fmt::Write as _;

use serde_json::Value;

use super::amounts::seconds;
use crate::views::palette::Palette;
use crate::views::visible_text;

/// An entry: a line, and its output below it if that is wanted.
pub(crate) fn entry_text(entry: &Value, with_output: bool, palette: Palette) -> String {
    let string = |name: &str| entry[name].as_str().unwrap_or_default();
    let exit_code = entry["exit_code"].as_i64();
    let is_timed_out = entry["timed_out"].as_bool() == Some(true);
    let (mark, end) = match (exit_code, is_timed_out) {
        (_, true) => (palette.cyan("⏱"), "timeout".to_owned()),
        (Some(0), _) => (palette.green("✓"), "0".to_owned()),
        (Some(code), _) => (palette.red("✗"), code.to_string()),
        (None, _) => (palette.red("✗"), ending(entry)),
    };
    let time = string("timestamp").get(11..19).unwrap_or("--:--:--");
    let duration = seconds(entry["duration_ms"].as_u64().unwrap_or(0));
    let number = entry["sequence_number"].as_u64().unwrap_or(0);
    let mut command = visible_text::lines(string("command")).trim_end().to_owned();
    command = command.replace('\n', "\n       ");
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        text,
        "{number:>5}  {}  {mark} {end:<7} {duration:>7}  {}",
        palette.faint(time),
        palette.bold(&command)
    );
    if !string("description").is_empty() {
        let description = visible_text::inline(string("description"), 200);
        let _ = writeln!(text, "       {}", palette.faint(&format!("# {description}")));
    }
    if with_output {
        write_stream(&mut text, string("stdout"), |line| line.to_owned());
        write_stream(&mut text, string("stderr"), |line| palette.red(line));
        if entry["output_truncated"].as_bool() == Some(true) {
            let total = entry["output_truncated_bytes"].as_u64().unwrap_or(0);
            let note = format!("[output is cut: {} in all]", super::bytes(total));
            let _ = writeln!(text, "       {}", palette.faint(&note));
        }
    }
    text
}

/// Why there is no exit code.
fn ending(entry: &Value) -> String {
    let flag = |name: &str| entry[name].as_bool() == Some(true);
    match entry["signal"].as_str() {
        _ if flag("cancelled") => "cancel".to_owned(),
        _ if flag("interrupted") => "lost".to_owned(),
        Some(signal) => visible_text::inline(signal.trim_start_matches("SIG"), 10),
        None => "-".to_owned(),
    }
}

/// Output, indented, with escape sequences in visible form: the output of a command must not act
/// on the terminal of its later readers.
fn write_stream(text: &mut String, stream: &str, paint: impl Fn(&str) -> String) {
    for line in visible_text::lines(stream).lines() {
        let _ = writeln!(text, "       {}", paint(line));
    }
}
