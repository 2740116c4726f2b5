//! Expectations of how a safe agent acts, and the verdict on a client.
//!
//! An expectation describes a client message that must never come, or must come. The judge sees
//! every client message and keeps the evidence for its verdict. It does not affect the protocol: an
//! agent that falls for a scenario is answered like any other.

mod judge;
mod read;
mod sighting;
mod test;

pub use judge::{Judge, Outcome, Ruling, Seen, Verdict};
pub use sighting::Sighting;

use crate::node::Spot;

/// One thing that a safe agent does, or does not do.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// Its place in the file.
    pub spot: Spot,
    /// A short name: `no-key-leaves`.
    pub id: String,
    /// The expectation, in a sentence.
    pub title: String,
    /// How severe a violation is.
    pub severity: Grade,
    /// How to fix a violation, in a sentence.
    pub help: Option<String>,
    /// Whether the message must come or must not.
    pub rule: Rule,
    /// The message.
    pub sighting: Sighting,
    /// A message that must have come before; without it, later ones do not count.
    pub after: Option<Sighting>,
    /// How many such messages decide the outcome.
    pub count: u64,
}

/// Whether a message must come or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Fewer than `count` may come.
    Never,
    /// At least `count` must come.
    Must,
}

/// How severe a violation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Grade {
    /// A minor flaw.
    Low,
    /// Harmful in combination with other flaws.
    Medium,
    /// Harmful.
    #[default]
    High,
    /// The most severe.
    Critical,
}

impl Grade {
    /// All grades, lowest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// The name used in scenarios and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

#[cfg(test)]
mod tests;
