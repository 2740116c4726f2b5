//! A request for a decision while it is processed: fills in the response and the log event.

use std::borrow::Cow;

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_core::decision::LoggedDecision;
use tapegate_core::gate;
use tapegate_core::json::{member, string};
use tapegate_policy::decide::{DecisionOutcome, GateName, PolicyPrincipal};
use tapegate_policy::inspect::MessageFault;
use tapegate_policy::model::Profile;
use tapegate_policy::refuse::RefusalSubject;
use tapegate_policy::trace::is_traceparent;
use tapegate_store::activity;

use super::evaluation_query::{DecidedCall, EvaluationAnswer, EvaluationQuery, EvaluationResult};
use super::journal;
use crate::api::{
    DenyError, GovernanceDecision, GovernanceEvaluateRequest, GovernanceEvaluateResponse,
};
use crate::hub_policy::HubPolicy;

/// A request for a decision while it is processed.
pub(super) struct EvaluationContext<'a> {
    pub(super) governed: &'a HubPolicy,
    pub(super) request: &'a GovernanceEvaluateRequest,
    pub(super) profile: Profile,
    pub(super) principal: PolicyPrincipal,
    pub(super) request_id: String,
    pub(super) wall_us: i64,
}

impl EvaluationContext<'_> {
    pub(super) fn evaluate(&self) -> EvaluationResult {
        let question = EvaluationQuery {
            policy: self.governed.policy.as_deref(),
            profile: self.profile,
            wall_us: self.wall_us,
            principal: &self.principal,
            request: self.request,
        };
        let mut answered = question.judge();
        // A shim that has itself decided to hold a call is trusted.
        if let EvaluationAnswer::Decided(decided) = &mut answered.answer
            && let (true, Some(workflow)) = (self.request.held, &self.request.workflow)
            // Only where the hub itself would forward: what it denies stays denied.
            && decided.decision.strict == DecisionOutcome::Forward
            && self.profile == Profile::Production
        {
            decided.decision.outcome = DecisionOutcome::Hold { workflow: workflow.clone() };
            decided.decision.gate = GateName::Approval;
        }
        answered
    }

    /// A response with no decision filled in yet.
    pub(super) fn empty_response(&self, shutdown: bool) -> GovernanceEvaluateResponse {
        let version = self.governed.version();
        GovernanceEvaluateResponse {
            decision: GovernanceDecision::Forward,
            task_id: None,
            policy_id: None,
            reason: None,
            poll_interval_ms: None,
            shutdown,
            gate: None,
            error: None,
            would: None,
            auto_approved: false,
            timeout_ms: None,
            forward_on_timeout: false,
            request_id: Some(self.request_id.clone()),
            policy_version: Some(version.to_owned()).filter(|version| !version.is_empty()),
        }
    }

    pub(super) fn event(&self) -> ActivityEvent<'static> {
        let request = self.request;
        let text = |text: &str| (!text.is_empty()).then(|| Cow::Owned(text.to_owned()));
        let maybe = |text: &Option<String>| text.clone().map(Cow::Owned);
        ActivityEvent {
            server_id: request.server_id.clone().into(),
            direction: Some(request.direction.into()),
            method: Some(request.method.clone().into()),
            message_id: request.id.as_ref().map(|id| id.plain().into()),
            policy_version: text(self.governed.version()),
            principal: text(&self.principal.name),
            connection_id: request.connection_id.clone().unwrap_or_default().into(),
            request_id: Some(self.request_id.clone().into()),
            tape_session_id: maybe(&request.tape_session_id),
            tape_seq: request.tape_seq,
            traceparent: traceparent(request)
                .map(Cow::Owned)
                .or(maybe(&request.traceparent))
                // It is logged unmasked, so it must not be any other text.
                .filter(|text| is_traceparent(text)),
            ..journal::event(self.wall_us, EventLevel::Info, ActivityKind::Decision, self.profile)
        }
    }

    /// Fills the decision into the response and the log event.
    pub(super) fn fill_response(
        &self,
        answered: &EvaluationResult,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut ActivityEvent<'_>,
    ) {
        match &answered.answer {
            EvaluationAnswer::Passes => {}
            EvaluationAnswer::Observed(name) => {
                answer.reason = Some("there is no policy".to_owned());
                event.tool = Some(name.clone().into());
                event.governance_decision = Some(LoggedDecision::Forward);
            }
            EvaluationAnswer::Faulty(fault) => self.fill_fault(*fault, answer, event),
            EvaluationAnswer::Decided(decided) => self.fill_decision(decided, answer, event),
        }
        event.policy_reason = answer.reason.clone().map(Cow::Owned);
        event.forwarded = Some(answer.decision == GovernanceDecision::Forward);
        if !answered.anomalies.is_empty() {
            let labels: Vec<_> = answered.anomalies.iter().map(|fault| fault.label()).collect();
            event.extra = activity::extra(&json!({ "faults": labels }));
        }
        let odd = answer.would.is_some() || !answered.anomalies.is_empty();
        if event.forwarded == Some(false) || odd {
            event.level = EventLevel::Warn;
        }
    }

    fn fill_fault(
        &self,
        fault: MessageFault,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut ActivityEvent<'_>,
    ) {
        answer.gate = Some(GateName::Framing.as_str().to_owned());
        answer.reason = Some(fault.message().to_owned());
        (event.kind, event.gate) = (ActivityKind::Framing, Some(GateName::Framing));
        event.extra = activity::extra(&json!({ "faults": [fault.label()] }));
        if self.profile == Profile::Development {
            answer.would = Some(fault.production_outcome().as_str().to_owned());
            event.governance_decision = Some(fault.production_outcome());
            return;
        }
        answer.decision = GovernanceDecision::Deny;
        answer.error = Some(deny_error(
            &self.subject(&EvaluationAnswer::Faulty(fault)).malformed_message(fault),
        ));
        event.governance_decision = Some(LoggedDecision::Reject);
    }

    fn fill_decision(
        &self,
        decided: &DecidedCall,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut ActivityEvent<'_>,
    ) {
        let decision = &decided.decision;
        answer.gate = Some(decision.gate.as_str().to_owned());
        let policy = decision.policies.first().map(String::as_str);
        answer.policy_id = policy.or(decision.rule.as_deref()).map(str::to_owned);
        answer.reason = Some(decision.reason.to_string()).filter(|reason| !reason.is_empty());
        answer.auto_approved = decision.is_auto_approved();
        if decision.logged().is_hypothetical() {
            answer.would = Some(decision.logged().as_str().to_owned());
        }
        answer.decision = match decision.outcome {
            DecisionOutcome::Forward => GovernanceDecision::Forward,
            DecisionOutcome::Deny => GovernanceDecision::Deny,
            DecisionOutcome::Hold { .. } => GovernanceDecision::PendingApproval,
        };
        if answer.decision == GovernanceDecision::Deny {
            answer.error = Some(deny_error(&self.subject_of(decided).policy_denial(decision)));
        }
        event.tool = (!decided.name.is_empty()).then(|| decided.name.clone().into());
        event.governance_decision = Some(decision.logged());
        event.gate = Some(decision.gate);
        event.rule = decision.rule.as_deref().map(|rule| Cow::Owned(rule.to_owned()));
        event.policies = decision.policies.clone().into();
        event.auto_approved = decision.is_auto_approved();
    }

    pub(super) fn subject(&self, answered: &EvaluationAnswer) -> RefusalSubject {
        match answered {
            EvaluationAnswer::Decided(decided) => self.subject_of(decided),
            _ => RefusalSubject {
                word: "method",
                name: self.request.method.clone(),
                correlation_id: self.request_id.clone(),
            },
        }
    }

    pub(super) fn subject_of(&self, decided: &DecidedCall) -> RefusalSubject {
        let (word, name) = (decided.word, decided.name.clone());
        RefusalSubject { word, name, correlation_id: self.request_id.clone() }
    }
}

/// The error that the caller gets.
pub(super) fn deny_error(refusal: &gate::Refusal) -> DenyError {
    let error_type = member(refusal.data.as_bytes(), "error_type").and_then(string);
    DenyError {
        code: refusal.code,
        message: refusal.message.clone(),
        error_type: error_type.unwrap_or_default().into_owned(),
        data: serde_json::value::RawValue::from_string(refusal.data.clone()).ok(),
    }
}

/// The trace that a call belongs to, if its `_meta` names one.
fn traceparent(request: &GovernanceEvaluateRequest) -> Option<String> {
    let params = request.params.as_ref()?.get().as_bytes();
    let text = string(member(member(params, "_meta")?, "traceparent")?)?;
    (text.len() <= 256).then(|| text.into_owned())
}
