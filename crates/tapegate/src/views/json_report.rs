//! The JSON report with its stable keys (listed in docs/replay.md): keys may be added but are never
//! renamed or removed.
//!
//! The report of a server lists its starts. Each further start adds itself: the counts are totals
//! over all starts, and each case names its start.

use tapegate_core::json::{member, string};

use super::json::{JsonWriter, elements};
use super::report::run_start::{RunOutcome, ServerStart};
use super::report::unused::{self, UnusedSet};
use super::report::{ReportCase, ReportOutcome, RunReport};

/// The nesting depth of starts and cases.
const ITEM_DEPTH: usize = 2;

/// The content of an earlier report of the same run, as written.
#[derive(Debug, Default)]
pub(crate) struct EarlierReport<'a> {
    started_at: Option<String>,
    starts: Vec<&'a [u8]>,
    cases: Vec<&'a [u8]>,
}

impl<'a> EarlierReport<'a> {
    /// Reads a report of this command and its run id; `None` if it is anything else.
    pub(crate) fn read(text: &'a [u8], command: &str) -> Option<(Self, Option<String>)> {
        let text_member = |key: &str| text_of(text, key);
        if text_member("tool")? != "tapegate" || text_member("command")? != command {
            return None;
        }
        let starts = elements(member(text, "starts")?);
        let cases = elements(member(text, "cases")?);
        // A start whose outcome cannot be read must not count as passed.
        let all_known = starts.iter().all(|start| outcome_of(start).is_some());
        (!starts.is_empty() && all_known).then(|| {
            (Self { started_at: text_member("started_at"), starts, cases }, text_member("run_id"))
        })
    }

    pub(crate) fn starts(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Removes an unfinished start, by its number and process; false if it is not there.
    pub(crate) fn remove_start(&mut self, (number, pid): (u64, u32)) -> bool {
        let is_own = |start: &&[u8]| {
            number_of(start, "start") == Some(number)
                && number_of(start, "pid") == Some(u64::from(pid))
                && !is_finished(start)
        };
        let count = self.starts.len();
        self.starts.retain(|start| !is_own(start));
        let forgotten = self.starts.len() < count;
        if forgotten {
            // An unfinished start has one case, which says that it is unfinished.
            self.cases.retain(|case| number_of(case, "start") != Some(number));
        }
        forgotten
    }
}

/// Writes the report as JSON.
pub(crate) fn write(report: &RunReport) -> Vec<u8> {
    write_after(report, &EarlierReport::default())
}

/// Writes the report as JSON, after the starts of an earlier one.
pub(crate) fn write_after(report: &RunReport, earlier: &EarlierReport<'_>) -> Vec<u8> {
    let mut starts: Vec<&[u8]> = earlier.starts.clone();
    let start = report
        .start
        .as_ref()
        .map(|start| JsonWriter::item(ITEM_DEPTH, |json| write_start(json, report, start)));
    starts.extend(start.as_deref());
    // A start that began earlier may end later.
    starts.sort_by_key(|start| number_of(start, "start"));
    let cases = written_cases(report);
    let cases: Vec<&[u8]> = cases.iter().map(Vec::as_slice).collect();
    let (cases, unused) = join_cases(report, earlier, cases, &starts);
    let outcome = match report.start {
        Some(_) => RunOutcome::worst(starts.iter().filter_map(|start| outcome_of(start))),
        None => report.outcome(),
    };
    let mut out = JsonWriter::object(|json| {
        json.text("tool", "tapegate");
        json.text("version", env!("CARGO_PKG_VERSION"));
        json.text("command", report.command);
        json.text(report.subject_key(), &report.tape.to_string_lossy());
        json.raw("ok", if outcome.is_ok() { b"true" } else { b"false" });
        if report.has_verdict() {
            json.text("verdict", outcome.as_str(report.command));
        }
        let run_id = report.start.as_ref().and_then(|start| start.run_id.as_ref());
        run_id.iter().for_each(|run_id| json.text("run_id", run_id));
        json.text("started_at", earlier.started_at.as_deref().unwrap_or(&report.started_at()));
        json.number("duration_ms", report.duration_ms + sum(&earlier.starts, "duration_ms"));
        for (key, count) in &report.counts {
            let total = match *key {
                "unused" => unused.unwrap_or(*count),
                key => count + sum(&earlier.starts, key),
            };
            json.number(key, total);
        }
        if report.start.is_some() {
            json.raw_list("starts", &starts);
        }
        json.raw_list("cases", &cases);
    });
    out.push(b'\n');
    out
}

fn write_start(json: &mut JsonWriter, report: &RunReport, start: &ServerStart) {
    let outcome = report.outcome();
    json.number("start", start.number);
    json.text(report.subject_key(), &report.tape.to_string_lossy());
    json.raw("ok", if outcome.is_ok() { b"true" } else { b"false" });
    json.text("verdict", outcome.as_str(report.command));
    json.text("started_at", &report.started_at());
    json.number("duration_ms", report.duration_ms);
    json.number("pid", u64::from(start.pid));
    json.number("parent_pid", u64::from(start.parent_pid));
    json.raw("finished", if start.finished { b"true" } else { b"false" });
    // Its counts are not known, and zeros would look like a result.
    if !start.finished {
        return;
    }
    report.counts.iter().for_each(|(key, count)| json.number(key, *count));
}

fn written_cases(report: &RunReport) -> Vec<Vec<u8>> {
    let cases = report
        .suites
        .iter()
        .flat_map(|suite| suite.cases.iter().map(move |case| (suite.name.as_str(), case)));
    let number = report.start.as_ref().map(|start| start.number);
    let written = cases.map(|(suite, case)| {
        JsonWriter::item(ITEM_DEPTH, |json| {
            write_case(json, suite, case);
            number.into_iter().for_each(|number| json.number("start", number));
        })
    });
    written.collect()
}

/// The cases of all starts, and how many recorded requests no start has used. A request is used if
/// any start used it.
fn join_cases<'a>(
    report: &RunReport,
    earlier: &EarlierReport<'a>,
    cases: Vec<&'a [u8]>,
    starts: &[&[u8]],
) -> (Vec<&'a [u8]>, Option<u64>) {
    if earlier.starts.is_empty() {
        return (cases, None);
    }
    let tape = report.tape.to_string_lossy();
    let is_same_tape = |start: &[u8]| {
        is_finished(start)
            && text_of(start, report.subject_key()).is_some_and(|other| other == tape)
    };
    let of_same_tape = |case: &[u8]| {
        let number = number_of(case, "start");
        let own = earlier.starts.iter().find(|start| number_of(start, "start") == number);
        own.is_some_and(|start| is_same_tape(start))
    };
    let is_unused = |case: &&[u8]| text_of(case, "rule").as_deref() == Some("unused");
    let now = UnusedSet::of(report);
    let (unused_now, cases): (Vec<_>, Vec<_>) = cases.into_iter().partition(is_unused);
    let (unused_then, mut joined): (Vec<_>, Vec<_>) =
        earlier.cases.iter().copied().partition(is_unused);
    joined.extend(cases);
    let still =
        |case: &&[u8]| !of_same_tape(case) || now.is_still_unused(number_of(case, "number"));
    let mut unused: Vec<&[u8]> = unused_then.into_iter().filter(still).collect();
    // Otherwise the earlier starts list them, as far as they are still unused.
    if !earlier.starts.iter().any(|start| is_same_tape(start)) {
        unused.extend(unused_now);
    }
    let count = unused::count(
        unused.iter().map(|case| number_of(case, "number")),
        starts.iter().filter_map(|start| number_of(start, "unused")),
    );
    joined.extend(unused);
    (joined, Some(count))
}

fn write_case(json: &mut JsonWriter, suite: &str, case: &ReportCase) {
    json.text("suite", suite);
    json.text("name", &case.name);
    let outcome = match case.outcome {
        ReportOutcome::Passed => "passed",
        ReportOutcome::Failed => "failed",
        ReportOutcome::Warning => "warning",
        ReportOutcome::Skipped => "skipped",
    };
    json.text("outcome", outcome);
    if let Some(rule) = &case.rule {
        json.text("rule", &rule.id);
    }
    if !case.message.is_empty() {
        json.text("message", &case.message);
    }
    if let Some(number) = case.position.number {
        json.number("number", u64::from(number));
    }
    if let Some(line) = case.position.line {
        json.number("line", line);
    }
    if let Some(ms) = case.duration_ms {
        json.number("duration_ms", ms);
    }
    for (key, fact) in &case.facts {
        json.raw(key, fact);
    }
    if !case.details.is_empty() {
        json.text("details", &case.details);
    }
}

/// Whether a start has ended in order; assumed if the report does not say.
fn is_finished(start: &[u8]) -> bool {
    member(start, "finished") != Some(b"false")
}

fn outcome_of(start: &[u8]) -> Option<RunOutcome> {
    RunOutcome::read(&text_of(start, "verdict")?, number_of(start, "unread").unwrap_or_default())
}

fn sum(starts: &[&[u8]], key: &str) -> u64 {
    starts.iter().filter_map(|start| number_of(start, key)).fold(0, u64::saturating_add)
}

fn text_of(object: &[u8], key: &str) -> Option<String> {
    Some(member(object, key).and_then(string)?.into_owned())
}

fn number_of(object: &[u8], key: &str) -> Option<u64> {
    std::str::from_utf8(member(object, key)?).ok()?.parse().ok()
}
