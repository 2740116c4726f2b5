//! Recorded requests that no start of a run has used.
//!
//! A request is used if any start used it. So a merged report lists what all starts with the same
//! tape left unused; every format decides this here.

use super::{ReportCase, RunReport, replay};

/// What this start left unused, as far as that is known.
#[derive(Debug)]
pub(crate) struct UnusedSet {
    /// A case without a number stands for all those that were too many to list.
    numbers: Vec<Option<u64>>,
    /// False for an unfinished start, whose requests are not known.
    is_known: bool,
}

impl UnusedSet {
    pub(crate) fn of(report: &RunReport) -> Self {
        let unused = report.cases().filter(|case| is_unused(case));
        let numbers = unused.map(|case| case.position.number.map(u64::from)).collect();
        Self { numbers, is_known: !report.is_unfinished() }
    }

    /// Whether a request left unused by earlier starts with the same tape is still unused.
    pub(crate) fn is_still_unused(&self, number: Option<u64>) -> bool {
        !self.is_known || self.numbers.contains(&number)
    }
}

/// How many requests all starts left unused: those listed or, if the lists are incomplete, at most
/// what the best start left.
pub(crate) fn count(
    mut listed: impl ExactSizeIterator<Item = Option<u64>>,
    by_start: impl Iterator<Item = u64>,
) -> u64 {
    let count = listed.len() as u64;
    match listed.all(|number| number.is_some()) {
        true => count,
        // What the best start left is an upper bound: the others can only have used more.
        false => by_start.min().unwrap_or(count),
    }
}

impl RunReport {
    /// The same without its unused requests; earlier starts list those still unused.
    pub(crate) fn without_unused(&self) -> Self {
        let mut report = self.clone();
        report.suites.iter_mut().for_each(|suite| suite.cases.retain(|case| !is_unused(case)));
        report
    }
}

fn is_unused(case: &ReportCase) -> bool {
    case.rule.as_ref().is_some_and(|rule| rule.id == replay::UNUSED.id)
}
