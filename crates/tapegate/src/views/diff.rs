//! Formats differences between two values like a unified diff.
//!
//! `-` is the old value, `+` the new one. Long strings are cut around the change, texts of several
//! lines are shown line by line, and invisible characters are made visible.

use tapegate_core::json::JsonStr;
use tapegate_core::json::diff::{JsonDifference, JsonDifferences, ValueChange};

use super::line_diff;
use super::palette::Palette;
use super::visible_text::{self, TextWindow};

/// Values up to this length are shown in full.
pub(super) const CHARS_MAX: usize = 200;
/// At most this much of a value is shown, whatever has changed in it.
pub(super) const CHANGED_CHARS_MAX: usize = 800;
/// How many characters around a change are shown of a long value.
const AROUND: usize = 40;
const PLACE_CHARS_MAX: usize = 200;

/// The differences, each line starting with `indent` and terminated.
pub(crate) fn render(differences: &JsonDifferences<'_>, palette: Palette, indent: &str) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(indent);
        out.push_str(text);
        out.push('\n');
    };
    for difference in &differences.listed {
        lines_of(difference, palette).iter().for_each(|text| line(text));
    }
    if differences.more > 0 {
        let plural = if differences.more == 1 { "" } else { "s" };
        line(&palette.faint(&format!("… and {} more difference{plural}", differences.more)));
    }
    out
}

/// The parts of two texts to show: all of them, or the surroundings of their differences.
pub(super) fn windows(one: &[u32], two: &[u32]) -> [TextWindow; 2] {
    if one.len().max(two.len()) <= CHARS_MAX {
        return [TextWindow { from: 0, length: CHARS_MAX }; 2];
    }
    let same = |pair: &(&u32, &u32)| pair.0 == pair.1;
    let head = one.iter().zip(two).take_while(same).count();
    let (one, two) = (&one[head..], &two[head..]);
    let tail = one.iter().rev().zip(two.iter().rev()).take_while(same).count();
    let before = head.min(AROUND);
    [one, two].map(|rest| {
        let length = before + rest.len() - tail + AROUND;
        TextWindow { from: head - before, length: length.min(CHANGED_CHARS_MAX) }
    })
}

fn lines_of(difference: &JsonDifference<'_>, palette: Palette) -> Vec<String> {
    let place = visible_text::inline(&difference.location.to_string(), PLACE_CHARS_MAX);
    let gone = |text: &str| palette.red(&format!("- {place}: {text}"));
    let come = |text: &str| palette.green(&format!("+ {place}: {text}"));
    let titled = |lines: Vec<String>| std::iter::once(format!("  {place}:")).chain(lines).collect();
    let (old, new) = match difference.change {
        ValueChange::Added(new) => {
            match line_diff::single_text(new, "+", |line| palette.green(line)) {
                Some(lines) => return titled(lines),
                None => return vec![come(&single_value(new))],
            }
        }
        ValueChange::Removed(old) => {
            match line_diff::single_text(old, "-", |line| palette.red(line)) {
                Some(lines) => return titled(lines),
                None => return vec![gone(&single_value(old))],
            }
        }
        ValueChange::Value { old, new } | ValueChange::Kind { old, new } => (old, new),
    };
    match (visible_text::as_string(old), visible_text::as_string(new)) {
        (Some(one), Some(two)) => {
            let by_line = line_diff::has_lines(one) || line_diff::has_lines(two);
            if let Some(lines) = by_line.then(|| line_diff::diff(one, two, palette)).flatten() {
                return titled(lines);
            }
            let codes = |string: JsonStr<'_>| string.scalars().collect::<Vec<u32>>();
            let [before, after] = windows(&codes(one), &codes(two));
            vec![gone(&visible_text::string(one, before)), come(&visible_text::string(two, after))]
        }
        _ => {
            let (one, two) = shorten_pair(old, new);
            vec![gone(&one), come(&two)]
        }
    }
}

/// A value without a counterpart.
fn single_value(raw: &[u8]) -> String {
    match visible_text::as_string(raw) {
        Some(string) => {
            visible_text::string(string, TextWindow { from: 0, length: CHANGED_CHARS_MAX })
        }
        None => visible_text::value(raw, CHARS_MAX),
    }
}

/// Two values, not both of them strings, cut so that the first difference is visible.
fn shorten_pair(old: &[u8], new: &[u8]) -> (String, String) {
    /// Values nested deeper than the comparison goes may be long; only this much of them is read.
    const LOOKED_AT_MAX: usize = 10_000;
    let (one, two) =
        (visible_text::value(old, LOOKED_AT_MAX), visible_text::value(new, LOOKED_AT_MAX));
    let codes = |text: &str| text.chars().map(u32::from).collect::<Vec<u32>>();
    let [before, after] = windows(&codes(&one), &codes(&two));
    (shorten(&one, before), shorten(&two, after))
}

fn shorten(text: &str, window: TextWindow) -> String {
    let mut letters = text.chars().skip(window.from);
    let mut out = String::from(if window.from > 0 { "…" } else { "" });
    out.extend(letters.by_ref().take(window.length));
    if letters.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests;
