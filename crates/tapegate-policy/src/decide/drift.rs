//! Handles calls of something whose definition differs from the accepted one.

use super::gates::{hold, new_decision};
use super::steps::StepRecorder;
use super::{Decision, DecisionOutcome, GateName};
use crate::model::{OnDrift, Policy};

/// Holds a call whose definition has changed, unless it is denied anyway. If a rule already asks
/// the same workflow, the change is added to its reason; if it asks another one, the call is
/// denied.
pub(super) fn require_approval_for_drift(
    policy: &Policy,
    decision: Decision,
    drift: &str,
    steps: &mut impl StepRecorder,
) -> Decision {
    let asked_by_rule = match &decision.strict {
        DecisionOutcome::Forward => None,
        // An approval of the change must not open what the rules deny.
        DecisionOutcome::Deny => return decision,
        DecisionOutcome::Hold { workflow } => Some(workflow.as_str()),
    };
    if let Some(rule_workflow) = asked_by_rule {
        if policy.pins.workflow.as_deref() == Some(rule_workflow) {
            // A hub decides again about what a shim tells it, which has the reason of the rule already.
            let reason = match drift.starts_with(&*decision.reason) {
                true => drift.to_owned().into(),
                false => format!("{}; {drift}", decision.reason).into(),
            };
            return Decision { drift: true, reason, ..decision };
        }
        // A call is held once, and the approvers of one workflow cannot answer for the other.
        steps.add(|| "pins: the change needs another workflow; denied".to_owned());
        let denied = new_decision(DecisionOutcome::Deny, GateName::Governance, drift.into());
        return Decision { drift: true, rule: decision.rule, ..denied };
    }
    let held = hold(policy, policy.pins.workflow.as_deref(), drift.into(), steps);
    Decision { drift: true, rule: decision.rule, policies: decision.policies, ..held }
}

/// A description of what is done about drift.
pub(super) fn drift_action_text(what: OnDrift) -> &'static str {
    match what {
        OnDrift::Ignore => "ignored",
        OnDrift::Warn => "only logged",
        OnDrift::Deny => "denied",
        OnDrift::Approve => "approvers are asked",
    }
}
