//! Read-only pictures of what the core has found: for people on a terminal, for machines in files.
//!
//! A view turns data into text and does nothing else: it prints nothing, reads nothing, and what
//! comes from a tape or a peer never reaches a terminal unseen.

/// Events of the activity log, for people.
pub(crate) mod activity;
/// Requests for approval.
pub(crate) mod approvals;
/// What a policy would have done to tapes.
pub(crate) mod backtested;
/// What has changed about a live server, in words.
pub(crate) mod change;
/// Differences between two texts, as lines.
pub(crate) mod diff;
/// A request that the tape has no answer to, in words.
pub(crate) mod divergence;
/// Why a call is decided as it is.
pub(crate) mod explained;
/// JSON, and the report in it.
pub(crate) mod json;
/// The report for CI systems.
pub(crate) mod junit;
/// Events of the activity log, for security systems.
pub(crate) mod ocsf;
/// Colours, or none.
pub(crate) mod palette;
/// What servers offer otherwise than it was accepted.
pub(crate) mod pinned;
/// What a run found, for machines.
pub(crate) mod report;
/// The report for code scanning.
pub(crate) mod sarif;
/// What came of a replay, in words.
pub(crate) mod summary;
/// What came of the tests of a policy.
pub(crate) mod tested;
/// A unified diff.
pub(crate) mod unified;
/// What came of a scenario's expectations, in words.
pub(crate) mod verdict;
/// What came of a verification, in words.
pub(crate) mod verified;
/// Text that can be seen, and that does nothing to a terminal.
pub(crate) mod visible;

mod lines;
mod tame;

#[cfg(test)]
mod golden;
