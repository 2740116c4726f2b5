//! The single decision function: visibility, pins, rules, Cedar, approval.
//!
//! The shim, the hub, backtests and `policy explain` all decide here. An explanation is the
//! decision itself plus the steps that led to it, so the two cannot differ.

mod cedar;
mod drift;
mod gates;
mod name;
mod readings;
mod rules;
mod steps;

use std::sync::Arc;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::side::Side;

use crate::methods::{Duty, sender};
use crate::model::{Policy, Profile};
use name::NamedCall;
use steps::Steps;

pub(crate) use name::{Name, shortened};
pub(crate) use readings::{hidden_reading, shows, url_readings};

/// The parts of a call that a decision depends on.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// The server's name in the policy.
    pub source: &'a str,
    /// The method.
    pub method: &'a str,
    /// The name of the tool or prompt, or the URI.
    pub name: &'a str,
    /// The raw JSON of the arguments, if there are any. For a completion these are the values typed
    /// so far; they can deny it but never permit it.
    pub arguments: Option<&'a [u8]>,
}

/// What a decision depends on besides the call.
#[derive(Debug, Clone, Default)]
pub struct Facts<'a> {
    /// Microseconds since 1970.
    pub wall_us: i64,
    /// The caller.
    pub principal: Option<&'a Principal>,
    /// How the definition of what is called differs from the accepted one, if it does.
    pub drift: Option<&'a str>,
}

/// The caller of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Principal {
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

/// The gate that made a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GateName {
    /// The form of the message.
    Framing,
    /// Which items are visible at all.
    Visibility,
    /// The rules.
    Governance,
    /// Cedar.
    Policy,
    /// Human approval.
    Approval,
}

/// What to do with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The call is sent on.
    Forward,
    /// The call is refused.
    Deny,
    /// The call waits for approval by this workflow.
    Hold {
        /// The workflow.
        workflow: String,
    },
}

/// A decision and its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What the production profile would do.
    pub strict: Outcome,
    /// What the active profile does.
    pub outcome: Outcome,
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
    /// Whether every call of this method and name gets the same decision, whatever its arguments,
    /// caller and time.
    pub by_name: bool,
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
pub fn decide(policy: &Policy, profile: Profile, call: &Call<'_>, facts: &Facts<'_>) -> Decision {
    decide_from(policy, profile, sender(call.method), call, facts)
}

/// Decides about a call sent by `from`.
pub fn decide_from(
    policy: &Policy,
    profile: Profile,
    from: Side,
    call: &Call<'_>,
    facts: &Facts<'_>,
) -> Decision {
    under(profile, ask(policy, from, call, facts, &mut ()))
}

fn ask(
    policy: &Policy,
    from: Side,
    call: &Call<'_>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Decision {
    match Duty::of(call.method, from) {
        Duty::Gated(_) => readings::ask(policy, call, facts, steps),
        duty => readings::ask_ungated(policy, duty, call, facts, steps),
    }
}

/// Decides about a call and records every step.
pub fn explain(policy: &Policy, profile: Profile, call: &Call<'_>, facts: &Facts<'_>) -> Decision {
    explain_from(policy, profile, sender(call.method), call, facts)
}

/// Decides about a call sent by `from` and records every step.
pub fn explain_from(
    policy: &Policy,
    profile: Profile,
    from: Side,
    call: &Call<'_>,
    facts: &Facts<'_>,
) -> Decision {
    explained(profile, |steps| ask(policy, from, call, facts, steps))
}

/// Decides about a client's request with a gated method that names nothing. Only rules that name
/// the method apply; the default does not.
pub(crate) fn decide_nameless(
    policy: &Policy,
    profile: Profile,
    call: &Call<'_>,
    facts: &Facts<'_>,
    explains: bool,
) -> Decision {
    let named = NamedCall::written(call, false);
    if explains {
        return explained(profile, |steps| gates::nameless(policy, &named, facts, steps));
    }
    under(profile, gates::nameless(policy, &named, facts, &mut ()))
}

/// A decision with every step recorded.
fn explained(profile: Profile, ask: impl FnOnce(&mut Vec<String>) -> Decision) -> Decision {
    let mut steps = Vec::new();
    let mut decision = under(profile, ask(&mut steps));
    let done = match (&decision.strict, &decision.outcome) {
        (Outcome::Forward, _) => "sent on".to_owned(),
        (strict, outcome) if strict != outcome => {
            format!("sent on, since the profile is development; production would {}", strict.verb())
        }
        (Outcome::Deny, _) => "denied".to_owned(),
        (Outcome::Hold { workflow }, _) => format!("waits for a person (workflow `{workflow}`)"),
    };
    Steps::add(&mut steps, || format!("outcome: {done}"));
    decision.steps = steps;
    decision
}

/// The refusal of a message whose params name `found`, one of Tapegate's own files.
pub(crate) fn names_own_file(profile: Profile, found: &str) -> Decision {
    let mut steps = Vec::new();
    let decision = under(profile, gates::names_own_file(found, &mut steps));
    Decision { steps, ..decision }
}

/// Applies a profile: development never blocks and never waits.
fn under(profile: Profile, mut decision: Decision) -> Decision {
    if profile == Profile::Development {
        decision.outcome = Outcome::Forward;
    }
    decision
}

impl Outcome {
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
            (Outcome::Forward, _) => LoggedDecision::Forward,
            (Outcome::Deny, Outcome::Deny) => LoggedDecision::Deny,
            (Outcome::Deny, _) => LoggedDecision::WouldBlock,
            (Outcome::Hold { .. }, Outcome::Hold { .. }) => LoggedDecision::PendingApproval,
            (Outcome::Hold { .. }, _) => LoggedDecision::WouldRequireApproval,
        }
    }

    /// What an approval of the call applies to: the workflow, and any drift of the definition.
    /// `None` if the call does not wait for approval.
    pub fn approval_scope(&self) -> Option<ApprovalScope<'_>> {
        let Outcome::Hold { workflow } = &self.outcome else { return None };
        Some(ApprovalScope { workflow, drift: self.drift.then_some(&*self.reason) })
    }

    /// Whether approval was skipped only because of the profile.
    pub fn auto_approved(&self) -> bool {
        matches!(self.strict, Outcome::Hold { .. }) && self.outcome == Outcome::Forward
    }
}

impl GateName {
    /// Its name on the wire and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Framing => "framing",
            Self::Visibility => "visibility",
            Self::Governance => "governance",
            Self::Policy => "policy",
            Self::Approval => "approval",
        }
    }

    /// The name in text for people, as in the documentation. Logs and messages use
    /// [`name`](Self::name), which other programs read.
    pub fn title(self) -> &'static str {
        match self {
            Self::Governance => "rules",
            Self::Policy => "cedar",
            _ => self.name(),
        }
    }
}
