//! Deciding about a message for somebody else.

use std::io;

use http::StatusCode;
use serde_json::value::RawValue;
use tapegate_policy::decide::{Call, Decision, Facts, GateName, Outcome, Principal, decide};
use tapegate_policy::model::{Policy, Profile};

use super::Hub;
use super::answer::Refusal;
use super::subject::{Subject, subject};
use crate::api::{
    DenyError, GovernanceDecision, GovernanceEvaluateRequest, GovernanceEvaluateResponse,
    MessageType, StreamDirection,
};
use crate::token::fresh_name;

impl Hub {
    pub(super) fn evaluate(
        &self,
        request: GovernanceEvaluateRequest,
    ) -> Result<GovernanceEvaluateResponse, Refusal> {
        let governed = self.governed();
        let profile = stricter(governed.profile, request.profile.into());
        let request_id = match &request.request_id {
            Some(id) => id.clone(),
            None => fresh_name().map_err(|error| no_randomness(&error))?,
        };
        let mut answer = GovernanceEvaluateResponse {
            decision: GovernanceDecision::Forward,
            task_id: None,
            policy_id: None,
            reason: None,
            poll_interval_ms: None,
            shutdown: self.is_stopping(),
            gate: None,
            error: None,
            would: None,
            auto_approved: false,
            timeout_ms: None,
            forward_on_timeout: false,
            request_id: Some(request_id),
            policy_version: Some(governed.version().to_owned()),
        };
        let Some(policy) = &governed.policy else {
            answer.reason = Some("there is no policy".to_owned());
            return Ok(answer);
        };
        if request.direction == StreamDirection::ServerToAgent
            || request.message_type == MessageType::Response
        {
            return Ok(answer);
        }
        let Some(subject) = subject(&request.method, request.params.as_deref()) else {
            return Ok(answer);
        };
        match subject {
            Ok(subject) => {
                let decision = self.decision(policy, profile, &request, &subject);
                fill(&mut answer, policy, &decision, &subject.name);
            }
            Err(why) => {
                answer.gate = Some("framing".to_owned());
                answer.reason = Some(format!("the call does not say what it is about: {why}"));
                refuse(&mut answer, profile, -32602, "invalid_params", "Invalid parameters");
            }
        }
        Ok(answer)
    }

    fn decision(
        &self,
        policy: &Policy,
        profile: Profile,
        request: &GovernanceEvaluateRequest,
        subject: &Subject<'_>,
    ) -> Decision {
        let principal = request.principal.as_ref().map(|who| Principal {
            name: who.name.clone(),
            namespace: who.namespace.clone(),
            service_account: who.service_account.clone(),
            roles: who.roles.clone(),
            client: who.client.clone(),
        });
        let call = Call {
            source: &request.server_id,
            method: &request.method,
            name: &subject.name,
            arguments: subject.arguments.map(RawValue::get).map(str::as_bytes),
        };
        let facts = Facts {
            wall_us: self.clock.now().wall_us,
            principal: principal.as_ref(),
            drift: request.drift.as_deref(),
        };
        decide(policy, profile, &call, &facts)
    }
}

/// Puts a decision into words.
fn fill(
    answer: &mut GovernanceEvaluateResponse,
    policy: &Policy,
    decision: &Decision,
    name: &str,
) {
    answer.gate = Some(gate_word(decision.gate).to_owned());
    answer.policy_id = decision.policies.first().or(decision.rule.as_ref()).cloned();
    answer.reason = Some(decision.reason.clone()).filter(|reason| !reason.is_empty());
    match (&decision.outcome, &decision.strict) {
        (Outcome::Forward, Outcome::Forward) => {}
        (Outcome::Forward, Outcome::Deny) => answer.would = Some("WOULD_BLOCK".to_owned()),
        (Outcome::Forward, Outcome::Hold { .. }) => {
            answer.would = Some("WOULD_REQUIRE_APPROVAL".to_owned());
            answer.auto_approved = true;
        }
        (Outcome::Deny, _) => {
            let (code, error_type, words) = deny_words(decision.gate, name);
            answer.decision = GovernanceDecision::Deny;
            answer.error =
                Some(DenyError { code, message: words, error_type: error_type.to_owned() });
        }
        (Outcome::Hold { workflow }, _) => {
            answer.decision = GovernanceDecision::PendingApproval;
            if let Some(workflow) = policy.workflows.get(workflow) {
                answer.timeout_ms = Some(workflow.timeout.as_millis() as u64);
                answer.forward_on_timeout = workflow.forward_on_timeout;
            }
        }
    }
}

fn refuse(
    answer: &mut GovernanceEvaluateResponse,
    profile: Profile,
    code: i32,
    error_type: &str,
    words: &str,
) {
    if profile == Profile::Development {
        answer.would = Some("WOULD_REJECT".to_owned());
        return;
    }
    answer.decision = GovernanceDecision::Deny;
    let (message, error_type) = (words.to_owned(), error_type.to_owned());
    answer.error = Some(DenyError { code, message, error_type });
}

/// What a caller is told: the code, its name, and words that give no pattern away.
fn deny_words(gate: GateName, name: &str) -> (i32, &'static str, String) {
    match gate {
        GateName::Framing => (-32600, "invalid_request", "Invalid request".to_owned()),
        GateName::Visibility => {
            (-32015, "tool_not_exposed", format!("`{name}` is not available"))
        }
        GateName::Governance => {
            (-32014, "governance_rule_denied", format!("`{name}` is denied by governance rules"))
        }
        GateName::Policy => (-32003, "policy_denied", format!("Policy denied access to `{name}`")),
        GateName::Approval => (-32007, "approval_rejected", format!("`{name}` was not approved")),
    }
}

fn gate_word(gate: GateName) -> &'static str {
    match gate {
        GateName::Framing => "framing",
        GateName::Visibility => "visibility",
        GateName::Governance => "governance",
        GateName::Policy => "policy",
        GateName::Approval => "approval",
    }
}

/// Whoever asks may want more than the hub, never less.
fn stricter(own: Profile, asked: Profile) -> Profile {
    if own == Profile::Production { own } else { asked }
}

fn no_randomness(error: &io::Error) -> Refusal {
    let words = format!("no random number is to be had: {error}");
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", &words)
}
