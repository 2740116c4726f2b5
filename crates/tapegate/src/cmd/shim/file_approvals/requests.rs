//! Makes approval requests and withdraws them.

use tapegate_core::gate::{Approval, HoldEnd, HoldId, HoldOutcome};
use tapegate_core::time::Timestamp;
use tapegate_policy::approval_channel::{ApprovalChannel, ApprovalRequest};
use tapegate_policy::redacted_arguments;
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalError, ApprovalOutcome, ApprovalRecord, new_id,
};

use super::super::journal::connection_of;
use super::{FileApprovals, FileApprovalsInner, OpenApproval};
use crate::logs::VerbosityLevel;

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
            folder: self.folder.clone(),
            policy: self.policy.clone(),
            workflow: approval_request.workflow_name.to_owned(),
            reason: self.journal.masked(approval_request.reason),
            approvers: approval_request.workflow.approvers.clone(),
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
            self.journal.set_approval_id(hold_id, &id);
            let approval = Approval { hold_id, by: decided.by };
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
        self.journal.set_approval_id(hold_id, &request.id);
        let (subject, method) =
            (approval_request.subject.clone(), approval_request.method.to_owned());
        self.open().insert(hold_id, OpenApproval { request, subject, method });
        // The watching task sleeps without the folder while no call waits.
        self.notify.notify_one();
        Ok(())
    }
}

impl ApprovalChannel for FileApprovals {
    fn request_approval(&mut self, hold_id: HoldId, approval_request: &ApprovalRequest<'_>) {
        if let Err(reason) = self.0.open_request(hold_id, approval_request) {
            self.0.journal.print_message(
                VerbosityLevel::Error,
                &format!("cannot request approval: {reason}"),
            );
            let refusal = approval_request.subject.approval_unavailable("no approver is reachable");
            self.0.settle(hold_id, HoldOutcome::Unanswered(refusal));
        }
    }

    fn withdraw_request(&mut self, at: Timestamp, hold_id: HoldId, how: HoldEnd) {
        let Some(open) = self.0.open().remove(&hold_id) else { return };
        let Ok(approvals) = &self.0.approvals else { return };
        let at_us = at.wall_us.max(self.0.clock.now().wall_us);
        // If the file cannot be written, the request stays until it expires.
        let others = approvals.remove_waiter(&open.request.id, at_us).unwrap_or(0);
        let ruling = match how {
            // The request can still be decided; an approval then lets the same call pass once.
            HoldEnd::Abandoned | HoldEnd::Unanswered => return,
            // Another caller waits for the same request.
            _ if others > 0 => return,
            HoldEnd::TimedOut => ApprovalOutcome::Expired,
            HoldEnd::Cancelled | HoldEnd::Closed => ApprovalOutcome::Cancelled,
        };
        let decided = ApprovalDecision { ruling, by: "shim".to_owned(), at_us, reason: None };
        // A person may have decided first; that decision is then kept for the same call.
        approvals.decide(&open.request.id, &decided).ok();
        self.0.report_refused(approvals);
    }
}
