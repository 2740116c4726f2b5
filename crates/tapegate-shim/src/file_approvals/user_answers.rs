//! Asks the user of the client about a call, and decides as the user has answered.

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel};
use tapegate_core::gate::{HoldId, HoldOutcome, UserChoice};
use tapegate_core::time::Timestamp;
use tapegate_policy::approval_channel::{ApprovalRequest, UserAnswer};
use tapegate_policy::user_question::QuestionText;
use tapegate_store::activity::{self, log_event, settled_event};
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalError, ApprovalOutcome, ApprovalRecord, ApprovalStore,
};

use super::FileApprovalsInner;
use crate::user_asking;

impl FileApprovalsInner {
    /// Asks the client's user, if the workflow permits it and the client can do it.
    pub(super) fn ask_user(
        &self,
        hold_id: HoldId,
        approval_request: &ApprovalRequest<'_>,
        request: &ApprovalRecord,
    ) -> Result<(), String> {
        let Some(mode) = approval_request.ask else { return Ok(()) };
        let names = (request.tool.as_str(), request.reason.as_str());
        let params = request.params.as_deref().unwrap_or_default();
        let text = QuestionText::new(approval_request, params, names, Some(&request.id));
        let about = user_asking::AskedCall {
            approval_id: &request.id,
            call_hash: &request.call_hash,
            expires_us: request.expires_us,
        };
        let outcome = user_asking::question(mode, &text, &about, self.states.as_ref())?;
        self.settle(hold_id, outcome);
        Ok(())
    }

    /// Refuses a call that comes with an answer, if it was denied before the answer came.
    pub(super) fn is_denied(
        &self,
        approvals: &ApprovalStore,
        hold_id: HoldId,
        approval_request: &ApprovalRequest<'_>,
    ) -> bool {
        let Some(carried) = &approval_request.answer else { return false };
        let decided = approvals.decision(&carried.approval_id).ok().flatten();
        let Some(decided) = decided.filter(|one| one.ruling == ApprovalOutcome::Denied) else {
            return false;
        };
        self.holds.set_approval_id(hold_id, &carried.approval_id);
        if let Some(held) = self.holds.settle(hold_id) {
            self.note_decision(&held, decided.ruling.as_str(), &decided);
            let refusal = held.subject.approval_rejected(decided.reason.as_deref());
            self.settle(hold_id, HoldOutcome::Refused(refusal));
        }
        true
    }

    /// Decides as the client's user has answered, unless another approver was first.
    pub(super) fn decide_as_user(
        &self,
        approvals: &ApprovalStore,
        request: &ApprovalRecord,
        answer: &UserAnswer,
        at: Timestamp,
    ) {
        let ruling = match answer.choice {
            Some(UserChoice::Approve) => ApprovalOutcome::Approved,
            Some(UserChoice::Deny) => ApprovalOutcome::Denied,
            // Others can still decide.
            None => return self.note_unanswered(request, answer, at),
        };
        let decided = ApprovalDecision { ruling, by: answer.by(), at_us: at.wall_us, reason: None };
        let extra = activity::extra(&json!({ "channel": "client", "client": answer.client }));
        let event = ActivityEvent {
            component: Some(EventComponent::Shim),
            extra,
            ..settled_event(request, &decided)
        };
        let log = || log_event(&self.state, &event);
        match approvals.decide_and_log(&request.id, &decided, log) {
            // A decision that could not be logged is logged later.
            Ok(_) | Err(ApprovalError::AlreadyDecided { .. } | ApprovalError::Expired { .. }) => {}
            Err(error) => {
                let message = format!("cannot decide as the client's user has answered: {error}");
                self.journal.print_message(EventLevel::Error, &message);
            }
        }
        // The loop that watches the folder passes the decision on.
        self.notify.notify_one();
    }

    /// Logs that the user was asked and has not decided.
    fn note_unanswered(&self, request: &ApprovalRecord, answer: &UserAnswer, at: Timestamp) {
        let message = format!("the user of {} has not decided", answer.client);
        self.journal.log_event(ActivityEvent {
            wall_us: at.wall_us,
            level: EventLevel::Info,
            kind: ActivityKind::Approval,
            method: Some(request.method.as_str().into()),
            tool: Some(request.tool.as_str().into()),
            policy_reason: Some(message.into()),
            approval_id: Some(request.id.as_str().into()),
            extra: activity::extra(&json!({ "event": "unanswered", "client": answer.client })),
            ..ActivityEvent::default()
        });
    }
}
