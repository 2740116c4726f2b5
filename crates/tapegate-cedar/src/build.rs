//! Builds the policy set that is evaluated from the policies that were read and checked.

use std::collections::BTreeMap;

use cedar_policy::{PolicySet, pst};

use crate::argument_types::ArgumentTypes;
use crate::attribute_reads::AttributeReads;
use crate::compared_values::{ComparedPaths, collect_compared};
use crate::dialect::CedarDialect;
use crate::load::ParsedPolicy;
use crate::polarity::{SplitConditions, TestPurpose, split};
use crate::request_entities::{EntitiesCache, TypeNames};
use crate::{CedarPolicies, PolicyDetails};

/// The name prefix of the second copy of a policy that requires approval, which applies to every
/// reading. No `@id` starts like this by accident, and one that does so on purpose only adds an
/// approval.
const ASKING: &str = "\u{1}asks ";

/// The name of the copy of `id` that requires approval for all readings.
fn approval_policy_name(id: &str) -> String {
    format!("{ASKING}{id}")
}

/// The policy for which the policy with this name requires approval.
pub(crate) fn approval_policy_target(id: &str) -> Option<&str> {
    id.strip_prefix(ASKING)
}

/// Builds the policy set from checked policies.
pub(crate) fn build(
    all: &[ParsedPolicy],
    dialect: CedarDialect,
    types: ArgumentTypes,
) -> Option<CedarPolicies> {
    let mut policies = PolicySet::new();
    let mut kept = BTreeMap::new();
    let mut reads = AttributeReads::default();
    let mut wanted = ComparedPaths::new();
    let mut add =
        |read: &ParsedPolicy, id: &str, split: &SplitConditions, reads: &mut AttributeReads| {
            collect_compared(&split.clauses, &mut wanted);
            reads.readings |= split.reads_readings;
            let body = read.body.clone().with_id(pst::PolicyID(id.into()));
            let body = body.try_with_clauses(split.clauses.iter().cloned()).ok()?;
            let body = pst::Policy::Static(pst::StaticPolicy::try_from(body).ok()?);
            policies.add(cedar_policy::Policy::from_pst(body).ok()?).ok()
        };
    for read in all {
        reads.add(&read.reads);
        add(read, &read.id, read.split.as_ref()?, &mut reads)?;
        if read.approval.is_some() {
            // A permit with `@approval` matches only as written. Without this copy, another permit
            // could pass the other spellings unasked.
            let possible = split(&read.body, TestPurpose::Stop).ok()?;
            add(read, &approval_policy_name(&read.id), &possible, &mut reads)?;
        }
        let one = PolicyDetails {
            effect: read.policy.effect(),
            approval: read.approval.clone(),
            reads: read.reads.clone(),
            selector: read.selector.clone(),
        };
        kept.insert(read.id.clone(), one);
    }
    // After all policies: an argument is read in every way that matters to any of them.
    reads.add_compared(&wanted);
    let names = TypeNames::new(&dialect)?;
    let entities_cache = EntitiesCache::default();
    Some(CedarPolicies { policies, details: kept, reads, dialect, types, names, entities_cache })
}
