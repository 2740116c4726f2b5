//! SARIF 2.1.0 for code scanning: one result for each case that did not pass.

mod previous_report;

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::json::JsonWriter;
use super::report::run_start::RunOutcome;
use super::report::unused::UnusedSet;
use super::report::{ReportCase, ReportOutcome, ReportRule, RunReport, UNTESTED};
pub(crate) use previous_report::EarlierRun;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The nesting depth of rules, and of invocations and results.
const RULE_DEPTH: usize = 6;
const ITEM_DEPTH: usize = 4;

/// Writes the report as SARIF.
pub(crate) fn write(report: &RunReport) -> Vec<u8> {
    write_after(report, EarlierRun::default())
}

/// Writes the report as SARIF, after the results of earlier starts.
pub(crate) fn write_after(report: &RunReport, mut earlier: EarlierRun<'_>) -> Vec<u8> {
    let tape = report.tape.to_string_lossy();
    let lists_unused = earlier.keep_unused((report.subject_key(), &tape), &UnusedSet::of(report));
    let rest = lists_unused.then(|| report.without_unused());
    let report = rest.as_ref().unwrap_or(report);
    let outcome = RunOutcome::worst(earlier.outcomes().chain([report.outcome()]));
    let untested = (report.has_verdict() && outcome.is_untested()).then(untested);
    let mut cases: Vec<&ReportCase> =
        report.cases().filter(|case| case.outcome != ReportOutcome::Passed).collect();
    cases.extend(&untested);
    let rules = new_rules(&cases, &earlier);
    let place_of = |rule: &ReportRule| {
        let new = rules.iter().position(|known| known.id == rule.id);
        // Earlier results refer to rules by index, so these keep their places and new ones follow.
        earlier.place_of(&rule.id).or(new.map(|place| earlier.rules.len() + place))
    };
    let written = |rule: &&ReportRule| JsonWriter::item(RULE_DEPTH, |json| write_rule(json, rule));
    let written: Vec<Vec<u8>> = rules.iter().map(written).collect();
    let invocation = JsonWriter::item(ITEM_DEPTH, |json| write_invocation(json, report));
    let results = cases.iter().map(|case| {
        let place = case.rule.as_deref().and_then(place_of);
        JsonWriter::item(ITEM_DEPTH, |json| write_result(json, report, place, case))
    });
    let results: Vec<Vec<u8>> = results.collect();
    let joined = |earlier: &[&[u8]], new: &[Vec<u8>]| -> Vec<Vec<u8>> {
        earlier.iter().map(|item| item.to_vec()).chain(new.iter().cloned()).collect()
    };
    let rules = joined(&earlier.rules, &written);
    let invocations = joined(&earlier.invocations, &[invocation]);
    let results = joined(&earlier.results, &results);
    let mut out = JsonWriter::object(|json| {
        json.text("$schema", SCHEMA);
        json.text("version", "2.1.0");
        json.list("runs", [()], |run, ()| {
            run.object_member("tool", |tool| {
                tool.object_member("driver", |driver| {
                    driver.text("name", "tapegate");
                    driver.text("semanticVersion", env!("CARGO_PKG_VERSION"));
                    driver.raw_list("rules", &slices(&rules));
                });
            });
            run.raw_list("invocations", &slices(&invocations));
            run.text("columnKind", "unicodeCodePoints");
            run.raw_list("results", &slices(&results));
            run.object_member("properties", |json| {
                json.text("command", report.command);
                if let Some(start) = &report.start {
                    json.text("verdict", outcome.as_str(report.command));
                    start.run_id.iter().for_each(|run_id| json.text("run_id", run_id));
                }
                for (key, count) in &report.counts {
                    let total = match *key {
                        "unused" if lists_unused => {
                            previous_report::unused_count(&results, &invocations)
                        }
                        key => count + earlier.sum(key),
                    };
                    json.number(key, total);
                }
            });
        });
    });
    out.push(b'\n');
    out
}

fn slices(items: &[Vec<u8>]) -> Vec<&[u8]> {
    items.iter().map(Vec::as_slice).collect()
}

fn write_rule(json: &mut JsonWriter, rule: &ReportRule) {
    json.text("id", &rule.id);
    json.object_member("shortDescription", |json| json.text("text", &rule.text));
    json.object_member("fullDescription", |json| json.text("text", &rule.text));
    json.object_member("help", |json| json.text("text", &rule.help));
}

fn write_invocation(json: &mut JsonWriter, report: &RunReport) {
    json.text("startTimeUtc", &report.started_at());
    // Findings do not make the run itself a failure.
    json.raw("executionSuccessful", if report.is_unfinished() { b"false" } else { b"true" });
    let Some(start) = &report.start else { return };
    json.object_member("properties", |json| {
        json.number("start", start.number);
        json.text(report.subject_key(), &report.tape.to_string_lossy());
        json.text("verdict", report.outcome().as_str(report.command));
        json.number("pid", u64::from(start.pid));
        json.number("parent_pid", u64::from(start.parent_pid));
        // Its counts are not known, and zeros would look like a result.
        if !start.finished {
            return;
        }
        report.counts.iter().for_each(|(key, count)| json.number(key, *count));
    });
}

/// A result saying that nothing was tested, which must not look like a success.
fn untested() -> ReportCase {
    ReportCase {
        name: "verdict".to_owned(),
        outcome: ReportOutcome::Failed,
        rule: Some((&UNTESTED).into()),
        message: "nothing was tested".to_owned(),
        ..ReportCase::default()
    }
}

fn write_result(
    json: &mut JsonWriter,
    report: &RunReport,
    rule_place: Option<usize>,
    case: &ReportCase,
) {
    if let Some(rule) = case.rule.as_deref() {
        json.text("ruleId", &rule.id);
        json.number("ruleIndex", rule_place.unwrap_or_default() as u64);
    }
    let level = match case.outcome {
        ReportOutcome::Failed => "error",
        ReportOutcome::Warning => "warning",
        ReportOutcome::Passed | ReportOutcome::Skipped => "note",
    };
    json.text("level", level);
    let details =
        if case.details.is_empty() { String::new() } else { format!("\n{}", case.details) };
    let text = format!("{}: {}.{details}", case.name, case.message);
    json.object_member("message", |json| json.text("text", &plain(text.trim_end())));
    json.list("locations", [()], |json, ()| {
        json.object_member("physicalLocation", |json| {
            json.object_member("artifactLocation", |json| json.text("uri", &uri(&report.tape)));
            // If the line is unknown, refer to the tape as a whole.
            json.object_member("region", |json| {
                json.number("startLine", case.position.line.unwrap_or(1))
            });
        });
    });
    json.object_member("properties", |json| {
        if let Some(number) = case.position.number {
            json.number("number", u64::from(number));
        }
        case.facts.iter().for_each(|(key, fact)| json.raw(key, fact));
        report.start.iter().for_each(|start| json.number("start", start.number));
    });
}

/// Escapes text for a SARIF message: braces mark placeholders and are doubled, and text that looks
/// like a link is broken up.
fn plain(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}").replace("](", "] (")
}

/// The rules of these cases that are not in the report yet, each once.
fn new_rules<'a>(cases: &[&'a ReportCase], earlier: &EarlierRun<'_>) -> Vec<&'a ReportRule> {
    let mut rules: Vec<&ReportRule> = Vec::new();
    for rule in cases.iter().filter_map(|case| case.rule.as_deref()) {
        if !rules.iter().any(|known| known.id == rule.id) && earlier.place_of(&rule.id).is_none() {
            rules.push(rule);
        }
    }
    rules
}

/// A path as a URI reference.
fn uri(path: &Path) -> String {
    let mut out = String::from(if path.is_absolute() { "file://" } else { "" });
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            byte => write!(out, "%{byte:02X}").unwrap_or_default(),
        }
    }
    out
}
