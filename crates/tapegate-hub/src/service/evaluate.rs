//! Decides about messages on behalf of shims and other clients.

use http::StatusCode;
use tapegate_core::decision::LoggedDecision;
use tapegate_core::json::write_str;
use tapegate_policy::decide::{ApprovalScope, Outcome, Principal};
use tapegate_policy::model::Profile;
use tapegate_store::activity::Event;
use tapegate_store::approvals::Request;

use super::Hub;
use super::answer::Refusal;
use super::case::{Case, told};
use super::question::{Answer, Decided};
use super::tasks::{Asking, Opened, hash_of};
use crate::api::{GovernanceDecision, GovernanceEvaluateRequest, GovernanceEvaluateResponse};
use crate::governed::Governed;
use crate::token::fresh_name;

impl Hub {
    pub(super) fn evaluate(
        &self,
        request: &GovernanceEvaluateRequest,
    ) -> Result<GovernanceEvaluateResponse, Refusal> {
        let begun = self.clock.now();
        let governed = self.governed();
        let case = self.case(&governed, request)?;
        let answered = case.ask();
        let mut answer = case.blank(self.is_stopping());
        let mut event = case.event();
        case.tell(&answered, &mut answer, &mut event);
        let latency_ns = self.clock.now().mono_ns - begun.mono_ns;
        event.latency_us = Some(latency_ns / 1000);
        self.counted(request, &answer, latency_ns);
        if answer.decision == GovernanceDecision::PendingApproval
            && let Answer::Decided(decided) = &answered.answer
        {
            self.open(&case, decided, &mut answer, &mut event);
        }
        // A shim has already logged a call that it holds.
        let passes = matches!(answered.answer, Answer::Passes) && answered.anomalies.is_empty();
        let quiet = request.held || passes;
        if !quiet && let Err(why) = self.journal.write(&[event]) {
            self.unlogged(&case, &mut answer, &why);
        }
        Ok(answer)
    }

    /// Decides again about an approved call: it may be sent unless it is denied by now.
    pub(super) fn reconsider(
        &self,
        request: &GovernanceEvaluateRequest,
        kept: &Request,
    ) -> Result<(GovernanceEvaluateResponse, Option<String>), Refusal> {
        let governed = self.governed();
        let case = self.case(&governed, request)?;
        let answered = case.ask();
        let mut answer = case.blank(self.is_stopping());
        case.tell(&answered, &mut answer, &mut case.event());
        let call_hash = match &answered.answer {
            Answer::Decided(decided) => {
                // A call that no longer needs approval is compared under the workflow it was
                // approved for.
                let then = ApprovalScope { workflow: &kept.workflow, drift: None };
                let scope = decided.decision.approval_scope().unwrap_or(then);
                Some(hash_of(&decided.method, request, scope))
            }
            Answer::Passes | Answer::Faulty(_) | Answer::Observed(_) => None,
        };
        if answer.decision == GovernanceDecision::PendingApproval {
            answer.decision = GovernanceDecision::Forward;
        }
        if answer.decision == GovernanceDecision::Deny {
            let subject = case.subject(&answered.answer);
            answer.error = Some(told(&match &answered.answer {
                Answer::Decided(decided) => subject.changed(&decided.decision),
                Answer::Faulty(fault) => subject.faulty(*fault),
                Answer::Passes | Answer::Observed(_) => {
                    subject.unavailable("no gate applies to it")
                }
            }));
        }
        Ok((answer, call_hash))
    }

    fn case<'a>(
        &self,
        governed: &'a Governed,
        request: &'a GovernanceEvaluateRequest,
    ) -> Result<Case<'a>, Refusal> {
        let request_id = match &request.request_id {
            Some(id) => id.clone(),
            None => fresh_name().map_err(|error| {
                let words = format!("cannot generate a random number: {error}");
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", &words)
            })?,
        };
        let own = || governed.policy.as_ref().map(|policy| policy.principal.clone());
        let told = request.principal.as_ref().map(|who| Principal {
            name: who.name.clone(),
            namespace: who.namespace.clone(),
            service_account: who.service_account.clone(),
            roles: who.roles.clone(),
            client: who.client.clone(),
        });
        let profile = stricter(governed.profile, request.profile.into());
        let wall_us = self.clock.now().wall_us;
        let principal = told.or_else(own).unwrap_or_default();
        Ok(Case { governed, request, profile, principal, request_id, wall_us })
    }

    /// Asks approvers, or uses an approval that was given before.
    fn open(
        &self,
        case: &Case<'_>,
        decided: &Decided,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut Event<'_>,
    ) {
        let named = case.request.workflow.clone().filter(|_| case.request.held);
        let workflow = match (&decided.decision.outcome, named) {
            (Outcome::Hold { workflow }, None) => workflow.clone(),
            (_, named) => named.unwrap_or_default(),
        };
        let shown = self.journal.masked(&decided.name);
        let asking = Asking {
            shown: &shown,
            governed: case.governed,
            request: case.request,
            principal: &case.principal.name,
            request_id: &case.request_id,
            wall_us: case.wall_us,
            decided,
            workflow: &workflow,
        };
        match self.tasks.ask(&asking) {
            Ok(Opened::Task { id, timeout_ms, forward_on_timeout, poll_interval_ms }) => {
                let name = "thoughtgate_tasks_created_total";
                self.metrics.borrow_mut().count(name, &["approval"]);
                (event.kind, event.approval_id) = ("approval", Some(id.clone().into()));
                let mut extra = b"\"workflow\":".to_vec();
                write_str(&mut extra, &workflow);
                extra.extend_from_slice(format!(",\"timeout_ms\":{timeout_ms}").as_bytes());
                event.extra = String::from_utf8_lossy(&extra).into_owned().into();
                answer.task_id = Some(id);
                answer.timeout_ms = Some(timeout_ms);
                answer.forward_on_timeout = forward_on_timeout;
                answer.poll_interval_ms = Some(poll_interval_ms);
            }
            Ok(Opened::Before { id, by }) => {
                answer.decision = GovernanceDecision::Forward;
                answer.reason = Some(format!("already approved by {by}"));
                (event.kind, event.approval_id) = ("approval", Some(id.clone().into()));
                (event.decided_by, event.forwarded) = (Some(by.into()), Some(true));
                event.governance_decision = Some(LoggedDecision::Forward);
                answer.task_id = Some(id);
            }
            Err(why) => {
                (self.options.notice)(super::Level::Error, &why);
                let subject = case.subject_of(decided);
                answer.decision = GovernanceDecision::Deny;
                answer.error = Some(told(&subject.unavailable("no approver is reachable")));
                event.governance_decision = Some(LoggedDecision::Deny);
                event.policy_reason = Some(why.clone().into());
                answer.reason = Some(why);
            }
        }
    }

    /// Handles a log that cannot be written: in production, nothing may happen unlogged.
    fn unlogged(&self, case: &Case<'_>, answer: &mut GovernanceEvaluateResponse, why: &str) {
        (self.options.notice)(super::Level::Error, why);
        if case.profile == Profile::Production {
            if let Some(id) = answer.task_id.take() {
                // Approvers need not decide about a call that is refused.
                self.cancel(&id, false).ok();
            }
            let subject = case.subject(&Answer::Passes);
            answer.decision = GovernanceDecision::Deny;
            answer.error = Some(told(&subject.unavailable("the activity log cannot be written")));
            answer.reason = Some(why.to_owned());
        }
    }
}

/// A client may ask for a stricter profile than the hub's, never for a laxer one.
fn stricter(own: Profile, asked: Profile) -> Profile {
    if own == Profile::Production { own } else { asked }
}
