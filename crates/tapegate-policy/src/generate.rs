//! Generates a policy from observed traffic: it permits the tools that were used, with the folders
//! and choices they were used with, and nothing else.
//!
//! The generated text is loaded again and checked against every observed call before it is
//! returned.

mod argument_limit;
mod cedar;
mod folders;
mod key_names;
mod literals;
mod range;
mod seen_values;
mod server_uses;
mod traffic;
mod urls;
mod yaml;

use tapegate_cedar::{CedarPolicies, CedarText};
use tapegate_yaml::files::MemoryFiles;
use tapegate_yaml::finding::Severity;

use crate::decide::{CallFacts, DecisionOutcome, PolicyCall, decide};
use crate::load::load;
use crate::model::{Policy, Profile};

pub use traffic::RecordedTraffic;

/// The file name of a generated policy while it is checked.
const TRIED: &str = "tapegate.yaml";

/// Options for generating a policy.
#[derive(Debug, Clone, Default)]
pub struct GenerateOptions {
    /// The comment lines at the top.
    pub head: Vec<String>,
    /// The file name of the Cedar policies; `None` to generate rules instead.
    pub cedar: Option<String>,
    /// The user's home folder, which is never permitted as a whole.
    pub home: Option<String>,
}

/// A generated policy, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedPolicy {
    pub policy: String,
    /// The Cedar policies that it names.
    pub cedar: Option<String>,
    /// What to review: arguments that are left unrestricted although they can do harm, and where
    /// Cedar policies are less strict than rules.
    pub warnings: Vec<String>,
}

/// Generates a policy and checks it. The error says why the text cannot be used.
pub fn generate(
    traffic: &RecordedTraffic,
    wish: &GenerateOptions,
) -> Result<GeneratedPolicy, String> {
    // Each round opens at least one tool or fails, so the loop ends.
    let mut servers = server_uses::collect_usage(traffic, wish.home.as_deref());
    loop {
        let generated = write(&servers, wish);
        let policy = reload(&generated, wish)?;
        let Err(failed) = find_first_stopped(&policy, traffic) else {
            if let Some(text) = &generated.cedar {
                check_with_tools(text, traffic)?;
            }
            return Ok(generated);
        };
        // Arguments that readers parse differently fail the very tests generated from their values.
        let opened = servers.iter_mut().any(|server| server.open(failed.source, failed.name));
        if !opened {
            check_all_pass(&policy, traffic)?;
        }
    }
}

fn write(servers: &[server_uses::ServerUses], wish: &GenerateOptions) -> GeneratedPolicy {
    let cedar = wish.cedar.as_ref().map(|_| cedar::write(servers, &wish.head));
    let (cedar, less) = cedar.unzip();
    let mut warnings = risks(servers);
    warnings.extend(less.unwrap_or_default());
    GeneratedPolicy { policy: yaml::write(servers, wish), cedar, warnings }
}

/// Warnings about arguments that are left unrestricted although they can do harm.
fn risks(servers: &[server_uses::ServerUses]) -> Vec<String> {
    let tools = servers.iter().flat_map(|server| &server.tools);
    let messages = tools.flat_map(|tool| {
        let risks = tool.limits.risks.iter();
        risks.map(|(path, reason)| format!("`{path}` of `{}` may be anything: {reason}", tool.name))
    });
    messages.collect()
}

/// Loads a generated policy the way its users will.
fn reload(generated: &GeneratedPolicy, wish: &GenerateOptions) -> Result<Policy, String> {
    let mut files = MemoryFiles::default().with_file(TRIED, generated.policy.as_str());
    if let (Some(name), Some(text)) = (&wish.cedar, &generated.cedar) {
        files = files.with_file(name, text.as_str());
        let folder = tapegate_yaml::files::Files::folder_of(&files, TRIED);
        // The loader may look for the file with or without the folder of the policy.
        files = files.with_file(&format!("{folder}/{name}"), text.as_str());
    }
    let loaded = load(TRIED, &files);
    let mut errors = loaded.findings.iter().filter(|one| one.severity == Severity::Error);
    match (loaded.policy, errors.next()) {
        (Some(policy), None) => Ok(policy),
        (_, Some(error)) => Err(format!("line {}: {}", error.spot.line, error.message)),
        (None, None) => Err("it cannot be loaded".to_owned()),
    }
}

/// Checks that the Cedar policies are also valid once the recorded definitions are accepted.
fn check_with_tools(text: &str, traffic: &RecordedTraffic) -> Result<(), String> {
    let text = CedarText { name: "generated".to_owned(), text: text.to_owned() };
    let (_, faults) = CedarPolicies::load(&[text], None, &traffic.tools());
    match faults.iter().find(|fault| fault.error) {
        Some(fault) => Err(format!("Cedar, line {}: {}", fault.line, fault.message)),
        None => Ok(()),
    }
}

/// Checks that every observed call is permitted.
pub fn check_all_pass(policy: &Policy, traffic: &RecordedTraffic) -> Result<(), String> {
    find_first_stopped(policy, traffic).map_err(|call| {
        let decision = decide(policy, Profile::Production, &call, &CallFacts::default());
        format!("an observed call of `{}` would not pass: {}", call.name, decision.reason)
    })
}

/// Returns the first call that is not permitted as the error.
fn find_first_stopped<'a>(
    policy: &Policy,
    traffic: &'a RecordedTraffic,
) -> Result<(), PolicyCall<'a>> {
    let stopped = traffic.calls().find_map(|(source, method, name, arguments)| {
        let call = PolicyCall { source, method, name, arguments };
        let decision = decide(policy, Profile::Production, &call, &CallFacts::default());
        (decision.strict != DecisionOutcome::Forward).then_some(call)
    });
    stopped.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests;
