//! A message that needs a decision, in the form that the policy evaluates.
//!
//! The message is rebuilt from the request and judged by the same code as in a shim.

use tapegate_core::frame::{Frame, notification_text, request_text};
use tapegate_core::side::Side;
use tapegate_policy::decide::{Decision, PolicyPrincipal};
use tapegate_policy::gated_requests::OfferKind;
use tapegate_policy::inspect::{MessageFault, TransportKind};
use tapegate_policy::judge::{Judgement, MessageArrival, PolicyJudge, SessionState};
use tapegate_policy::model::{Policy, Profile};

use crate::api::{GovernanceEvaluateRequest, JsonRpcId, MessageType, StreamDirection};

/// The result for a message, and anomalies of its form that are only logged.
pub(super) struct EvaluationResult {
    pub(super) answer: EvaluationAnswer,
    pub(super) anomalies: Vec<MessageFault>,
}

/// The result for a message.
pub(super) enum EvaluationAnswer {
    /// It passes: nothing in it needs a decision.
    Passes,
    /// It is malformed.
    Faulty(MessageFault),
    /// It calls this, but there is no policy.
    Observed(String),
    /// The policy decided.
    Decided(Box<DecidedCall>),
}

/// A decision, and what it is about.
pub(super) struct DecidedCall {
    /// The method, by the name that rules use.
    pub(super) method: String,
    /// The name or URI of what is called.
    pub(super) name: String,
    /// The kind of thing that is called.
    pub(super) word: &'static str,
    pub(super) decision: Decision,
}

/// What a decision depends on.
pub(super) struct EvaluationQuery<'a> {
    pub(super) policy: Option<&'a Policy>,
    pub(super) profile: Profile,
    pub(super) wall_us: i64,
    pub(super) principal: &'a PolicyPrincipal,
    pub(super) request: &'a GovernanceEvaluateRequest,
}

impl EvaluationQuery<'_> {
    /// Judges the message.
    pub(super) fn judge(&self) -> EvaluationResult {
        let request = self.request;
        // A reply has no method, so there is nothing that a rule could name.
        if request.message_type == MessageType::Response {
            return EvaluationResult { answer: EvaluationAnswer::Passes, anomalies: Vec::new() };
        }
        // The same judge as in a shim: two implementations would drift apart.
        let judge = PolicyJudge {
            policy: self.policy,
            profile: self.profile,
            source: &request.server_id,
            explains: false,
        };
        let from = match request.direction {
            StreamDirection::AgentToServer => Side::Client,
            StreamDirection::ServerToAgent => Side::Server,
        };
        let arrival = MessageArrival {
            from,
            carrier: TransportKind::Http,
            session: 0,
            wall_us: self.wall_us,
        };
        let mut state =
            SessionState::new(self.principal.clone()).with_drift(request.drift.as_deref());
        let message = message(request);
        let frame = Frame::read(&message);
        let judgement = judge.judge(&frame, arrival, &mut state);
        let answer = answer_from_judgement(&judgement);
        EvaluationResult { answer, anomalies: judgement.anomalies().collect() }
    }
}

/// The result of a judgement.
fn answer_from_judgement(judgement: &Judgement<'_>) -> EvaluationAnswer {
    if let Some(fault) = judgement.faults().next() {
        return EvaluationAnswer::Faulty(fault);
    }
    let Some(leading) = judgement.leading_call() else { return EvaluationAnswer::Passes };
    let Some(decision) = &leading.decision else {
        let names: Vec<&str> = judgement.calls.iter().map(|call| &*call.name).collect();
        return EvaluationAnswer::Observed(names.join(" "));
    };
    EvaluationAnswer::Decided(Box::new(DecidedCall {
        method: leading.method.clone().into_owned(),
        name: leading.name.clone().into_owned(),
        word: leading.offer.map_or("method", OfferKind::as_str),
        decision: Decision::clone(decision),
    }))
}

/// Rebuilds the message from the request.
fn message(request: &GovernanceEvaluateRequest) -> Vec<u8> {
    let params = request.params.as_ref().map(|params| params.get().as_bytes());
    if request.message_type != MessageType::Request {
        return notification_text(&request.method, params);
    }
    // The id is optional, and no decision depends on it.
    let id = request.id.as_ref().map_or_else(|| "0".to_owned(), JsonRpcId::to_json);
    request_text(id.as_bytes(), &request.method, params)
}

#[cfg(test)]
mod tests;
