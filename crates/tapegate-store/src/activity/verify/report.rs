//! The report on a verified log.

use tapegate_core::tape::TapeSeverity;

use crate::activity::chain::ChainLink;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainFault {
    /// Its text does not match its hash.
    Changed,
    /// It does not follow from the line before.
    Unlinked,
    /// Lines before it are missing.
    Missing,
    /// It comes after lines that it should precede, or occurs twice.
    OutOfOrder,
    /// It is not an event.
    NotAnEvent,
    /// It is incomplete: its writer was killed, or is still writing.
    Torn,
    /// The log does not start at its beginning.
    Beginning,
    /// The expected head is not in the log.
    Head,
    /// Events could not be written and were lost.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainFinding {
    /// The index of the file, from 0.
    pub file: usize,
    /// The line in that file, from 1; 0 for the file as a whole.
    pub line: u64,
    pub severity: TapeSeverity,
    /// The kind of fault.
    pub fault: ChainFault,
    /// The message for people.
    pub message: String,
}

/// The result of verifying a log.
#[derive(Debug, Clone, Default)]
pub struct LogReport {
    /// The findings, in the order of the lines.
    pub findings: Vec<ChainFinding>,
    /// How many lines have the form of an event.
    pub events: u64,
    /// How many lines follow the expected head, if it was found.
    pub since_head: Option<u64>,
    /// The end of the log, if it has any events.
    pub head: Option<ChainLink>,
}

impl ChainFault {
    /// The name used in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unlinked => "unlinked",
            Self::Missing => "missing",
            Self::OutOfOrder => "out-of-order",
            Self::NotAnEvent => "not-an-event",
            Self::Torn => "torn",
            Self::Beginning => "beginning",
            Self::Head => "head",
            Self::Lost => "lost",
        }
    }
}

impl LogReport {
    /// Whether any finding is an error.
    pub fn is_bad(&self) -> bool {
        self.findings.iter().any(|findings| findings.severity == TapeSeverity::Error)
    }
}
