//! Finds the rule that applies to a call.

use std::borrow::Cow;

use super::name_reading::NamedCall;
use super::steps::StepRecorder;
use crate::command_rules::{CommandTest, MatchCertainty};
use crate::gated_requests::GatedMethod;
use crate::glob::Glob;
use crate::methods::fold;
use crate::model::{OnDrift, Policy, PolicyRule, RuleAction};
use crate::pins::{HintTest, HintValue, Hints};
use crate::predicate::ArgumentTest;

/// The arguments of a call that has none.
const NO_ARGUMENTS: &[u8] = b"{}";

/// A rule that applies to a call.
pub(super) struct RuleHit<'p> {
    pub(super) rule: &'p PolicyRule,
    /// Its index among the rules.
    pub(super) index: usize,
    /// Whether it applies only under one possible reading of the call.
    pub(super) possible: bool,
    /// Whether it depends on parts of a command that are only known when it runs, so that a person
    /// is asked in place of a denial.
    pub(super) uncertain: bool,
    /// The hint that it tests and that is unknown, if it stops the call because of that.
    pub(super) unknown: Option<&'static str>,
}

/// The rules to search.
#[derive(Clone, Copy)]
pub(super) struct RuleRange {
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
    range: RuleRange,
    steps: &mut impl StepRecorder,
) -> (Option<RuleHit<'p>>, bool) {
    let mut looked = false;
    let subject = RuleSubject::new(policy, call, drifted);
    for (index, rule) in policy.rules.iter().enumerate().skip(range.from) {
        let mismatch = subject.mismatch(rule, range.scope);
        let has_tests = !(rule.arguments.is_empty() && rule.hints.is_empty());
        let tested =
            matches!(mismatch, None | Some(RuleMismatch::Argument(_) | RuleMismatch::Hint(..)));
        // A rule that failed by name or method says nothing about arguments, so the decision can be
        // cached.
        looked |= has_tests && tested;
        let Some(why_not) = mismatch else {
            // Whether the search must go on below this rule: it applies to one reading, and another
            // reading may meet a stricter rule. A forward matches only exactly, and nothing is
            // stricter than a denial.
            let uncertain = rule.act == RuleAction::Deny && !subject.commands_match(rule);
            let possible = match rule.act {
                RuleAction::Forward => false,
                RuleAction::Deny => uncertain,
                // Cedar may permit the call, so here even an unknown hint keeps the search going.
                RuleAction::Policy { .. } => !subject.fits_exactly(rule),
                // A caller can misspell names and arguments, but not what was pinned for a tool.
                RuleAction::Approve { .. } => !subject.matches_as_written(rule),
            };
            steps.add(|| {
                let (place, reason) = (rule_place(policy, rule), subject.lenient_match_text(rule));
                format!("rules: {place} matches{reason}: {}", action_verb(&rule.act))
            });
            let unknown = subject.unknown_hint(rule);
            return (Some(RuleHit { rule, index, possible, uncertain, unknown }), looked);
        };
        if range.scope == RuleScope::Gated || !rule.methods.is_empty() {
            steps.add(|| {
                let why_not = why_not.describe(rule, subject.arguments());
                format!("rules: {} does not match: {why_not}", rule_place(policy, rule))
            });
        }
    }
    (None, looked)
}

/// The tests of commands in the rules that apply to the call by its name.
pub(super) fn command_tests<'p>(policy: &'p Policy, call: &NamedCall<'_>) -> Vec<&'p CommandTest> {
    let subject = RuleSubject::new(policy, call, false);
    let mut all = Vec::new();
    for rule in &policy.rules {
        let mut tests = rule.arguments.iter().filter_map(ArgumentTest::command).peekable();
        if tests.peek().is_some() && subject.applies_by_name(rule) {
            all.extend(tests);
        }
    }
    all
}

/// Whether a call of the same name could pass with other arguments, or at least get as far as
/// approval or Cedar.
pub(super) fn can_pass_otherwise(
    policy: &Policy,
    call: &NamedCall<'_>,
    drifted: bool,
    scope: RuleScope,
) -> bool {
    let subject = RuleSubject::new(policy, call, drifted);
    let by_name = |rule: &&PolicyRule| {
        matches!(subject.mismatch(rule, scope), None | Some(RuleMismatch::Argument(_)))
    };
    for rule in policy.rules.iter().filter(by_name) {
        match (&rule.act, rule.arguments.is_empty()) {
            // Other arguments need not match this rule.
            (RuleAction::Deny, false) => {}
            (act, _) => return *act != RuleAction::Deny,
        }
    }
    policy.default != RuleAction::Deny
}

/// Whether a rule stops the call, or fails to permit it, because a path is relative where a folder
/// is tested.
pub(super) fn has_relative_path(
    policy: &Policy,
    call: &NamedCall<'_>,
    drifted: bool,
    scope: RuleScope,
) -> bool {
    let subject = RuleSubject::new(policy, call, drifted);
    let is_relative = |test: &ArgumentTest| test.has_relative_path(subject.arguments());
    policy.rules.iter().any(|rule| match (&rule.act, subject.mismatch(rule, scope)) {
        (RuleAction::Forward, Some(RuleMismatch::Argument(index))) => {
            is_relative(&rule.arguments[index])
        }
        // A blocking rule matches a relative path, since it may lead anywhere.
        (RuleAction::Deny, None) => rule.arguments.iter().any(is_relative),
        _ => false,
    })
}

/// Why a rule does not apply to a call.
enum RuleMismatch {
    Method,
    Source,
    Name,
    Argument(usize),
    Hint(usize, HintValue),
}

/// A call that rules are matched against.
struct RuleSubject<'a> {
    policy: &'a Policy,
    call: &'a NamedCall<'a>,
    /// Whether the definition is known to differ from the accepted one.
    drifted: bool,
    /// Its method, folded for comparison.
    method: Cow<'a, str>,
}

impl<'a> RuleSubject<'a> {
    fn new(policy: &'a Policy, call: &'a NamedCall<'a>, drifted: bool) -> Self {
        Self { policy, call, drifted, method: fold(call.method) }
    }

    /// Whether a rule applies as far as its method, server and name are concerned.
    fn applies_by_name(&self, rule: &PolicyRule) -> bool {
        matches!(
            self.mismatch(rule, RuleScope::Gated),
            None | Some(RuleMismatch::Argument(_) | RuleMismatch::Hint(..))
        )
    }

    fn mismatch(&self, rule: &PolicyRule, scope: RuleScope) -> Option<RuleMismatch> {
        let call = self.call;
        let names = |glob: &Glob| match scope {
            // A glob with a wildcard says nothing about this method in particular.
            RuleScope::WholeName => glob.is_plain() && glob.matches(&self.method),
            RuleScope::Gated | RuleScope::Method => glob.matches(&self.method),
        };
        let by_method = match rule.methods.as_slice() {
            [] => scope == RuleScope::Gated,
            methods => methods.iter().any(names),
        };
        // Only tools have annotations.
        let is_tool = || GatedMethod::of(call.method) == Some(GatedMethod::Call);
        if !by_method || !rule.hints.is_empty() && !is_tool() {
            return Some(RuleMismatch::Method);
        }
        if !rule.sources.is_empty() && !rule.sources.iter().any(|glob| glob.matches(call.source)) {
            return Some(RuleMismatch::Source);
        }
        let named = |glob: &Glob| match rule.act {
            RuleAction::Forward => call.as_read.must_match(glob),
            _ => call.as_read.may_match(glob),
        };
        // Cheap tests come first; arguments, which may be megabytes, are tested last.
        if !rule.matches.is_empty() && !rule.matches.iter().any(named) {
            return Some(RuleMismatch::Name);
        }
        let hints = self.hints(rule);
        let fails = |test: &HintTest| match rule.act {
            RuleAction::Forward => !test.must_hold(&hints),
            _ => !test.may_hold(&hints),
        };
        if let Some(index) = rule.hints.iter().position(fails) {
            return Some(RuleMismatch::Hint(index, hints.get(rule.hints[index].hint)));
        }
        let fails = |test: &ArgumentTest| match (rule.act == RuleAction::Forward, test.command()) {
            (true, Some(test)) => !self.command_must(test),
            (false, Some(test)) => self.command_may(test) == MatchCertainty::No,
            _ => match rule.act {
                // The values typed so far say nothing about the final ones.
                RuleAction::Forward if self.is_completion() => !test.must_hold(NO_ARGUMENTS),
                RuleAction::Forward => !test.must_hold(self.arguments()),
                // A rule that stops calls applies to everything some server could read that way.
                _ => !test.may_hold(self.arguments()),
            },
        };
        rule.arguments.iter().position(fails).map(RuleMismatch::Argument)
    }

    /// Whether a rule applies to the call exactly as written, without assumptions.
    fn fits_exactly(&self, rule: &PolicyRule) -> bool {
        let hints = self.hints(rule);
        rule.hints.iter().all(|test| test.must_hold(&hints)) && self.matches_as_written(rule)
    }

    /// Whether a rule applies to the name and the arguments exactly as written.
    fn matches_as_written(&self, rule: &PolicyRule) -> bool {
        let named = |glob: &Glob| self.call.as_read.must_match(glob);
        (rule.matches.is_empty() || rule.matches.iter().any(named))
            && rule.arguments.iter().all(|one| self.holds_as_written(one))
            && (rule.arguments.is_empty() || !self.is_completion())
    }

    /// Whether a test holds without assumptions. A test of a command that permits is stricter than
    /// one that stops, so either of them is enough.
    fn holds_as_written(&self, test: &ArgumentTest) -> bool {
        match test.command() {
            Some(test) => self.command_must(test) || self.command_may(test) == MatchCertainty::Yes,
            None => test.must_hold(self.arguments()),
        }
    }

    /// Whether the command is known well enough for all tests of it in a stopping rule.
    fn commands_match(&self, rule: &PolicyRule) -> bool {
        let mut tests = rule.arguments.iter().filter_map(ArgumentTest::command);
        tests.all(|test| self.command_may(test) == MatchCertainty::Yes)
    }

    fn command_must(&self, test: &CommandTest) -> bool {
        self.call.command.is_some_and(|command| test.must_hold(command, self.arguments()))
    }

    fn command_may(&self, test: &CommandTest) -> MatchCertainty {
        let command = self.call.command;
        command.map_or(MatchCertainty::No, |command| test.may_hold(command, self.arguments()))
    }

    /// The unknown hint that a stopping rule tests, if there is one.
    fn unknown_hint(&self, rule: &PolicyRule) -> Option<&'static str> {
        if rule.hints.is_empty()
            || !matches!(rule.act, RuleAction::Deny | RuleAction::Approve { .. })
        {
            return None;
        }
        let hints = self.hints(rule);
        let test = rule.hints.iter().find(|test| !test.must_hold(&hints))?;
        Some(test.hint.name())
    }

    /// The tests of a rule that hold only under a lenient reading, as text.
    fn lenient_match_text(&self, rule: &PolicyRule) -> String {
        let hints = self.hints(rule);
        let unknown = rule.hints.iter().filter(|test| !test.must_hold(&hints));
        let possible = rule.arguments.iter().filter(|one| !self.holds_as_written(one));
        let mut reasons: Vec<String> =
            unknown.map(|test| format!("`{}` is unknown", test.hint.name())).collect();
        reasons.extend(possible.map(ArgumentTest::possible_match_text));
        if reasons.is_empty() {
            String::new()
        } else {
            format!(", since {}", reasons.join(" and "))
        }
    }

    /// The arguments; an empty object if the call has none.
    fn arguments(&self) -> &[u8] {
        self.call.arguments.unwrap_or(NO_ARGUMENTS)
    }

    fn is_completion(&self) -> bool {
        GatedMethod::of(self.call.method) == Some(GatedMethod::Complete)
    }

    /// The hints known about the tool; looked up only if the rule tests any.
    fn hints(&self, rule: &PolicyRule) -> Hints {
        let pins = &self.policy.pins;
        // With `ignore` definitions are not compared, so a pinned hint may no longer apply.
        if rule.hints.is_empty() || pins.on_drift == OnDrift::Ignore {
            return Hints::UNKNOWN;
        }
        Hints::of(&pins.lock, self.call.source, self.call.name, self.drifted)
    }
}

impl RuleMismatch {
    fn describe(&self, rule: &PolicyRule, arguments: &[u8]) -> String {
        match self {
            Self::Method => "it applies to other methods".to_owned(),
            Self::Source => "it applies to other servers".to_owned(),
            Self::Name => {
                let globs: Vec<&str> = rule.matches.iter().map(Glob::text).collect();
                format!("the name does not match `{}`", globs.join("` or `"))
            }
            Self::Argument(index) => {
                let predicate = &rule.arguments[*index];
                let advice =
                    predicate.advice(arguments).filter(|_| rule.act == RuleAction::Forward);
                let advice = advice.map_or(String::new(), |advice| format!(" ({advice})"));
                format!("{}{advice}", predicate.mismatch_text(arguments))
            }
            Self::Hint(index, value) => rule.hints[*index].mismatch_text(*value),
        }
    }
}

/// A rule as steps name it. A group of commands is two rules of one name and line, told apart by
/// their actions.
fn rule_place(policy: &Policy, rule: &PolicyRule) -> String {
    let PolicyRule { name, line, act, .. } = rule;
    let is_same = |other: &&PolicyRule| other.name == *name && other.line == *line;
    match policy.rules.iter().filter(is_same).count() {
        0 | 1 => format!("`{name}` (line {line})"),
        _ => format!("`{name}` (line {line}, {})", action_verb(act)),
    }
}

/// The action of a rule as a keyword.
pub(super) fn action_verb(act: &RuleAction) -> &'static str {
    match act {
        RuleAction::Forward => "forward",
        RuleAction::Deny => "deny",
        RuleAction::Approve { .. } => "approve",
        RuleAction::Policy { .. } => "policy",
    }
}
