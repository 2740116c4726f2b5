//! A message to be decided about, as the policy sees it.
//!
//! The message is put together from what was asked, and goes to the same judge as in a shim.

use tapegate_core::frame::Frame;
use tapegate_core::json::write_str;
use tapegate_core::side::Side;
use tapegate_policy::decide::{Decision, Principal};
use tapegate_policy::gated::Offer;
use tapegate_policy::inspect::{Carrier, Fault};
use tapegate_policy::judge::{Arrival, Judge, Judgement, SessionState};
use tapegate_policy::model::{Policy, Profile};

use crate::api::{GovernanceEvaluateRequest, JsonRpcId, MessageType, StreamDirection};

/// What there is to say about a message, and what is odd about its form and only logged.
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) anomalies: Vec<Fault>,
}

/// What there is to say about a message.
pub(super) enum Answer {
    /// It passes, and nobody was asked.
    Passes,
    /// It is not written as it must be.
    Faulty(Fault),
    /// It calls this, and there is no policy.
    Observed(String),
    /// It was decided about.
    Decided(Box<Decided>),
}

/// What was decided.
pub(super) struct Decided {
    /// The method, as rules name it.
    pub(super) method: String,
    /// What is called: its name or URI.
    pub(super) name: String,
    /// What kind of thing that is.
    pub(super) word: &'static str,
    /// The decision.
    pub(super) decision: Decision,
}

/// What is asked.
pub(super) struct Question<'a> {
    pub(super) policy: Option<&'a Policy>,
    pub(super) profile: Profile,
    pub(super) wall_us: i64,
    pub(super) principal: &'a Principal,
    pub(super) request: &'a GovernanceEvaluateRequest,
}

impl Question<'_> {
    /// Judges the message.
    pub(super) fn answer(&self) -> Answered {
        let request = self.request;
        if request.message_type == MessageType::Response {
            return Answered { answer: Answer::Passes, anomalies: Vec::new() };
        }
        let judge = Judge {
            policy: self.policy,
            profile: self.profile,
            source: &request.server_id,
            explains: false,
        };
        let from = match request.direction {
            StreamDirection::AgentToServer => Side::Client,
            StreamDirection::ServerToAgent => Side::Server,
        };
        let arrival = Arrival { from, carrier: Carrier::Http, session: 0, wall_us: self.wall_us };
        let mut state =
            SessionState::new(self.principal.clone()).with_drift(request.drift.as_deref());
        let message = message(request);
        let frame = Frame::read(&message);
        let judgement = judge.judge(&frame, arrival, &mut state);
        let answer = answer(&judgement);
        Answered { answer, anomalies: judgement.anomalies().collect() }
    }
}

/// What a judgement comes to.
fn answer(judgement: &Judgement<'_>) -> Answer {
    if let Some(fault) = judgement.faults().next() {
        return Answer::Faulty(fault);
    }
    let Some(leading) = judgement.leading() else { return Answer::Passes };
    let Some(decision) = &leading.decision else {
        let names: Vec<&str> = judgement.calls.iter().map(|call| &*call.name).collect();
        return Answer::Observed(names.join(" "));
    };
    Answer::Decided(Box::new(Decided {
        method: leading.method.clone().into_owned(),
        name: leading.name.clone().into_owned(),
        word: leading.offer.map_or("method", Offer::word),
        decision: Decision::clone(decision),
    }))
}

/// The message that was asked about.
fn message(request: &GovernanceEvaluateRequest) -> Vec<u8> {
    let mut out = br#"{"jsonrpc":"2.0""#.to_vec();
    if request.message_type == MessageType::Request {
        // Whoever asks need not tell the id, which nothing depends on.
        let id = request.id.as_ref().map_or_else(|| "0".to_owned(), JsonRpcId::to_json);
        out.extend_from_slice(format!(",\"id\":{id}").as_bytes());
    }
    out.extend_from_slice(b",\"method\":");
    write_str(&mut out, &request.method);
    if let Some(params) = &request.params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.get().as_bytes());
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests;
