//! The report of a scenario's expectations: broken ones fail, and those that were never tested are
//! skipped.

use std::borrow::Cow;

use tapegate_scenario::expect::{
    ExpectationOutcome as Came, ExpectationReport, ExpectationResult, SeenMessage,
};

use super::{ReportCase, ReportOutcome, ReportRule, ReportSuite, RunReport, TapePosition};
use crate::views::json::{self, JsonWriter};
use crate::views::verdict;

/// Fills `report` with the result of a scenario's expectations.
pub(crate) fn fill(verdict: &ExpectationReport, mut report: RunReport) -> RunReport {
    let count = |came| verdict.count(came) as u64;
    report.counts = vec![
        ("heard", verdict.heard),
        ("unread", verdict.unread),
        ("kept", count(Came::Kept)),
        ("broken", count(Came::Broken)),
        ("untested", count(Came::Untested)),
    ];
    let cases = verdict.rulings.iter().map(case).collect();
    report.suites.push(ReportSuite { name: "expect".to_owned(), cases });
    report
}

fn case(ruling: &ExpectationResult) -> ReportCase {
    let expectation = &ruling.expectation;
    let rule = ReportRule {
        id: Cow::Owned(expectation.id.clone()),
        text: Cow::Owned(sentence(&expectation.title)),
        help: match &expectation.help {
            Some(help) => Cow::Owned(sentence(help)),
            None => Cow::Borrowed("Check what the scenario says about safe agents."),
        },
    };
    let (outcome, rule) = match ruling.outcome {
        Came::Kept => (ReportOutcome::Passed, None),
        Came::Broken => (ReportOutcome::Failed, Some(Cow::Owned(rule))),
        // Neither kept nor broken, since it was never reached.
        Came::Untested => (ReportOutcome::Skipped, Some(Cow::Owned(rule))),
    };
    let seen = JsonWriter::line_of(&ruling.seen, write_seen);
    ReportCase {
        name: expectation.title.clone(),
        outcome,
        rule,
        message: if outcome == ReportOutcome::Passed {
            String::new()
        } else {
            verdict::reason(ruling)
        },
        details: if outcome == ReportOutcome::Failed {
            verdict::details(ruling)
        } else {
            String::new()
        },
        position: TapePosition { number: None, line: Some(u64::from(expectation.spot.line)) },
        duration_ms: None,
        facts: vec![
            ("id", json::quoted(&expectation.id)),
            ("severity", json::quoted(expectation.severity.as_str())),
            ("count", ruling.count.to_string().into_bytes()),
            ("seen", seen),
        ],
    }
}

fn write_seen(json: &mut JsonWriter, seen_message: &SeenMessage) {
    json.number("number", seen_message.number);
    json.number("session", u64::from(seen_message.session.0));
    json.text("phase", &seen_message.phase);
    json.text("method", &seen_message.method);
    match &seen_message.name {
        Some(name) => json.text("target", name),
        None => json.raw("target", b"null"),
    }
    json.text("excerpt", &seen_message.excerpt);
}

/// Text that ends like a sentence.
fn sentence(text: &str) -> String {
    let ends = text.ends_with(['.', '!', '?']);
    if ends { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests;
