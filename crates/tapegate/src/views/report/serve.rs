//! The report of a scenario's expectations: broken ones fail, and those that were never tested are
//! skipped.

use std::borrow::Cow;

use tapegate_scenario::expect::{Outcome as Came, Ruling, Seen, Verdict};

use super::{Case, Outcome, Place, Report, Rule, Suite};
use crate::views::json::{self, Writer};
use crate::views::verdict;

/// Fills `report` with the result of a scenario's expectations.
pub(crate) fn fill(verdict: &Verdict, mut report: Report) -> Report {
    let count = |came| verdict.count(came) as u64;
    report.counts = vec![
        ("heard", verdict.heard),
        ("unread", verdict.unread),
        ("kept", count(Came::Kept)),
        ("broken", count(Came::Broken)),
        ("untested", count(Came::Untested)),
    ];
    let cases = verdict.rulings.iter().map(case).collect();
    report.suites.push(Suite { name: "expect".to_owned(), cases });
    report
}

fn case(ruling: &Ruling) -> Case {
    let expectation = &ruling.expectation;
    let rule = Rule {
        id: Cow::Owned(expectation.id.clone()),
        text: Cow::Owned(sentence(&expectation.title)),
        help: match &expectation.help {
            Some(help) => Cow::Owned(sentence(help)),
            None => Cow::Borrowed("Check what the scenario says about safe agents."),
        },
    };
    let (outcome, rule) = match ruling.outcome {
        Came::Kept => (Outcome::Passed, None),
        Came::Broken => (Outcome::Failed, Some(Cow::Owned(rule))),
        Came::Untested => (Outcome::Skipped, Some(Cow::Owned(rule))),
    };
    let seen = Writer::line_of(&ruling.seen, write_seen);
    Case {
        name: expectation.title.clone(),
        outcome,
        rule,
        message: if outcome == Outcome::Passed { String::new() } else { verdict::reason(ruling) },
        details: if outcome == Outcome::Failed { verdict::details(ruling) } else { String::new() },
        place: Place { number: None, line: Some(u64::from(expectation.spot.line)) },
        duration_ms: None,
        facts: vec![
            ("id", json::quoted(&expectation.id)),
            ("severity", json::quoted(expectation.severity.word())),
            ("count", ruling.count.to_string().into_bytes()),
            ("seen", seen),
        ],
    }
}

fn write_seen(json: &mut Writer, seen: &Seen) {
    json.number("number", seen.number);
    json.number("session", u64::from(seen.seat.0));
    json.text("phase", &seen.phase);
    json.text("method", &seen.method);
    match &seen.name {
        Some(name) => json.text("target", name),
        None => json.raw("target", b"null"),
    }
    json.text("excerpt", &seen.excerpt);
}

/// Text that ends like a sentence.
fn sentence(text: &str) -> String {
    let ends = text.ends_with(['.', '!', '?']);
    if ends { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests;
