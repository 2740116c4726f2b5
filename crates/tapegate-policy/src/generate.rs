//! A policy from what was observed: the tools that were used pass, in the folders and with the
//! choices that they were used with, and nothing else does.
//!
//! The text is read back and held against every call it was made from before it is given out.

mod cedar;
mod folders;
mod key_names;
mod limit;
mod range;
mod seen;
mod traffic;
mod urls;
mod uses;
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
    /// The user's own folder, which is never opened as a whole.
    pub home: Option<String>,
}

/// A policy that was made, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The policy.
    pub policy: String,
    /// The Cedar policies that it names.
    pub cedar: Option<String>,
    /// What deserves a second look: arguments that are left open although they can do harm, and
    /// what Cedar policies are less strict about than rules.
    pub warnings: Vec<String>,
}

/// Makes a policy and tries it. The error says why the text is not good enough to be given out.
pub fn generate(traffic: &Traffic, wish: &Wish) -> Result<Generated, String> {
    let mut servers = uses::uses(traffic, wish.home.as_deref());
    loop {
        let generated = write(&servers, wish);
        let policy = tried(&generated, wish)?;
        let Err(failed) = first_stopped(&policy, traffic) else {
            if let Some(text) = &generated.cedar {
                with_tools(text, traffic)?;
            }
            return Ok(generated);
        };
        // Arguments that readers disagree on fail tests that their own values were made into.
        let opened = servers.iter_mut().any(|server| server.open(failed.source, failed.name));
        if !opened {
            passes(&policy, traffic)?;
        }
    }
}

fn write(servers: &[uses::Server], wish: &Wish) -> Generated {
    let cedar = wish.cedar.as_ref().map(|_| cedar::write(servers, &wish.head));
    let (cedar, less) = cedar.unzip();
    let mut warnings = risks(servers);
    warnings.extend(less.unwrap_or_default());
    Generated { policy: yaml::write(servers, wish), cedar, warnings }
}

/// The arguments that are left open although they can do harm.
fn risks(servers: &[uses::Server]) -> Vec<String> {
    let tools = servers.iter().flat_map(|server| &server.tools);
    let told = tools.flat_map(|tool| {
        let risks = tool.limits.risks.iter();
        risks.map(|(path, why)| format!("`{path}` of `{}` may be anything: {why}", tool.name))
    });
    told.collect()
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
    first_stopped(policy, traffic).map_err(|call| {
        let decision = decide(policy, Profile::Production, &call, &Facts::default());
        format!("a call of `{}` that was observed would not pass: {}", call.name, decision.reason)
    })
}

/// The first call that does not pass, as the error.
fn first_stopped<'a>(policy: &Policy, traffic: &'a Traffic) -> Result<(), Call<'a>> {
    let stopped = traffic.calls().find_map(|(source, method, name, arguments)| {
        let call = Call { source, method, name, arguments };
        let decision = decide(policy, Profile::Production, &call, &Facts::default());
        (decision.strict != Outcome::Forward).then_some(call)
    });
    stopped.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests;
