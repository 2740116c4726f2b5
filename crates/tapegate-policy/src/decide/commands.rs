//! Decides about each command that a call asks a shell to run.
//!
//! A line is permitted only if each of its commands is; the strictest decision is that of the call.

use super::name_reading::NamedCall;
use super::rules::command_tests;
use super::steps::StepRecorder;
use super::{Decision, DecisionOutcome, GateName};
use crate::command_rules::{CommandSubject, CommandTest, command_subjects};
use crate::gated_requests::GatedMethod;
use crate::model::{Policy, RuleAction};

/// The maximum number of permitted commands that a denial names.
const ALTERNATIVES_MAX: usize = 8;

/// The message for a line whose commands need two approvals.
const TWO_WORKFLOWS: &str =
    "Commands of this line need different approvals; run them one at a time";

/// Decides about every command of a call; `None` if no rule tests commands, or there are none.
pub(super) fn decide_commands<S: StepRecorder>(
    policy: &Policy,
    call: &NamedCall<'_>,
    steps: &mut S,
    decide: &mut dyn FnMut(&NamedCall<'_>, &mut S) -> Decision,
) -> Option<Decision> {
    if GatedMethod::of(call.method) != Some(GatedMethod::Call) {
        return None;
    }
    let tests = command_tests(policy, call);
    let subjects = command_subjects(tests.iter().copied(), call.arguments?);
    let mut worst: Option<Decision> = None;
    for subject in &subjects {
        let class = subject.command().effects.class();
        steps.add(|| format!("command: {} ({class})", subject.text()));
        let named = call.about(subject);
        let mut decision = decide(&named, steps);
        if decision.strict != DecisionOutcome::Forward {
            decision.reason = format!("{}: {}", decision.reason, subject.text()).into();
        }
        if decision.strict == DecisionOutcome::Deny && decision.description.is_none() {
            decision.description = permitted_text(policy, call, subject).map(Into::into);
        }
        worst = Some(match worst.take() {
            Some(worst) => stricter_command(worst, decision, steps),
            None => decision,
        });
        // Nothing is stricter than a denial.
        if worst.as_ref().is_some_and(|worst| worst.strict == DecisionOutcome::Deny) {
            break;
        }
    }
    worst
}

/// The stricter of the decisions about two commands of a line.
fn stricter_command(one: Decision, other: Decision, steps: &mut impl StepRecorder) -> Decision {
    match (&one.strict, &other.strict) {
        (DecisionOutcome::Forward, _) | (_, DecisionOutcome::Deny) => other,
        (DecisionOutcome::Hold { workflow: first }, DecisionOutcome::Hold { workflow: second })
            if first != second =>
        {
            let cause_text = format!("its commands need approval by `{first}` and by `{second}`");
            steps.add(|| format!("approval: {cause_text}"));
            Decision {
                strict: DecisionOutcome::Deny,
                outcome: DecisionOutcome::Deny,
                gate: GateName::Governance,
                reason: cause_text.into(),
                description: Some(TWO_WORKFLOWS.into()),
                ..one
            }
        }
        _ => one,
    }
}

/// What a caller may run in place of a denied command; `None` if no rule permits any.
fn permitted_text(
    policy: &Policy,
    call: &NamedCall<'_>,
    subject: &CommandSubject,
) -> Option<String> {
    let permits = command_tests_that_permit(policy, call);
    let mut permitted: Vec<(bool, String)> = Vec::new();
    let program = subject.command().program().unwrap_or_default();
    for test in permits {
        for text in test.permitted_texts() {
            let is_near = !program.is_empty() && text.starts_with(&format!("`{program} "));
            permitted.push((!is_near, text));
        }
    }
    if permitted.is_empty() {
        return None;
    }
    // Commands of the same program first.
    permitted.sort_by_key(|(is_far, _)| *is_far);
    let count = permitted.len();
    let shown: Vec<String> =
        permitted.into_iter().take(ALTERNATIVES_MAX).map(|(_, text)| text).collect();
    let more = match count.saturating_sub(ALTERNATIVES_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(format!("Permitted are: {}{more}", shown.join(", ")))
}

fn command_tests_that_permit<'p>(policy: &'p Policy, call: &NamedCall<'_>) -> Vec<&'p CommandTest> {
    let all = command_tests(policy, call);
    let forwards = policy.rules.iter().filter(|rule| rule.act == RuleAction::Forward);
    let permits: Vec<&CommandTest> =
        forwards.flat_map(|rule| rule.arguments.iter().filter_map(|test| test.command())).collect();
    all.into_iter()
        .filter(|test| permits.iter().any(|permit| std::ptr::eq(*permit, *test)))
        .collect()
}
