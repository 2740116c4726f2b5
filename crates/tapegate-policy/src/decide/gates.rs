//! The gates, in order of evaluation.

use std::borrow::Cow;
use std::sync::Arc;

use super::cedar::evaluate_cedar;
use super::commands::decide_commands;
use super::drift::{drift_action_text, require_approval_for_drift};
use super::name_reading::{NameReading, NamedCall};
use super::readings::stricter_of;
use super::rules::{
    RuleHit, RuleRange, RuleScope, action_verb, can_pass_otherwise, has_relative_path, rule,
};
use super::steps::StepRecorder;
use super::{CallFacts, Decision, DecisionOutcome, GateName};
use crate::gated_requests::{GatedMethod, OfferKind};
use crate::methods::MethodTreatment;
use crate::model::{OnDrift, Policy, PolicyRule, RuleAction, ServerSource};
use crate::own_files::OWN_FILES;

/// Evaluates the gates for a call, as production does. `own_file` is a file of Tapegate's own that
/// the arguments name.
pub(super) fn decide_call(
    policy: &Policy,
    call: &NamedCall<'_>,
    own_file: Option<&str>,
    facts: &CallFacts<'_>,
    steps: &mut impl StepRecorder,
) -> Decision {
    let Some(gated) = GatedMethod::of(call.method) else {
        return decide_ungated(policy, MethodTreatment::Unknown, call, facts, steps);
    };
    // A hidden item is refused in the same way, whatever the rules say about it.
    if let Err(reason) = check_visible(policy, gated, call, steps) {
        return new_decision(DecisionOutcome::Deny, GateName::Visibility, reason.into());
    }
    // It only ends something that was allowed before, so no rule needs to permit it.
    if gated == GatedMethod::Unsubscribe {
        return new_decision(DecisionOutcome::Forward, GateName::Visibility, "visible".into());
    }
    // Before pins and rules: no rule of the policy can lift this one, only `builtin: own_files`.
    let own_file = own_file.map(Cow::Borrowed);
    if let Some(found) =
        own_file.or_else(|| policy.own_files.file_named_by_uri(gated, call.name).map(Cow::Owned))
    {
        return refuse_own_file(&found, steps);
    }
    let drifted = facts.drift.filter(|_| policy.pins.on_drift != OnDrift::Ignore);
    if let Some(drift) = drifted {
        steps.add(|| format!("pins: {drift}; {}", drift_action_text(policy.pins.on_drift)));
        // Before the rules: neither a rule nor an approver can pass a changed definition.
        if policy.pins.on_drift == OnDrift::Deny {
            let denied = new_decision(DecisionOutcome::Deny, GateName::Governance, drift.into());
            return Decision { drift: true, ..denied };
        }
    }
    let range = (RuleScope::Gated, Some(&policy.default));
    // With a default there is always a decision.
    let mut decide = |call: &NamedCall<'_>, steps: &mut _| {
        decide_by_rules(policy, range, call, facts, steps).unwrap_or_else(|| {
            new_decision(DecisionOutcome::Deny, GateName::Governance, "no rule matches".into())
        })
    };
    let decision = match decide_commands(policy, call, steps, &mut decide) {
        Some(decision) => decision,
        None => decide(call, steps),
    };
    match drifted {
        Some(drift) if policy.pins.on_drift == OnDrift::Approve => {
            require_approval_for_drift(policy, decision, drift, steps)
        }
        _ => decision,
    }
}

/// The refusal of a call that names one of Tapegate's own files.
pub(super) fn refuse_own_file(found: &str, steps: &mut impl StepRecorder) -> Decision {
    steps.add(|| format!("built-in rule `{OWN_FILES}`: the call names `{found}`"));
    let reason = format!("the call names `{found}`, which only a person may touch");
    let denied = new_decision(DecisionOutcome::Deny, GateName::Governance, reason.into());
    Decision { rule: Some(OWN_FILES.into()), ..denied }
}

/// The decision of the rules, or of the default if there is one; `None` if neither applies.
fn decide_by_rules(
    policy: &Policy,
    (scope, default): (RuleScope, Option<&RuleAction>),
    call: &NamedCall<'_>,
    facts: &CallFacts<'_>,
    steps: &mut impl StepRecorder,
) -> Option<Decision> {
    let mut worst: Option<Decision> = None;
    let mut from = 0;
    loop {
        let drifted = facts.drift.is_some();
        // A rule that matches only under a lenient reading does not end the search: under the
        // written reading, a later rule applies. The loop continues below it and keeps the stricter
        // outcome.
        let (hit, looked) = rule(policy, call, drifted, RuleRange { from, scope }, steps);
        let (mut decision, next) = match (&hit, default) {
            (Some(RuleHit { rule, index, possible, uncertain, unknown }), _) => {
                let mut decision = match uncertain {
                    true => ask_about_command(policy, rule, steps),
                    false => apply_action(policy, &rule.act, Some(rule), call, facts, steps),
                };
                if let Some(hint) = unknown {
                    // The rule's reason alone would suggest that the hint is known.
                    let pin_status = if drifted { "differs from its pin" } else { "is not pinned" };
                    let reason = &decision.reason;
                    decision.reason =
                        format!("{reason}: the tool {pin_status}, so its `{hint}` is unknown")
                            .into();
                }
                let rule = Some(Arc::clone(&rule.name));
                (Decision { rule, ..decision }, possible.then_some(index + 1))
            }
            (None, Some(default)) => {
                steps.add(|| {
                    format!("rules: no rule matches; the default is {}", action_verb(default))
                });
                (apply_action(policy, default, None, call, facts, steps), None)
            }
            (None, None) => return worst,
        };
        if decision.strict == DecisionOutcome::Deny {
            let rule = hit.as_ref().map(|hit| hit.rule);
            decision.description = rule.and_then(|rule| rule.description.as_deref()).map(Arc::from);
            decision.other_arguments = looked && can_pass_otherwise(policy, call, drifted, scope);
            decision.relative_path =
                decision.other_arguments && has_relative_path(policy, call, drifted, scope);
        }
        // Nothing below can be stricter than a denial.
        let next = next.filter(|_| decision.strict != DecisionOutcome::Deny);
        let decision = match worst.take() {
            Some(worst) => stricter_of(worst, decision, steps),
            None => decision,
        };
        let Some(next) = next else { return Some(decision) };
        // One server may read the arguments so that this rule applies, another so that a later one
        // does.
        steps.add(|| "rules: a server may read the arguments differently; continuing".to_owned());
        (worst, from) = (Some(decision), next);
    }
}

/// Decides about a method that is not gated: only rules that name methods apply.
pub(super) fn decide_ungated(
    policy: &Policy,
    treatment: MethodTreatment,
    call: &NamedCall<'_>,
    facts: &CallFacts<'_>,
    steps: &mut impl StepRecorder,
) -> Decision {
    let unknown = treatment == MethodTreatment::Unknown;
    if unknown {
        steps.add(|| format!("`{}` is not a method of the protocol", call.method));
        // Only unknown methods are checked: without the others a session could not even begin.
        if let Err(reason) = enabled_source(policy, call, steps) {
            return new_decision(DecisionOutcome::Deny, GateName::Visibility, reason.into());
        }
    }
    let scope = match treatment {
        // A rule such as `method: "*"` with `deny` is not meant to stop `initialize` and `ping`.
        MethodTreatment::Conversation => RuleScope::WholeName,
        _ => RuleScope::Method,
    };
    // The protocol's own methods pass by default, or no session would work under `action: deny`.
    let default = Some(&policy.default).filter(|_| unknown);
    if let Some(decision) = decide_by_rules(policy, (scope, default), call, facts, steps) {
        return decision;
    }
    let (step, reason) = match treatment {
        MethodTreatment::Conversation => {
            ("is part of every session and passes", "part of every session")
        }
        MethodTreatment::Logged => ("is logged and passes, because no rule names it", "not gated"),
        _ => ("is not gated, and no rule names it as `method`", "not gated"),
    };
    steps.add(|| format!("`{}` {step}", call.method));
    new_decision(DecisionOutcome::Forward, GateName::Governance, reason.into())
}

/// Decides about a gated method that names nothing.
pub(super) fn decide_unnamed(
    policy: &Policy,
    call: &NamedCall<'_>,
    facts: &CallFacts<'_>,
    steps: &mut impl StepRecorder,
) -> Decision {
    steps.add(|| format!("`{}` names nothing that the server offers", call.method));
    match enabled_source(policy, call, steps) {
        Ok(_) => decide_ungated(policy, MethodTreatment::Logged, call, facts, steps),
        Err(reason) => new_decision(DecisionOutcome::Deny, GateName::Visibility, reason.into()),
    }
}

/// The source of a call if it is enabled; otherwise the reason for the refusal.
fn enabled_source<'p>(
    policy: &'p Policy,
    call: &NamedCall<'_>,
    steps: &mut impl StepRecorder,
) -> Result<&'p ServerSource, String> {
    let cause_text = match policy.source(call.source) {
        Some(source) if source.enabled => return Ok(source),
        Some(source) => format!("source `{}` is not enabled", source.id),
        None => format!("no source is called `{}`, and there is no `*`", call.source),
    };
    steps.add(|| format!("visibility: {cause_text}"));
    Err(cause_text)
}

/// Checks that what is called is visible; the error is the reason for the refusal.
fn check_visible(
    policy: &Policy,
    gated: GatedMethod,
    call: &NamedCall<'_>,
    steps: &mut impl StepRecorder,
) -> Result<(), String> {
    let source = enabled_source(policy, call, steps)?;
    let offer = gated.offer(call.name);
    // `a:b` may be the name of a prompt or a URI; it must be visible as both.
    let either =
        gated == GatedMethod::Complete && offer == OfferKind::Prompt && call.name.contains(':');
    let hidden = either && !exposes(source, OfferKind::Template, &call.as_read);
    if hidden || !exposes(source, offer, &call.as_read) {
        let cause_text = format!("source `{}` does not expose this {}", source.id, offer.as_str());
        steps.add(|| format!("visibility: {cause_text}"));
        return Err(cause_text);
    }
    steps.add(|| format!("visibility: source `{}` exposes it", source.id));
    Ok(())
}

/// Whether a source exposes an item, under one reading of its name.
pub(super) fn exposes(source: &ServerSource, offer: OfferKind, name: &NameReading<'_>) -> bool {
    match offer {
        OfferKind::Tool => source.tools.is_name_visible(name),
        OfferKind::Prompt => source.prompts.is_name_visible(name),
        OfferKind::Resource | OfferKind::Template => source.resources.is_name_visible(name),
    }
}

/// Applies the action of a rule or the default.
fn apply_action(
    policy: &Policy,
    act: &RuleAction,
    rule: Option<&PolicyRule>,
    call: &NamedCall<'_>,
    facts: &CallFacts<'_>,
    steps: &mut impl StepRecorder,
) -> Decision {
    let cause_text = || match rule {
        Some(rule) => Arc::clone(&rule.reason),
        None => format!("the default {}", act.describe()).into(),
    };
    match act {
        RuleAction::Forward => {
            new_decision(DecisionOutcome::Forward, GateName::Governance, cause_text())
        }
        RuleAction::Deny => new_decision(DecisionOutcome::Deny, GateName::Governance, cause_text()),
        RuleAction::Approve { workflow } => hold(policy, workflow.as_deref(), cause_text(), steps),
        RuleAction::Policy { policy_id, workflow } => {
            evaluate_cedar(policy, policy_id, workflow.as_deref(), call, facts, steps)
        }
    }
}

/// Holds a call for approval; denies it if the workflow does not exist.
pub(super) fn hold(
    policy: &Policy,
    workflow: Option<&str>,
    reason: Arc<str>,
    steps: &mut impl StepRecorder,
) -> Decision {
    // The loader has checked every name. If one is missing all the same, the call must not pass.
    let known = workflow.filter(|name| policy.workflows.contains_key(*name));
    let Some(workflow) = known else {
        let denial_reason = format!("{reason}, but the workflow does not exist");
        steps.add(|| format!("approval: {denial_reason}"));
        return new_decision(DecisionOutcome::Deny, GateName::Approval, denial_reason.into());
    };
    steps.add(|| format!("approval: workflow `{workflow}` applies"));
    new_decision(
        DecisionOutcome::Hold { workflow: workflow.to_owned() },
        GateName::Approval,
        reason,
    )
}

/// Asks a person about a command to which a rule that denies may apply.
fn ask_about_command(
    policy: &Policy,
    rule: &PolicyRule,
    steps: &mut impl StepRecorder,
) -> Decision {
    let reason = format!(
        "rule `{}` may apply, since a part of the command is only known when it runs",
        rule.name
    );
    hold(policy, policy.default_workflow(), reason.into(), steps)
}

pub(super) fn new_decision(strict: DecisionOutcome, gate: GateName, reason: Arc<str>) -> Decision {
    Decision {
        outcome: strict.clone(),
        strict,
        gate,
        drift: false,
        rule: None,
        policies: Vec::new(),
        reason,
        description: None,
        other_arguments: false,
        relative_path: false,
        steps: Vec::new(),
    }
}
