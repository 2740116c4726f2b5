//! The gate that asks Cedar.

use tapegate_cedar::{Answer, Caller, Question};

use super::gates::{hold, said};
use super::name::NamedCall;
use super::readings;
use super::steps::Steps;
use super::{Decision, Facts, GateName, Outcome};
use crate::gated::Gated;
use crate::model::Policy;
use crate::uri::is_url;

/// Who calls if nobody has said.
const NOBODY: &str = "unknown";

/// Asks Cedar.
pub(super) fn ask_cedar(
    policy: &Policy,
    policy_id: &str,
    workflow: Option<&str>,
    call: &NamedCall<'_>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Decision {
    let Some(cedar) = &policy.cedar else {
        let why = "there are no Cedar policies".to_owned();
        steps.add(|| format!("cedar: {why}"));
        return said(Outcome::Deny, GateName::Policy, why.into());
    };
    let caller =
        facts.principal.map_or(Caller { name: NOBODY, ..Caller::default() }, |principal| Caller {
            name: &principal.name,
            namespace: &principal.namespace,
            service_account: &principal.service_account,
            roles: &principal.roles,
            client: principal.client.as_deref(),
        });
    // What is typed so far can have a completion forbidden, but not permitted.
    let typed = call.arguments.filter(|_| Gated::of(call.method) == Some(Gated::Complete));
    let question = Question {
        caller,
        server: call.source,
        method: call.method,
        name: call.name,
        arguments: call.arguments.filter(|_| typed.is_none()),
        policy_id,
        wall_us: facts.wall_us,
        url_reader: Some(url_readings),
    };
    let mut answer = cedar.ask(&question);
    if answer.permit {
        // A forbid is also about what many servers take for the same URI; a permit is not.
        let forbids = |name, arguments| {
            Some(cedar.ask(&Question { name, arguments, ..question.clone() })).filter(forbids)
        };
        let by_typed = typed.and_then(|_| forbids(call.name, typed));
        let mut short = call.as_read.shortened();
        let by_short = || short.find_map(|name| forbids(name, call.arguments));
        answer = by_typed.or_else(by_short).unwrap_or(answer);
    }
    steps.add(|| format!("cedar: {}", answer.reason));
    let decision = if !answer.permit {
        said(Outcome::Deny, GateName::Policy, answer.reason.into())
    } else if let Some(workflow) = workflow.or(answer.approval.as_deref()) {
        hold(policy, Some(workflow), answer.reason.into(), steps)
    } else {
        said(Outcome::Forward, GateName::Policy, answer.reason.into())
    };
    Decision { policies: answer.policies, by_name: false, ..decision }
}

/// Whether Cedar refuses because a policy forbids, and not only because none permits.
fn forbids(answer: &Answer) -> bool {
    !answer.permit && !answer.policies.is_empty()
}

/// What a URL in an argument may be read as.
fn url_readings(text: &str) -> Option<Vec<String>> {
    if is_url(text) { readings::url_readings(text).ok() } else { Some(Vec::new()) }
}
