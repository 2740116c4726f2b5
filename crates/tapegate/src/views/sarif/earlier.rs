//! The SARIF report that earlier starts of a run have left: one run, with an invocation for each start.

use tapegate_core::json::{member, string};

use crate::views::json::elements;
use crate::views::report::UNTESTED;
use crate::views::report::start::RunOutcome;

/// What earlier starts have found, as it is written.
#[derive(Debug, Default)]
pub(crate) struct EarlierRun<'a> {
    pub(super) rules: Vec<&'a [u8]>,
    pub(super) invocations: Vec<&'a [u8]>,
    pub(super) results: Vec<&'a [u8]>,
}

impl<'a> EarlierRun<'a> {
    /// Reads a report of this command, and the run it is of; `None` if it is anything else.
    pub(crate) fn read(text: &'a [u8], command: &str) -> Option<(Self, Option<String>)> {
        let run = *elements(member(text, "runs")?).first()?;
        let driver = member(member(run, "tool")?, "driver")?;
        let properties = member(run, "properties")?;
        if text_of(driver, "name")? != "tapegate" || text_of(properties, "command")? != command {
            return None;
        }
        let is_about_a_start =
            |result: &&[u8]| text_of(result, "ruleId").as_deref() != Some(UNTESTED.id.as_ref());
        let earlier = Self {
            rules: elements(member(driver, "rules")?),
            invocations: elements(member(run, "invocations")?),
            results: elements(member(run, "results")?)
                .into_iter()
                .filter(is_about_a_start)
                .collect(),
        };
        let known = earlier.outcomes().count() == earlier.invocations.len();
        (known && !earlier.invocations.is_empty()).then(|| (earlier, text_of(properties, "run_id")))
    }

    pub(crate) fn starts(&self) -> u64 {
        self.invocations.len() as u64
    }

    /// Forgets a start that has not ended, by its number and process; false if it is not there.
    pub(crate) fn forget(&mut self, (number, pid): (u64, u32)) -> bool {
        let of = |item: &[u8], key: &str| number_of(member(item, "properties")?, key);
        let is_own = |start: &&[u8]| {
            of(start, "start") == Some(number)
                && of(start, "pid") == Some(u64::from(pid))
                && member(start, "executionSuccessful") == Some(b"false")
        };
        let count = self.invocations.len();
        self.invocations.retain(|start| !is_own(start));
        let forgotten = self.invocations.len() < count;
        if forgotten {
            self.results.retain(|result| of(result, "start") != Some(number));
        }
        forgotten
    }

    pub(super) fn outcomes(&self) -> impl Iterator<Item = RunOutcome> {
        self.invocations.iter().filter_map(|invocation| {
            let properties = member(invocation, "properties")?;
            let unread = number_of(properties, "unread").unwrap_or_default();
            RunOutcome::read(&text_of(properties, "verdict")?, unread)
        })
    }

    /// A number of all starts together.
    pub(super) fn sum(&self, key: &str) -> u64 {
        let properties = self.invocations.iter().filter_map(|start| member(start, "properties"));
        properties.filter_map(|start| number_of(start, key)).fold(0, u64::saturating_add)
    }

    /// The place of a rule among those that are there.
    pub(super) fn place_of(&self, id: &str) -> Option<usize> {
        self.rules.iter().position(|rule| text_of(rule, "id").as_deref() == Some(id))
    }
}

fn text_of(object: &[u8], key: &str) -> Option<String> {
    Some(member(object, key).and_then(string)?.into_owned())
}

fn number_of(object: &[u8], key: &str) -> Option<u64> {
    std::str::from_utf8(member(object, key)?).ok()?.parse().ok()
}
