//! The one function that decides: visibility, rules, Cedar, approval.
//!
//! Whoever asks, the shim, the hub, a backtest or a person who wants to know why, asks here.

use crate::model::{Policy, Profile};

/// A call, as far as a decision needs it.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// The server, by the name it goes by in the policy.
    pub source: &'a str,
    /// The method.
    pub method: &'a str,
    /// The name of the tool or prompt, or the URI.
    pub name: &'a str,
    /// The raw JSON of the arguments, if there are any.
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
    /// The rule that matched, by name.
    pub rule: Option<String>,
    /// The Cedar policies that decided, by their ids.
    pub policies: Vec<String>,
    /// Why, in words for logs and for people. Callers never see them.
    pub reason: String,
    /// Every step on the way here, for `policy explain`. Empty unless it was asked for.
    pub steps: Vec<String>,
}

/// Decides about a call.
pub fn decide(policy: &Policy, profile: Profile, call: &Call<'_>, facts: &Facts<'_>) -> Decision {
    let _ = (policy, call, facts);
    Decision {
        strict: Outcome::Deny,
        outcome: if profile == Profile::Development { Outcome::Forward } else { Outcome::Deny },
        gate: GateName::Visibility,
        rule: None,
        policies: Vec::new(),
        reason: String::new(),
        steps: Vec::new(),
    }
}
