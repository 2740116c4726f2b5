//! Which rule is about a call.

use super::Call;
use super::steps::Steps;
use crate::glob::Glob;
use crate::model::{Act, Policy, Rule};

/// The first rule that matches, and whether arguments were looked at to find it. `named` if only those
/// count that name methods.
pub(super) fn rule<'p>(
    policy: &'p Policy,
    call: &Call<'_>,
    named: bool,
    steps: &mut impl Steps,
) -> (Option<&'p Rule>, bool) {
    let mut looked = false;
    for rule in &policy.rules {
        let mismatch = mismatch(rule, call, named);
        looked |=
            !rule.arguments.is_empty() && matches!(mismatch, None | Some(Mismatch::Argument(_)));
        let Some(why_not) = mismatch else {
            steps.add(|| {
                let Rule { name, line, .. } = rule;
                format!("rules: `{name}` (line {line}) matches: {}", verb(&rule.act))
            });
            return (Some(rule), looked);
        };
        if !(named && rule.methods.is_empty()) {
            steps.add(|| {
                let Rule { name, line, .. } = rule;
                format!("rules: `{name}` (line {line}) does not match: {}", why_not.words(rule))
            });
        }
    }
    (None, looked)
}

/// Why a rule is not about a call.
enum Mismatch {
    Method,
    Source,
    Name,
    Argument(usize),
}

fn mismatch(rule: &Rule, call: &Call<'_>, named: bool) -> Option<Mismatch> {
    let by_method = match rule.methods.as_slice() {
        [] => !named,
        methods => methods.iter().any(|glob| glob.matches(call.method)),
    };
    if !by_method {
        return Some(Mismatch::Method);
    }
    if !rule.sources.is_empty() && !rule.sources.iter().any(|glob| glob.matches(call.source)) {
        return Some(Mismatch::Source);
    }
    if !rule.matches.is_empty() && !rule.matches.iter().any(|glob| glob.matches(call.name)) {
        return Some(Mismatch::Name);
    }
    // A call without arguments is one with none in them.
    let arguments = call.arguments.unwrap_or(b"{}");
    let fails = rule.arguments.iter().position(|predicate| !predicate.holds(arguments));
    fails.map(Mismatch::Argument)
}

impl Mismatch {
    fn words(&self, rule: &Rule) -> String {
        match self {
            Self::Method => "it is about other methods".to_owned(),
            Self::Source => "it is about other servers".to_owned(),
            Self::Name => {
                let globs: Vec<&str> = rule.matches.iter().map(Glob::text).collect();
                format!("the name is not like `{}`", globs.join("` or `"))
            }
            Self::Argument(index) => format!("not so: {}", rule.arguments[*index]),
        }
    }
}

/// What a rule does, in a word.
pub(super) fn verb(act: &Act) -> &'static str {
    match act {
        Act::Forward => "forward",
        Act::Deny => "deny",
        Act::Approve { .. } => "approve",
        Act::Policy { .. } => "policy",
    }
}
