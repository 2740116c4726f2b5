//! The report of policy tests: an unexpected decision is a failure.

use tapegate_policy::cases::{CaseResult, TestCase};

use super::{ReportCase, ReportOutcome, ReportRule, ReportSuite, RunReport, TapePosition};
use crate::views::json;
use crate::views::palette::Palette;
use crate::views::policy_tests::{self, TestedFile};

static UNEXPECTED: ReportRule = ReportRule::new(
    "unexpected-decision",
    "The decision of the policy differs from the expected one.",
    "Check the steps, then change the policy or the test.",
);

static UNREACHED: ReportRule = ReportRule::new(
    "unreached-rule",
    "No test reaches this rule.",
    "Add a test that the rule decides, or remove the rule.",
);

/// Fills `report` with the results of tests and with the rules that no test has reached.
pub(crate) fn fill(ran: &[TestedFile], unreached: &[String], mut report: RunReport) -> RunReport {
    for TestedFile { path, cases, .. } in ran {
        let name = path.to_string_lossy().into_owned();
        let cases = cases.iter().map(|(came, test)| case(came, test)).collect();
        report.suites.push(ReportSuite { name, cases });
    }
    if !unreached.is_empty() {
        let cases = unreached.iter().map(|text| ReportCase {
            name: text.clone(),
            // A rule without a test may still be right.
            outcome: ReportOutcome::Warning,
            rule: Some((&UNREACHED).into()),
            message: text.clone(),
            ..ReportCase::default()
        });
        report.suites.push(ReportSuite { name: "coverage".to_owned(), cases: cases.collect() });
    }
    let count = |outcome| report.cases().filter(|case| case.outcome == outcome).count() as u64;
    report.counts = vec![
        ("passed", count(ReportOutcome::Passed)),
        ("failed", count(ReportOutcome::Failed)),
        ("unreached", unreached.len() as u64),
    ];
    report
}

fn case(came: &CaseResult, test: &TestCase) -> ReportCase {
    let failed = !came.misses.is_empty();
    let decision = came.judgement.leading_call().and_then(|call| call.decision.as_ref());
    let mut facts = vec![("decision", json::quoted(came.case_outcome.as_str()))];
    facts.extend(came.judgement.gate().map(|gate| ("gate", json::quoted(gate.as_str()))));
    let rule = decision.and_then(|decision| decision.rule.as_deref());
    facts.extend(rule.map(|rule| ("policy_rule", json::quoted(rule))));
    ReportCase {
        name: test.name.clone(),
        outcome: if failed { ReportOutcome::Failed } else { ReportOutcome::Passed },
        rule: failed.then(|| (&UNEXPECTED).into()),
        message: if failed { policy_tests::message(came) } else { String::new() },
        details: if failed { policy_tests::details(came, Palette::Plain) } else { String::new() },
        // Tests have no numbers; the line leads to them in an editor.
        position: TapePosition { number: None, line: Some(u64::from(test.spot.line)) },
        duration_ms: None,
        facts,
    }
}
