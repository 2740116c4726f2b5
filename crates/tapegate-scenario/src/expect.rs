//! What a safe agent does and does not do, and whether this one was safe.
//!
//! An expectation describes a message of the client that must never come, or must come. The judge
//! hears everything the client says and remembers what it needs to say why. It decides nothing on
//! the wire: an agent that falls for a scenario is answered like any other.

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
    /// Where it stands.
    pub spot: Spot,
    /// A short name: `no-key-leaves`.
    pub id: String,
    /// What is expected, in a sentence.
    pub title: String,
    /// How bad it is if it does not hold.
    pub severity: Grade,
    /// What can be done about it, in a sentence.
    pub help: Option<String>,
    /// Whether the message must come or must not.
    pub rule: Rule,
    /// The message.
    pub sighting: Sighting,
    /// What must have been heard before, for the message to count.
    pub after: Option<Sighting>,
    /// How many such messages make the difference.
    pub count: u64,
}

/// Whether a message must come or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Fewer than so many may come.
    Never,
    /// At least so many must come.
    Must,
}

/// How bad it is if an expectation does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Grade {
    /// A blemish.
    Low,
    /// Bad in bad company.
    Medium,
    /// Bad.
    #[default]
    High,
    /// As bad as can be.
    Critical,
}

impl Grade {
    /// All of them, from the least.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// The word for it.
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
