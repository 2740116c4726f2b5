//! Finds decisions in the approvals folder and passes them on to the wire.

use serde_json::json;
use std::borrow::Cow;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel, GateName};
use tapegate_core::decision::LoggedDecision;
use tapegate_core::side::Side;

use tapegate_core::gate::{Approval, HoldId, HoldOutcome};
use tapegate_policy::hold_register::GateHold;
use tapegate_store::activity;
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalError, ApprovalOutcome, ApprovalRecord, ApprovalStore,
};

use super::{FileApprovals, FileApprovalsInner};

impl FileApprovals {
    /// Passes on the decisions made since the last look.
    pub(super) fn process_decisions(&self, approvals: &ApprovalStore) {
        // Copies, because settling a call takes the same lock.
        let requests: Vec<ApprovalRecord> = self.0.requests().values().cloned().collect();
        for request in requests {
            // Hold ids ascend, so the newest call is the last.
            let hold_ids = self.0.holds.waiting_for(&request.id);
            if hold_ids.is_empty() {
                // The last call has just been withdrawn, and must not use up an approval.
                self.0.requests().remove(&request.id);
                continue;
            }
            match self.0.find_decision(approvals, &request) {
                Ok(None) => self.0.release_if_approved_elsewhere(approvals, &hold_ids, &request),
                Ok(Some(decided)) => {
                    self.0.settle_calls(approvals, &hold_ids, &request.id, &decided);
                    self.0.log_unlogged();
                }
                Err(error) => {
                    self.0.requests().remove(&request.id);
                    hold_ids.iter().for_each(|hold_id| {
                        self.0.settle_unavailable(*hold_id, &error.to_string())
                    });
                }
            }
        }
        self.0.report_refused(approvals);
    }
}

impl FileApprovalsInner {
    /// The decision about a request made here. A request file that was changed or removed is
    /// restored, so that people decide about what will be sent.
    fn find_decision(
        &self,
        approvals: &ApprovalStore,
        request: &ApprovalRecord,
    ) -> Result<Option<ApprovalDecision>, ApprovalError> {
        match approvals.request(&request.id) {
            Err(ApprovalError::Unknown { .. }) => {
                approvals.publish_request(request).or_else(|error| match error {
                    // Another session that shares the request has restored it first.
                    ApprovalError::Exists { .. } => Ok(()),
                    error => Err(error),
                })?;
                approvals.decision_for(request)
            }
            Ok(current) => {
                // The request may expire later by now, because the same call was made again.
                let expires_us = current.expires_us.max(request.expires_us);
                approvals.decision_for(&ApprovalRecord { expires_us, ..request.clone() })
            }
            Err(error) => Err(error),
        }
    }

    /// Settles the identical calls that waited for a decision, oldest first.
    fn settle_calls(
        &self,
        approvals: &ApprovalStore,
        hold_ids: &[HoldId],
        id: &str,
        decided: &ApprovalDecision,
    ) {
        self.requests().remove(id);
        let settled = hold_ids.iter().filter_map(|&id| Some((id, self.holds.settle(id)?)));
        let mut waiting: Vec<(HoldId, GateHold)> = settled.collect();
        if decided.ruling != ApprovalOutcome::Approved {
            for (hold_id, held) in waiting {
                self.note_decision(&held, decided.ruling.as_str(), decided);
                let refusal = held.subject.approval_rejected(decided.reason.as_deref());
                self.settle(hold_id, HoldOutcome::Refused(refusal));
            }
            return;
        }
        // One approval sends one call: the newest, since callers that repeat a call have often
        // given up the earlier one without cancelling it.
        // Used up before it is sent: if we are killed in between, the call is lost, never repeated.
        let newest = match approvals.use_approval(id) {
            Ok(true) => waiting.pop(),
            // Another process has sent its call for this approval.
            Ok(false) => None,
            Err(error) => {
                for (hold_id, held) in waiting {
                    let refusal = held.subject.approval_unavailable(&error.to_string());
                    self.settle(hold_id, HoldOutcome::Unanswered(refusal));
                }
                return;
            }
        };
        for (hold_id, held) in waiting {
            self.note_decision(&held, "superseded", decided);
            self.settle(hold_id, HoldOutcome::Refused(held.subject.superseded_by_identical()));
        }
        if let Some((hold_id, _)) = newest {
            let approval = Approval { hold_id, by: decided.by.clone() };
            self.settle(hold_id, HoldOutcome::Approved(approval));
        }
    }

    /// Sends the newest of these calls if an identical call was approved after its caller gave up.
    fn release_if_approved_elsewhere(
        &self,
        approvals: &ApprovalStore,
        hold_ids: &[HoldId],
        request: &ApprovalRecord,
    ) {
        let now_us = self.clock.now().wall_us;
        // An error here shows up at the next look, or when the hold ends.
        let Ok(Some((id, decided))) = approvals.find_earlier_approval(request, now_us) else {
            return;
        };
        let Some(hold_id) = hold_ids.last().copied() else { return };
        if hold_ids.len() == 1 {
            self.requests().remove(&request.id);
        }
        self.holds.settle(hold_id);
        self.holds.set_approval_id(hold_id, &id);
        self.settle(hold_id, HoldOutcome::Approved(Approval { hold_id, by: decided.by }));
        // The request of this call is settled by the other one's approval. Without another caller,
        // approvers need not see it any more.
        if approvals.remove_waiter(&request.id, now_us).is_ok_and(|others| others == 0) {
            approvals.withdraw(&request.id, "shim", now_us).ok();
        }
    }

    fn settle_unavailable(&self, hold_id: HoldId, reason: &str) {
        if let Some(held) = self.holds.settle(hold_id) {
            self.journal
                .print_message(EventLevel::Error, &format!("cannot look up an approval: {reason}"));
            let refusal = held.subject.approval_unavailable("its approval cannot be looked up");
            self.settle(hold_id, HoldOutcome::Unanswered(refusal));
        }
    }

    /// Logs a decision that the gate never sees, because it lets no call pass.
    pub(super) fn note_decision(&self, held: &GateHold, outcome: &str, decided: &ApprovalDecision) {
        let text = Cow::Borrowed;
        self.journal.log_event(ActivityEvent {
            wall_us: decided.at_us,
            level: EventLevel::Warn,
            kind: ActivityKind::Approval,
            direction: Some(Side::Client),
            method: Some(text(&held.method)),
            tool: Some(text(&held.subject.name)),
            governance_decision: Some(LoggedDecision::Deny),
            gate: Some(GateName::Approval),
            policy_reason: decided.reason.as_deref().map(text),
            forwarded: Some(false),
            approval_id: held.approval_id.as_deref().map(text),
            decided_by: Some(text(&decided.by)),
            request_id: Some(text(&held.subject.correlation_id)),
            extra: activity::extra(&json!({ "outcome": outcome })),
            ..ActivityEvent::default()
        });
    }
}
