//! The parts of a word that a program may take for a path.
//!
//! A program may cut its arguments anywhere: `of=/etc/x`, `f=@/etc/x`, `-d@/etc/x`, `host:/etc/x`,
//! `w /etc/x`. So a path may begin after every character that is unusual in a path, and end before
//! one.

/// The maximum number of places where a word is cut. Words with more are not looked into.
const CUTS_MAX: usize = 64;

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PathPart<'a> {
    pub(super) text: &'a str,
    /// Whether programs usually take such a part for a path, and not only some of them.
    pub(super) is_usual: bool,
}

/// The parts of a word; `None` if there are too many.
pub(super) fn path_parts(text: &str) -> Option<Vec<PathPart<'_>>> {
    // Without these, every part is a name in the folder in which the command runs.
    if !text.contains('/') && !text.contains("..") {
        return Some(starts_of(text, 0, true));
    }
    let cuts: Vec<(usize, char)> =
        text.char_indices().filter(|(_, letter)| !is_path_letter(*letter)).collect();
    if cuts.len() > CUTS_MAX {
        return None;
    }
    let after = cuts.iter().map(|(at, letter)| (at + letter.len_utf8(), "=@,:".contains(*letter)));
    let mut parts = Vec::new();
    for (start, is_usual) in [(0, true)].into_iter().chain(after) {
        for part in starts_of(text, start, is_usual) {
            let offset = text.len() - part.text.len();
            parts.push(part);
            let ends = cuts.iter().map(|(at, _)| *at).filter(|at| *at > offset);
            parts.extend(ends.map(|end| PathPart { text: &text[offset..end], ..part }));
        }
    }
    Some(parts)
}

/// The parts that begin at a place, up to the end. In front of a path, there may be an option.
fn starts_of(text: &str, start: usize, is_usual: bool) -> Vec<PathPart<'_>> {
    let rest = &text[start..];
    let part = |text| PathPart { text, is_usual };
    let Some(option) = rest.strip_prefix('-') else {
        return if rest.is_empty() && start > 0 { Vec::new() } else { vec![part(rest)] };
    };
    let letters = option.trim_start_matches('-');
    if !letters.contains(['/', '.']) {
        return Vec::new();
    }
    // `-C/etc`, `-C..`, `-Isub/../..`.
    let value = letters.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
    vec![part(letters), part(value)]
}

fn is_path_letter(letter: char) -> bool {
    letter.is_alphanumeric() || "/._-+~%".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_wherever_it_begins() {
        for text in [
            "/etc/x",
            "of=/etc/x",
            "f=@/etc/x",
            "-d@/etc/x",
            "@/etc/x",
            "-C/etc/x",
            "--file=/etc/x",
            "-Wl,-rpath,/etc/x",
            "-Wl,-T/etc/x",
            "host:/etc/x",
            "w /etc/x",
            "open(\"/etc/x\")",
            "a>/etc/x:/site/b",
            "f=@/etc/x;type=a/b",
        ] {
            let parts = path_parts(text).unwrap();
            assert!(parts.iter().any(|part| part.text == "/etc/x"), "{text}: {parts:?}");
        }
        assert!(path_parts("HEAD~1").unwrap().iter().all(|part| part.text == "HEAD~1"));
        assert_eq!(path_parts(&"/ ".repeat(100)), None);
        assert_eq!(path_parts(&"a ".repeat(100)).unwrap().len(), 1);
    }
}
