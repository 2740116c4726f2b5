//! The one function that decides: visibility, pins, rules, Cedar, approval.
//!
//! Whoever asks, the shim, the hub, a backtest or a person who wants to know why, asks here. An
//! explanation is the decision itself with the steps gathered on the way, so that it cannot differ.

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

/// A call, as far as a decision needs it.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// The server, by the name it goes by in the policy.
    pub source: &'a str,
    /// The method.
    pub method: &'a str,
    /// The name of the tool or prompt, or the URI.
    pub name: &'a str,
    /// The raw JSON of the arguments, if there are any. Of a completion they are what is typed so far, which
    /// can stop it, but lets nothing pass.
    pub arguments: Option<&'a [u8]>,
}

/// What is known besides the call.
#[derive(Debug, Clone, Default)]
pub struct Facts<'a> {
    /// Microseconds since 1970.
    pub wall_us: i64,
    /// Who calls.
    pub principal: Option<&'a Principal>,
    /// How what is called differs from what was accepted, if it does.
    pub drift: Option<&'a str>,
}

/// Who calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Principal {
    /// The name of the application, or of the user.
    pub name: String,
    /// Where it runs.
    pub namespace: String,
    /// What it runs as.
    pub service_account: String,
    /// What it may act as.
    pub roles: Vec<String>,
    /// The agent, as it called itself.
    pub client: Option<String>,
}

/// Which gate has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GateName {
    /// How the message is written.
    Framing,
    /// What may be seen at all.
    Visibility,
    /// The rules.
    Governance,
    /// Cedar.
    Policy,
    /// People.
    Approval,
}

/// What is to be done with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is sent on.
    Forward,
    /// It goes nowhere.
    Deny,
    /// People are asked by this workflow.
    Hold {
        /// The workflow.
        workflow: String,
    },
}

/// A decision and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What production would do.
    pub strict: Outcome,
    /// What is done under the profile that holds.
    pub outcome: Outcome,
    /// The gate that said so; for a call that passes, the last one that was asked.
    pub gate: GateName,
    /// Whether it was said because a definition is not what was accepted.
    pub drift: bool,
    /// The rule that matched, by name.
    pub rule: Option<Arc<str>>,
    /// The Cedar policies that decided, by their ids.
    pub policies: Vec<String>,
    /// Why, in words for logs and for people. Callers never see them.
    pub reason: Arc<str>,
    /// Of a denial: what the rule's author wants callers to be told.
    pub description: Option<Arc<str>>,
    /// Of a denial by the rules: whether the same thing passes with other arguments.
    pub other_arguments: bool,
    /// Whether it may then be enough to write a path in full, as it is relative and a rule wants one in a
    /// folder.
    pub relative_path: bool,
    /// Whether every call of this method and name is decided about alike, whatever its arguments, its
    /// caller and the time.
    pub by_name: bool,
    /// Every step on the way here, for `policy explain`. Empty unless it was asked for.
    pub steps: Vec<String>,
}

/// What an approval counts for, besides the call itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalScope<'a> {
    /// The workflow that was asked.
    pub workflow: &'a str,
    /// How what is called was not what had been accepted, if so.
    pub drift: Option<&'a str>,
}

/// Decides about a call of the side that sends such calls.
pub fn decide(policy: &Policy, profile: Profile, call: &Call<'_>, facts: &Facts<'_>) -> Decision {
    decide_from(policy, profile, sender(call.method), call, facts)
}

/// Decides about a call that `from` has sent.
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

/// Decides about a call, and tells every step on the way.
pub fn explain(policy: &Policy, profile: Profile, call: &Call<'_>, facts: &Facts<'_>) -> Decision {
    explain_from(policy, profile, sender(call.method), call, facts)
}

/// Decides about a call that `from` has sent, and tells every step on the way.
pub fn explain_from(
    policy: &Policy,
    profile: Profile,
    from: Side,
    call: &Call<'_>,
    facts: &Facts<'_>,
) -> Decision {
    explained(profile, |steps| ask(policy, from, call, facts, steps))
}

/// Decides about a client's request with a gated method that names nothing: rules that name the method
/// decide, and no default does.
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

/// A decision with every step on the way.
fn explained(profile: Profile, ask: impl FnOnce(&mut Vec<String>) -> Decision) -> Decision {
    let mut steps = Vec::new();
    let mut decision = under(profile, ask(&mut steps));
    let done = match (&decision.strict, &decision.outcome) {
        (Outcome::Forward, _) => "sent on".to_owned(),
        (strict, outcome) if strict != outcome => {
            format!("sent on, as the profile is development; production would {}", strict.verb())
        }
        (Outcome::Deny, _) => "denied".to_owned(),
        (Outcome::Hold { workflow }, _) => format!("waits for a person (workflow `{workflow}`)"),
    };
    Steps::add(&mut steps, || format!("outcome: {done}"));
    decision.steps = steps;
    decision
}

/// The refusal of a message that names the file `found` of ours in its params.
pub(crate) fn names_own_file(profile: Profile, found: &str) -> Decision {
    let mut steps = Vec::new();
    let decision = under(profile, gates::names_own_file(found, &mut steps));
    Decision { steps, ..decision }
}

/// What is done under a profile: development never blocks and never waits.
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
    /// What logs call what was decided: the outcome, or what production would have done.
    pub fn logged(&self) -> LoggedDecision {
        match (&self.strict, &self.outcome) {
            (Outcome::Forward, _) => LoggedDecision::Forward,
            (Outcome::Deny, Outcome::Deny) => LoggedDecision::Deny,
            (Outcome::Deny, _) => LoggedDecision::WouldBlock,
            (Outcome::Hold { .. }, Outcome::Hold { .. }) => LoggedDecision::PendingApproval,
            (Outcome::Hold { .. }, _) => LoggedDecision::WouldRequireApproval,
        }
    }

    /// What an approval of the call counts for: the workflow that is asked, and how what is called is not
    /// what was accepted, if it is not. Nothing if nobody is asked.
    pub fn approval_scope(&self) -> Option<ApprovalScope<'_>> {
        let Outcome::Hold { workflow } = &self.outcome else { return None };
        Some(ApprovalScope { workflow, drift: self.drift.then_some(&*self.reason) })
    }

    /// Whether nobody is asked only because the profile does not ask.
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

    /// The name in text for people, as the documentation has it. Logs and messages keep
    /// [`name`](Self::name), which other programs read.
    pub fn title(self) -> &'static str {
        match self {
            Self::Governance => "rules",
            Self::Policy => "cedar",
            _ => self.name(),
        }
    }
}
