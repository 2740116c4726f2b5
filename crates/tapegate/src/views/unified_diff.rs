//! A unified diff of two texts. All changes are shown and control characters are made visible,
//! because a person decides on the basis of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use super::palette::Palette;
use super::{patch, visible_text};

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;
/// The most pairs of lines that are compared; beyond it, all old lines are removed and all new ones
/// added.
const PAIRS_MAX: usize = 4 << 20;

/// The diffs of several texts, by their names in `folder`.
pub(crate) fn diffs(
    folder: &Path,
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
    palette: Palette,
) -> String {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let text = |texts: &BTreeMap<String, String>, name: &String| texts.get(name).cloned();
    let one = |name: &String| {
        diff(&folder.join(name), text(old, name).as_deref(), text(new, name).as_deref(), palette)
    };
    names.into_iter().map(one).collect()
}

/// The diff of a file, empty if nothing differs. `None` stands for a file that does not exist.
pub(crate) fn diff(path: &Path, old: Option<&str>, new: Option<&str>, palette: Palette) -> String {
    if old == new {
        return String::new();
    }
    let path = visible_text::inline(&path.to_string_lossy(), usize::MAX);
    let before = match old {
        Some(_) => format!("{path} (accepted)"),
        None => "nothing that a person has accepted".to_owned(),
    };
    let after = if new.is_some() { path } else { format!("{path} (gone)") };
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
    let mut lines = vec![palette.faint(&patch::head(hunk))];
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
        let text = diff(Path::new("/w/p.yaml"), Some(old), Some(new), Palette::Plain);
        assert!(text.starts_with("--- /w/p.yaml (accepted)\n+++ /w/p.yaml\n@@ -2,7 +2,8 @@\n b\n"));
        assert!(text.contains("\n-e\n+E"), "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("+i ⟨no newline"), "{text}");
        assert_eq!(diff(Path::new("p"), Some("x"), Some("x"), Palette::Plain), "");
    }

    #[test]
    fn indentation_is_shown_as_it_is_and_an_escape_is_not_what_it_stands_for() {
        let text = diff(Path::new("p"), Some("a:\n"), Some("a:\n  - id: b \n"), Palette::Plain);
        assert!(text.ends_with("\n a:\n+  - id: b\\u0020\n"), "{text}");
        let text = diff(Path::new("p"), Some("\\u200b\n"), Some("\u{200b}\n"), Palette::Plain);
        assert!(text.ends_with("\n-\\u200b\n+\\u200b\n"), "{text}");
    }

    #[test]
    fn a_file_that_comes_or_goes_is_shown_whole() {
        let text = diff(Path::new("l"), None, Some("a\nb\n"), Palette::Plain);
        assert_eq!(
            text,
            "--- nothing that a person has accepted\n+++ l\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        );
        let text = diff(Path::new("l"), Some("a\n"), None, Palette::Plain);
        assert_eq!(text, "--- l (accepted)\n+++ l (gone)\n@@ -1 +0,0 @@\n-a\n");
    }
}
