//! JUnit XML for CI systems.
//!
//! The output is valid XML 1.0 whatever the texts contain: characters that XML cannot represent or
//! a terminal would interpret are written as JSON escapes. JUnit has no warnings, so a case with
//! one passes and says so.

mod previous_report;

use std::collections::HashMap;
use std::fmt::Write;

use super::report::run_start::RunOutcome;
use super::report::unused::UnusedSet;
use super::report::{ReportCase, ReportOutcome, ReportSuite, RunReport, UNTESTED};
pub(crate) use previous_report::EarlierSuites;
use previous_report::VERDICT;

/// Writes the report as JUnit XML.
pub(crate) fn write(report: &RunReport) -> Vec<u8> {
    write_after(report, EarlierSuites::default())
}

/// Writes the report as JUnit XML, after the suites of earlier starts.
pub(crate) fn write_after(report: &RunReport, mut earlier: EarlierSuites) -> Vec<u8> {
    let tape = escaped(&report.tape.to_string_lossy());
    let lists_unused = earlier.keep_unused((report.subject_key(), &tape), &UnusedSet::of(report));
    // A request is used if any start used it; the earlier suites list what is left.
    let rest = lists_unused.then(|| report.without_unused());
    let report = rest.as_ref().unwrap_or(report);
    let outcome = RunOutcome::worst(earlier.outcomes.iter().copied().chain([report.outcome()]));
    let untested = report.has_verdict() && outcome.is_untested();
    let tests = report.cases().count() as u64 + earlier.tests + u64::from(untested);
    let failures = count(report.cases(), ReportOutcome::Failed) as u64 + earlier.failures;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    attribute(&mut out, "name", &format!("tapegate {}", report.command));
    attribute(&mut out, "tests", &tests.to_string());
    attribute(&mut out, "failures", &failures.to_string());
    attribute(&mut out, "errors", if untested { "1" } else { "0" });
    attribute(&mut out, "time", &seconds(report.duration_ms + earlier.duration_ms));
    out.push_str(">\n");
    earlier.suites.iter().for_each(|suite| out.push_str(suite));
    for suite in &report.suites {
        write_suite(&mut out, report, suite);
    }
    if untested {
        write_untested(&mut out, report);
    }
    out.push_str("</testsuites>\n");
    out.into_bytes()
}

fn write_suite(out: &mut String, report: &RunReport, suite: &ReportSuite) {
    out.push_str("  <testsuite");
    // Readers merge suites of the same name.
    let start = match report.start.as_ref().map(|start| start.number) {
        None | Some(1) => String::new(),
        Some(number) => format!("start{number}."),
    };
    let class = format!("{}.{start}{}", report.command, suite.name);
    attribute(out, "name", &class);
    attribute(out, "tests", &suite.cases.len().to_string());
    attribute(out, "failures", &count(&suite.cases, ReportOutcome::Failed).to_string());
    attribute(out, "errors", "0");
    attribute(out, "skipped", &count(&suite.cases, ReportOutcome::Skipped).to_string());
    let timed = suite.cases.iter().filter_map(|case| case.duration_ms).sum();
    attribute(out, "time", &seconds(timed));
    // The schemas allow no time zone here.
    attribute(out, "timestamp", report.started_at().get(..19).unwrap_or_default());
    out.push_str(">\n");
    write_properties(out, report);
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for case in &suite.cases {
        // Readers merge cases of the same name.
        let times = seen.entry(&case.name).and_modify(|times| *times += 1).or_insert(1);
        let name = match times {
            1 => case.name.clone(),
            times => format!("{} ({times})", case.name),
        };
        write_case(out, report, (&class, &name), case);
    }
    out.push_str("  </testsuite>\n");
}

fn write_properties(out: &mut String, report: &RunReport) {
    out.push_str("    <properties>\n");
    property(out, report.subject_key(), &report.tape.to_string_lossy());
    property(out, "version", env!("CARGO_PKG_VERSION"));
    if let Some(start) = &report.start {
        property(out, "start", &start.number.to_string());
        property(out, "verdict", report.outcome().as_str(report.command));
        let unread = report.counts.iter().find(|(key, count)| *key == "unread" && *count > 0);
        unread.iter().for_each(|(_, count)| property(out, "unread", &count.to_string()));
        property(out, "pid", &start.pid.to_string());
        property(out, "parent_pid", &start.parent_pid.to_string());
        if !start.finished {
            property(out, "finished", "false");
        }
        start.run_id.iter().for_each(|run_id| property(out, "run_id", run_id));
    }
    out.push_str("    </properties>\n");
}

/// Writes that nothing was tested, which must not look like a success.
fn write_untested(out: &mut String, report: &RunReport) {
    let class = format!("{}.{VERDICT}", report.command);
    out.push_str("  <testsuite");
    attribute(out, "name", &class);
    for (name, value) in [("tests", "1"), ("failures", "0"), ("errors", "1"), ("skipped", "0")] {
        attribute(out, name, value);
    }
    attribute(out, "time", &seconds(0));
    attribute(out, "timestamp", report.started_at().get(..19).unwrap_or_default());
    out.push_str(">\n    <testcase");
    attribute(out, "name", VERDICT);
    attribute(out, "classname", &class);
    attribute(out, "time", &seconds(0));
    out.push_str(">\n      <error");
    attribute(out, "message", &UNTESTED.text);
    attribute(out, "type", &UNTESTED.id);
    out.push_str("></error>\n    </testcase>\n  </testsuite>\n");
}

fn write_case(
    out: &mut String,
    report: &RunReport,
    (class, name): (&str, &str),
    case: &ReportCase,
) {
    out.push_str("    <testcase");
    attribute(out, "name", name);
    attribute(out, "classname", class);
    attribute(out, "time", &seconds(case.duration_ms.unwrap_or_default()));
    let mut details = case.details.clone();
    if let (Some(number), false) = (case.position.number, case.outcome == ReportOutcome::Passed) {
        // Writing to a string cannot fail.
        writeln!(details, "{}: #{number}", report.tape.display()).ok();
    }
    match case.outcome {
        ReportOutcome::Passed => return out.push_str("/>\n"),
        ReportOutcome::Failed => {
            out.push_str(">\n      <failure");
            attribute(out, "message", &case.message);
            attribute(out, "type", case.rule.as_ref().map_or("failed", |rule| &rule.id));
            out.push('>');
            text(out, &details);
            out.push_str("</failure>\n");
        }
        ReportOutcome::Skipped => element(out, "skipped", &case.message),
        ReportOutcome::Warning => {
            element(out, "system-out", &format!("warning: {}\n{details}", case.message));
        }
    }
    out.push_str("    </testcase>\n");
}

fn element(out: &mut String, name: &str, inner: &str) {
    out.push_str(">\n      <");
    out.push_str(name);
    out.push('>');
    text(out, inner);
    out.push_str("</");
    out.push_str(name);
    out.push_str(">\n");
}

fn property(out: &mut String, name: &str, value: &str) {
    out.push_str("      <property");
    attribute(out, "name", name);
    attribute(out, "value", value);
    out.push_str("/>\n");
}

fn attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    for letter in value.chars() {
        match letter {
            // Unescaped, a reader would take them for spaces.
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            letter => push(out, letter),
        }
    }
    out.push('"');
}

/// A value escaped for an attribute.
fn escaped(value: &str) -> String {
    let mut out = String::new();
    attribute(&mut out, "", value);
    out.trim_start_matches(" =\"").trim_end_matches('"').to_owned()
}

fn text(out: &mut String, value: &str) {
    value.chars().for_each(|letter| push(out, letter));
}

fn push(out: &mut String, letter: char) {
    match letter {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        '"' => out.push_str("&quot;"),
        // Unescaped, a reader would take it for a line ending.
        '\r' => out.push_str("&#13;"),
        '\n' | '\t' => out.push(letter),
        // Writing to a string cannot fail.
        '\0'..'\x20' | '\x7f'..'\u{a0}' | '\u{fffe}' | '\u{ffff}' => {
            write!(out, "\\u{:04x}", u32::from(letter)).unwrap_or_default();
        }
        letter => out.push(letter),
    }
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

fn count<'a>(cases: impl IntoIterator<Item = &'a ReportCase>, outcome: ReportOutcome) -> usize {
    cases.into_iter().filter(|case| case.outcome == outcome).count()
}
