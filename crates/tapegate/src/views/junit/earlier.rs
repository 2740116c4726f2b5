//! The JUnit report that earlier starts of a run have left.
//!
//! It is read as we write it, line by line: whatever a text holds, `<` is escaped in it, so that only
//! an element begins a line by `<`.

use crate::views::report::start::RunOutcome;

/// The suite that says that nothing was tested. It is about all starts, so it is never kept.
pub(super) const VERDICT: &str = "verdict";

/// The suites of earlier starts, as they are written.
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
    /// Reads a report of this command, and the run it is of; `None` if it is anything else.
    pub(crate) fn read(text: &[u8], command: &str) -> Option<(Self, Option<String>)> {
        let text = std::str::from_utf8(text).ok()?;
        let root = text.lines().find(|line| line.starts_with("<testsuites "))?;
        if attribute(root, "name")? != format!("tapegate {command}")
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

    /// Forgets a start that has not ended, by its number and process; false if it is not there.
    pub(crate) fn forget(&mut self, (number, pid): (u64, u32)) -> bool {
        let (number, pid) = (number.to_string(), pid.to_string());
        let is_own = |suite: &String| {
            property(suite, "start") == Some(&number)
                && property(suite, "pid") == Some(&pid)
                && property(suite, "finished") == Some("false")
        };
        let Some(place) = self.suites.iter().position(is_own) else { return false };
        self.outcomes.remove(place);
        let suite = self.suites.remove(place);
        let head = suite.lines().next().unwrap_or_default();
        let count = |name| attribute(head, name).and_then(|text| text.parse::<u64>().ok());
        self.tests = self.tests.saturating_sub(count("tests").unwrap_or_default());
        self.failures = self.failures.saturating_sub(count("failures").unwrap_or_default());
        true
    }

    pub(crate) fn starts(&self) -> u64 {
        self.starts
    }
}

/// The suites of a report, each with its line ends.
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

/// An attribute of the element on this line, as it is written.
fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// A property of a suite, as it is written.
fn property<'a>(suite: &'a str, name: &str) -> Option<&'a str> {
    let start = format!("      <property name=\"{name}\" ");
    let line = suite.lines().find(|line| line.starts_with(&start))?;
    attribute(line, "value")
}

fn milliseconds(seconds: &str) -> Option<u64> {
    let (whole, rest) = seconds.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 1000 + rest.parse::<u64>().ok()?)
}

/// Text as it was before it was escaped; ids of runs hold no control characters.
fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
