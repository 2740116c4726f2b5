//! A unified diff of two texts. All changes are shown and control characters are made visible,
//! because a person decides on the basis of it.

use std::collections::{BTreeMap, BTreeSet};

use super::palette::Palette;
use super::visible_text;

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;
/// The largest alignment table; beyond it, all old lines are removed and all new ones added.
const CELLS_MAX: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffLine {
    Same,
    Gone,
    New,
}

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
    let steps = align(&old, &new);
    let shown = |lines: Vec<&str>| lines.into_iter().map(line_text).collect::<Vec<_>>();
    format!("{head}\n{}", hunks(&shown(old), &shown(new), &steps, palette))
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

fn align(old: &[&str], new: &[&str]) -> Vec<DiffLine> {
    // Most changes are small; equal ends need no table.
    let head = old.iter().zip(new).take_while(|(one, two)| one == two).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(one, two)| one == two).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut steps = vec![DiffLine::Same; head];
    steps.extend(common_subsequence(old, new));
    steps.extend(vec![DiffLine::Same; tail]);
    steps
}

/// The longest common subsequence of lines, by dynamic programming.
fn common_subsequence(old: &[&str], new: &[&str]) -> Vec<DiffLine> {
    let width = new.len() + 1;
    // The table grows with the product of both lengths. A person still sees every line.
    if (old.len() + 1) * width > CELLS_MAX {
        return [vec![DiffLine::Gone; old.len()], vec![DiffLine::New; new.len()]].concat();
    }
    let mut table = vec![0u32; (old.len() + 1) * width];
    for one in (0..old.len()).rev() {
        for two in (0..new.len()).rev() {
            table[one * width + two] = match old[one] == new[two] {
                true => table[(one + 1) * width + two + 1] + 1,
                false => table[(one + 1) * width + two].max(table[one * width + two + 1]),
            };
        }
    }
    let (mut one, mut two, mut steps) = (0, 0, Vec::new());
    while one < old.len() || two < new.len() {
        let down = one < old.len()
            && (two == new.len() || table[(one + 1) * width + two] >= table[one * width + two + 1]);
        if one < old.len() && two < new.len() && old[one] == new[two] {
            steps.push(DiffLine::Same);
            (one, two) = (one + 1, two + 1);
        } else if down {
            steps.push(DiffLine::Gone);
            one += 1;
        } else {
            steps.push(DiffLine::New);
            two += 1;
        }
    }
    steps
}

fn hunks(old: &[String], new: &[String], steps: &[DiffLine], palette: Palette) -> String {
    let mut near = vec![false; steps.len()];
    for (at, _) in steps.iter().enumerate().filter(|(_, step)| **step != DiffLine::Same) {
        let end = (at + CONTEXT + 1).min(steps.len());
        near[at.saturating_sub(CONTEXT)..end].fill(true);
    }
    let (mut one, mut two, mut open) = (0, 0, false);
    let mut out = String::new();
    for (step, near) in steps.iter().zip(near) {
        if near && !open {
            let place = palette.faint(&format!("@@ line {} / {} @@", one + 1, two + 1));
            out.push_str(&format!("{place}\n"));
        }
        open = near;
        let line = match step {
            DiffLine::Same => format!(" {}", old[one]),
            DiffLine::Gone => palette.red(&format!("-{}", old[one])),
            DiffLine::New => palette.green(&format!("+{}", new[two])),
        };
        if near {
            out.push_str(&format!("{line}\n"));
        }
        one += usize::from(*step != DiffLine::New);
        two += usize::from(*step != DiffLine::Gone);
    }
    out
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
