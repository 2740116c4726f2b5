//! The single decision function: visibility, pins, rules, Cedar, approval.
//!
//! The shim, the hub, backtests and `policy explain` all decide here. An explanation is the
//! decision itself plus the steps that led to it, so the two cannot differ.

mod cedar;
mod commands;
mod drift;
mod gates;
mod name_reading;
mod readings;
mod rules;
mod steps;

use std::sync::Arc;

pub use tapegate_core::activity::GateName;
use tapegate_core::decision::LoggedDecision;
use tapegate_core::side::Side;

use crate::methods::{MethodTreatment, sender};
use crate::model::{Policy, Profile};
use name_reading::NamedCall;
use steps::StepRecorder;

pub(crate) use name_reading::{NameReading, shortened_forms_of};
pub(crate) use readings::{hidden_reading, is_visible, resource_readings, url_readings};

/// The parts of a call that a decision depends on.
#[derive(Debug, Clone)]
pub struct PolicyCall<'a> {
    /// The server's name in the policy.
    pub source: &'a str,
    pub method: &'a str,
    /// The name of the tool or prompt, or the URI.
    pub name: &'a str,
    /// The raw JSON of the arguments, if there are any. For a completion these are the values typed
    /// so far; they can deny it but never permit it.
    pub arguments: Option<&'a [u8]>,
}

/// What a decision depends on besides the call.
#[derive(Debug, Clone, Default)]
pub struct CallFacts<'a> {
    /// Microseconds since 1970.
    pub wall_us: i64,
    /// The caller.
    pub principal: Option<&'a PolicyPrincipal>,
    /// How the definition of what is called differs from the accepted one, if it does.
    pub drift: Option<&'a str>,
}

/// The caller of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyPrincipal {
    /// The name of the application, or of the user.
    pub name: String,
    /// The namespace it runs in.
    pub namespace: String,
    /// The service account it runs as.
    pub service_account: String,
    /// The roles it has.
    pub roles: Vec<String>,
    /// The agent, as it introduced itself.
    pub client: Option<String>,
}

/// What to do with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// The call is sent on.
    Forward,
    /// The call is refused.
    Deny,
    /// The call waits for approval by this workflow.
    Hold { workflow: String },
}

/// A decision and its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What the production profile would do.
    pub strict: DecisionOutcome,
    /// What the active profile does.
    pub outcome: DecisionOutcome,
    /// The gate that decided; for a permitted call, the last gate that was evaluated.
    pub gate: GateName,
    /// Whether the cause is a definition that differs from the accepted one.
    pub drift: bool,
    /// The rule that matched, by name.
    pub rule: Option<Arc<str>>,
    /// The Cedar policies that decided, by their ids.
    pub policies: Vec<String>,
    /// The reason, for logs and for people. Callers never see it.
    pub reason: Arc<str>,
    /// For a denial: the text that the rule's author wrote for callers.
    pub description: Option<Arc<str>>,
    /// For a denial by the rules: whether other arguments would pass.
    pub other_arguments: bool,
    /// Whether an absolute path might pass: the call has a relative one, and a rule requires a path
    /// in a folder.
    pub relative_path: bool,
    /// Every step of the decision, for `policy explain`. Empty unless requested.
    pub steps: Vec<String>,
}

/// What an approval applies to, besides the call itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalScope<'a> {
    /// The workflow that asks for approval.
    pub workflow: &'a str,
    /// How the definition differed from the accepted one, if it did.
    pub drift: Option<&'a str>,
}

/// Decides about a call, assuming the side that normally sends its method.
pub fn decide(
    policy: &Policy,
    profile: Profile,
    call: &PolicyCall<'_>,
    facts: &CallFacts<'_>,
) -> Decision {
    decide_from(policy, profile, sender(call.method), call, facts)
}

/// Decides about a call sent by `from`.
pub fn decide_from(
    policy: &Policy,
    profile: Profile,
    from: Side,
    call: &PolicyCall<'_>,
    facts: &CallFacts<'_>,
) -> Decision {
    apply_profile(profile, decide_strict(policy, from, call, facts, &mut ()))
}

fn decide_strict(
    policy: &Policy,
    from: Side,
    call: &PolicyCall<'_>,
    facts: &CallFacts<'_>,
    steps: &mut impl StepRecorder,
) -> Decision {
    match MethodTreatment::of(call.method, from) {
        MethodTreatment::Gated(_) => readings::decide_every_reading(policy, call, facts, steps),
        treatment => readings::decide_ungated_every_reading(policy, treatment, call, facts, steps),
    }
}

/// Decides about a call and records every step.
pub fn explain(
    policy: &Policy,
    profile: Profile,
    call: &PolicyCall<'_>,
    facts: &CallFacts<'_>,
) -> Decision {
    explain_from(policy, profile, sender(call.method), call, facts)
}

/// Decides about a call sent by `from` and records every step.
pub fn explain_from(
    policy: &Policy,
    profile: Profile,
    from: Side,
    call: &PolicyCall<'_>,
    facts: &CallFacts<'_>,
) -> Decision {
    with_steps(profile, |steps| decide_strict(policy, from, call, facts, steps))
}

/// Decides about a client's request with a gated method that names nothing. Only rules that name
/// the method apply; the default does not.
pub(crate) fn decide_unnamed(
    policy: &Policy,
    profile: Profile,
    call: &PolicyCall<'_>,
    facts: &CallFacts<'_>,
    explains: bool,
) -> Decision {
    // There is no name to read in several ways.
    let named = NamedCall::as_written(call, false);
    if explains {
        return with_steps(profile, |steps| gates::decide_unnamed(policy, &named, facts, steps));
    }
    apply_profile(profile, gates::decide_unnamed(policy, &named, facts, &mut ()))
}

/// A decision with every step recorded.
fn with_steps(profile: Profile, ask: impl FnOnce(&mut Vec<String>) -> Decision) -> Decision {
    let mut steps = Vec::new();
    let mut decision = apply_profile(profile, ask(&mut steps));
    let done = match (&decision.strict, &decision.outcome) {
        (DecisionOutcome::Forward, _) => "sent on".to_owned(),
        // Before the plain outcomes: in development the strict one is not carried out.
        (strict, outcome) if strict != outcome => {
            format!("sent on, since the profile is development; production would {}", strict.verb())
        }
        (DecisionOutcome::Deny, _) => "denied".to_owned(),
        (DecisionOutcome::Hold { workflow }, _) => {
            format!("waits for a person (workflow `{workflow}`)")
        }
    };
    StepRecorder::add(&mut steps, || format!("outcome: {done}"));
    decision.steps = steps;
    decision
}

/// The refusal of a message whose params name `found`, one of Tapegate's own files.
pub(crate) fn refuse_own_file(profile: Profile, found: &str) -> Decision {
    let mut steps = Vec::new();
    let decision = apply_profile(profile, gates::refuse_own_file(found, &mut steps));
    Decision { steps, ..decision }
}

/// Applies a profile: development never blocks and never waits.
fn apply_profile(profile: Profile, mut decision: Decision) -> Decision {
    if profile == Profile::Development {
        decision.outcome = DecisionOutcome::Forward;
    }
    decision
}

impl DecisionOutcome {
    fn verb(&self) -> &'static str {
        match self {
            Self::Forward => "send it on",
            Self::Deny => "deny it",
            Self::Hold { .. } => "hold it for approval",
        }
    }
}

impl Decision {
    /// The decision as it is logged: the outcome, or what production would have done.
    pub fn logged(&self) -> LoggedDecision {
        match (&self.strict, &self.outcome) {
            // By `strict` first: the log of the development profile says what production would do.
            (DecisionOutcome::Forward, _) => LoggedDecision::Forward,
            (DecisionOutcome::Deny, DecisionOutcome::Deny) => LoggedDecision::Deny,
            (DecisionOutcome::Deny, _) => LoggedDecision::WouldBlock,
            (DecisionOutcome::Hold { .. }, DecisionOutcome::Hold { .. }) => {
                LoggedDecision::PendingApproval
            }
            (DecisionOutcome::Hold { .. }, _) => LoggedDecision::WouldRequireApproval,
        }
    }

    /// What an approval of the call applies to: the workflow, and any drift of the definition.
    /// `None` if the call does not wait for approval.
    pub fn approval_scope(&self) -> Option<ApprovalScope<'_>> {
        let DecisionOutcome::Hold { workflow } = &self.outcome else { return None };
        Some(ApprovalScope { workflow, drift: self.drift.then_some(&*self.reason) })
    }

    /// Whether approval was skipped only because of the profile.
    pub fn is_auto_approved(&self) -> bool {
        matches!(self.strict, DecisionOutcome::Hold { .. })
            && self.outcome == DecisionOutcome::Forward
    }
}
