//! Reads the SARIF report left by earlier starts: one run, with an invocation for each start.

use tapegate_core::json::{member, string};

use crate::views::json::elements;
use crate::views::report::UNTESTED;
use crate::views::report::run_start::RunOutcome;
use crate::views::report::unused::{self, UnusedSet};

/// The results of earlier starts, as written.
#[derive(Debug, Default)]
pub(crate) struct EarlierRun<'a> {
    pub(super) rules: Vec<&'a [u8]>,
    pub(super) invocations: Vec<&'a [u8]>,
    pub(super) results: Vec<&'a [u8]>,
}

impl<'a> EarlierRun<'a> {
    /// Reads a report of this command and its run id; `None` if it is anything else.
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
        // A start whose outcome cannot be read must not count as passed.
        let known = earlier.outcomes().count() == earlier.invocations.len();
        (known && !earlier.invocations.is_empty()).then(|| (earlier, text_of(properties, "run_id")))
    }

    pub(crate) fn starts(&self) -> u64 {
        self.invocations.len() as u64
    }

    /// Removes an unfinished start, by its number and process; false if it is not there.
    pub(crate) fn remove_start(&mut self, (number, pid): (u64, u32)) -> bool {
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
            // An unfinished start has one result, which says that it is unfinished.
            self.results.retain(|result| of(result, "start") != Some(number));
        }
        forgotten
    }

    /// Removes requests that earlier starts with the same tape (named by a property) left unused
    /// but this one used; false if there are no such starts.
    pub(super) fn keep_unused(&mut self, (key, tape): (&str, &str), now: &UnusedSet) -> bool {
        let is_same_tape = |start: &&&[u8]| {
            let properties = member(start, "properties").unwrap_or_default();
            text_of(properties, key).as_deref() == Some(tape)
                && member(start, "executionSuccessful") != Some(b"false")
        };
        let same: Vec<Option<u64>> =
            self.invocations.iter().filter(is_same_tape).map(|start| start_of(start)).collect();
        self.results.retain(|result| {
            !is_unused(result)
                || !same.contains(&start_of(result))
                || now.is_still_unused(number_in(result))
        });
        !same.is_empty()
    }

    pub(super) fn outcomes(&self) -> impl Iterator<Item = RunOutcome> {
        self.invocations.iter().filter_map(|invocation| {
            let properties = member(invocation, "properties")?;
            let unread = number_of(properties, "unread").unwrap_or_default();
            RunOutcome::read(&text_of(properties, "verdict")?, unread)
        })
    }

    /// The total of a count over all starts.
    pub(super) fn sum(&self, key: &str) -> u64 {
        let properties = self.invocations.iter().filter_map(|start| member(start, "properties"));
        properties.filter_map(|start| number_of(start, key)).fold(0, u64::saturating_add)
    }

    /// The index of a rule among the existing ones.
    pub(super) fn place_of(&self, id: &str) -> Option<usize> {
        self.rules.iter().position(|rule| text_of(rule, "id").as_deref() == Some(id))
    }
}

/// How many requests all starts left unused.
pub(super) fn unused_count(results: &[Vec<u8>], starts: &[Vec<u8>]) -> u64 {
    let listed: Vec<Option<u64>> =
        results.iter().filter(|result| is_unused(result)).map(|result| number_in(result)).collect();
    let by_start =
        starts.iter().filter_map(|start| number_of(member(start, "properties")?, "unused"));
    unused::count(listed.into_iter(), by_start)
}

fn is_unused(result: &[u8]) -> bool {
    text_of(result, "ruleId").as_deref() == Some("unused")
}

/// The start that an invocation or a result belongs to.
fn start_of(item: &[u8]) -> Option<u64> {
    number_of(member(item, "properties")?, "start")
}

/// The number of the message that a result is about.
fn number_in(result: &[u8]) -> Option<u64> {
    number_of(member(result, "properties")?, "number")
}

fn text_of(object: &[u8], key: &str) -> Option<String> {
    Some(member(object, key).and_then(string)?.into_owned())
}

fn number_of(object: &[u8], key: &str) -> Option<u64> {
    std::str::from_utf8(member(object, key)?).ok()?.parse().ok()
}
