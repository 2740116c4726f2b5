//! The text of a path: its steps, and whether it goes up.

use super::expansion::may_lead_elsewhere;
use super::readings::{each_reading, is_ignored};

/// A path without `.`, `..`, empty steps and backslashes; `None` if it has none of them.
pub fn normal_path(path: &str) -> Option<String> {
    if !path.contains(['/', '\\']) {
        return None;
    }
    let slashed = path.replace('\\', "/");
    let absolute = slashed.starts_with('/');
    let mut steps: Vec<&str> = Vec::new();
    for step in slashed.split('/') {
        match step {
            "" | "." => {}
            ".." if steps.last().is_some_and(|last| *last != "..") => drop(steps.pop()),
            ".." if absolute => {}
            step => steps.push(step),
        }
    }
    let open = if slashed.ends_with('/') && !steps.is_empty() { "/" } else { "" };
    let normal = format!("{}{}{open}", if absolute { "/" } else { "" }, steps.join("/"));
    (normal != path).then_some(normal)
}

/// Whether a path contains a step up, by any reading.
pub fn has_parent_step(path: &str) -> bool {
    let is_url = path.contains("://");
    let up = |path: &str| {
        path.split(['/', '\\']).any(|step| step.trim_matches(is_blank) == "..")
            || !is_url && may_lead_elsewhere(path)
    };
    each_reading(path, up).is_break()
}

/// The steps of an absolute path after resolving `.` and `..`.
pub(super) fn resolved(path: &str) -> Vec<&str> {
    let mut steps = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps
}

/// Whether an absolute path, once it has entered a folder, never leaves it. A path that enters it by
/// `..` does not count: `/bin/../data` is elsewhere if `/bin` is a symbolic link.
pub(super) fn stays_in(folder: &[String], path: &str) -> bool {
    let mut depth = 0;
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." if depth <= folder.len() => return false,
            ".." => depth -= 1,
            step if folder.get(depth).is_some_and(|wanted| wanted != step) => return false,
            _ => depth += 1,
        }
    }
    depth >= folder.len()
}

/// Whether no reader takes a part of an absolute path for something else.
pub(super) fn is_unambiguous(path: &str) -> bool {
    let scheme = |part: &[u8]| part.eq_ignore_ascii_case(b"file:");
    path.starts_with('/')
        // After two slashes, URL parsers expect a host.
        && !path.starts_with("//")
        && !path.contains(|letter: char| letter.is_control() || letter == char::REPLACEMENT_CHARACTER)
        && !path.as_bytes().windows(5).any(scheme)
        && !path.split('/').any(is_odd_step)
        && !may_lead_elsewhere(path)
}

/// Whether some reader takes a character for a space; in forms `+` is one.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter == '+'
}

/// Whether some reader could take a step that is not `..` for a step up: because of spaces or
/// invisible characters in it, or parameters after it.
fn is_odd_step(step: &str) -> bool {
    if matches!(step, "" | "." | "..") {
        return false;
    }
    let name = step.split(';').next().unwrap_or(step);
    let ignored = |letter: char| is_blank(letter) || is_ignored(letter);
    let dots = |letter: char| letter == '.' || ignored(letter);
    let only_dots = name.contains('.') && name.chars().all(dots);
    let blank = step.chars().all(ignored);
    only_dots || blank
}
