//! The findings of a backtest.

use crate::decide::GateName;

/// A position on a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FindingLocation {
    /// The index of the tape.
    pub tape: usize,
    /// The line, from 1.
    pub line: u64,
    /// Its `seq`, if it has one.
    pub seq: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// A call that is refused.
    Deny,
    /// A call that waits for approval.
    Hold,
    /// A malformed message.
    Reject,
    /// A definition that differs from the accepted one.
    Drift,
    /// An item that is hidden from a list.
    Filter,
    /// Secrets that are masked.
    Redact,
    /// A message that is sent on and logged.
    Forward,
    /// A message that is sent on without a log entry.
    Pass,
}

/// A finding, without count and positions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FindingDetail {
    pub kind: FindingKind,
    /// Its word in logs.
    pub word: &'static str,
    pub method: String,
    /// The name of the tool or prompt, or the URI.
    pub name: String,
    /// The gate that decided.
    pub gate: Option<GateName>,
    /// The rule that matched.
    pub rule: Option<String>,
    /// Further details: the workflow, the fault, the difference.
    pub detail: String,
}

/// Identical findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingGroup {
    pub finding_detail: FindingDetail,
    /// How often it occurred.
    pub count: u64,
    /// The first positions.
    pub places: Vec<FindingLocation>,
}

/// What one policy does with a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyOutcome {
    /// The outcome: `forward`, `deny`, `hold`, `filter`.
    pub word: &'static str,
    /// The gate that decided.
    pub gate: Option<GateName>,
    /// The rule that matched.
    pub rule: Option<String>,
}

/// Messages that two policies treat differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyChange {
    pub method: String,
    /// The name of the tool or prompt, or the URI.
    pub name: String,
    /// What the old policy does.
    pub before: PolicyOutcome,
    /// What the new policy does.
    pub after: PolicyOutcome,
    /// How often it occurred.
    pub count: u64,
    /// The first positions.
    pub places: Vec<FindingLocation>,
}

/// A single finding with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BacktestFinding {
    /// Its position.
    pub location: FindingLocation,
    /// What was found.
    pub item: BacktestItem,
}

/// The content of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BacktestItem {
    /// Something that the policy does.
    Told(FindingDetail),
    /// A difference between two policies.
    Changed(PolicyChange),
}
