//! Makes approval requests and withdraws them.

use tapegate_core::activity::EventLevel;
use tapegate_core::gate::{Approval, HoldEnd, HoldId, HoldOutcome};
use tapegate_core::time::Timestamp;
use tapegate_policy::approval_channel::{ApprovalChannel, ApprovalRequest, UserAnswer};
use tapegate_policy::granted_calls::GrantedCall;
use tapegate_policy::redacted_arguments;
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalError, ApprovalOutcome, ApprovalRecord, Escalation, new_id,
};

use super::{FileApprovals, FileApprovalsInner};
use crate::journal::connection_of;

impl FileApprovalsInner {
    fn request(&self, approval_request: &ApprovalRequest<'_>) -> ApprovalRecord {
        let created_us = approval_request.at.wall_us;
        let active_policy = self.policy_handle.get();
        // Mask before writing: approvers, lists and hubs show this file.
        let params =
            active_policy.policy.as_ref().zip(approval_request.params).map(|(policy, params)| {
                redacted_arguments::params(
                    &policy.redaction,
                    approval_request.workflow,
                    &self.key,
                    params,
                )
            });
        let policy = active_policy.policy.as_ref();
        let second = policy.and_then(|policy| policy.escalation_of(approval_request.workflow));
        let escalation = second.map(|(second, approvers)| Escalation {
            workflow: second.to.clone(),
            at_us: created_us
                .saturating_add(i64::try_from(second.after.as_micros()).unwrap_or(i64::MAX)),
            approvers: approvers.to_vec(),
        });
        let timeout_us = approval_request.timeout_ms.saturating_mul(1000);
        ApprovalRecord {
            id: String::new(),
            created_us,
            expires_us: created_us.saturating_add(i64::try_from(timeout_us).unwrap_or(i64::MAX)),
            server_id: approval_request.source.to_owned(),
            method: approval_request.method.to_owned(),
            tool: self.journal.masked(&approval_request.subject.name),
            params,
            call_hash: approval_request.call_hash(),
            principal: approval_request.principal.name.clone(),
            is_principal_named: policy.is_some_and(|policy| !policy.principal.name.is_empty()),
            folder: self.folder.clone(),
            policy: self.policy.clone(),
            workflow: approval_request.workflow_name.to_owned(),
            reason: self.journal.masked(approval_request.reason),
            approvers: approval_request.workflow.approvers.clone(),
            quorum: approval_request.workflow.quorum,
            escalation,
            connection_id: connection_of(&self.connection_id, approval_request.lane).into_owned(),
            request_id: approval_request.subject.correlation_id.clone(),
            pid: std::process::id(),
            ..ApprovalRecord::default()
        }
    }

    /// Makes the request, or uses an approval that was given before.
    fn open_request(
        &self,
        hold_id: HoldId,
        approval_request: &ApprovalRequest<'_>,
    ) -> Result<(), String> {
        let approvals = self.approvals.as_ref().map_err(Clone::clone)?;
        let request = self.request(approval_request);
        let message = |error: ApprovalError| error.to_string();
        let before =
            approvals.find_earlier_approval(&request, request.created_us).map_err(message)?;
        // The lookup may have set forged files aside.
        self.report_refused(approvals);
        if let Some((id, decided)) = before {
            self.holds.set_approval_id(hold_id, &id);
            self.holds.settle(hold_id);
            let approval = Approval { hold_id, by: decided.by };
            self.settle(hold_id, HoldOutcome::Approved(approval));
            return Ok(());
        }
        if self.is_denied(approvals, hold_id, approval_request) {
            return Ok(());
        }
        let granted = GrantedCall {
            method: approval_request.method,
            params: approval_request.params.unwrap_or(b"{}"),
            scope: approval_request.scope(),
        };
        let found = approvals.find_grant(&request, request.created_us, |patterns, hash| {
            granted.is_covered(patterns, hash)
        });
        self.report_refused(approvals);
        if let Some(grant) = found.map_err(message)? {
            self.holds.set_approval_id(hold_id, &grant.id);
            self.holds.settle(hold_id);
            let approval = Approval { hold_id, by: grant.by };
            self.settle(hold_id, HoldOutcome::Approved(approval));
            return Ok(());
        }
        let id = new_id().map_err(|error| error.to_string())?;
        let is_masked = approval_request.params != request.params.as_deref().map(str::as_bytes);
        // A copy with secrets is kept only for calls that approvers cannot judge without it.
        let unmasked = approval_request.params.filter(|_| is_masked);
        let ask_outcome = approvals
            .publish_request_once(&ApprovalRecord { id, ..request }, unmasked)
            .map_err(message)?;
        let request = ask_outcome.into_request();
        self.holds.set_approval_id(hold_id, &request.id);
        self.requests().insert(request.id.clone(), request.clone());
        // The watching task sleeps without the folder while no call waits.
        self.notify.notify_one();
        match &approval_request.answer {
            Some(carried) if carried.approval_id == request.id => {
                self.decide_as_user(approvals, &request, &carried.answer, approval_request.at);
                Ok(())
            }
            _ => self.ask_user(hold_id, approval_request, &request),
        }
    }
}

impl ApprovalChannel for FileApprovals {
    fn request_approval(&mut self, hold_id: HoldId, approval_request: &ApprovalRequest<'_>) {
        self.0.patience.check(approval_request, &self.0.journal);
        if let Err(reason) = self.0.open_request(hold_id, approval_request) {
            self.0
                .journal
                .print_message(EventLevel::Error, &format!("cannot request approval: {reason}"));
            let refusal = approval_request.subject.approval_unavailable("no approver is reachable");
            self.0.settle(hold_id, HoldOutcome::Unanswered(refusal));
        }
    }

    fn withdraw_request(&mut self, at: Timestamp, hold_id: HoldId, how: HoldEnd) {
        // A call that was decided needs no request any more, and one that could not be requested
        // has none.
        let Some(id) = self.0.holds.settle(hold_id).and_then(|held| held.approval_id) else {
            return;
        };
        if self.0.holds.waiting_for(&id).is_empty() {
            self.0.requests().remove(&id);
        }
        let Ok(approvals) = &self.0.approvals else { return };
        let at_us = at.wall_us.max(self.0.clock.now().wall_us);
        // If the file cannot be written, the request stays until it expires.
        let others = approvals.remove_waiter(&id, at_us).unwrap_or(0);
        let ruling = match how {
            // The request can still be decided; an approval then lets the same call pass once.
            HoldEnd::Abandoned | HoldEnd::Asked | HoldEnd::Unanswered => return,
            // Another caller waits for the same request.
            _ if others > 0 => return,
            HoldEnd::TimedOut => ApprovalOutcome::Expired,
            HoldEnd::Cancelled | HoldEnd::Closed => ApprovalOutcome::Cancelled,
        };
        let decided = ApprovalDecision { ruling, by: "shim".to_owned(), at_us, reason: None };
        // A person may have decided first; that decision is then kept for the same call.
        approvals.decide(&id, &decided).ok();
        self.0.report_refused(approvals);
    }

    fn answer_request(&mut self, at: Timestamp, hold_id: HoldId, answer: &UserAnswer) {
        let Ok(approvals) = &self.0.approvals else { return };
        let id = self.0.holds.approval_id(hold_id).unwrap_or_default();
        let request = self.0.requests().get(&id).cloned();
        // Without a request, another approver was first.
        if let Some(request) = request {
            self.0.decide_as_user(approvals, &request, answer, at);
        }
    }
}
