//! Deciding about a message for somebody else.

use http::StatusCode;
use tapegate_core::gate;
use tapegate_core::json::{member, string, write_str};
use tapegate_policy::decide::{GateName, Outcome, Principal};
use tapegate_policy::inspect::Fault;
use tapegate_policy::model::Profile;
use tapegate_policy::refuse::Subject;
use tapegate_store::activity::Event;

use super::Hub;
use super::answer::Refusal;
use super::journal;
use super::question::{Answer, Decided, Question};
use super::tasks::{Asking, Opened};
use crate::api::{
    DenyError, GovernanceDecision, GovernanceEvaluateRequest, GovernanceEvaluateResponse, JsonRpcId,
};
use crate::governed::Governed;
use crate::token::fresh_name;

/// A question on its way to an answer.
struct Case<'a> {
    governed: &'a Governed,
    request: &'a GovernanceEvaluateRequest,
    profile: Profile,
    principal: Principal,
    request_id: String,
    wall_us: i64,
}

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
            && let Answer::Decided(decided) = &answered
        {
            self.open(&case, decided, &mut answer, &mut event);
        }
        // A shim has written down itself what it holds.
        let quiet = request.held || matches!(answered, Answer::Passes);
        if !quiet && let Err(why) = self.journal.write(&[event]) {
            self.unlogged(&case, &mut answer, &why);
        }
        Ok(answer)
    }

    /// Whether an approved call may still be sent: whatever is not denied by now may.
    pub(super) fn reconsider(
        &self,
        request: &GovernanceEvaluateRequest,
    ) -> Result<(GovernanceEvaluateResponse, Option<String>), Refusal> {
        let governed = self.governed();
        let case = self.case(&governed, request)?;
        let answered = case.ask();
        let mut answer = case.blank(self.is_stopping());
        case.tell(&answered, &mut answer, &mut case.event());
        let call_hash = match &answered {
            Answer::Decided(decided) => Some(decided.call_hash()),
            Answer::Passes | Answer::Faulty(_) => None,
        };
        if answer.decision == GovernanceDecision::PendingApproval {
            answer.decision = GovernanceDecision::Forward;
        }
        if answer.decision == GovernanceDecision::Deny {
            let gate = match &answered {
                Answer::Decided(decided) => decided.decision.gate,
                _ => GateName::Framing,
            };
            let subject = case.subject(&answered);
            answer.error = Some(told(&subject.changed(gate)));
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
                let words = format!("no random number is to be had: {error}");
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

    /// Has people asked.
    fn open(
        &self,
        case: &Case<'_>,
        decided: &Decided,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut Event,
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
                (event.kind, event.approval_id) = ("approval", Some(id.clone()));
                let mut extra = b"\"workflow\":".to_vec();
                write_str(&mut extra, &workflow);
                extra.extend_from_slice(format!(",\"timeout_ms\":{timeout_ms}").as_bytes());
                event.extra = String::from_utf8_lossy(&extra).into_owned();
                answer.task_id = Some(id);
                answer.timeout_ms = Some(timeout_ms);
                answer.forward_on_timeout = forward_on_timeout;
                answer.poll_interval_ms = Some(poll_interval_ms);
            }
            Ok(Opened::Before { id, by }) => {
                answer.decision = GovernanceDecision::Forward;
                answer.reason = Some(format!("it was approved before, by {by}"));
                (event.kind, event.approval_id) = ("approval", Some(id.clone()));
                (event.decided_by, event.forwarded) = (Some(by), Some(true));
                event.governance_decision = Some("forward".to_owned());
                answer.task_id = Some(id);
            }
            Err(why) => {
                (self.options.notice)(super::Level::Error, &why);
                let subject = case.subject_of(decided);
                answer.decision = GovernanceDecision::Deny;
                answer.error = Some(told(&subject.unavailable("nobody can be asked")));
                event.governance_decision = Some("deny".to_owned());
                event.policy_reason = Some(why.clone());
                answer.reason = Some(why);
            }
        }
    }

    /// The log cannot be written: production lets nothing happen untold.
    fn unlogged(&self, case: &Case<'_>, answer: &mut GovernanceEvaluateResponse, why: &str) {
        (self.options.notice)(super::Level::Error, why);
        if case.profile == Profile::Production {
            if let Some(id) = answer.task_id.take() {
                // Nobody is asked about a call that is refused.
                self.cancel(&id).ok();
            }
            let subject = case.subject(&Answer::Passes);
            answer.decision = GovernanceDecision::Deny;
            answer.error = Some(told(&subject.unavailable("the activity log cannot be written")));
            answer.reason = Some(why.to_owned());
        }
    }
}

impl Case<'_> {
    fn ask(&self) -> Answer {
        let question = Question {
            policy: self.governed.policy.as_deref(),
            profile: self.profile,
            wall_us: self.wall_us,
            principal: &self.principal,
            request: self.request,
        };
        let mut answer = question.answer();
        // Whoever has decided itself that people are to be asked is taken at its word.
        if let Answer::Decided(decided) = &mut answer
            && let (true, Some(workflow)) = (self.request.held, &self.request.workflow)
            && decided.decision.strict == Outcome::Forward
            && self.profile == Profile::Production
        {
            decided.decision.outcome = Outcome::Hold { workflow: workflow.clone() };
            decided.decision.gate = GateName::Approval;
        }
        answer
    }

    /// An answer that has yet to be filled in.
    fn blank(&self, shutdown: bool) -> GovernanceEvaluateResponse {
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

    fn event(&self) -> Event {
        let request = self.request;
        let text = |text: &Option<String>| text.clone();
        Event {
            server_id: request.server_id.clone(),
            direction: Some(request.direction.name()),
            method: Some(request.method.clone()),
            message_id: request.id.as_ref().map(JsonRpcId::plain),
            policy_version: Some(self.governed.version().to_owned()).filter(|it| !it.is_empty()),
            principal: Some(self.principal.name.clone()).filter(|name| !name.is_empty()),
            connection_id: request.connection_id.clone().unwrap_or_default(),
            request_id: Some(self.request_id.clone()),
            tape_session_id: text(&request.tape_session_id),
            tape_seq: request.tape_seq,
            traceparent: traceparent(request).or_else(|| text(&request.traceparent)),
            ..journal::event(self.wall_us, "info", "decision", self.profile)
        }
    }

    /// Puts what was found out into an answer, and into the log.
    fn tell(&self, answered: &Answer, answer: &mut GovernanceEvaluateResponse, event: &mut Event) {
        match answered {
            Answer::Passes => {
                if self.governed.policy.is_none() {
                    answer.reason = Some("there is no policy".to_owned());
                }
            }
            Answer::Faulty(fault) => self.tell_fault(*fault, answer, event),
            Answer::Decided(decided) => self.tell_decision(decided, answer, event),
        }
        event.policy_reason = answer.reason.clone();
        event.forwarded = Some(answer.decision == GovernanceDecision::Forward);
        if event.forwarded == Some(false) || answer.would.is_some() {
            event.level = "warn";
        }
    }

    fn tell_fault(&self, fault: Fault, answer: &mut GovernanceEvaluateResponse, event: &mut Event) {
        answer.gate = Some(GateName::Framing.name().to_owned());
        answer.reason = Some(fault.words().to_owned());
        (event.kind, event.gate) = ("framing", Some(GateName::Framing.name()));
        event.extra = format!("\"faults\":[\"{}\"]", fault.label());
        if self.profile == Profile::Development {
            answer.would = Some(fault.would().to_owned());
            event.governance_decision = Some(fault.would().to_owned());
            return;
        }
        answer.decision = GovernanceDecision::Deny;
        answer.error = Some(told(&self.subject(&Answer::Faulty(fault)).faulty(fault)));
        event.governance_decision = Some("reject".to_owned());
    }

    fn tell_decision(
        &self,
        decided: &Decided,
        answer: &mut GovernanceEvaluateResponse,
        event: &mut Event,
    ) {
        let decision = &decided.decision;
        answer.gate = Some(decision.gate.name().to_owned());
        answer.policy_id = decision.policies.first().or(decision.rule.as_ref()).cloned();
        answer.reason = Some(decision.reason.clone()).filter(|reason| !reason.is_empty());
        answer.auto_approved = decision.auto_approved();
        if decision.word().starts_with("WOULD_") {
            answer.would = Some(decision.word().to_owned());
        }
        answer.decision = match decision.outcome {
            Outcome::Forward => GovernanceDecision::Forward,
            Outcome::Deny => GovernanceDecision::Deny,
            Outcome::Hold { .. } => GovernanceDecision::PendingApproval,
        };
        if answer.decision == GovernanceDecision::Deny {
            answer.error = Some(told(&self.subject_of(decided).denied(decision)));
        }
        event.tool = Some(decided.name.clone()).filter(|name| !name.is_empty());
        event.governance_decision = Some(decision.word().to_owned());
        event.gate = Some(decision.gate.name());
        event.rule.clone_from(&decision.rule);
        event.policies.clone_from(&decision.policies);
        event.auto_approved = decision.auto_approved();
    }

    fn subject(&self, answered: &Answer) -> Subject {
        match answered {
            Answer::Decided(decided) => self.subject_of(decided),
            _ => Subject {
                word: "method",
                name: self.request.method.clone(),
                correlation_id: self.request_id.clone(),
            },
        }
    }

    fn subject_of(&self, decided: &Decided) -> Subject {
        let (word, name) = (decided.word, decided.name.clone());
        Subject { word, name, correlation_id: self.request_id.clone() }
    }
}

/// What a caller is told.
fn told(refusal: &gate::Refusal) -> DenyError {
    let error_type = member(refusal.data.as_bytes(), "error_type").and_then(string);
    DenyError {
        code: refusal.code,
        message: refusal.message.clone(),
        error_type: error_type.unwrap_or_default().into_owned(),
        data: serde_json::value::RawValue::from_string(refusal.data.clone()).ok(),
    }
}

/// The trace that a call belongs to, if it says so itself.
fn traceparent(request: &GovernanceEvaluateRequest) -> Option<String> {
    let params = request.params.as_ref()?.get().as_bytes();
    let text = string(member(member(params, "_meta")?, "traceparent")?)?;
    (text.len() <= 256).then(|| text.into_owned())
}

/// Whoever asks may want more than the hub, never less.
fn stricter(own: Profile, asked: Profile) -> Profile {
    if own == Profile::Production { own } else { asked }
}
