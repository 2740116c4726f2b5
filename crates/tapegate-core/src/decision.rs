//! The decisions that the activity log can contain.
//!
//! One table defines the words that are logged, that `tapegate log --decision` takes and that a hub
//! accepts, so the three cannot differ.

use crate::words::word_enum;

word_enum! {
    /// What was decided about a message, or about a request for approval.
    LoggedDecision {
        /// Sent on.
        Forward = "forward",
        /// Refused by the policy, or by a person.
        Deny = "deny",
        /// Waits for a person's decision.
        PendingApproval = "pending_approval",
        /// A person has approved a request.
        Approved = "approved",
        /// A person has denied a request.
        Denied = "denied",
        /// Refused because no person decided in time.
        ApprovalTimeout = "approval_timeout",
        /// The caller took the call back.
        Cancelled = "cancelled",
        /// The caller gave up waiting; the request stays open for a while.
        Abandoned = "abandoned",
        /// No approver could be asked.
        ServiceUnavailable = "service_unavailable",
        /// The session ended while the call waited.
        Closed = "closed",
        /// A request expired without a person's decision.
        Expired = "expired",
        /// An approval file that was refused.
        Forged = "forged",
        /// An attempt to decide that was refused.
        Refused = "refused",
        /// A malformed message that was answered with an error.
        Reject = "reject",
        /// A malformed message that was not sent on.
        Drop = "drop",
        /// A list that shows less than the server sent.
        Filter = "filter",
        /// Secrets were masked on the wire.
        Redact = "redact",
        /// Suspicious, but sent on.
        Warn = "warn",
        /// Development: production would deny it.
        WouldBlock = "WOULD_BLOCK",
        /// Development: production would ask a person.
        WouldRequireApproval = "WOULD_REQUIRE_APPROVAL",
        /// Development: production would reject it.
        WouldReject = "WOULD_REJECT",
        /// Development: production would drop it.
        WouldDrop = "WOULD_DROP",
        /// Development: production would show less of the list.
        WouldFilter = "WOULD_FILTER",
        /// Development: production would mask secrets.
        WouldRedact = "WOULD_REDACT",
    }
}

impl LoggedDecision {
    /// Parses a log word, ignoring case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|decision| decision.as_str().eq_ignore_ascii_case(word))
    }

    /// Whether this is what production would have done, logged by development.
    pub fn is_hypothetical(self) -> bool {
        self.as_str().starts_with("WOULD_")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_means_one_decision() {
        for decision in LoggedDecision::ALL {
            assert_eq!(LoggedDecision::parse(decision.as_str()), Some(*decision));
            let lower = decision.as_str().to_ascii_lowercase();
            assert_eq!(LoggedDecision::parse(&lower), Some(*decision));
        }
        assert_eq!(LoggedDecision::parse("allow"), None);
    }
}
