//! A request for a decision while it is processed: fills in the response and the log event.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::gate;
use tapegate_core::json::{member, string};
use tapegate_policy::decide::{GateName, Outcome, Principal};
use tapegate_policy::inspect::Fault;
use tapegate_policy::model::Profile;
use tapegate_policy::refuse::Subject;
use tapegate_policy::trace::is_traceparent;
use tapegate_store::activity::Event;

use super::journal;
use super::question::{Answer, Answered, Decided, Question};
use crate::api::{
    DenyError, GovernanceDecision, GovernanceEvaluateRequest, GovernanceEvaluateResponse,
};
use crate::governed::Governed;

/// A request for a decision while it is processed.
pub(super) struct Case<'a> {
    pub(super) governed: &'a Governed,
    pub(super) request: &'a GovernanceEvaluateRequest,
    pub(super) profile: Profile,
    pub(super) principal: Principal,
    pub(super) request_id: String,
    pub(super) wall_us: i64,
}

impl Case<'_> {
    pub(super) fn ask(&self) -> Answered {
        let question = Question {
            policy: self.governed.policy.as_deref(),
            profile: self.profile,
            wall_us: self.wall_us,
            principal: &self.principal,
            request: self.request,
        };
        let mut answered = question.answer();
        // A shim that has itself decided to hold a call is trusted.
        if let Answer::Decided(decided) = &mut answered.answer
            && let (true, Some(workflow)) = (self.request.held, &self.request.workflow)
            && decided.decision.strict == Outcome::Forward
            && self.profile == Profile::Production
        {
            decided.decision.outcome = Outcome::Hold { workflow: workflow.clone() };
            decided.decision.gate = GateName::Approval;
        }
        answered
    }

    /// A response with no decision filled in yet.
    pub(super) fn blank(&self, shutdown: bool) -> GovernanceEvaluateResponse {
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

    pub(super) fn event(&self) -> Event<'static> {
        let request = self.request;
        let text = |text: &str| (!text.is_empty()).then(|| Cow::Owned(text.to_owned()));
        let maybe = |text: &Option<String>| text.clone().map(Cow::Owned);
        Event {
            server_id: request.server_id.clone().into(),
            direction: Some(request.direction.name()),
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
                .filter(|text| is_traceparent(text)),
            ..journal::event(self.wall_us, "info", "decision", self.profile)
        }
    }

    /// Fills the decision into the response and the log event.
    pub(super) fn tell(
        &self,
        answered: &Answered,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut Event<'_>,
    ) {
        match &answered.answer {
            Answer::Passes => {}
            Answer::Observed(name) => {
                answer.reason = Some("there is no policy".to_owned());
                event.tool = Some(name.clone().into());
                event.governance_decision = Some(LoggedDecision::Forward);
            }
            Answer::Faulty(fault) => self.tell_fault(*fault, answer, event),
            Answer::Decided(decided) => self.tell_decision(decided, answer, event),
        }
        event.policy_reason = answer.reason.clone().map(Cow::Owned);
        event.forwarded = Some(answer.decision == GovernanceDecision::Forward);
        if !answered.anomalies.is_empty() {
            let labels = answered.anomalies.iter().map(|fault| format!("\"{}\"", fault.label()));
            event.extra = format!("\"faults\":[{}]", labels.collect::<Vec<_>>().join(",")).into();
        }
        let odd = answer.would.is_some() || !answered.anomalies.is_empty();
        if event.forwarded == Some(false) || odd {
            event.level = "warn";
        }
    }

    fn tell_fault(
        &self,
        fault: Fault,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut Event<'_>,
    ) {
        answer.gate = Some(GateName::Framing.name().to_owned());
        answer.reason = Some(fault.words().to_owned());
        (event.kind, event.gate) = ("framing", Some(GateName::Framing.name()));
        event.extra = format!("\"faults\":[\"{}\"]", fault.label()).into();
        if self.profile == Profile::Development {
            answer.would = Some(fault.would().word().to_owned());
            event.governance_decision = Some(fault.would());
            return;
        }
        answer.decision = GovernanceDecision::Deny;
        answer.error = Some(told(&self.subject(&Answer::Faulty(fault)).faulty(fault)));
        event.governance_decision = Some(LoggedDecision::Reject);
    }

    fn tell_decision(
        &self,
        decided: &Decided,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut Event<'_>,
    ) {
        let decision = &decided.decision;
        answer.gate = Some(decision.gate.name().to_owned());
        let policy = decision.policies.first().map(String::as_str);
        answer.policy_id = policy.or(decision.rule.as_deref()).map(str::to_owned);
        answer.reason = Some(decision.reason.to_string()).filter(|reason| !reason.is_empty());
        answer.auto_approved = decision.auto_approved();
        if decision.logged().is_hypothetical() {
            answer.would = Some(decision.logged().word().to_owned());
        }
        answer.decision = match decision.outcome {
            Outcome::Forward => GovernanceDecision::Forward,
            Outcome::Deny => GovernanceDecision::Deny,
            Outcome::Hold { .. } => GovernanceDecision::PendingApproval,
        };
        if answer.decision == GovernanceDecision::Deny {
            answer.error = Some(told(&self.subject_of(decided).denied(decision)));
        }
        event.tool = (!decided.name.is_empty()).then(|| decided.name.clone().into());
        event.governance_decision = Some(decision.logged());
        event.gate = Some(decision.gate.name());
        event.rule = decision.rule.as_deref().map(|rule| Cow::Owned(rule.to_owned()));
        event.policies = decision.policies.clone().into();
        event.auto_approved = decision.auto_approved();
    }

    pub(super) fn subject(&self, answered: &Answer) -> Subject {
        match answered {
            Answer::Decided(decided) => self.subject_of(decided),
            _ => Subject {
                word: "method",
                name: self.request.method.clone(),
                correlation_id: self.request_id.clone(),
            },
        }
    }

    pub(super) fn subject_of(&self, decided: &Decided) -> Subject {
        let (word, name) = (decided.word, decided.name.clone());
        Subject { word, name, correlation_id: self.request_id.clone() }
    }
}

/// The error that the caller gets.
pub(super) fn told(refusal: &gate::Refusal) -> DenyError {
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
