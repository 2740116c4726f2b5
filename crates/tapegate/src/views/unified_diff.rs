//! A unified diff of two texts. All changes are shown and control characters are made visible,
//! because a person decides on the basis of it.

use std::collections::{BTreeMap, BTreeSet};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use super::palette::Palette;
use super::visible_text;

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;
/// The most pairs of lines that are compared; beyond it, all old lines are removed and all new ones
/// added.
const PAIRS_MAX: usize = 4 << 20;

/// The diffs of several texts, by name.
pub(crate) fn diffs(
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
    palette: Palette,
) -> String {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let text = |texts: &BTreeMap<String, String>, name: &String| texts.get(name).cloned();
    let one =
        |name: &String| diff(name, text(old, name).as_deref(), text(new, name).as_deref(), palette);
    names.into_iter().map(one).collect()
}

/// The diff of a file, empty if nothing differs. `None` stands for a file that does not exist.
pub(crate) fn diff(name: &str, old: Option<&str>, new: Option<&str>, palette: Palette) -> String {
    if old == new {
        return String::new();
    }
    let title = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{}", visible_text::inline(name, usize::MAX)),
        None => "/dev/null".to_owned(),
    };
    let (before, after) = (title("accepted", old), title("file", new));
    let head = palette.bold(&format!("--- {before}\n+++ {after}"));
    let (old, new) = (split(old), split(new));
    // Compare the raw lines: a spelled-out escape is not the character it stands for.
    let hunks: String =
        compare(&old, &new).iter().map(|hunk| hunk_text(hunk, &old, &new, palette)).collect();
    format!("{head}\n{hunks}")
}

fn split(text: Option<&str>) -> Vec<&str> {
    text.unwrap_or_default().split_inclusive('\n').collect()
}

/// A line for display; a missing line ending is indicated.
fn line_text(line: &str) -> String {
    match line.strip_suffix('\n') {
        Some(line) => visible_text::line(line),
        None => format!("{} ⟨no newline at the end⟩", visible_text::line(line)),
    }
}

/// The changes, in groups with the unchanged lines around them.
fn compare(old: &[&str], new: &[&str]) -> Vec<Vec<DiffOp>> {
    let ops = match old.len().saturating_mul(new.len()) > PAIRS_MAX {
        // A person still sees every line.
        true => {
            let (old_len, new_len) = (old.len(), new.len());
            vec![DiffOp::Replace { old_index: 0, old_len, new_index: 0, new_len }]
        }
        false => capture_diff_slices(Algorithm::Myers, old, new),
    };
    group_diff_ops(ops, CONTEXT)
}

fn hunk_text(hunk: &[DiffOp], old: &[&str], new: &[&str], palette: Palette) -> String {
    let (one, two) = hunk.first().map_or((0, 0), |op| (op.old_range().start, op.new_range().start));
    let mut lines = vec![palette.faint(&format!("@@ line {} / {} @@", one + 1, two + 1))];
    for op in hunk {
        let (gone, come) = (&old[op.old_range()], &new[op.new_range()]);
        if op.tag() == DiffTag::Equal {
            lines.extend(gone.iter().map(|line| format!(" {}", line_text(line))));
            continue;
        }
        lines.extend(gone.iter().map(|line| palette.red(&format!("-{}", line_text(line)))));
        lines.extend(come.iter().map(|line| palette.green(&format!("+{}", line_text(line)))));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_shown_with_what_is_around_it_and_nothing_hides() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let new = "a\nb\nc\nd\nE\u{1b}[31m\nf\ng\nh\ni";
        let text = diff("p.yaml", Some(old), Some(new), Palette::Plain);
        assert!(text.starts_with("--- accepted/p.yaml\n+++ file/p.yaml\n@@ line 2 / 2 @@\n b\n"));
        assert!(text.contains("\n-e\n+E"), "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("+i ⟨no newline"), "{text}");
        assert_eq!(diff("p", Some("x"), Some("x"), Palette::Plain), "");
    }

    #[test]
    fn indentation_is_shown_as_it_is_and_an_escape_is_not_what_it_stands_for() {
        let text = diff("p", Some("a:\n"), Some("a:\n  - id: b \n"), Palette::Plain);
        assert!(text.ends_with("\n a:\n+  - id: b\\u0020\n"), "{text}");
        let text = diff("p", Some("\\u200b\n"), Some("\u{200b}\n"), Palette::Plain);
        assert!(text.ends_with("\n-\\u200b\n+\\u200b\n"), "{text}");
    }

    #[test]
    fn a_file_that_comes_or_goes_is_shown_whole() {
        let text = diff("l", None, Some("a\nb\n"), Palette::Plain);
        assert_eq!(text, "--- /dev/null\n+++ file/l\n@@ line 1 / 1 @@\n+a\n+b\n");
        let text = diff("l", Some("a\n"), None, Palette::Plain);
        assert_eq!(text, "--- accepted/l\n+++ /dev/null\n@@ line 1 / 1 @@\n-a\n");
    }
}
