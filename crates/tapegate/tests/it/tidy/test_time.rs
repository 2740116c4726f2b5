//! Tests wait for events, not for time to pass: a sleep is either too short for a busy machine or
//! too long for everyone else, and a tight time limit fails when the machine is busy.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::{root, sources};

/// Lines of tests that may sleep: the file, how many there are, and why.
const SLEEPS: &[(&str, usize, &str)] = &[
    (
        "crates/tapegate/tests/it/support/waiting.rs",
        2,
        "polls; lets a random time pass before a kill",
    ),
    ("crates/tapegate-wire/tests/it/waiting.rs", 1, "polls"),
    ("crates/tapegate-hub/tests/it/support.rs", 1, "polls"),
    ("crates/tapegate-store/tests/processes.rs", 3, "polls; lets a random time pass before a kill"),
    ("crates/tapegate/tests/it/shim/shutdown.rs", 1, "a client that writes until it is killed"),
    ("tests/peers/transcript.mjs", 1, "polls"),
    ("tests/peers/transcript.py", 1, "polls"),
    ("tests/peers/modern-server.mjs", 4, "a call that takes until it is cancelled; polls"),
    ("tests/peers/modern-sessions.mjs", 1, "the conformance suite expects a pause"),
    (
        "tests/peers/order-server.mjs",
        1,
        "the SDK clients read messages apart only if they come apart",
    ),
];

/// A program that sleeps this many seconds does nothing until the test ends it.
const NEVER_S: u64 = 20;

/// A time limit that only keeps a broken build from hanging.
const LIMIT_S_MIN: u64 = 10;

#[test]
fn no_test_waits_for_time_to_pass() {
    let sleeps = Regex::new(r"\b(sleep|setTimeout)\b\W{0,4}([\d_]*)").unwrap();
    let may_end = |line: &str| {
        sleeps
            .captures_iter(line)
            .any(|found| found[2].parse::<u64>().map_or(true, |seconds| seconds < NEVER_S))
    };
    let mut unused: Vec<&str> = SLEEPS.iter().map(|(file, ..)| *file).collect();
    for (path, text) in test_code() {
        let name = path.to_str().unwrap();
        // Node counts in milliseconds.
        let sleeps =
            |line: &str| if name.ends_with(".mjs") { sleeps.is_match(line) } else { may_end(line) };
        let count = code_lines(&text).filter(|(_, line)| sleeps(line)).count();
        let allowed =
            SLEEPS.iter().find(|(file, ..)| *file == name).map_or(0, |(_, count, _)| *count);
        assert_eq!(count, allowed, "lines of {name} that sleep; wait for an event instead");
        unused.retain(|file| *file != name);
    }
    assert!(unused.is_empty(), "no test code in {unused:?}");
}

#[test]
fn no_test_expects_an_answer_within_seconds() {
    let limit = Regex::new(r"(elapsed\(\)|\btook\b)[^<>=]*<=? *(.*)").unwrap();
    let seconds = Regex::new(r"^(?:Duration::from_secs\()?(\d+)\b").unwrap();
    let is_wide = |bound: &str| {
        let named = ["GUARD", "PATIENCE", "deadline"].iter().any(|name| bound.starts_with(name));
        let long = seconds.captures(bound).and_then(|found| found[1].parse::<u64>().ok());
        named || long.is_some_and(|seconds| seconds >= LIMIT_S_MIN)
    };
    for (path, text) in test_code() {
        for (number, line) in code_lines(&text) {
            // Whether something has not come yet is a matter of time too.
            let short = line.contains("timeout(") && line.contains("from_millis(");
            let tight = limit.captures(line).is_some_and(|found| !is_wide(&found[2]));
            assert!(!short && !tight, "{}:{number}: {}", path.display(), line.trim());
        }
    }
}

/// The lines without comments, with their numbers.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// All code of tests and of their peers; of a file that is tested, only the tests.
fn test_code() -> Vec<(PathBuf, String)> {
    let of_crates = sources().into_iter().map(|(path, text)| {
        let name = path.to_str().unwrap();
        let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
        let start = if is_test { 0 } else { text.find("#[cfg(test)]").unwrap_or(text.len()) };
        // Blank lines in place of the code, so that lines keep their numbers.
        let code = "\n".repeat(text[..start].matches('\n').count()) + &text[start..];
        (path, code)
    });
    let own = Path::new("crates/tapegate/tests/it/tidy/test_time.rs");
    let of_crates = of_crates.filter(|(path, _)| path != own);
    of_crates.chain(peers("tests/peers")).chain(peers("crates/tapegate/tests/it")).collect()
}

/// The scripts in a folder.
fn peers(folder: &str) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let is_script = |path: &PathBuf| path.extension().is_some_and(|it| it == "py" || it == "mjs");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.strip_prefix(root()).unwrap().to_owned(), text)
    };
    entries.filter(is_script).map(read).collect()
}
