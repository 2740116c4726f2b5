//! SARIF 2.1.0, as code scanning reads it: a result for each case that is not all right.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::json::Writer;
use super::report::{Case, Outcome, Report, Rule};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The report as SARIF.
pub(crate) fn write(report: &Report) -> Vec<u8> {
    let rules = rules(report);
    let mut out = Writer::object(|json| {
        json.text("$schema", SCHEMA);
        json.text("version", "2.1.0");
        json.list("runs", [()], |run, ()| {
            run.nested("tool", |tool| tool.nested("driver", |driver| write_driver(driver, &rules)));
            run.list("invocations", [()], |json, ()| {
                json.text("startTimeUtc", &report.started_at());
                // Findings are no failure of the run.
                json.raw("executionSuccessful", b"true");
            });
            run.text("columnKind", "unicodeCodePoints");
            let found = report.cases().filter(|case| case.outcome != Outcome::Passed);
            run.list("results", found, |json, case| write_result(json, report, &rules, case));
            run.nested("properties", |json| {
                json.text("command", report.command);
                report.counts.iter().for_each(|(key, count)| json.number(key, *count));
            });
        });
    });
    out.push(b'\n');
    out
}

fn write_driver(json: &mut Writer, rules: &[&Rule]) {
    json.text("name", "tapegate");
    json.text("semanticVersion", env!("CARGO_PKG_VERSION"));
    json.list("rules", rules, |json, rule| {
        json.text("id", &rule.id);
        json.nested("shortDescription", |json| json.text("text", &rule.text));
        json.nested("fullDescription", |json| json.text("text", &rule.text));
        json.nested("help", |json| json.text("text", &rule.help));
    });
}

fn write_result(json: &mut Writer, report: &Report, rules: &[&Rule], case: &Case) {
    if let Some(rule) = case.rule.as_deref() {
        json.text("ruleId", &rule.id);
        let index = rules.iter().position(|known| *known == rule).unwrap_or_default();
        json.number("ruleIndex", index as u64);
    }
    let level = match case.outcome {
        Outcome::Failed => "error",
        Outcome::Warning => "warning",
        Outcome::Passed | Outcome::Skipped => "note",
    };
    json.text("level", level);
    let details =
        if case.details.is_empty() { String::new() } else { format!("\n{}", case.details) };
    let text = format!("{}: {}.{details}", case.name, case.message);
    json.nested("message", |json| json.text("text", &plain(text.trim_end())));
    json.list("locations", [()], |json, ()| {
        json.nested("physicalLocation", |json| {
            json.nested("artifactLocation", |json| json.text("uri", &uri(&report.tape)));
            // Where the line is not known, the tape as a whole is meant.
            json.nested("region", |json| json.number("startLine", case.place.line.unwrap_or(1)));
        });
    });
    json.nested("properties", |json| {
        if let Some(number) = case.place.number {
            json.number("number", u64::from(number));
        }
        case.facts.iter().for_each(|(key, fact)| json.raw(key, fact));
    });
}

/// Text as a message has it: braces are for placeholders, and so they are doubled; what looks like
/// a link would be one.
fn plain(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}").replace("](", "] (")
}

/// The rules of all cases, each once.
fn rules(report: &Report) -> Vec<&Rule> {
    let mut rules: Vec<&Rule> = Vec::new();
    for rule in report.cases().filter_map(|case| case.rule.as_deref()) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

/// A path as a reference that may stand in a report.
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
