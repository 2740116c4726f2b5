//! What is told of a log that was looked over.

use tapegate_core::tape::Severity;

use crate::activity::chain::Link;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its text is not what its hash was taken of.
    Changed,
    /// It does not follow from the line before.
    Unlinked,
    /// Lines that should stand before it are not there.
    Missing,
    /// It stands behind lines that it should stand before, or is there twice.
    OutOfOrder,
    /// It is no event.
    NotAnEvent,
    /// It has no end: its writer was killed, or is writing.
    Torn,
    /// The log does not begin at its beginning.
    Beginning,
    /// The head that was noted is not in the log.
    Head,
    /// Events were lost because they could not be written.
    Lost,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which of the files, from 0.
    pub file: usize,
    /// The line in it, from 1; 0 for the file as a whole.
    pub line: u64,
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub fault: Fault,
    /// The same in words.
    pub words: String,
}

/// What was found in a log.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was found, in the order of the lines.
    pub found: Vec<Found>,
    /// How many lines have the form of an event.
    pub events: u64,
    /// How many lines follow the one with the head that was noted, if it was found.
    pub since_head: Option<u64>,
    /// The end of the log, if it has any event.
    pub head: Option<Link>,
}

impl Fault {
    /// The word for it, in reports.
    pub fn word(self) -> &'static str {
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

impl Report {
    /// Whether something is wrong, rather than unusual.
    pub fn is_bad(&self) -> bool {
        self.found.iter().any(|found| found.severity == Severity::Error)
    }
}
