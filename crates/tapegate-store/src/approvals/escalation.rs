//! Requests that other approvers may decide, too, once they have waited for some time.
//!
//! The request's file has the time and these approvers from the start. So every process knows them,
//! also after a restart, and no agent can bring the time forward.

use rustix::fs::OFlags;

use super::folder::{ApprovalStore, ESCALATED};
use super::id::is_id;
use super::{ApprovalDecision, ApprovalRecord};

/// When a request goes to a second workflow, and who may decide then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Escalation {
    /// The second workflow.
    pub workflow: String,
    /// When, in microseconds since 1970, by the clock of the process that asked.
    pub at_us: i64,
    /// Who may decide then, besides those of the request.
    pub approvers: Vec<String>,
}

impl ApprovalRecord {
    /// The second workflow, if the request has gone to it at this time. `asker_now_us` is by the clock
    /// of the process that asked.
    pub fn escalated_to(&self, asker_now_us: i64) -> Option<&str> {
        let escalation = self.escalation.as_ref()?;
        (asker_now_us >= escalation.at_us).then_some(escalation.workflow.as_str())
    }

    /// Whether the author of a decision is among the approvers that the request had by then.
    pub(super) fn names_approver(&self, decided: &ApprovalDecision) -> bool {
        let second = self.escalation.as_ref().filter(|second| decided.at_us >= second.at_us);
        self.approvers.contains(&decided.by)
            || second.is_some_and(|second| second.approvers.contains(&decided.by))
    }
}

impl ApprovalStore {
    /// Records that a request has gone to its second workflow; false if another process has done so.
    pub fn mark_escalated(&self, id: &str) -> bool {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        is_id(id) && self.folder().file(&format!("{id}{ESCALATED}"), flags).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::folder::tests::{NOW, desk};
    use crate::approvals::{ApprovalError, ApprovalOutcome, new_id};

    const AFTER: i64 = 10_000_000;

    fn asked(approvals: &ApprovalStore) -> ApprovalRecord {
        let escalation = Escalation {
            workflow: "seniors".to_owned(),
            at_us: NOW + AFTER,
            approvers: vec!["bob".to_owned()],
        };
        let request = ApprovalRecord {
            id: new_id().unwrap(),
            created_us: NOW,
            expires_us: NOW + 6 * AFTER,
            approvers: vec!["ann".to_owned()],
            principal: "bob".to_owned(),
            escalation: Some(escalation),
            ..ApprovalRecord::default()
        };
        approvals.publish_request(&request).unwrap();
        request
    }

    fn decided(by: &str, ruling: ApprovalOutcome, at_us: i64) -> ApprovalDecision {
        ApprovalDecision { ruling, by: by.to_owned(), at_us, reason: None }
    }

    #[test]
    fn the_second_approvers_may_decide_from_the_escalation_on_and_the_first_stay() {
        let (_folder, approvals) = desk();
        let (one, two) = (asked(&approvals), asked(&approvals));
        let early = decided("bob", ApprovalOutcome::Denied, NOW + AFTER - 1);
        let refused = approvals.decide(&one.id, &early);
        assert!(matches!(refused, Err(ApprovalError::NotAnApprover { .. })), "{refused:?}");
        let late = decided("bob", ApprovalOutcome::Denied, NOW + AFTER);
        approvals.decide(&one.id, &late).unwrap();
        assert_eq!(approvals.decision(&one.id).unwrap(), Some(late), "it still counts when read");
        let first = decided("ann", ApprovalOutcome::Approved, NOW + 2 * AFTER);
        approvals.decide(&two.id, &first).unwrap();
        assert!(approvals.take_refused().is_empty());
    }

    #[test]
    fn a_second_approver_cannot_approve_their_own_request() {
        let (_folder, approvals) = desk();
        let request = asked(&approvals);
        let own = decided("bob", ApprovalOutcome::Approved, NOW + AFTER);
        let refused = approvals.decide(&request.id, &own);
        assert!(matches!(refused, Err(ApprovalError::OwnRequest { .. })), "{refused:?}");
    }

    #[test]
    fn an_escalation_is_noted_once_and_read_back() {
        let (_folder, approvals) = desk();
        let request = asked(&approvals);
        assert_eq!(approvals.request(&request.id).unwrap().escalation, request.escalation);
        assert_eq!(request.escalated_to(NOW + AFTER - 1), None);
        assert_eq!(request.escalated_to(NOW + AFTER), Some("seniors"));
        assert!(approvals.mark_escalated(&request.id));
        assert!(!approvals.mark_escalated(&request.id));
    }
}
