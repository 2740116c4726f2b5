//! Counts the calls of one connection, and what became of them, from the lines of the log.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use tapegate_core::decision::LoggedDecision;

use super::LoggedEvent;

/// How many requests are told apart; beyond it, each line counts as one.
const REQUESTS_MAX: usize = 100_000;

/// The calls of one connection.
#[derive(Debug, Default)]
pub struct CallTally {
    /// How many calls were made.
    pub calls: u64,
    /// How many of them were denied, by the policy or by a person.
    pub denials: u64,
    /// How many were approved by a person.
    pub approvals: u64,
    /// A call may have several lines: held, approved, forwarded.
    requests: HashMap<u64, RequestMarks>,
}

/// What has been counted about a request.
#[derive(Debug, Default)]
struct RequestMarks {
    is_called: bool,
    is_denied: bool,
    is_approved: bool,
}

impl CallTally {
    /// Counts a line of this connection. The same `hasher` must be used for all of them.
    pub fn note_line(&mut self, line: &LoggedEvent, hasher: &RandomState) {
        let text = |key| line.str(key).unwrap_or_default();
        let Some(decision) = LoggedDecision::parse(&text("governance_decision")) else { return };
        let (method, request) = (text("method"), text("request_id"));
        let is_marked = !request.is_empty() && self.requests.len() < REQUESTS_MAX;
        let mut unmarked = RequestMarks::default();
        let marks = match is_marked {
            true => self.requests.entry(hasher.hash_one(&*request)).or_default(),
            false => &mut unmarked,
        };
        let count = |mark: &mut bool, holds: bool| {
            u64::from(holds && !std::mem::replace(mark, *mark || holds))
        };
        let is_denial = matches!(
            decision,
            LoggedDecision::Deny
                | LoggedDecision::Denied
                | LoggedDecision::ApprovalTimeout
                | LoggedDecision::ServiceUnavailable
        );
        self.calls += count(&mut marks.is_called, method == "tools/call");
        self.denials += count(&mut marks.is_denied, is_denial);
        self.approvals += count(&mut marks.is_approved, decision == LoggedDecision::Approved);
    }

    /// Frees what tells requests apart, once the connection has ended.
    pub fn forget_requests(&mut self) {
        self.requests = HashMap::new();
    }
}
