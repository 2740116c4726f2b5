//! The report of policy tests: an unexpected decision is a failure.

use tapegate_policy::cases::{Came, Case as Test};

use super::{Case, Outcome, Place, Report, Rule, Suite};
use crate::views::json;
use crate::views::palette::Palette;
use crate::views::tested::{self, Ran};

static UNEXPECTED: Rule = Rule::new(
    "unexpected-decision",
    "The decision of the policy differs from the expected one.",
    "Check the steps, then change the policy or the test.",
);

static UNREACHED: Rule = Rule::new(
    "unreached-rule",
    "No test reaches this rule.",
    "Add a test that the rule decides, or remove the rule.",
);

/// Fills `report` with the results of tests and with the rules that no test has reached.
pub(crate) fn fill(ran: &[Ran], unreached: &[String], mut report: Report) -> Report {
    for Ran { path, cases, .. } in ran {
        let name = path.to_string_lossy().into_owned();
        let cases = cases.iter().map(|(came, test)| case(came, test)).collect();
        report.suites.push(Suite { name, cases });
    }
    if !unreached.is_empty() {
        let cases = unreached.iter().map(|words| Case {
            name: words.clone(),
            outcome: Outcome::Warning,
            rule: Some((&UNREACHED).into()),
            message: words.clone(),
            ..Case::default()
        });
        report.suites.push(Suite { name: "coverage".to_owned(), cases: cases.collect() });
    }
    let count = |outcome| report.cases().filter(|case| case.outcome == outcome).count() as u64;
    report.counts = vec![
        ("passed", count(Outcome::Passed)),
        ("failed", count(Outcome::Failed)),
        ("unreached", unreached.len() as u64),
    ];
    report
}

fn case(came: &Came, test: &Test) -> Case {
    let failed = !came.misses.is_empty();
    let decision = came.judgement.leading().and_then(|call| call.decision.as_ref());
    let mut facts = vec![("decision", json::quoted(came.fate.word()))];
    facts.extend(came.judgement.gate().map(|gate| ("gate", json::quoted(gate.name()))));
    let rule = decision.and_then(|decision| decision.rule.as_deref());
    facts.extend(rule.map(|rule| ("policy_rule", json::quoted(rule))));
    Case {
        name: test.name.clone(),
        outcome: if failed { Outcome::Failed } else { Outcome::Passed },
        rule: failed.then(|| (&UNEXPECTED).into()),
        message: if failed { tested::message(came) } else { String::new() },
        details: if failed { tested::details(came, Palette::Plain) } else { String::new() },
        place: Place { number: None, line: Some(u64::from(test.spot.line)) },
        duration_ms: None,
        facts,
    }
}
