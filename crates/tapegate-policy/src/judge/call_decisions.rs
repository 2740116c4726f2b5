//! Decides about the calls of a message.

use tapegate_core::side::Side;

use super::{
    JudgedCall, JudgedCalls, JudgedMessage, MessageArrival, PolicyJudge, SessionState, completion,
    hidden_by,
};
use crate::decide::{CallFacts, Decision, GateName, PolicyCall};
use crate::decide::{decide_from, decide_unnamed, explain_from, refuse_own_file};
use crate::gated_requests::GatedMethod;
use crate::inspect::MessageFault;
use crate::methods::MethodTreatment;
use crate::own_files::OWN_FILES;
use crate::pins;

impl PolicyJudge<'_> {
    /// Decides about a call of something that the server offers.
    pub(super) fn decide_gated(
        &self,
        now: &JudgedMessage<'_, '_>,
        gated: GatedMethod,
        name: &str,
        state: &mut SessionState,
    ) -> Option<Box<Decision>> {
        let policy = self.policy?;
        let offer = gated.offer(name);
        let (lock, source) = (&policy.pins.lock, self.source);
        // A failed listing of our own comes first: the lists seen so far say nothing about it.
        let drift = state.drift.as_deref().or_else(|| state.watch.drift(lock, source, offer, name));
        let drift = drift.map(|drift| pins::drift_message(drift, lock, source, offer, name));
        self.decision(now, gated.method(), Some(name), drift.as_deref(), state)
    }

    /// The file of Tapegate's own that a client's message names. Only for methods without arguments,
    /// since [`decide_from`] checks those.
    pub(super) fn find_own_file(
        &self,
        now: &JudgedMessage<'_, '_>,
        method: &str,
    ) -> Option<String> {
        let treatment = MethodTreatment::of(method, now.arrival.from);
        let looks = match treatment {
            MethodTreatment::Gated(gated) => {
                // Their params have no `arguments` member that `decide_from` would search.
                matches!(gated, GatedMethod::Complete | GatedMethod::Listen)
            }
            // No server opens files because of these, and they must pass for a session to work.
            MethodTreatment::Conversation => false,
            MethodTreatment::Housekeeping | MethodTreatment::Logged | MethodTreatment::Unknown => {
                true
            }
        };
        let policy = self.policy.filter(|_| looks && now.arrival.from == Side::Client)?;
        policy.own_files.file_named_in_params(now.params())
    }

    /// The note for a client's message that mentions one of our files and is not refused for it.
    pub(super) fn mention(
        &self,
        now: &JudgedMessage<'_, '_>,
        calls: &JudgedCalls<'_>,
    ) -> Option<MessageFault> {
        let policy = self.policy.filter(|_| now.arrival.from == Side::Client)?;
        let by_rule = |call: &JudgedCall<'_>| {
            call.decision.as_ref().is_some_and(|it| it.rule.as_deref() == Some(OWN_FILES))
        };
        // The name of a tool is not a file name.
        let texts = now.envelope.arguments.or(now.envelope.params);
        let is_mentioned = !calls.iter().any(by_rule) && policy.own_files.mentioned_in(texts);
        is_mentioned.then_some(MessageFault::OwnFileMention)
    }

    pub(super) fn decision(
        &self,
        now: &JudgedMessage<'_, '_>,
        method: &str,
        name: Option<&str>,
        drift: Option<&str>,
        state: &mut SessionState,
    ) -> Option<Box<Decision>> {
        let policy = self.policy?;
        let MessageArrival { from, session, wall_us, .. } = now.arrival;
        // Before the rules, so that no rule can forward such a call.
        if let Some(found) = self.find_own_file(now, method) {
            return Some(Box::new(refuse_own_file(self.profile, &found)));
        }
        let principal = Some(state.callers.caller(session, now.envelope));
        let facts = CallFacts { wall_us, principal, drift };
        // A completion has its arguments in three places; rules test them as one object.
        let completed = now.envelope.params.filter(|_| method == GatedMethod::Complete.method());
        let completed = completed.and_then(completion::arguments);
        let arguments = completed.as_deref().or(now.envelope.arguments);
        let call =
            PolicyCall { source: self.source, method, name: name.unwrap_or_default(), arguments };
        let Some(name) = name else {
            let decision = decide_unnamed(policy, self.profile, &call, &facts, self.explains);
            return Some(Box::new(decision));
        };
        if !self.explains {
            return Some(Box::new(decide_from(policy, self.profile, from, &call, &facts)));
        }
        let mut decision = explain_from(policy, self.profile, from, &call, &facts);
        if decision.gate == GateName::Visibility
            && let Some(by) = hidden_by(policy, self.source, method, name)
        {
            // Directly after the step that it explains.
            let first = decision.steps.len().min(1);
            decision.steps.insert(first, format!("visibility: it is {by}"));
        }
        Some(Box::new(decision))
    }
}
