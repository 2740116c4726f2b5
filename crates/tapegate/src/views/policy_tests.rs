//! Formats the result of policy tests.

use std::fmt::Write;
use std::path::PathBuf;

use tapegate_policy::cases::{CaseResult, TestCase};

use super::palette::Palette;
use super::visible_text;

/// How many characters of a name, and of a step, are shown.
const NAME_CHARS_MAX: usize = 200;
const STEP_CHARS_MAX: usize = 1000;

/// A test file that was run.
#[derive(Debug)]
pub(crate) struct TestedFile {
    pub(crate) path: PathBuf,
    /// The policy, as an index into those loaded.
    pub(crate) policy: usize,
    /// The cases with their results.
    pub(crate) cases: Vec<(CaseResult, TestCase)>,
}

/// The result as text: a line per case, followed by what is not as expected.
pub(crate) fn text(
    ran: &[TestedFile],
    unreached: &[String],
    quiet: bool,
    palette: Palette,
) -> String {
    let mut out = String::new();
    let (mut held, mut failed) = (0usize, 0usize);
    for TestedFile { path, cases, .. } in ran {
        for (came, case) in cases {
            let name = visible_text::inline(&case.name, NAME_CHARS_MAX);
            if came.misses.is_empty() {
                held += 1;
                if !quiet {
                    // Writing to a string cannot fail.
                    writeln!(out, "{}    {name}", palette.green("ok")).ok();
                }
                continue;
            }
            failed += 1;
            let place = format!("{}:{}", visible_text::path(path), case.spot.line);
            writeln!(out, "{}  {name} ({place})", palette.red("FAIL")).ok();
            for line in details(came, palette).lines() {
                writeln!(out, "      {line}").ok();
            }
        }
    }
    for line in unreached {
        writeln!(out, "warning: {}", visible_text::inline(line, STEP_CHARS_MAX)).ok();
    }
    if !quiet || failed > 0 {
        let cases = if held + failed == 1 { "case" } else { "cases" };
        writeln!(out, "{} {cases}: {held} as expected, {failed} not", held + failed).ok();
    }
    out
}

/// What is not as expected, and how it was decided, in terminated lines.
pub(crate) fn details(came: &CaseResult, palette: Palette) -> String {
    let mut out = String::new();
    for miss in &came.misses {
        let expected = visible_text::inline(&miss.expected, NAME_CHARS_MAX);
        let found = match miss.found.as_str() {
            "" => "none".to_owned(),
            found => visible_text::inline(found, NAME_CHARS_MAX),
        };
        writeln!(out, "{}", palette.red(&format!("- {}: {expected}", miss.key))).ok();
        writeln!(out, "{}", palette.green(&format!("+ {}: {found}", miss.key))).ok();
    }
    for fault in came.judgement.faults() {
        writeln!(out, "framing: {}", fault.message()).ok();
    }
    let decisions = came.judgement.all_calls().filter_map(|call| call.decision.as_ref());
    for step in decisions.flat_map(|decision| &decision.steps) {
        writeln!(out, "{}", visible_text::inline(step, STEP_CHARS_MAX)).ok();
    }
    out
}

/// What is not as expected, on one line.
pub(crate) fn message(came: &CaseResult) -> String {
    let miss_texts = came.misses.iter().map(|miss| match miss.found.as_str() {
        "" => format!("{} is not {}: there is none", miss.key, miss.expected),
        found => format!("{} is {found}, not {}", miss.key, miss.expected),
    });
    let miss_texts: Vec<String> = miss_texts.collect();
    visible_text::inline(&miss_texts.join("; "), STEP_CHARS_MAX)
}
