//! Builds the policy set that is evaluated from the policies that were read and checked.

use std::collections::BTreeMap;

use cedar_policy::{PolicySet, pst};

use crate::dialect::Dialect;
use crate::load::Read;
use crate::plan::made;
use crate::polarity::{Aim, Split, split};
use crate::reads::Reads;
use crate::scene::{Names, Scenes};
use crate::typing::Types;
use crate::wanted::{AllWanted, gather};
use crate::{Cedar, Kept};

/// The name prefix of the second copy of a policy that requires approval, which applies to every
/// reading. No `@id` starts like this by accident, and one that does so on purpose only adds an
/// approval.
const ASKING: &str = "\u{1}asks ";

/// The name of the copy of `id` that requires approval for all readings.
fn asking(id: &str) -> String {
    format!("{ASKING}{id}")
}

/// The policy for which the policy with this name requires approval.
pub(crate) fn asks_for(id: &str) -> Option<&str> {
    id.strip_prefix(ASKING)
}

/// Builds the policy set from checked policies.
pub(crate) fn build(all: &[Read], dialect: Dialect, types: Types) -> Option<Cedar> {
    let mut policies = PolicySet::new();
    let mut kept = BTreeMap::new();
    let mut reads = Reads::default();
    let mut wanted = AllWanted::new();
    let mut add = |read: &Read, id: &str, split: &Split, reads: &mut Reads| {
        gather(&split.clauses, &mut wanted);
        reads.readings |= split.reads_readings;
        let body = read.body.clone().with_id(pst::PolicyID(id.into()));
        let body = body.try_with_clauses(split.clauses.iter().cloned()).ok()?;
        policies.add(made(body)?).ok()
    };
    for read in all {
        reads.add(&read.reads);
        add(read, &read.id, read.split.as_ref()?, &mut reads)?;
        if read.approval.is_some() {
            let possible = split(&read.body, Aim::Stop).ok()?;
            add(read, &asking(&read.id), &possible, &mut reads)?;
        }
        let one = Kept {
            effect: read.policy.effect(),
            approval: read.approval.clone(),
            reads: read.reads.clone(),
            selector: read.selector.clone(),
        };
        kept.insert(read.id.clone(), one);
    }
    reads.want(&wanted);
    let names = Names::new(&dialect)?;
    Some(Cedar { policies, kept, reads, dialect, types, names, scenes: Scenes::default() })
}
