//! One start of a server that writes a report, and the combined outcome of all starts of a run.
//!
//! A client may start its server more than once. Each start adds itself to the existing report and
//! the worst outcome counts, so that a later start never hides what an earlier one found.

use super::{ReportCase, ReportOutcome, ReportRule, ReportSuite};

/// One start of a server, as listed in its report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerStart {
    /// Which start of the run this is, from 1.
    pub(crate) number: u64,
    /// The run it belongs to, from --run-id.
    pub(crate) run_id: Option<String>,
    pub(crate) pid: u32,
    /// The parent process, usually the client.
    pub(crate) parent_pid: u32,
    /// Whether it has ended in order. A start is listed from its beginning, so that one that is
    /// killed shows up in the report.
    pub(crate) finished: bool,
    /// The number it was registered with at its beginning, if it was.
    pub(crate) registered: Option<u64>,
}

/// The rule that an unfinished start violates.
pub(crate) static UNFINISHED: ReportRule = ReportRule::new(
    "unfinished",
    "A start did not end normally, so its result is unknown.",
    "Check whether it was killed or is still running; then delete the report and run it again.",
);

impl ServerStart {
    /// This process, as the first start of a run.
    pub(crate) fn current(run_id: Option<String>) -> Self {
        // Tells the starts of several clients apart that write to one report.
        let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        let parent_pid = u32::try_from(parent).unwrap_or_default();
        let (pid, finished, registered) = (std::process::id(), true, None);
        Self { number: 1, run_id, pid, parent_pid, finished, registered }
    }

    /// The suite for a start that has not ended.
    pub(super) fn unfinished_suite() -> ReportSuite {
        let case = ReportCase {
            name: "start".to_owned(),
            // A start that was killed has proven nothing, and must not look like a success.
            outcome: ReportOutcome::Failed,
            rule: Some((&UNFINISHED).into()),
            message: "this start did not end normally: it was killed, failed, or is still running"
                .to_owned(),
            ..ReportCase::default()
        };
        ReportSuite { name: "start".to_owned(), cases: vec![case] }
    }
}

/// The outcome of one start, or of all starts of a run. The greater one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RunOutcome {
    /// Nothing was tested, which neither proves anything nor invalidates other starts.
    Untested,
    Passed,
    /// Some messages were not read, so nothing is proven, whatever else was found.
    Unread,
    Failed,
}

impl RunOutcome {
    /// The combined outcome of several starts.
    pub(crate) fn worst(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or(Self::Untested)
    }

    /// Parses the result of [`RunOutcome::as_str`] for a start that left `unread` messages unread.
    pub(crate) fn read(word: &str, unread: u64) -> Option<Self> {
        match word {
            // Reports have one word for both, so the count decides.
            "untested" if unread > 0 => Some(Self::Unread),
            "untested" => Some(Self::Untested),
            "passed" | "safe" => Some(Self::Passed),
            "failed" | "not-safe" => Some(Self::Failed),
            _ => None,
        }
    }

    /// The word for it in reports of this command.
    pub(crate) fn as_str(self, command: &str) -> &'static str {
        match (self, command) {
            (Self::Untested | Self::Unread, _) => "untested",
            (Self::Passed, "serve") => "safe",
            (Self::Failed, "serve") => "not-safe",
            (Self::Passed, _) => "passed",
            (Self::Failed, _) => "failed",
        }
    }

    pub(crate) fn is_ok(self) -> bool {
        self == Self::Passed
    }

    /// Whether nothing is proven, although nothing has failed.
    pub(crate) fn is_untested(self) -> bool {
        matches!(self, Self::Untested | Self::Unread)
    }
}
