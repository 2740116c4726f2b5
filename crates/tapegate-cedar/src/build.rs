//! From policies that were read and checked to those that are asked.

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

/// What the second policy is called that has people asked for whatever may be read so. No `@id` begins
/// like this by chance, and one that does on purpose has people asked.
const ASKING: &str = "\u{1}asks ";

/// The name of the policy that has people asked as `id` does, for all readings.
fn asking(id: &str) -> String {
    format!("{ASKING}{id}")
}

/// Whom the policy with this name asks people for.
pub(crate) fn asks_for(id: &str) -> Option<&str> {
    id.strip_prefix(ASKING)
}

/// Makes the policies as they are asked, of such as were checked.
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
