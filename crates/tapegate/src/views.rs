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
/// Texts that fit the columns of a terminal.
pub(crate) mod columns;
/// Differences between two texts, as lines.
pub(crate) mod diff;
/// A request that the tape has no answer to, in words.
pub(crate) mod divergence;
/// Why a call is decided as it is.
pub(crate) mod explained;
/// JSON, written member by member.
pub(crate) mod json;
/// Objects that are one document, or one a line.
pub(crate) mod json_list;
/// The JSON report.
pub(crate) mod json_report;
/// The report for CI systems.
pub(crate) mod junit;
/// Events of the activity log, for security systems.
pub(crate) mod ocsf;
/// Colours, or none.
pub(crate) mod palette;
/// What servers offer otherwise than it was accepted.
pub(crate) mod pinned;
/// JSON that people read.
pub(crate) mod readable;
/// Answers of a client that are not the recorded ones.
pub(crate) mod replied;
/// What a run found, for machines.
pub(crate) mod report;
/// The report for code scanning.
pub(crate) mod sarif;
/// What tapes amount to.
pub(crate) mod stats;
/// What came of a replay, in words.
pub(crate) mod summary;
/// What came of the tests of a policy.
pub(crate) mod tested;
/// A tape as a timeline, for people.
pub(crate) mod timeline;
/// A tape as a timeline, for programs.
pub(crate) mod timeline_json;
/// A unified diff.
pub(crate) mod unified;
/// What came of a scenario's expectations, in words.
pub(crate) mod verdict;
/// What came of a verification, in words.
pub(crate) mod verified;
/// Text that can be seen, and that does nothing to a terminal.
pub(crate) mod visible;
/// One word for one thing.
pub(crate) mod words;

mod lines;
mod tame;

/// A number with its noun: `1 request`, `2 requests`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod golden;
