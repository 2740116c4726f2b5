//! Formats the results of the core: for people on a terminal, and for machines in files.
//!
//! A view only turns data into text: it prints nothing and reads nothing, and escapes everything
//! from a tape or a peer that a terminal would interpret.

/// Events of the activity log, for people.
pub(crate) mod activity;
/// Agents, their configs and their servers.
pub(crate) mod agents;
/// Approval requests.
pub(crate) mod approvals;
/// The result of a backtest.
pub(crate) mod backtest;
/// Replies of a client that differ from the recorded ones.
pub(crate) mod client_reply;
/// Text that fits the columns of a terminal.
pub(crate) mod columns;
/// Differences between two values, as lines.
pub(crate) mod diff;
/// A request that the tape has no answer to.
pub(crate) mod divergence;
/// Why a call is decided as it is.
pub(crate) mod explanation;
/// Writes JSON member by member.
pub(crate) mod json;
/// JSON objects as one document, or one per line.
pub(crate) mod json_list;
/// The JSON report.
pub(crate) mod json_report;
/// The report for CI systems.
pub(crate) mod junit;
/// Events of the activity log, for security systems.
pub(crate) mod ocsf;
/// Words for decisions, durations and sizes.
pub(crate) mod outcome_labels;
/// Colours or none.
pub(crate) mod palette;
/// A unified diff for `patch`.
pub(crate) mod patch;
/// Differences between what servers offer and what was accepted.
pub(crate) mod pins;
/// The result of policy tests.
pub(crate) mod policy_tests;
/// The recorded sessions of a project.
pub(crate) mod recorded_sessions;
/// The result of a run, for machines.
pub(crate) mod report;
/// The report for code scanning.
pub(crate) mod sarif;
/// Changes of a live server.
pub(crate) mod server_change;
pub(crate) mod sessions;
/// Paths as people write them.
pub(crate) mod short_path;
/// Statistics of tapes.
pub(crate) mod stats;
/// The result of a replay.
pub(crate) mod summary;
/// A tape as a timeline, for people.
pub(crate) mod timeline;
/// A tape as a timeline, for programs.
pub(crate) mod timeline_json;
/// A unified diff.
pub(crate) mod unified_diff;
/// The result of a scenario's expectations.
pub(crate) mod verdict;
/// The result of a verification.
pub(crate) mod verification;

mod json_sanitizer;
mod line_diff;

pub(crate) use tapegate_core::{readable_json, visible_text};

/// A number with its noun: `1 request`, `2 requests`.
pub(crate) fn plural<N: std::fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    format!("{count} {noun}{}", if count == N::from(1) { "" } else { "s" })
}

#[cfg(test)]
mod golden;
