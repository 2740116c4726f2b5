//! The gates, in order of evaluation.

use std::borrow::Cow;
use std::sync::Arc;

use super::cedar::ask_cedar;
use super::drift::{held_for_drift, on_drift};
use super::name::{Name, NamedCall};
use super::readings::stricter;
use super::rules::{Hit, Range, RuleScope, has_relative_path, passes_otherwise, rule, verb};
use super::steps::Steps;
use super::{Decision, Facts, GateName, Outcome};
use crate::gated::{Gated, Offer};
use crate::methods::Duty;
use crate::model::{Act, OnDrift, Policy, Rule, Source};
use crate::own_files::OWN_FILES;

/// Evaluates the gates for a call, as production does. `own_file` is a file of Tapegate's own that
/// the arguments name.
pub(super) fn ask(
    policy: &Policy,
    call: &NamedCall<'_>,
    own_file: Option<&str>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Decision {
    let Some(gated) = Gated::of(call.method) else {
        return ungated(policy, Duty::Unknown, call, facts, steps);
    };
    if let Err(reason) = visible(policy, gated, call, steps) {
        return said(Outcome::Deny, GateName::Visibility, reason.into());
    }
    if gated == Gated::Unsubscribe {
        return said(Outcome::Forward, GateName::Visibility, "visible".into());
    }
    let own_file = own_file.map(Cow::Borrowed);
    if let Some(found) =
        own_file.or_else(|| policy.own_files.named_by(gated, call.name).map(Cow::Owned))
    {
        return names_own_file(&found, steps);
    }
    let drifted = facts.drift.filter(|_| policy.pins.on_drift != OnDrift::Ignore);
    if let Some(drift) = drifted {
        steps.add(|| format!("pins: {drift}; {}", on_drift(policy.pins.on_drift)));
        if policy.pins.on_drift == OnDrift::Deny {
            let denied = said(Outcome::Deny, GateName::Governance, drift.into());
            return Decision { drift: true, by_name: false, ..denied };
        }
    }
    let range = (RuleScope::Gated, Some(&policy.default));
    // With a default there is always a decision.
    let mut decision = by_rules(policy, range, call, facts, steps)
        .unwrap_or_else(|| said(Outcome::Deny, GateName::Governance, "no rule matches".into()));
    decision.by_name &= drifted.is_none();
    match drifted {
        Some(drift) if policy.pins.on_drift == OnDrift::Approve => {
            held_for_drift(policy, decision, drift, steps)
        }
        _ => decision,
    }
}

/// The refusal of a call that names one of Tapegate's own files.
pub(super) fn names_own_file(found: &str, steps: &mut impl Steps) -> Decision {
    steps.add(|| format!("built-in rule `{OWN_FILES}`: the call names `{found}`"));
    let reason = format!("the call names `{found}`, which only a person may touch");
    let denied = said(Outcome::Deny, GateName::Governance, reason.into());
    Decision { rule: Some(OWN_FILES.into()), by_name: false, ..denied }
}

/// The decision of the rules, or of the default if there is one; `None` if neither applies.
fn by_rules(
    policy: &Policy,
    (scope, default): (RuleScope, Option<&Act>),
    call: &NamedCall<'_>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Option<Decision> {
    let mut worst: Option<Decision> = None;
    let mut from = 0;
    loop {
        let drifted = facts.drift.is_some();
        let (hit, looked) = rule(policy, call, drifted, Range { from, scope }, steps);
        let (mut decision, next) = match (&hit, default) {
            (Some(Hit { rule, index, possible, unknown }), _) => {
                let mut decision = act(policy, &rule.act, Some(rule), call, facts, steps);
                if let Some(hint) = unknown {
                    // The rule's reason alone would suggest that the hint is known.
                    let why = if drifted { "differs from its pin" } else { "is not pinned" };
                    let reason = &decision.reason;
                    decision.reason =
                        format!("{reason}: the tool {why}, so its `{hint}` is unknown").into();
                }
                let rule = Some(Arc::clone(&rule.name));
                (Decision { rule, ..decision }, possible.then_some(index + 1))
            }
            (None, Some(default)) => {
                steps.add(|| format!("rules: no rule matches; the default is {}", verb(default)));
                (act(policy, default, None, call, facts, steps), None)
            }
            (None, None) => {
                return worst.map(|worst| Decision { by_name: worst.by_name && !looked, ..worst });
            }
        };
        decision.by_name &= !looked;
        if decision.strict == Outcome::Deny {
            let rule = hit.as_ref().map(|hit| hit.rule);
            decision.description = rule.and_then(|rule| rule.description.as_deref()).map(Arc::from);
            decision.other_arguments = looked && passes_otherwise(policy, call, drifted, scope);
            decision.relative_path =
                decision.other_arguments && has_relative_path(policy, call, drifted, scope);
        }
        let next = next.filter(|_| decision.strict != Outcome::Deny);
        let decision = match worst.take() {
            // If either decision depends on more than the name, so does the result.
            Some(worst) => {
                let by_name = worst.by_name && decision.by_name;
                Decision { by_name, ..stricter(worst, decision, steps) }
            }
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
pub(super) fn ungated(
    policy: &Policy,
    duty: Duty,
    call: &NamedCall<'_>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Decision {
    let unknown = duty == Duty::Unknown;
    if unknown {
        steps.add(|| format!("`{}` is not a method of the protocol", call.method));
        if let Err(reason) = enabled(policy, call, steps) {
            return said(Outcome::Deny, GateName::Visibility, reason.into());
        }
    }
    let scope = match duty {
        Duty::Conversation => RuleScope::WholeName,
        _ => RuleScope::Method,
    };
    let default = Some(&policy.default).filter(|_| unknown);
    if let Some(decision) = by_rules(policy, (scope, default), call, facts, steps) {
        return decision;
    }
    let (step, reason) = match duty {
        Duty::Conversation => ("is part of every session and passes", "part of every session"),
        Duty::Logged => ("is logged and passes, because no rule names it", "not gated"),
        _ => ("is not gated, and no rule names it as `method`", "not gated"),
    };
    steps.add(|| format!("`{}` {step}", call.method));
    said(Outcome::Forward, GateName::Governance, reason.into())
}

/// Decides about a gated method that names nothing.
pub(super) fn nameless(
    policy: &Policy,
    call: &NamedCall<'_>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Decision {
    steps.add(|| format!("`{}` names nothing that the server offers", call.method));
    match enabled(policy, call, steps) {
        Ok(_) => ungated(policy, Duty::Logged, call, facts, steps),
        Err(reason) => said(Outcome::Deny, GateName::Visibility, reason.into()),
    }
}

/// The source of a call if it is enabled; otherwise the reason for the refusal.
fn enabled<'p>(
    policy: &'p Policy,
    call: &NamedCall<'_>,
    steps: &mut impl Steps,
) -> Result<&'p Source, String> {
    let why = match policy.source(call.source) {
        Some(source) if source.enabled => return Ok(source),
        Some(source) => format!("source `{}` is not enabled", source.id),
        None => format!("no source is called `{}`, and there is no `*`", call.source),
    };
    steps.add(|| format!("visibility: {why}"));
    Err(why)
}

/// Checks that what is called is visible; the error is the reason for the refusal.
fn visible(
    policy: &Policy,
    gated: Gated,
    call: &NamedCall<'_>,
    steps: &mut impl Steps,
) -> Result<(), String> {
    let source = enabled(policy, call, steps)?;
    let offer = gated.offer(call.name);
    // `a:b` may be the name of a prompt or a URI; it must be visible as both.
    let either = gated == Gated::Complete && offer == Offer::Prompt && call.name.contains(':');
    let hidden = either && !exposes(source, Offer::Template, &call.as_read);
    if hidden || !exposes(source, offer, &call.as_read) {
        let why = format!("source `{}` does not expose this {}", source.id, offer.word());
        steps.add(|| format!("visibility: {why}"));
        return Err(why);
    }
    steps.add(|| format!("visibility: source `{}` exposes it", source.id));
    Ok(())
}

/// Whether a source exposes an item, under one reading of its name.
pub(super) fn exposes(source: &Source, offer: Offer, name: &Name<'_>) -> bool {
    match offer {
        Offer::Tool => source.tools.exposes(name),
        Offer::Prompt => source.prompts.exposes(name),
        Offer::Resource | Offer::Template => source.resources.exposes(name),
    }
}

/// Applies the action of a rule or the default.
fn act(
    policy: &Policy,
    act: &Act,
    rule: Option<&Rule>,
    call: &NamedCall<'_>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Decision {
    let why = || match rule {
        Some(rule) => Arc::clone(&rule.reason),
        None => format!("the default {}", act.words()).into(),
    };
    match act {
        Act::Forward => said(Outcome::Forward, GateName::Governance, why()),
        Act::Deny => said(Outcome::Deny, GateName::Governance, why()),
        Act::Approve { workflow } => hold(policy, workflow.as_deref(), why(), steps),
        Act::Policy { policy_id, workflow } => {
            ask_cedar(policy, policy_id, workflow.as_deref(), call, facts, steps)
        }
    }
}

/// Holds a call for approval; denies it if the workflow does not exist.
pub(super) fn hold(
    policy: &Policy,
    workflow: Option<&str>,
    reason: Arc<str>,
    steps: &mut impl Steps,
) -> Decision {
    let known = workflow.filter(|name| policy.workflows.contains_key(*name));
    let Some(workflow) = known else {
        let why = format!("{reason}, but the workflow does not exist");
        steps.add(|| format!("approval: {why}"));
        return said(Outcome::Deny, GateName::Approval, why.into());
    };
    steps.add(|| format!("approval: workflow `{workflow}` applies"));
    said(Outcome::Hold { workflow: workflow.to_owned() }, GateName::Approval, reason)
}

pub(super) fn said(strict: Outcome, gate: GateName, reason: Arc<str>) -> Decision {
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
        by_name: true,
        steps: Vec::new(),
    }
}
