//! Reads the JUnit report left by earlier starts of a run.
//!
//! It relies on the line structure that we write: `<` is escaped in texts, so that only an element
//! starts a line with `<`.

use crate::views::report::replay::{UNUSED_MESSAGE, UNUSED_SUITE};
use crate::views::report::run_start::RunOutcome;
use crate::views::report::unused::UnusedSet;

/// The suite saying that nothing was tested. It concerns all starts, so it is never kept.
pub(super) const VERDICT: &str = "verdict";

/// The suites of earlier starts, as written.
#[derive(Debug, Default)]
pub(crate) struct EarlierSuites {
    pub(super) suites: Vec<String>,
    pub(super) tests: u64,
    pub(super) failures: u64,
    pub(super) duration_ms: u64,
    pub(super) outcomes: Vec<RunOutcome>,
    starts: u64,
}

impl EarlierSuites {
    /// Reads a report of this command and its run id; `None` if it is anything else.
    pub(crate) fn read(text: &[u8], command: &str) -> Option<(Self, Option<String>)> {
        let text = std::str::from_utf8(text).ok()?;
        let root = text.lines().find(|line| line.starts_with("<testsuites "))?;
        if attribute(root, "name")? != format!("tapegate {command}")
            // A report that was cut off would lose failures if it were continued.
            || !text.ends_with("</testsuites>\n")
        {
            return None;
        }
        let mut earlier =
            Self { duration_ms: milliseconds(attribute(root, "time")?)?, ..Self::default() };
        let mut run_id = None;
        let verdict = format!("{command}.{VERDICT}");
        for suite in suites(text) {
            let head = suite.lines().next().unwrap_or_default();
            // It is decided again with this start.
            if attribute(head, "name")? == verdict {
                continue;
            }
            let number = |text: &str| text.parse::<u64>().ok();
            earlier.tests += number(attribute(head, "tests")?)?;
            earlier.failures += number(attribute(head, "failures")?)?;
            earlier.starts = earlier.starts.max(number(property(&suite, "start")?)?);
            let unread = property(&suite, "unread").and_then(number).unwrap_or_default();
            earlier.outcomes.push(RunOutcome::read(property(&suite, "verdict")?, unread)?);
            run_id = property(&suite, "run_id").map(unescaped);
            earlier.suites.push(suite);
        }
        (earlier.starts > 0).then_some((earlier, run_id))
    }

    /// Removes an unfinished start, by its number and process; false if it is not there.
    pub(crate) fn remove_start(&mut self, (number, pid): (u64, u32)) -> bool {
        let (number, pid) = (number.to_string(), pid.to_string());
        let is_own = |suite: &String| {
            property(suite, "start") == Some(&number)
                && property(suite, "pid") == Some(&pid)
                // A process id can be reused, so a finished start is never replaced.
                && property(suite, "finished") == Some("false")
        };
        let Some(index) = self.suites.iter().position(is_own) else { return false };
        self.outcomes.remove(index);
        let suite = self.suites.remove(index);
        let head = suite.lines().next().unwrap_or_default();
        let count = |name| attribute(head, name).and_then(|text| text.parse::<u64>().ok());
        self.tests = self.tests.saturating_sub(count("tests").unwrap_or_default());
        self.failures = self.failures.saturating_sub(count("failures").unwrap_or_default());
        true
    }

    pub(crate) fn starts(&self) -> u64 {
        self.starts
    }

    /// Removes requests that earlier starts with the same tape (named by a property) left unused
    /// but this one used; false if there are no such starts.
    pub(super) fn keep_unused(&mut self, (key, tape): (&str, &str), now: &UnusedSet) -> bool {
        let is_same_tape = |suite: &String| {
            property(suite, key) == Some(tape) && property(suite, "finished") != Some("false")
        };
        let mut found = false;
        for suite in self.suites.iter_mut().filter(|suite| is_same_tape(suite)) {
            found = true;
            if !is_of_unused(suite) {
                continue;
            }
            let (kept, left_out) = without_used(suite, now);
            self.tests = self.tests.saturating_sub(left_out);
            *suite = kept;
        }
        found
    }
}

/// Whether a suite contains only unused recorded requests.
fn is_of_unused(suite: &str) -> bool {
    let name = attribute(suite.lines().next().unwrap_or_default(), "name").unwrap_or_default();
    name.starts_with("replay.") && name.ends_with(&format!(".{UNUSED_SUITE}"))
}

/// A suite of unused requests without those used now, and how many were removed. Each case is three
/// lines: the case, its message and its end.
fn without_used(suite: &str, now: &UnusedSet) -> (String, u64) {
    let lines: Vec<&str> = suite.split_inclusive('\n').collect();
    let (mut kept, mut count, mut left_out) = (String::new(), 0, 0);
    let mut at = 1;
    while let Some(line) = lines.get(at) {
        if !line.starts_with("    <testcase ") {
            kept.push_str(line);
            at += 1;
            continue;
        }
        let case = &lines[at..lines.len().min(at + 3)];
        let digits = case.get(1).and_then(|line| line.split_once(UNUSED_MESSAGE));
        let digits = digits.and_then(|(_, rest)| rest.split_once('<'));
        let number = digits.and_then(|(digits, _)| digits.parse().ok());
        match now.is_still_unused(number) {
            true => case.iter().for_each(|line| kept.push_str(line)),
            false => left_out += 1,
        }
        count += 1;
        at += 3;
    }
    let numbered = |name: &str, count: u64| format!(" {name}=\"{count}\"");
    let mut head = lines.first().copied().unwrap_or_default().to_owned();
    // Only these counts change: unused requests never count as failures.
    for name in ["tests", "skipped"] {
        head = head.replacen(&numbered(name, count), &numbered(name, count - left_out), 1);
    }
    (head + &kept, left_out)
}

/// The suites of a report, with their line endings.
fn suites(text: &str) -> Vec<String> {
    let mut suites = Vec::new();
    let mut open: Option<String> = None;
    for line in text.split_inclusive('\n') {
        if line.starts_with("  <testsuite ") {
            open = Some(String::new());
        }
        if let Some(suite) = &mut open {
            suite.push_str(line);
        }
        if line == "  </testsuite>\n" {
            suites.extend(open.take());
        }
    }
    suites
}

/// An attribute of the element on this line, as written.
fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// A property of a suite, as written.
fn property<'a>(suite: &'a str, name: &str) -> Option<&'a str> {
    let start = format!("      <property name=\"{name}\" ");
    let line = suite.lines().find(|line| line.starts_with(&start))?;
    attribute(line, "value")
}

fn milliseconds(seconds: &str) -> Option<u64> {
    let (whole, rest) = seconds.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 1000 + rest.parse::<u64>().ok()?)
}

/// Unescapes text; run ids contain no control characters.
fn unescaped(text: &str) -> String {
    // `&amp;` comes last, or `&amp;lt;` would become `<`.
    text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
