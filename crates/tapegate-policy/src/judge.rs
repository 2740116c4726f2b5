//! Judges whole messages: form, targets, every name, the strictest outcome, lists.
//!
//! The gate of a session carries out the judgement; `policy explain`, `policy test`, `policy
//! backtest` and the hub report it. None of them adds steps of its own, so their results cannot
//! differ.

mod call_decisions;
mod callers;
mod completion;
mod hidden_requests;
mod input_requests;
mod judgement;
mod lists;
mod roots;
mod state;
mod visibility;

use std::borrow::Cow;
use std::sync::Arc;

use tapegate_core::frame::{Envelope, Frame, FrameBody, MessageKind, each_element};
use tapegate_core::side::Side;

use crate::decide::{Decision, DecisionOutcome, GateName};
use crate::gated_requests::GatedMethod;
use crate::inspect::{
    CallTarget, MessageFault, TransportKind, find_targets, inspect, inspect_arguments,
};
use crate::methods::{MethodTreatment, sender};
use crate::model::{EmbeddedMessages, Policy, Profile};

pub use callers::AskMode;
pub use judgement::{JudgedCall, JudgedCalls, Judgement};
pub use state::SessionState;
pub use visibility::hidden_by;

/// Judges the messages of one server.
#[derive(Debug, Clone, Copy)]
pub struct PolicyJudge<'p> {
    /// The policy; without one, everything passes.
    pub policy: Option<&'p Policy>,
    pub profile: Profile,
    /// The server's name in the policy.
    pub source: &'p str,
    /// Whether decisions list the steps that led to them.
    pub explains: bool,
}

/// How a message arrived.
#[derive(Debug, Clone, Copy)]
pub struct MessageArrival {
    /// Who sent it.
    pub from: Side,
    /// How messages of that side arrive.
    pub carrier: TransportKind,
    /// The session it belongs to.
    pub session: u32,
    /// When it came, in microseconds since 1970.
    pub wall_us: i64,
}

/// A message that is being judged.
struct JudgedMessage<'j, 'm> {
    envelope: &'j Envelope<'m>,
    arrival: MessageArrival,
    /// Whether it can wait for approval: only a single request can.
    waits: bool,
}

impl<'p> PolicyJudge<'p> {
    /// Judges a message.
    pub fn judge<'m>(
        &self,
        frame: &Frame<'m>,
        arrival: MessageArrival,
        state: &mut SessionState,
    ) -> Judgement<'m> {
        match frame.body() {
            FrameBody::Batch => self.judge_batch(frame, arrival, state),
            _ if is_plain_answer(frame, arrival) => Judgement::default(),
            _ => self.message(frame, arrival, false, state),
        }
    }

    /// Decides about a call that is given by name, not read from a message.
    pub fn judge_call<'m>(
        &self,
        method: &'m str,
        name: &'m str,
        arguments: Option<&[u8]>,
        wall_us: i64,
        state: &mut SessionState,
    ) -> Judgement<'m> {
        // `explain` and policy tests have no message to inspect, but the gate refuses `__proto__`
        // in arguments.
        let mut judgement = self.split_faults(arguments.map(inspect_arguments).unwrap_or_default());
        if self.is_stopped_by(&judgement.faults) {
            return judgement;
        }
        let envelope = Envelope { arguments, ..Envelope::default() };
        let (from, carrier) = (sender(method), TransportKind::Lines);
        let arrival = MessageArrival { from, carrier, session: 0, wall_us };
        let now = JudgedMessage { envelope: &envelope, arrival, waits: true };
        let gated = GatedMethod::of(method);
        let decision = match gated {
            Some(gated) => self.decide_gated(&now, gated, name, state),
            None => self.decision(&now, method, Some(name), None, state),
        };
        let (method, name) = (Cow::Borrowed(method), Cow::Borrowed(name));
        let offer = gated.map(|gated| gated.offer(&name));
        judgement.calls =
            JudgedCalls::One(JudgedCall { method, offer, name, decision, cannot_wait: false });
        judgement.anomalies.extend(self.mention(&now, &judgement.calls));
        judgement
    }

    /// Judges the elements of a batch; each must pass by itself.
    fn judge_batch<'m>(
        &self,
        frame: &Frame<'m>,
        arrival: MessageArrival,
        state: &mut SessionState,
    ) -> Judgement<'m> {
        let mut judgement = self.split_faults(inspect(frame, arrival.from, arrival.carrier));
        if self.is_stopped_by(&judgement.faults) {
            return judgement;
        }
        let judged =
            each_element(frame.bytes()).map(|element| self.message(&element, arrival, true, state));
        judgement.elements = judged.collect();
        judgement
    }

    fn message<'m>(
        &self,
        frame: &Frame<'m>,
        arrival: MessageArrival,
        in_batch: bool,
        state: &mut SessionState,
    ) -> Judgement<'m> {
        let envelope = frame.envelope();
        let mut judgement = self.split_faults(match envelope {
            // `inspect` would accept an array inside a batch as a batch of its own.
            None if in_batch => vec![MessageFault::NotAnObject],
            _ => inspect(frame, arrival.from, arrival.carrier),
        });
        let stops = self.is_stopped_by(&judgement.faults);
        // Rules are not evaluated for a malformed message: the server may read a different call
        // from it than the gate does.
        let Some(envelope) = envelope.filter(|_| !stops) else { return judgement };
        let kind = envelope.kind();
        let now =
            JudgedMessage { envelope, arrival, waits: kind == MessageKind::Request && !in_batch };
        match (arrival.from, kind) {
            (Side::Client, MessageKind::Request | MessageKind::Notification) => {
                let requested = self.judge_request(&now, state);
                judgement.calls = requested.merge(self.judge_carried_roots(&now));
                judgement.anomalies.extend(self.mention(&now, &judgement.calls));
            }
            // A client's answer carries nothing that rules can name, except the roots that it opens
            // to the server.
            (Side::Client, MessageKind::Response) => {
                judgement.calls = self.judge_roots_answer(envelope.result);
            }
            // A result, an error or a notification can carry requests too, so the kind does not
            // matter here.
            (Side::Server, _) => {
                let requested = self.judge_request(&now, state);
                match hidden_requests::methods(envelope) {
                    Ok(methods) => {
                        let input_calls = self.judge_input_requests(&now, methods, state);
                        judgement.calls = requested.merge(input_calls);
                    }
                    // This fault is found after `split_faults`, so the case without a policy is
                    // repeated here.
                    Err(fault) if self.policy.is_some() => judgement.faults.push(fault),
                    Err(fault) => judgement.anomalies.push(fault),
                }
                if self.is_stopped_by(&judgement.faults) {
                    return judgement;
                }
                // By content, not by the pending request: a server may answer any id with a list.
                if matches!(kind, MessageKind::Response | MessageKind::Error) {
                    self.list(frame, &now, &mut judgement, state);
                }
            }
            _ => {}
        }
        judgement
    }

    /// Separates faults that stop a message from anomalies that are only logged.
    fn split_faults<'m>(&self, found: Vec<MessageFault>) -> Judgement<'m> {
        let Some(policy) = self.policy else {
            return Judgement { anomalies: found, ..Judgement::default() };
        };
        if found.is_empty() {
            return Judgement::default();
        }
        // MCP logs and READMEs contain whole messages, so `Embedded` stops a message only on
        // request.
        let refuses = policy.embedded_messages == EmbeddedMessages::Refuse;
        let stops = |fault: &MessageFault| refuses || *fault != MessageFault::Embedded;
        let (faults, anomalies) = found.into_iter().partition(stops);
        Judgement { faults, anomalies, ..Judgement::default() }
    }

    /// Whether these faults end the judgement.
    fn is_stopped_by(&self, faults: &[MessageFault]) -> bool {
        !faults.is_empty() && self.profile == Profile::Production
    }

    /// Judges a request or a notification.
    fn judge_request<'m>(
        &self,
        now: &JudgedMessage<'_, 'm>,
        state: &mut SessionState,
    ) -> JudgedCalls<'m> {
        let Some(method) = now.envelope.method else { return JudgedCalls::None };
        let from_client = now.arrival.from == Side::Client;
        // Only a server runs gated methods. From the server they are unknown methods, which follow
        // the default.
        if from_client && let Some(gated) = GatedMethod::read(method) {
            return self.judge_gated(now, gated, state);
        }
        let method = method.decode();
        // All later decisions of the session need the caller, whatever is decided about
        // this message.
        if from_client && method == "initialize" {
            state.callers.note_initialize(now.arrival.session, now.envelope);
        }
        let name = now.envelope.name.or(now.envelope.uri).map(|name| name.decode());
        let name = name.unwrap_or_default();
        self.judge_ungated(now, method, name, state).map_or(JudgedCalls::None, JudgedCalls::One)
    }

    /// Judges a call of something the server offers; each name in it is decided about.
    fn judge_gated<'m>(
        &self,
        now: &JudgedMessage<'_, 'm>,
        gated: GatedMethod,
        state: &mut SessionState,
    ) -> JudgedCalls<'m> {
        let mut judged = |name: Cow<'m, str>| {
            let mut decision = self.decide_gated(now, gated, &name, state);
            let cannot_wait = now.deny_if_cannot_wait(&mut decision);
            let (method, offer) = (Cow::Borrowed(gated.method()), Some(gated.offer(&name)));
            JudgedCall { method, offer, name, decision, cannot_wait }
        };
        match find_targets(now.envelope, gated) {
            Ok(CallTarget::One(name)) => JudgedCalls::One(judged(name)),
            Ok(CallTarget::Each(names)) => {
                let mut calls: Vec<_> = names.into_iter().map(judged).collect();
                // One message is held once and approved once, so its calls cannot ask two
                // workflows.
                deny_second_approval(&mut calls);
                calls.into()
            }
            Ok(CallTarget::Nothing) => JudgedCalls::One(self.judge_unnamed(now, gated, state)),
            // A call that names nothing gets here only if its fault does not stop it.
            Err(_) => JudgedCalls::None,
        }
    }

    /// Judges a gated method that names nothing: like any other method, by rules that name it.
    fn judge_unnamed<'m>(
        &self,
        now: &JudgedMessage<'_, 'm>,
        gated: GatedMethod,
        state: &mut SessionState,
    ) -> JudgedCall<'m> {
        let mut decision = self.decision(now, gated.method(), None, None, state);
        let cannot_wait = now.deny_if_cannot_wait(&mut decision);
        let (method, name) = (Cow::Borrowed(gated.method()), Cow::Borrowed(""));
        JudgedCall { method, offer: None, name, decision, cannot_wait }
    }

    /// Judges a method that is not gated; returns nothing for housekeeping that no rule names.
    fn judge_ungated<'m>(
        &self,
        now: &JudgedMessage<'_, 'm>,
        method: Cow<'m, str>,
        name: Cow<'m, str>,
        state: &mut SessionState,
    ) -> Option<JudgedCall<'m>> {
        let is_logged = MethodTreatment::of(&method, now.arrival.from).is_logged();
        let mut rules = self.policy.iter().flat_map(|policy| &policy.rules);
        let names_own = || self.find_own_file(now, &method).is_some();
        // Housekeeping such as `tools/list` is frequent. Without a rule about methods, nothing
        // could stop it.
        if !is_logged && !rules.any(|rule| !rule.methods.is_empty()) && !names_own() {
            return None;
        }
        let mut decision = self.decision(now, &method, Some(&name), None, state);
        let by_rule = decision.as_ref().is_some_and(|decision| decision.rule.is_some());
        // Housekeeping that passes by default stays out of the activity log.
        if !is_logged && !by_rule {
            return None;
        }
        let cannot_wait = now.deny_if_cannot_wait(&mut decision);
        Some(JudgedCall { method, offer: None, name, decision, cannot_wait })
    }

    /// Judges what a server requests before it responds: each counts as a request of its own.
    fn judge_input_requests<'m>(
        &self,
        now: &JudgedMessage<'_, 'm>,
        methods: Vec<String>,
        state: &mut SessionState,
    ) -> JudgedCalls<'m> {
        let calls = methods.into_iter().filter_map(|method| {
            // The whole message passes or is refused, so one denied request denies the answer
            // around it.
            self.judge_ungated(now, Cow::Owned(method), Cow::Borrowed(""), state)
        });
        calls.collect::<Vec<_>>().into()
    }
}

/// Whether a message is a response of the server that every policy passes unchanged: it has no
/// lists, requests no input, and its form is in order. Half of all messages are such responses.
pub(crate) fn is_plain_answer(frame: &Frame<'_>, arrival: MessageArrival) -> bool {
    let is_plain = |msg: &Envelope<'_>| {
        let is_answer = matches!(msg.kind(), MessageKind::Response | MessageKind::Error);
        let asks = msg.input_requests.is_some() || msg.tasks.is_some() || msg.error.is_some();
        is_answer && !msg.lists && !asks
    };
    arrival.from == Side::Server
        && frame.envelope().is_some_and(is_plain)
        // Last, because it is the only part that searches the bytes.
        && inspect(frame, arrival.from, arrival.carrier).is_empty()
}

/// Denies the calls of a message that need a different approval than the first one that needs any:
/// there is one approval per message.
fn deny_second_approval(calls: &mut [JudgedCall<'_>]) {
    let scope = |call: &JudgedCall<'_>| {
        let decision = call.decision.as_deref()?;
        let DecisionOutcome::Hold { workflow } = &decision.strict else { return None };
        // Drift is part of the scope: an approver who saw one changed definition has not accepted
        // another.
        Some((workflow.clone(), decision.drift.then(|| Arc::clone(&decision.reason))))
    };
    let Some(first) = calls.iter().find_map(scope) else { return };
    for call in calls {
        if scope(call).is_some_and(|scope| scope != first)
            && let Some(decision) = &mut call.decision
        {
            decision.strict = DecisionOutcome::Deny;
            // In development the outcome stays `Forward`, and only `strict` records what production
            // would do.
            if decision.outcome != DecisionOutcome::Forward {
                decision.outcome = DecisionOutcome::Deny;
            }
            decision.gate = GateName::Governance;
            decision.reason = "the message needs more than one approval".into();
            decision.description = Some("Ask for it in a request of its own".into());
        }
    }
}

impl JudgedMessage<'_, '_> {
    /// The params, as far as they are known.
    fn params(&self) -> Option<&[u8]> {
        self.envelope.params.or(self.envelope.arguments)
    }

    /// Denies a call that needs approval but cannot wait for it. Returns whether it did.
    fn deny_if_cannot_wait(&self, decision: &mut Option<Box<Decision>>) -> bool {
        let Some(decision) = decision.as_mut().filter(|_| !self.waits) else { return false };
        if !matches!(decision.strict, DecisionOutcome::Hold { .. }) {
            return false;
        }
        decision.strict = DecisionOutcome::Deny;
        if decision.outcome != DecisionOutcome::Forward {
            decision.outcome = DecisionOutcome::Deny;
        }
        true
    }
}
