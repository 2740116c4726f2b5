//! Whether a list of rules refuses at least what another does.
//!
//! The first rule that matches decides. So the new list refuses at least as much for every call if
//! it results from the old one by these steps alone:
//!
//! - a rule that denies is inserted anywhere;
//! - any rule is inserted where the rest of the old list would have forwarded every call;
//! - a rule that asks for approval is inserted where the rest of the old list would have forwarded
//!   the call, or held it for the same workflow;
//! - a rule that forwards is removed, or matches fewer calls;
//! - a rule that denies matches more calls;
//! - the action of a rule is replaced by a stricter one.

use super::{MayLoosen, act_tightens, contains, same};
use crate::glob::Glob;
use crate::load::MARK;
use crate::model::{Act, Rule};
use crate::predicate::ArgumentTest;

pub(super) fn tighten(old: (&[Rule], &Act), new: &[Rule]) -> Result<(), MayLoosen> {
    let (mut old, default) = old;
    for rule in new {
        loop {
            if let Some((first, rest)) = old.split_first()
                && tightened(first, rule)
            {
                old = rest;
                break;
            }
            if may_insert(rule, old, default) {
                break;
            }
            match old.split_first() {
                Some((first, rest)) if first.act == Act::Forward => old = rest,
                _ => {
                    let name = &rule.name;
                    return Err(MayLoosen(format!("rule `{name}` may permit more")));
                }
            }
        }
    }
    match old.iter().find(|rule| rule.act != Act::Forward) {
        Some(rule) => Err(MayLoosen(format!("rule `{}` was removed or moved", rule.name))),
        None => Ok(()),
    }
}

/// Whether a new rule in place of an old one refuses at least as much.
fn tightened(old: &Rule, new: &Rule) -> bool {
    // Names, reasons, lines and descriptions do not affect decisions.
    let Rule {
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
        && same(arguments, &new.arguments);
    if same_calls {
        // A stopping rule matches more than a forwarding one, so it might hold calls that the rest
        // denies.
        let tested = !(arguments.is_empty() && hints.is_empty())
            || matches.iter().any(|glob| glob.widens() || glob.text().contains(MARK));
        let widened =
            tested && *act == Act::Forward && !matches!(new.act, Act::Forward | Act::Deny);
        return !widened && act_tightens(act, &new.act);
    }
    let rest = *methods == new.methods && *hints == new.hints;
    match (act, &new.act) {
        (Act::Forward, Act::Forward) => {
            rest && contains(matches, &new.matches)
                && narrowed(sources, &new.sources)
                && has_all(&new.arguments, arguments)
        }
        (Act::Deny, Act::Deny) => {
            rest && contains(&new.matches, matches)
                && narrowed(&new.sources, sources)
                && has_all(arguments, &new.arguments)
        }
        _ => false,
    }
}

/// Whether `narrow` covers only servers that `wide` covers. An empty list covers all.
fn narrowed(wide: &[Glob], narrow: &[Glob]) -> bool {
    wide.is_empty() || !narrow.is_empty() && contains(wide, narrow)
}

/// Whether every test of `part` is in `whole`.
fn has_all(whole: &[ArgumentTest], part: &[ArgumentTest]) -> bool {
    part.iter().all(|one| whole.iter().any(|other| same(one, other)))
}

fn may_insert(rule: &Rule, rest: &[Rule], default: &Act) -> bool {
    let mut later = rest.iter().map(|rule| &rule.act).chain([default]);
    match &rule.act {
        Act::Deny => true,
        act @ Act::Approve { .. } => later.all(|later| *later == Act::Forward || later == act),
        Act::Forward | Act::Policy { .. } => later.all(|later| *later == Act::Forward),
    }
}
