//! The result of a run, for machines: one model that every format is written from.
//!
//! A report consists of suites of cases. A case is something that was checked: a request of a
//! replay, a verified answer, an expectation. It points to the place on the tape that it is about.

/// The report of policy tests.
pub(crate) mod cases;
/// The report of a replay.
pub(crate) mod replay;
/// One start of a server, and the combined outcome of all starts.
pub(crate) mod run_start;
/// The report of a scenario's expectations.
pub(crate) mod serve;
/// Recorded requests that no start of a run has used.
pub(crate) mod unused;
/// The report of a verification.
pub(crate) mod verify;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use tapegate_core::time::{SubSecond, Timestamp, write_rfc3339};

use super::{json_report, junit, sarif};
use run_start::{RunOutcome, ServerStart};

/// The result of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunReport {
    /// The command that ran.
    pub(crate) command: &'static str,
    /// The tape, or the scenario of `serve`, as named by the user.
    pub(crate) tape: PathBuf,
    /// When it began, in microseconds since 1970.
    pub(crate) started_us: i64,
    /// How long it took.
    pub(crate) duration_ms: u64,
    /// The counts of its summary, by their keys in the JSON report.
    pub(crate) counts: Vec<(&'static str, u64)>,
    /// The cases, in groups.
    pub(crate) suites: Vec<ReportSuite>,
    /// The start of a server that it describes. `None` for a command that ends by itself.
    pub(crate) start: Option<ServerStart>,
    /// For a replay: whether clients only initialized and listed, though the tape has more.
    pub(crate) only_setup: bool,
}

/// A group of cases.
#[derive(Debug, Clone)]
pub(crate) struct ReportSuite {
    /// What the cases have in common.
    pub(crate) name: String,
    pub(crate) cases: Vec<ReportCase>,
}

/// Something that was checked.
#[derive(Debug, Default, Clone)]
pub(crate) struct ReportCase {
    /// What it is about: `tools/call read_file`.
    pub(crate) name: String,
    pub(crate) outcome: ReportOutcome,
    /// The rule it violates, if it did not pass.
    pub(crate) rule: Option<Cow<'static, ReportRule>>,
    /// The outcome in one line.
    pub(crate) message: String,
    /// The outcome in several lines, for people.
    pub(crate) details: String,
    /// Where it is on the tape.
    pub(crate) position: TapePosition,
    /// How long it took.
    pub(crate) duration_ms: Option<u64>,
    /// More data for machines: keys with JSON values.
    pub(crate) facts: Vec<(&'static str, Vec<u8>)>,
}

/// The outcome of a case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ReportOutcome {
    /// As it should be.
    #[default]
    Passed,
    /// Not as it should be.
    Failed,
    /// Odd, but not a failure.
    Warning,
    /// Not checked.
    Skipped,
}

/// A place on a tape, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TapePosition {
    /// The message's `seq`, or its line if it has none.
    pub(crate) number: Option<u32>,
    pub(crate) line: Option<u64>,
}

/// A rule that a case can violate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportRule {
    /// Its id for machines: `not-recorded`.
    pub(crate) id: Cow<'static, str>,
    /// What a violation means, in a sentence.
    pub(crate) text: Cow<'static, str>,
    /// What to do about it, in a sentence.
    pub(crate) help: Cow<'static, str>,
}

/// The rule that a report violates if nothing was tested.
pub(crate) static UNTESTED: ReportRule = ReportRule::new(
    "untested",
    "Nothing was tested.",
    "Check whether the client reached the part to be tested, or whether the tape has it.",
);

impl ReportRule {
    /// A constant rule.
    pub(crate) const fn new(id: &'static str, text: &'static str, help: &'static str) -> Self {
        Self { id: Cow::Borrowed(id), text: Cow::Borrowed(text), help: Cow::Borrowed(help) }
    }
}

impl From<&'static ReportRule> for Cow<'static, ReportRule> {
    fn from(rule: &'static ReportRule) -> Self {
        Self::Borrowed(rule)
    }
}

impl RunReport {
    /// An empty report of a run that ends `now`: the monotonic clock counts from the start of the
    /// run.
    pub(crate) fn new(command: &'static str, tape: &Path, now: Timestamp) -> Self {
        Self {
            command,
            tape: tape.to_owned(),
            // From the monotonic clock, so that a clock that was set meanwhile does not make
            // negative times.
            started_us: now.wall_us - (now.mono_ns / 1000) as i64,
            duration_ms: now.mono_ns / 1_000_000,
            counts: Vec::new(),
            suites: Vec::new(),
            start: None,
            only_setup: false,
        }
    }

    /// The report of one start of a server, which may have been started before.
    pub(crate) fn with_start(self, run_id: Option<&str>) -> Self {
        let start = ServerStart::current(run_id.map(str::to_owned));
        Self { start: Some(start), ..self }
    }

    /// The report of a start that has just begun: it has the keys of `counts`, all zero.
    pub(crate) fn unfinished(mut self) -> Self {
        self.duration_ms = 0;
        // The keys stay, because a reader may look for them while the run lasts.
        self.counts.iter_mut().for_each(|(_, count)| *count = 0);
        self.suites = vec![ServerStart::unfinished_suite()];
        self.start.iter_mut().for_each(|start| start.finished = false);
        self
    }

    /// Whether it describes a start that has not ended.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.start.as_ref().is_some_and(|start| !start.finished)
    }

    /// The outcome. The absence of failures does not mean that a server tested its client.
    pub(crate) fn outcome(&self) -> RunOutcome {
        let any = |outcome| self.cases().any(|case| case.outcome == outcome);
        let count = |key: &str| self.counts.iter().find(|(name, _)| *name == key);
        let has = |key| count(key).is_some_and(|(_, count)| *count > 0);
        match self.command {
            // One failure decides, whatever else was tested.
            _ if any(ReportOutcome::Failed) => RunOutcome::Failed,
            "serve" if any(ReportOutcome::Passed) => RunOutcome::Passed,
            // Worse than untested: a message that was too large may have been the broken
            // expectation.
            "serve" if has("unread") => RunOutcome::Unread,
            "serve" => RunOutcome::Untested,
            // Every client initializes and lists, even one that then does nothing.
            "replay" if self.only_setup && !has("passed_on") => RunOutcome::Untested,
            "replay" if !has("matched") && !has("passed_on") => RunOutcome::Untested,
            // Also if the server has answered everything: the tape has nothing to compare with.
            "verify" if !has("answers") && !has("notifications") => RunOutcome::Untested,
            _ => RunOutcome::Passed,
        }
    }

    /// Whether its outcome has a word: a run may also have tested nothing.
    pub(crate) fn has_verdict(&self) -> bool {
        self.start.is_some() || self.command == "verify"
    }

    /// The key for the subject of the report in JSON.
    pub(crate) fn subject_key(&self) -> &'static str {
        match self.command {
            "serve" => "scenario",
            "policy test" => "tests",
            _ => "tape",
        }
    }

    /// All cases.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &ReportCase> {
        self.suites.iter().flat_map(|suite| &suite.cases)
    }

    /// When it began, in RFC 3339 format.
    pub(crate) fn started_at(&self) -> String {
        let mut out = Vec::new();
        write_rfc3339(&mut out, self.started_us, SubSecond::Millis);
        String::from_utf8(out).unwrap_or_default()
    }

    /// The report in the format that a file name asks for.
    pub(crate) fn format_for(&self, file: &Path) -> Vec<u8> {
        match ReportFormat::of(file) {
            ReportFormat::Json => json_report::write(self),
            ReportFormat::Junit => junit::write(self),
            ReportFormat::Sarif => sarif::write(self),
        }
    }

    /// The same, merged with the earlier starts of the same run in the file.
    pub(crate) fn append_to(&mut self, file: &Path, text: &[u8]) -> Result<Vec<u8>, MergeError> {
        let (command, other) = (self.command, MergeError::Unreadable);
        match ReportFormat::of(file) {
            ReportFormat::Json => {
                let read = json_report::EarlierReport::read(text, command);
                let (mut earlier, run_id) = read.ok_or(other)?;
                // This start is in the file as unfinished; its result takes that place.
                let own = self.registered().filter(|own| earlier.remove_start(*own));
                self.number_after(earlier.starts(), own, run_id)?;
                Ok(json_report::write_after(self, &earlier))
            }
            ReportFormat::Junit => {
                let read = junit::EarlierSuites::read(text, command);
                let (mut earlier, run_id) = read.ok_or(other)?;
                let own = self.registered().filter(|own| earlier.remove_start(*own));
                self.number_after(earlier.starts(), own, run_id)?;
                Ok(junit::write_after(self, earlier))
            }
            ReportFormat::Sarif => {
                let read = sarif::EarlierRun::read(text, command);
                let (mut earlier, run_id) = read.ok_or(other)?;
                let own = self.registered().filter(|own| earlier.remove_start(*own));
                self.number_after(earlier.starts(), own, run_id)?;
                Ok(sarif::write_after(self, earlier))
            }
        }
    }

    /// The number and process under which this start is already in a report.
    fn registered(&self) -> Option<(u64, u32)> {
        let start = self.start.as_ref()?;
        Some((start.registered?, start.pid))
    }

    /// Numbers this start after the earlier ones of the same run, unless it already has its `own`
    /// number. A start without a run id joins the existing one.
    fn number_after(
        &mut self,
        starts: u64,
        own: Option<(u64, u32)>,
        run_id: Option<String>,
    ) -> Result<(), MergeError> {
        let start = self.start.as_mut().ok_or(MergeError::OtherRun)?;
        // A report of another run must not add to this one's outcome.
        if start.run_id.is_some() && start.run_id != run_id {
            return Err(MergeError::OtherRun);
        }
        (start.number, start.run_id) = (own.map_or(starts + 1, |(number, _)| number), run_id);
        Ok(())
    }
}

/// Why a start cannot be added to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeError {
    /// It is a report of another run.
    OtherRun,
    /// It is not a whole report of the same command, in the format that the file name asks for.
    Unreadable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    Json,
    Junit,
    Sarif,
}

impl ReportFormat {
    /// Decided by the file name: `.xml` is JUnit, `.sarif` SARIF, anything else JSON.
    pub(crate) fn of(file: &Path) -> Self {
        // Some systems write extensions in upper case.
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        match name {
            name if name.ends_with(".xml") => Self::Junit,
            name if name.ends_with(".sarif") || name.ends_with(".sarif.json") => Self::Sarif,
            _ => Self::Json,
        }
    }
}

impl fmt::Display for ReportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Junit => "JUnit",
            Self::Sarif => "SARIF",
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
