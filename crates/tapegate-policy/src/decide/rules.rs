//! Finds the rule that applies to a call.

use std::borrow::Cow;

use super::name::NamedCall;
use super::steps::Steps;
use crate::gated::Gated;
use crate::glob::Glob;
use crate::methods::fold;
use crate::model::{Act, OnDrift, Policy, Rule};
use crate::pins::{HintTest, HintValue, Hints};
use crate::predicate::ArgumentTest;

/// The arguments of a call that has none.
const NO_ARGUMENTS: &[u8] = b"{}";

/// A rule that applies to a call.
pub(super) struct Hit<'p> {
    pub(super) rule: &'p Rule,
    /// Its index among the rules.
    pub(super) index: usize,
    /// Whether it applies only under one possible reading of the call.
    pub(super) possible: bool,
    /// The hint that it tests and that is unknown, if it stops the call because of that.
    pub(super) unknown: Option<&'static str>,
}

/// The rules to search.
#[derive(Clone, Copy)]
pub(super) struct Range {
    /// The index of the first one.
    pub(super) from: usize,
    pub(super) scope: RuleScope,
}

/// Which rules may apply to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleScope {
    /// Those that name its method, and those that name none.
    Gated,
    /// Those that name its method.
    Method,
    /// Those that give the whole name of its method.
    WholeName,
}

/// The first rule that matches, and whether arguments or hints were tested on the way.
pub(super) fn rule<'p>(
    policy: &'p Policy,
    call: &NamedCall<'_>,
    drifted: bool,
    range: Range,
    steps: &mut impl Steps,
) -> (Option<Hit<'p>>, bool) {
    let mut looked = false;
    let subject = Subject::new(policy, call, drifted);
    for (index, rule) in policy.rules.iter().enumerate().skip(range.from) {
        let mismatch = subject.mismatch(rule, range.scope);
        let has_tests = !(rule.arguments.is_empty() && rule.hints.is_empty());
        let tested = matches!(mismatch, None | Some(Mismatch::Argument(_) | Mismatch::Hint(..)));
        looked |= has_tests && tested;
        let Some(why_not) = mismatch else {
            let possible = match rule.act {
                Act::Forward | Act::Deny => false,
                Act::Policy { .. } => !subject.fits_exactly(rule),
                // A caller can misspell names and arguments, but not what was pinned for a tool.
                Act::Approve { .. } => !subject.is_written_so(rule),
            };
            steps.add(|| {
                let Rule { name, line, .. } = rule;
                let why = subject.lenient_words(rule);
                format!("rules: `{name}` (line {line}) matches{why}: {}", verb(&rule.act))
            });
            let unknown = subject.unknown_hint(rule);
            return (Some(Hit { rule, index, possible, unknown }), looked);
        };
        if range.scope == RuleScope::Gated || !rule.methods.is_empty() {
            steps.add(|| {
                let Rule { name, line, .. } = rule;
                let why_not = why_not.words(rule, subject.arguments());
                format!("rules: `{name}` (line {line}) does not match: {why_not}")
            });
        }
    }
    (None, looked)
}

/// Whether a call of the same name could pass with other arguments, or at least get as far as
/// approval or Cedar.
pub(super) fn passes_otherwise(
    policy: &Policy,
    call: &NamedCall<'_>,
    drifted: bool,
    scope: RuleScope,
) -> bool {
    let subject = Subject::new(policy, call, drifted);
    let by_name =
        |rule: &&Rule| matches!(subject.mismatch(rule, scope), None | Some(Mismatch::Argument(_)));
    for rule in policy.rules.iter().filter(by_name) {
        match (&rule.act, rule.arguments.is_empty()) {
            // Other arguments need not match this rule.
            (Act::Deny, false) => {}
            (act, _) => return *act != Act::Deny,
        }
    }
    policy.default != Act::Deny
}

/// Whether a rule stops the call, or fails to permit it, because a path is relative where a folder
/// is tested.
pub(super) fn has_relative_path(
    policy: &Policy,
    call: &NamedCall<'_>,
    drifted: bool,
    scope: RuleScope,
) -> bool {
    let subject = Subject::new(policy, call, drifted);
    let is_relative = |test: &ArgumentTest| test.has_relative_path(subject.arguments());
    policy.rules.iter().any(|rule| match (&rule.act, subject.mismatch(rule, scope)) {
        (Act::Forward, Some(Mismatch::Argument(index))) => is_relative(&rule.arguments[index]),
        (Act::Deny, None) => rule.arguments.iter().any(is_relative),
        _ => false,
    })
}

/// Why a rule does not apply to a call.
enum Mismatch {
    Method,
    Source,
    Name,
    Argument(usize),
    Hint(usize, HintValue),
}

/// A call that rules are matched against.
struct Subject<'a> {
    policy: &'a Policy,
    call: &'a NamedCall<'a>,
    /// Whether the definition is known to differ from the accepted one.
    drifted: bool,
    /// Its method, folded for comparison.
    method: Cow<'a, str>,
}

impl<'a> Subject<'a> {
    fn new(policy: &'a Policy, call: &'a NamedCall<'a>, drifted: bool) -> Self {
        Self { policy, call, drifted, method: fold(call.method) }
    }

    fn mismatch(&self, rule: &Rule, scope: RuleScope) -> Option<Mismatch> {
        let call = self.call;
        let names = |glob: &Glob| match scope {
            RuleScope::WholeName => glob.is_plain() && glob.matches(&self.method),
            RuleScope::Gated | RuleScope::Method => glob.matches(&self.method),
        };
        let by_method = match rule.methods.as_slice() {
            [] => scope == RuleScope::Gated,
            methods => methods.iter().any(names),
        };
        let is_tool = || Gated::of(call.method) == Some(Gated::Call);
        if !by_method || !rule.hints.is_empty() && !is_tool() {
            return Some(Mismatch::Method);
        }
        if !rule.sources.is_empty() && !rule.sources.iter().any(|glob| glob.matches(call.source)) {
            return Some(Mismatch::Source);
        }
        let named = |glob: &Glob| match rule.act {
            Act::Forward => call.as_read.must_match(glob),
            _ => call.as_read.may_match(glob),
        };
        if !rule.matches.is_empty() && !rule.matches.iter().any(named) {
            return Some(Mismatch::Name);
        }
        let hints = self.hints(rule);
        let fails = |test: &HintTest| match rule.act {
            Act::Forward => !test.must_hold(&hints),
            _ => !test.may_hold(&hints),
        };
        if let Some(index) = rule.hints.iter().position(fails) {
            return Some(Mismatch::Hint(index, hints.get(rule.hints[index].hint)));
        }
        let fails = |test: &ArgumentTest| match rule.act {
            // The values typed so far say nothing about the final ones.
            Act::Forward if self.is_completion() => !test.must_hold(NO_ARGUMENTS),
            Act::Forward => !test.must_hold(self.arguments()),
            // A rule that stops calls applies to everything some server could read that way.
            _ => !test.may_hold(self.arguments()),
        };
        rule.arguments.iter().position(fails).map(Mismatch::Argument)
    }

    /// Whether a rule applies to the call exactly as written, without assumptions.
    fn fits_exactly(&self, rule: &Rule) -> bool {
        let hints = self.hints(rule);
        rule.hints.iter().all(|test| test.must_hold(&hints)) && self.is_written_so(rule)
    }

    /// Whether a rule applies to the name and the arguments exactly as written.
    fn is_written_so(&self, rule: &Rule) -> bool {
        let named = |glob: &Glob| self.call.as_read.must_match(glob);
        (rule.matches.is_empty() || rule.matches.iter().any(named))
            && rule.arguments.iter().all(|one| one.must_hold(self.arguments()))
            && (rule.arguments.is_empty() || !self.is_completion())
    }

    /// The unknown hint that a stopping rule tests, if there is one.
    fn unknown_hint(&self, rule: &Rule) -> Option<&'static str> {
        if rule.hints.is_empty() || !matches!(rule.act, Act::Deny | Act::Approve { .. }) {
            return None;
        }
        let hints = self.hints(rule);
        let test = rule.hints.iter().find(|test| !test.must_hold(&hints))?;
        Some(test.hint.name())
    }

    /// The tests of a rule that hold only under a lenient reading, as text.
    fn lenient_words(&self, rule: &Rule) -> String {
        let hints = self.hints(rule);
        let unknown = rule.hints.iter().filter(|test| !test.must_hold(&hints));
        let possible = rule.arguments.iter().filter(|one| !one.must_hold(self.arguments()));
        let mut words: Vec<String> =
            unknown.map(|test| format!("`{}` is unknown", test.hint.name())).collect();
        words.extend(possible.map(ArgumentTest::possible_words));
        if words.is_empty() { String::new() } else { format!(", since {}", words.join(" and ")) }
    }

    /// The arguments; an empty object if the call has none.
    fn arguments(&self) -> &[u8] {
        self.call.arguments.unwrap_or(NO_ARGUMENTS)
    }

    fn is_completion(&self) -> bool {
        Gated::of(self.call.method) == Some(Gated::Complete)
    }

    /// The hints known about the tool; looked up only if the rule tests any.
    fn hints(&self, rule: &Rule) -> Hints {
        let pins = &self.policy.pins;
        if rule.hints.is_empty() || pins.on_drift == OnDrift::Ignore {
            return Hints::UNKNOWN;
        }
        Hints::of(&pins.lock, self.call.source, self.call.name, self.drifted)
    }
}

impl Mismatch {
    fn words(&self, rule: &Rule, arguments: &[u8]) -> String {
        match self {
            Self::Method => "it applies to other methods".to_owned(),
            Self::Source => "it applies to other servers".to_owned(),
            Self::Name => {
                let globs: Vec<&str> = rule.matches.iter().map(Glob::text).collect();
                format!("the name does not match `{}`", globs.join("` or `"))
            }
            Self::Argument(index) => {
                let predicate = &rule.arguments[*index];
                let advice = predicate.advice(arguments).filter(|_| rule.act == Act::Forward);
                let advice = advice.map_or(String::new(), |advice| format!(" ({advice})"));
                format!("{}{advice}", predicate.refuted())
            }
            Self::Hint(index, value) => rule.hints[*index].refuted(*value),
        }
    }
}

/// The action of a rule as a keyword.
pub(super) fn verb(act: &Act) -> &'static str {
    match act {
        Act::Forward => "forward",
        Act::Deny => "deny",
        Act::Approve { .. } => "approve",
        Act::Policy { .. } => "policy",
    }
}
