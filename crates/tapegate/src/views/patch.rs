//! A unified diff as `diff -u` writes it, which `patch` can apply.

use std::fmt::Write;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use super::palette::Palette;
use super::visible_text;

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;

/// The diff of a file; empty if nothing differs. On a terminal, control characters are made
/// visible.
pub(crate) fn patch(
    name: &str,
    old: &str,
    new: &str,
    palette: Palette,
    is_terminal: bool,
) -> String {
    if old == new {
        return String::new();
    }
    let name = visible_text::inline(name, usize::MAX);
    let mut out = palette.bold(&format!("--- {name}\n+++ {name}")) + "\n";
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let text = |sign: char, line: &str| {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, ""),
            None => (line, "\n\\ No newline at end of file"),
        };
        match is_terminal {
            true => format!("{sign}{}{end}", visible_text::lines(line)),
            false => format!("{sign}{line}{end}"),
        }
    };
    for hunk in group_diff_ops(ops, CONTEXT) {
        out += &(palette.faint(&head(&hunk)) + "\n");
        for op in &hunk {
            let (gone, come) = (&old[op.old_range()], &new[op.new_range()]);
            if op.tag() == DiffTag::Equal {
                gone.iter().for_each(|line| out += &(text(' ', line) + "\n"));
                continue;
            }
            gone.iter().for_each(|line| out += &(palette.red(&text('-', line)) + "\n"));
            come.iter().for_each(|line| out += &(palette.green(&text('+', line)) + "\n"));
        }
    }
    out
}

/// The line above a hunk: where it is in both texts.
pub(super) fn head(hunk: &[DiffOp]) -> String {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return String::new() };
    let range = |start: usize, end: usize| {
        let count = end - start;
        // An empty range is named by the line before it.
        let line = if count == 0 { start } else { start + 1 };
        let mut text = line.to_string();
        if count != 1 {
            // Writing to a string cannot fail.
            write!(text, ",{count}").ok();
        }
        text
    };
    let old = range(first.old_range().start, last.old_range().end);
    let new = range(first.new_range().start, last.new_range().end);
    format!("@@ -{old} +{new} @@")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_what_diff_writes() {
        let (old, new) = ("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\u{1b}\nf");
        let text = patch("p", old, new, Palette::Plain, false);
        let expected = "--- p\n+++ p\n@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n-f\n+E\u{1b}\n+f\n\\ No newline at end of file\n";
        assert_eq!(text, expected);
        assert!(!patch("p", old, new, Palette::Plain, true).contains('\u{1b}'));
        assert_eq!(patch("p", old, old, Palette::Plain, false), "");
        let added = patch("p", "", "x\n", Palette::Plain, false);
        assert_eq!(added, "--- p\n+++ p\n@@ -0,0 +1 @@\n+x\n");
    }
}
