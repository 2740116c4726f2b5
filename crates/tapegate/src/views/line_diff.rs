//! Compares texts of several lines: shows changed lines with the unchanged lines around them.

use similar::{Algorithm, DiffTag, capture_diff_slices};
use tapegate_core::json::JsonStr;

use super::diff::{CHANGED_CHARS_MAX, CHARS_MAX, windows};
use super::palette::Palette;
use super::visible_text::{self, TextWindow};

/// How many unchanged lines around a change are shown.
const AROUND: usize = 2;
/// Texts with more lines than this are not compared line by line.
const LINES_MAX: usize = 2000;
/// At most this many lines are shown.
const SHOWN_MAX: usize = 40;

/// Whether a string is better shown line by line.
pub(super) fn has_lines(text: JsonStr<'_>) -> bool {
    text.scalars().any(|code| code == u32::from('\n'))
}

/// The differences between two texts, one output line each, or `None` for too many lines.
pub(super) fn diff(old: JsonStr<'_>, new: JsonStr<'_>, palette: Palette) -> Option<Vec<String>> {
    let (old, new) = (split(old), split(new));
    if old.len().max(new.len()) > LINES_MAX {
        return None;
    }
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut out = Vec::new();
    for (at, op) in ops.iter().enumerate() {
        let (before, after) = (&old[op.old_range()], &new[op.new_range()]);
        match op.tag() {
            DiffTag::Equal => {
                write_unchanged(before, (at > 0, at + 1 < ops.len()), palette, &mut out);
            }
            _ => write_change(before, after, palette, &mut out),
        }
    }
    let hidden = out.len().saturating_sub(SHOWN_MAX);
    // A single hidden line takes no more room than the text that replaces it.
    if hidden > 1 {
        out.truncate(SHOWN_MAX);
        out.push(palette.faint(&format!("    … and {hidden} more lines")));
    }
    Some(out)
}

/// The lines of a text without a counterpart, if it is a string of several lines.
pub(super) fn single_text(
    raw: &[u8],
    sign: &str,
    paint: impl Fn(&str) -> String,
) -> Option<Vec<String>> {
    let text = visible_text::as_string(raw).filter(|text| has_lines(*text))?;
    let lines = split(text);
    let shown = lines.iter().take(SHOWN_MAX);
    let mut out: Vec<String> = shown
        .map(|line| paint(&format!("{sign}   {}", line_text(line, changed_window()))))
        .collect();
    if lines.len() > SHOWN_MAX {
        out.push(format!("    … and {} more lines", lines.len() - SHOWN_MAX));
    }
    Some(out)
}

/// The lines of a text, as code points.
fn split(text: JsonStr<'_>) -> Vec<Vec<u32>> {
    let codes: Vec<u32> = text.scalars().collect();
    codes.split(|code| *code == u32::from('\n')).map(<[u32]>::to_vec).collect()
}

/// Unchanged lines: those next to a change are shown, the rest is counted.
fn write_unchanged(
    lines: &[Vec<u32>],
    (behind_change, before_change): (bool, bool),
    palette: Palette,
    out: &mut Vec<String>,
) {
    let head = if behind_change { AROUND } else { 0 };
    let tail = if before_change { AROUND } else { 0 };
    let left_out = head.min(lines.len())..lines.len().saturating_sub(tail);
    for (at, line) in lines.iter().enumerate() {
        if left_out.len() > 1 && left_out.contains(&at) {
            if at == left_out.start {
                let message = format!("    … {} lines alike", left_out.len());
                out.push(palette.faint(&message));
            }
            continue;
        }
        out.push(format!("    {}", line_text(line, whole_window())));
    }
}

/// Lines that changed: the old ones, then the new ones.
fn write_change(gone: &[Vec<u32>], come: &[Vec<u32>], palette: Palette, out: &mut Vec<String>) {
    // A long line is cut around its difference from the line it replaces.
    let cut = |at: usize, side: usize| match (gone.get(at), come.get(at)) {
        (Some(one), Some(two)) => windows(one, two)[side],
        _ => changed_window(),
    };
    for (at, line) in gone.iter().enumerate() {
        out.push(palette.red(&format!("-   {}", line_text(line, cut(at, 0)))));
    }
    for (at, line) in come.iter().enumerate() {
        out.push(palette.green(&format!("+   {}", line_text(line, cut(at, 1)))));
    }
}

fn changed_window() -> TextWindow {
    TextWindow { from: 0, length: CHANGED_CHARS_MAX }
}

fn whole_window() -> TextWindow {
    TextWindow { from: 0, length: CHARS_MAX }
}

fn line_text(line: &[u32], window: TextWindow) -> String {
    let mut out = String::from(if window.from > 0 { "…" } else { "" });
    let part = line.get(window.from..).unwrap_or_default();
    for (at, code) in part.iter().enumerate().take(window.length) {
        // Double a backslash that would look like one of our escapes.
        let next = part.get(at + 1).and_then(|code| char::from_u32(*code));
        if *code == u32::from('\\') && matches!(next, Some('u' | 'n' | 'r' | 't')) {
            out.push('\\');
        }
        visible_text::push(&mut out, *code);
    }
    if part.len() > window.length {
        out.push('…');
    }
    out
}
