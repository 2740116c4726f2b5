//! Paths in lower case, split into steps, and which of them are ours.

use tapegate_core::wildcard::{self, UnclosedBracket};

use super::{LITERALS_MIN, NAMES, PREFIX_MIN, STARS_MAX, STATE_FOLDERS};

/// The user's folders, as the last steps of a path.
const USER_FOLDERS: [&[&str]; 2] = [&[".local", "state", "tapegate"], &[".config", "tapegate"]];
/// The folders around the user's state: moving one of them away moves the keys away.
const AROUND_STATE: [&[&str]; 2] = [&[".local", "state"], &[".local"]];

/// The step of a path that is one of our names in any folder.
pub(super) fn known_name(steps: &[&str]) -> Option<String> {
    let found = steps.iter().find(|step| {
        let is_ours = |name: &&str| **step == *name || is_pattern_of(step, name);
        NAMES.iter().chain(&STATE_FOLDERS).any(is_ours)
    });
    if let Some(step) = found {
        return Some((*step).to_owned());
    }
    let in_user_folder = |folder: &&&[&str]| {
        steps.windows(folder.len()).any(|window| is_user_folder(window, folder))
    };
    let folder = USER_FOLDERS.iter().find(in_user_folder);
    // Only at the end: a path below `.local` to something else is harmless.
    let folder = folder.or_else(|| AROUND_STATE.iter().find(|folder| steps.ends_with(folder)));
    folder.map(|folder| folder.join("/"))
}

/// Whether steps are those of a folder of the user's, or patterns that a shell may expand to it. A
/// pattern for all settings is not about ours, since those of every program are beside them.
fn is_user_folder(window: &[&str], folder: &[&str]) -> bool {
    let mut pairs = window.iter().zip(folder);
    let is_first = pairs.next().is_some_and(|(step, name)| step == name);
    let all_settings = window == [".config", "*"];
    let mut rest = pairs.map(|(step, name)| step == name || may_match(step, name));
    is_first && !all_settings && rest.all(|is_same| is_same)
}

/// Whether a relative path may lead to one of our files or into one of our folders: it contains at
/// least the last two steps of ours. Relative to the user's home, the last step is enough if the
/// path begins with it.
pub(super) fn may_lead_to(rest: &[&str], own: &[String], from_home: bool) -> bool {
    let at_home = from_home && own.last().is_some_and(|last| rest.first() == Some(&last.as_str()));
    at_home
        || (2..=own.len()).any(|count| {
            let end = &own[own.len() - count..];
            rest.windows(count).any(|window| window == end)
        })
}

/// The parent of a folder of the user's, unless it holds the settings of all programs.
pub(super) fn parent_folder(own: &[String]) -> Option<&[String]> {
    let (last, around) = own.split_last()?;
    let is_shared = around.last().is_none_or(|step| step == ".config");
    (last == "tapegate" && !is_shared).then_some(around)
}

/// A path without a detour through `/proc`, where the root and working directory of each process
/// are links.
pub(super) fn without_proc_prefix(path: &str) -> &str {
    let by_proc = path.strip_prefix("/proc/").and_then(|rest| rest.split_once('/'));
    let Some((_, rest)) = by_proc else { return path };
    let cut = |link: &str| rest.strip_prefix(link).filter(|rest| rest.starts_with('/'));
    match (cut("root"), cut("cwd")) {
        (Some(rest), _) => rest,
        // The working directory is not known, so the rest is a relative path.
        (_, Some(rest)) => rest.trim_start_matches('/'),
        _ => path,
    }
}

/// The steps of a path, with `.` and `..` resolved as far as possible.
pub(super) fn steps(path: &str) -> Vec<&str> {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            _ => steps.push(step),
        }
    }
    steps
}

/// Whether a character separates paths rather than being part of one.
pub(super) fn is_between(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || matches!(
            letter,
            '\'' | '"'
                | '`'
                | ';'
                | '|'
                | '&'
                | '<'
                | '>'
                | '('
                | ')'
                | '{'
                | '}'
                | '='
                | ','
                | ':'
                | '@'
                | '#'
                | '«'
                | '»'
                | '“'
                | '”'
        )
}

/// Whether a wildcard pattern is specifically about this name.
fn is_pattern_of(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return false;
    }
    let stem = pattern.trim_end_matches(".yaml").trim_end_matches(".lock").trim_end_matches(".y*");
    let literals = stem.bytes().filter(u8::is_ascii_alphanumeric).count();
    let prefix = pattern.find(['*', '?', '[']).unwrap_or_default();
    // `**/*.yaml` is an everyday search, and refusing it would block ordinary work.
    (literals >= LITERALS_MIN || prefix >= PREFIX_MIN) && may_match(pattern, name)
}

/// Whether a wildcard pattern matches a name, possibly among others.
fn may_match(pattern: &str, name: &str) -> bool {
    let is_pattern = pattern.contains(['*', '?', '[']);
    let few = pattern.bytes().filter(|byte| *byte == b'*').count() <= STARS_MAX;
    is_pattern && few && wildcard::matches(&wildcard::shell(pattern, UnclosedBracket::Class), name)
}
