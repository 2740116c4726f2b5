//! Expectations of how a safe agent acts, and the verdict on a client.
//!
//! An expectation describes a client message that must never come, or must come. The judge sees
//! every client message and keeps the evidence for its verdict. It does not affect the protocol: an
//! agent that falls for a scenario is answered like any other.

mod expectation_test;
mod judge;
mod message_pattern;
mod read;

pub use judge::{
    ExpectationJudge, ExpectationOutcome, ExpectationReport, ExpectationResult, SeenMessage,
};
pub use message_pattern::MessagePattern;

use tapegate_yaml::choice::WordChoice;
use tapegate_yaml::word_choices;

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
    pub severity: ExpectationSeverity,
    /// How to fix a violation, in a sentence.
    pub help: Option<String>,
    /// Whether the message must come or must not.
    pub rule: ExpectationRule,
    pub pattern: MessagePattern,
    /// A message that must have come before; without it, later ones do not count.
    pub after: Option<MessagePattern>,
    /// How many such messages decide the outcome.
    pub count: u64,
}

/// Whether a message must come or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectationRule {
    /// Fewer than `count` may come.
    Never,
    /// At least `count` must come.
    Must,
}

word_choices! {
    /// How severe a violation is.
    #[derive(PartialOrd, Ord, Default)]
    pub enum ExpectationSeverity {
        /// A minor flaw.
        Low = "low",
        /// Harmful in combination with other flaws.
        Medium = "medium",
        /// Harmful.
        #[default]
        High = "high",
        /// The most severe.
        Critical = "critical",
    }
}

impl ExpectationSeverity {
    /// The name used in scenarios and reports.
    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

#[cfg(test)]
mod tests;
