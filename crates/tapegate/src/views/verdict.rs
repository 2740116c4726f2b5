//! What a run found, in words: each suite with what is not all right in it, and a last line that
//! says it all.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::palette::Palette;
use super::report::{Case, Outcome, Report, Suite};
use super::visible;

/// How many names of skipped cases are listed for each reason.
const NAMES_MAX: usize = 5;

/// The report for people, several lines, the last with its end. Its details were painted when it
/// was made.
pub(crate) fn text(report: &Report, palette: Palette) -> String {
    let mut out = String::new();
    for suite in &report.suites {
        let told = |case: &&Case| matches!(case.outcome, Outcome::Failed | Outcome::Warning);
        let cases: Vec<&Case> = suite.cases.iter().filter(told).collect();
        let skipped = skipped(suite);
        if cases.is_empty() && skipped.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        writeln!(out, "{}:", palette.bold(&suite.name)).ok();
        for case in cases {
            write_case(&mut out, case, palette);
        }
        out.push_str(&skipped);
    }
    let counts: Vec<String> = report
        .counts
        .iter()
        .map(|(key, count)| format!("{} {count}", key.replace('_', " ")))
        .collect();
    let verdict = if report.is_ok() { palette.green("ok") } else { palette.red("not ok") };
    writeln!(
        out,
        "{}: {verdict} ({})",
        visible::inline(&report.tape.to_string_lossy(), 200),
        counts.join(", ")
    )
    .ok();
    out
}

fn write_case(out: &mut String, case: &Case, palette: Palette) {
    let place = case.place.number.map(|number| format!("#{number} ")).unwrap_or_default();
    let name = match case.outcome {
        Outcome::Failed => palette.red(&case.name),
        _ => case.name.clone(),
    };
    writeln!(out, "  {place}{name}: {}", case.message).ok();
    out.push_str(&case.details);
}

/// What was not looked at, by the reason.
fn skipped(suite: &Suite) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for case in suite.cases.iter().filter(|case| case.outcome == Outcome::Skipped) {
        reasons.entry(&case.message).or_default().push(&case.name);
    }
    let mut out = String::new();
    for (reason, mut names) in reasons {
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        let more = if names.len() > NAMES_MAX { ", …" } else { "" };
        names.truncate(NAMES_MAX);
        writeln!(out, "  {count}: {reason}: {}{more}", names.join(", ")).ok();
    }
    out
}
