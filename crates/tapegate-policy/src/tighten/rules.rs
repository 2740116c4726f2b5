//! Whether a list of rules refuses at least what another does.
//!
//! The first rule that matches decides. So the new list refuses at least as much of each call if
//! it results from the old one by these steps alone:
//!
//! - a rule that denies is inserted anywhere;
//! - any rule is inserted where the rest of the old list would have forwarded every call;
//! - a rule that asks for approval is inserted where the rest of the old list would have forwarded
//!   the call, or held it for the same workflow;
//! - a rule that forwards is removed, or matches fewer calls;
//! - a rule that denies matches more calls;
//! - the action of a rule is replaced by a stricter one.

use super::{LooseningError, act_tightens, contains, is_identical};
use crate::glob::Glob;
use crate::load::MARK;
use crate::model::{PolicyRule, RuleAction};
use crate::predicate::ArgumentTest;

pub(super) fn check_rules_tighten(
    old: (&[PolicyRule], &RuleAction),
    new: &[PolicyRule],
) -> Result<(), LooseningError> {
    let (mut old, default) = old;
    for rule in new {
        loop {
            if let Some((first, rest)) = old.split_first()
                && is_tightened(first, rule)
            {
                old = rest;
                break;
            }
            // A match has priority over an insertion: it consumes the old rule, so that the rest is
            // compared with the rules after it.
            if may_insert(rule, old, default) {
                break;
            }
            // The old rule counts as removed. Only a forwarding one may go: its calls cannot fare
            // better than that.
            match old.split_first() {
                Some((first, rest)) if first.act == RuleAction::Forward => old = rest,
                _ => {
                    let name = &rule.name;
                    return Err(LooseningError(format!("rule `{name}` may permit more")));
                }
            }
        }
    }
    match old.iter().find(|rule| rule.act != RuleAction::Forward) {
        Some(rule) => Err(LooseningError(format!("rule `{}` was removed or moved", rule.name))),
        None => Ok(()),
    }
}

/// Whether a new rule in place of an old one refuses at least as much.
fn is_tightened(old: &PolicyRule, new: &PolicyRule) -> bool {
    // Names, reasons, lines and descriptions do not affect decisions.
    let PolicyRule {
        name: _,
        reason: _,
        line: _,
        matches,
        methods,
        sources,
        arguments,
        hints,
        act,
        description: _,
    } = old;
    let same_calls = *matches == new.matches
        && *methods == new.methods
        && *sources == new.sources
        && *hints == new.hints
        && is_identical(arguments, &new.arguments);
    if same_calls {
        // A stopping rule matches more than a forwarding one, so it might hold calls that the rest
        // denies.
        let tested = !(arguments.is_empty() && hints.is_empty())
            || matches
                .iter()
                .any(|glob| glob.matches_more_leniently() || glob.text().contains(MARK));
        let widened = tested
            && *act == RuleAction::Forward
            && !matches!(new.act, RuleAction::Forward | RuleAction::Deny);
        return !widened && act_tightens(act, &new.act);
    }
    let rest = *methods == new.methods && *hints == new.hints;
    match (act, &new.act) {
        (RuleAction::Forward, RuleAction::Forward) => {
            // Neither list is ever empty: without `match`, the loader puts `*` here.
            rest && contains(matches, &new.matches)
                && is_narrowed(sources, &new.sources)
                && has_all(&new.arguments, arguments)
        }
        (RuleAction::Deny, RuleAction::Deny) => {
            rest && contains(&new.matches, matches)
                && is_narrowed(&new.sources, sources)
                && has_all(arguments, &new.arguments)
        }
        _ => false,
    }
}

/// Whether `narrow` covers only servers that `wide` covers. An empty list covers all.
fn is_narrowed(wide: &[Glob], narrow: &[Glob]) -> bool {
    wide.is_empty() || !narrow.is_empty() && contains(wide, narrow)
}

/// Whether every test of `part` is in `whole`.
fn has_all(whole: &[ArgumentTest], part: &[ArgumentTest]) -> bool {
    part.iter().all(|one| whole.iter().any(|other| is_identical(one, other)))
}

fn may_insert(rule: &PolicyRule, rest: &[PolicyRule], default: &RuleAction) -> bool {
    let mut later = rest.iter().map(|rule| &rule.act).chain([default]);
    match &rule.act {
        RuleAction::Deny => true,
        act @ RuleAction::Approve { .. } => {
            later.all(|later| *later == RuleAction::Forward || later == act)
        }
        RuleAction::Forward | RuleAction::Policy { .. } => {
            later.all(|later| *later == RuleAction::Forward)
        }
    }
}
