//! The gate that evaluates Cedar policies.

use tapegate_cedar::{CedarAnswer, CedarPrincipal, CedarQuery};

use super::gates::{hold, new_decision};
use super::name_reading::NamedCall;
use super::readings;
use super::steps::StepRecorder;
use super::{CallFacts, Decision, DecisionOutcome, GateName};
use crate::gated_requests::GatedMethod;
use crate::model::Policy;
use crate::uri::is_url;

/// The name of an unknown caller.
const NOBODY: &str = "unknown";

/// Evaluates the Cedar policies for a call.
pub(super) fn evaluate_cedar(
    policy: &Policy,
    policy_id: &str,
    workflow: Option<&str>,
    call: &NamedCall<'_>,
    facts: &CallFacts<'_>,
    steps: &mut impl StepRecorder,
) -> Decision {
    let Some(cedar) = &policy.cedar else {
        let reason = "there are no Cedar policies".to_owned();
        steps.add(|| format!("cedar: {reason}"));
        return new_decision(DecisionOutcome::Deny, GateName::Policy, reason.into());
    };
    let caller = facts.principal.map_or(
        CedarPrincipal { name: NOBODY, ..CedarPrincipal::default() },
        |principal| CedarPrincipal {
            name: &principal.name,
            namespace: &principal.namespace,
            service_account: &principal.service_account,
            roles: &principal.roles,
            client: principal.client.as_deref(),
        },
    );
    // The values typed so far can forbid a completion, but not permit it.
    let typed =
        call.arguments.filter(|_| GatedMethod::of(call.method) == Some(GatedMethod::Complete));
    let question = CedarQuery {
        caller,
        server: call.source,
        method: call.method,
        name: call.name,
        arguments: call.arguments.filter(|_| typed.is_none()),
        policy_id,
        wall_us: facts.wall_us,
        url_reader: Some(url_readings),
    };
    // First exactly as written. Other readings can only turn a permit into a refusal.
    let mut answer = cedar.authorize(&question);
    if answer.permit {
        // A forbid also covers what many servers treat as the same URI; a permit does not.
        let forbids = |name: &str, arguments: Option<&[u8]>| {
            Some(cedar.authorize(&CedarQuery { name, arguments, ..question.clone() }))
                // A reading that no policy permits does not count: a permit need not hold for
                // shorter forms.
                .filter(is_forbidden)
        };
        let by_typed = typed.and_then(|_| forbids(call.name, typed));
        let by_short =
            || call.as_read.shortened_forms().find_map(|name| forbids(name, call.arguments));
        // A policy may also write a URI with escapes: `like "file:///a%20b/*"`.
        let by_escaped = || {
            let mut names = std::iter::once(call.name).chain(call.as_read.shortened_forms());
            names.find_map(|name| forbids(&escaped(name)?, call.arguments))
        };
        answer = by_typed.or_else(by_short).or_else(by_escaped).unwrap_or(answer);
    }
    steps.add(|| format!("cedar: {}", answer.reason));
    let decision = if !answer.permit {
        new_decision(DecisionOutcome::Deny, GateName::Policy, answer.reason.into())
    } else if let Some(workflow) = workflow.or(answer.approval.as_deref()) {
        hold(policy, Some(workflow), answer.reason.into(), steps)
    } else {
        new_decision(DecisionOutcome::Forward, GateName::Policy, answer.reason.into())
    };
    Decision { policies: answer.policies, ..decision }
}

/// Whether a policy forbids the call, rather than none permitting it.
fn is_forbidden(answer: &CedarAnswer) -> bool {
    // Cedar names the policies that decided. If none permits the call, there is none to name.
    !answer.permit && !answer.policies.is_empty()
}

/// A URI with the escapes that URL libraries add, if it lacks some.
fn escaped(uri: &str) -> Option<String> {
    let is_escaped = |byte: u8| !(0x21..0x7f).contains(&byte) || b"\"<>`{}\\^|".contains(&byte);
    if !is_url(uri) || !uri.bytes().any(is_escaped) {
        return None;
    }
    let mut escaped = String::with_capacity(uri.len() + 16);
    for letter in uri.chars() {
        let mut bytes = [0; 4];
        let text = letter.encode_utf8(&mut bytes);
        match text.bytes().any(is_escaped) {
            true => escaped.extend(text.bytes().map(|byte| format!("%{byte:02X}"))),
            false => escaped.push(letter),
        }
    }
    Some(escaped)
}

/// The possible readings of a URL in an argument.
fn url_readings(text: &str) -> Option<Vec<String>> {
    if is_url(text) { readings::url_readings(text).ok() } else { Some(Vec::new()) }
}
