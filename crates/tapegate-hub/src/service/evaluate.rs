//! Decides about messages on behalf of shims and other clients.

use http::StatusCode;
use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind};
use tapegate_core::decision::LoggedDecision;
use tapegate_policy::decide::{ApprovalScope, DecisionOutcome, PolicyPrincipal};
use tapegate_policy::model::Profile;
use tapegate_store::activity;
use tapegate_store::approvals::ApprovalRecord;

use super::Hub;
use super::evaluation_context::{EvaluationContext, deny_error};
use super::evaluation_query::{DecidedCall, EvaluationAnswer};
use super::response::ApiRefusal;
use super::tasks::{OpenedTask, TaskRequest, WaitEnd, hash_of};
use crate::api::{GovernanceDecision, GovernanceEvaluateRequest, GovernanceEvaluateResponse};
use crate::hub_policy::HubPolicy;
use crate::metrics::MetricName;

impl Hub {
    pub(super) fn evaluate(
        &self,
        request: &GovernanceEvaluateRequest,
    ) -> Result<GovernanceEvaluateResponse, ApiRefusal> {
        let begun = self.clock.now();
        let governed = self.active_policy();
        let case = self.case(&governed, request)?;
        let answered = case.evaluate();
        let mut answer = case.empty_response(self.is_stopping());
        let mut event = case.event();
        case.fill_response(&answered, &mut answer, &mut event);
        let latency_ns = self.clock.now().mono_ns - begun.mono_ns;
        event.latency_us = Some(latency_ns / 1000);
        self.count_evaluation(request, &answer, latency_ns);
        if answer.decision == GovernanceDecision::PendingApproval
            && let EvaluationAnswer::Decided(decided) = &answered.answer
        {
            // Before logging, so that the event names the request.
            self.open(&case, decided, &mut answer, &mut event);
        }
        // A shim has already logged a call that it holds.
        let passes =
            matches!(answered.answer, EvaluationAnswer::Passes) && answered.anomalies.is_empty();
        let quiet = request.held || passes;
        // Logged before the caller gets its answer, as a shim logs before it sends.
        if !quiet && let Err(reason) = self.journal.write(&[event]) {
            self.deny_unlogged(&case, &mut answer, &reason);
        }
        Ok(answer)
    }

    /// Decides again about an approved call: it may be sent unless it is denied by now.
    pub(super) fn reevaluate(
        &self,
        request: &GovernanceEvaluateRequest,
        stored_request: &ApprovalRecord,
    ) -> Result<(GovernanceEvaluateResponse, Option<String>), ApiRefusal> {
        let governed = self.active_policy();
        let case = self.case(&governed, request)?;
        let answered = case.evaluate();
        let mut answer = case.empty_response(self.is_stopping());
        case.fill_response(&answered, &mut answer, &mut case.event());
        let call_hash = match &answered.answer {
            EvaluationAnswer::Decided(decided) => {
                // A call that no longer needs approval is compared under the workflow it was
                // approved for.
                let then = ApprovalScope { workflow: &stored_request.workflow, drift: None };
                let scope = decided.decision.approval_scope().unwrap_or(then);
                Some(hash_of(&decided.method, request, scope))
            }
            EvaluationAnswer::Passes
            | EvaluationAnswer::Faulty(_)
            | EvaluationAnswer::Observed(_) => None,
        };
        if answer.decision == GovernanceDecision::PendingApproval {
            // The approval that the policy still asks for has been given.
            answer.decision = GovernanceDecision::Forward;
        }
        if answer.decision == GovernanceDecision::Deny {
            let subject = case.subject(&answered.answer);
            answer.error = Some(deny_error(&match &answered.answer {
                EvaluationAnswer::Decided(decided) => subject.policy_changed(&decided.decision),
                EvaluationAnswer::Faulty(fault) => subject.malformed_message(*fault),
                EvaluationAnswer::Passes | EvaluationAnswer::Observed(_) => {
                    subject.approval_unavailable("no gate applies to it")
                }
            }));
        }
        Ok((answer, call_hash))
    }

    fn case<'a>(
        &self,
        governed: &'a HubPolicy,
        request: &'a GovernanceEvaluateRequest,
    ) -> Result<EvaluationContext<'a>, ApiRefusal> {
        let request_id = match &request.request_id {
            Some(id) => id.clone(),
            None => tapegate_store::random::id().map_err(|error| {
                let message = format!("cannot generate a random number: {error}");
                ApiRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", &message)
            })?,
        };
        let own = || governed.policy.as_ref().map(|policy| policy.principal.clone());
        let stated_principal = request.principal.as_ref().map(|who| PolicyPrincipal {
            name: who.name.clone(),
            namespace: who.namespace.clone(),
            service_account: who.service_account.clone(),
            roles: who.roles.clone(),
            client: who.client.clone(),
        });
        // A caller's config must not loosen what the hub enforces.
        let profile = stricter_of(governed.profile, request.profile.into());
        let wall_us = self.clock.now().wall_us;
        let principal = stated_principal.or_else(own).unwrap_or_default();
        Ok(EvaluationContext { governed, request, profile, principal, request_id, wall_us })
    }

    /// Asks approvers, or uses an approval that was given before.
    fn open(
        &self,
        case: &EvaluationContext<'_>,
        decided: &DecidedCall,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut ActivityEvent<'_>,
    ) {
        // Only a shim that holds the call may name the workflow; others get the policy's.
        let named = case.request.workflow.clone().filter(|_| case.request.held);
        let workflow = match (&decided.decision.outcome, named) {
            (DecisionOutcome::Hold { workflow }, None) => workflow.clone(),
            (_, named) => named.unwrap_or_default(),
        };
        let shown = self.journal.masked(&decided.name);
        let reason = self.journal.masked(&decided.decision.reason);
        let task_request = TaskRequest {
            shown: &shown,
            reason: &reason,
            governed: case.governed,
            request: case.request,
            principal: &case.principal.name,
            request_id: &case.request_id,
            wall_us: case.wall_us,
            decided,
            workflow: &workflow,
        };
        match self.tasks.open_task(&task_request) {
            Ok(OpenedTask::Task { id, timeout_ms, forward_on_timeout, poll_interval_ms }) => {
                self.metrics.borrow_mut().count(MetricName::TasksCreated, &["approval"]);
                (event.kind, event.approval_id) = (ActivityKind::Approval, Some(id.clone().into()));
                let members = json!({ "workflow": workflow, "timeout_ms": timeout_ms });
                event.extra = activity::extra(&members);
                answer.task_id = Some(id);
                answer.timeout_ms = Some(timeout_ms);
                answer.forward_on_timeout = forward_on_timeout;
                answer.poll_interval_ms = Some(poll_interval_ms);
            }
            Ok(OpenedTask::Before { id, by }) => {
                answer.decision = GovernanceDecision::Forward;
                answer.reason = Some(format!("already approved by {by}"));
                (event.kind, event.approval_id) = (ActivityKind::Approval, Some(id.clone().into()));
                (event.decided_by, event.forwarded) = (Some(by.into()), Some(true));
                event.governance_decision = Some(LoggedDecision::Forward);
                answer.task_id = Some(id);
            }
            Err(reason) => {
                (self.options.notice)(super::NoticeLevel::Error, &reason);
                let subject = case.subject_of(decided);
                answer.decision = GovernanceDecision::Deny;
                answer.error =
                    Some(deny_error(&subject.approval_unavailable("no approver is reachable")));
                event.governance_decision = Some(LoggedDecision::Deny);
                event.policy_reason = Some(reason.clone().into());
                answer.reason = Some(reason);
            }
        }
    }

    /// Handles a log that cannot be written: in production, nothing may happen unlogged.
    fn deny_unlogged(
        &self,
        case: &EvaluationContext<'_>,
        answer: &mut GovernanceEvaluateResponse,
        reason: &str,
    ) {
        (self.options.notice)(super::NoticeLevel::Error, reason);
        if case.profile == Profile::Production {
            if let Some(id) = answer.task_id.take() {
                // Approvers need not decide about a call that is refused.
                self.cancel(&id, WaitEnd::Withdrawn).ok();
            }
            let subject = case.subject(&EvaluationAnswer::Passes);
            answer.decision = GovernanceDecision::Deny;
            answer.error = Some(deny_error(
                &subject.approval_unavailable("the activity log cannot be written"),
            ));
            answer.reason = Some(reason.to_owned());
        }
    }
}

/// A client may ask for a stricter profile than the hub's, never for a laxer one.
fn stricter_of(own: Profile, requested: Profile) -> Profile {
    if own == Profile::Production { own } else { requested }
}
