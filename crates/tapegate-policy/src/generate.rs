//! A policy from what was observed: what was called passes, with arguments like those, and nothing
//! else does.
//!
//! What is written is read and held against every call it was made from before anybody gets it.

mod cedar;
mod limit;
mod seen;
mod traffic;
mod words;
mod yaml;

use tapegate_cedar::{Cedar, Text};
use tapegate_yaml::files::Held;
use tapegate_yaml::finding::Severity;

use crate::decide::{Call, Facts, Outcome, decide};
use crate::load::load;
use crate::model::{Policy, Profile};

pub use traffic::Traffic;

/// The name that a policy goes by while it is tried.
const TRIED: &str = "tapegate.yaml";

/// What a policy is made with.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// What stands at its top, line by line.
    pub head: Vec<String>,
    /// The file with Cedar policies, as the policy names it; none if rules are to decide.
    pub cedar: Option<String>,
}

/// A policy that was made, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The policy.
    pub policy: String,
    /// The Cedar policies that it names.
    pub cedar: Option<String>,
}

/// Makes a policy and tries it. The error says why what was made is not good enough to be given
/// out.
pub fn generate(traffic: &Traffic, wish: &Wish) -> Result<Generated, String> {
    let uses = limit::uses(traffic);
    let generated = Generated {
        policy: yaml::write(&uses, wish),
        cedar: wish.cedar.as_ref().map(|_| cedar::write(&uses, &wish.head)),
    };
    let policy = tried(&generated, wish)?;
    if let Some(text) = &generated.cedar {
        with_tools(text, traffic)?;
    }
    passes(&policy, traffic)?;
    Ok(generated)
}

/// Reads a policy as whoever uses it will.
fn tried(generated: &Generated, wish: &Wish) -> Result<Policy, String> {
    let mut files = Held::default().with(TRIED, generated.policy.as_str());
    if let (Some(name), Some(text)) = (&wish.cedar, &generated.cedar) {
        files = files.with(name, text.as_str());
        let folder = tapegate_yaml::files::Files::folder_of(&files, TRIED);
        files = files.with(&format!("{folder}/{name}"), text.as_str());
    }
    let loaded = load(TRIED, &files);
    let mut errors = loaded.findings.iter().filter(|one| one.severity == Severity::Error);
    match (loaded.policy, errors.next()) {
        (Some(policy), None) => Ok(policy),
        (_, Some(error)) => Err(format!("line {}: {}", error.spot.line, error.words)),
        (None, None) => Err("it cannot be loaded".to_owned()),
    }
}

/// The Cedar policies must also hold once the definitions on the tape are accepted.
fn with_tools(text: &str, traffic: &Traffic) -> Result<(), String> {
    let text = Text { name: "generated".to_owned(), text: text.to_owned() };
    let (_, faults) = Cedar::load(&[text], None, &traffic.tools());
    match faults.iter().find(|fault| fault.error) {
        Some(fault) => Err(format!("Cedar, line {}: {}", fault.line, fault.words)),
        None => Ok(()),
    }
}

/// Whether every call passes.
pub fn passes(policy: &Policy, traffic: &Traffic) -> Result<(), String> {
    for (server, method, name, arguments) in traffic.calls() {
        let call = Call { source: server, method, name, arguments };
        let decision = decide(policy, Profile::Production, &call, &Facts::default());
        if decision.strict != Outcome::Forward {
            return Err(format!(
                "a call of `{name}` that was observed would not pass: {}",
                decision.reason
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
