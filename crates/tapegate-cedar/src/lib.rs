//! Cedar policies for calls: the schema they are checked against, and their evaluation.
//!
//! This is the only crate that depends on Cedar, which is slow to build; other crates pass in texts
//! and calls and get decisions. It reads no clock, no file and no environment.

mod argument_types;
mod attribute_reads;
mod attribute_tree;
mod authorizer;
mod build;
mod check;
mod combine;
mod compared_values;
mod context;
mod dialect;
mod load;
mod own_schema;
mod pattern;
mod polarity;
mod request_entities;
mod request_time;
mod schema;
mod schema_reader;
mod selector;
mod statements;
mod types;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{Effect, PolicySet};

use argument_types::ArgumentTypes;
use attribute_reads::AttributeReads;
use dialect::CedarDialect;
use request_entities::{EntitiesCache, TypeNames};
use selector::ToolSelector;

/// A Cedar text and its name in error messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CedarText {
    /// The file name or a similar label.
    pub name: String,
    /// The policies.
    pub text: String,
}

/// An error in a text, or a warning about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CedarFault {
    /// The index of the text.
    pub text: usize,
    /// The line, from 1; 0 if it concerns the whole text.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// Whether the policies cannot be used.
    pub error: bool,
    /// The message: the problem, and how to fix it.
    pub message: String,
}

/// A tool as its server defines it, for the types of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDefinition {
    pub server: String,
    /// The tool.
    pub name: String,
    /// Its `inputSchema`: JSON text.
    pub input_schema: String,
}

/// The caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CedarPrincipal<'a> {
    /// The application or user.
    pub name: &'a str,
    /// The namespace it runs in.
    pub namespace: &'a str,
    /// The service account it runs as.
    pub service_account: &'a str,
    pub roles: &'a [String],
    /// The agent, as it called itself.
    pub client: Option<&'a str>,
}

/// A call to be decided.
#[derive(Debug, Clone, Default)]
pub struct CedarQuery<'a> {
    pub caller: CedarPrincipal<'a>,
    pub server: &'a str,
    pub method: &'a str,
    /// The name of the tool or prompt, or the URI.
    pub name: &'a str,
    /// The raw JSON of the arguments.
    pub arguments: Option<&'a [u8]>,
    /// The value of `context.policy_id`.
    pub policy_id: &'a str,
    /// Microseconds since 1970.
    pub wall_us: i64,
    /// How servers read URLs, if that is to be taken into account.
    pub url_reader: Option<UrlReader>,
}

/// The readings of a text as a URL, besides the text itself; `None` if there are too many.
pub type UrlReader = fn(&str) -> Option<Vec<String>>;

/// Cedar's decision on a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CedarAnswer {
    /// Whether it is permitted.
    pub permit: bool,
    /// The policies that decided, by `@id` or by position.
    pub policies: Vec<String>,
    /// The workflow that a permitting policy requires by `@approval`.
    pub approval: Option<String>,
    /// Errors in policies during evaluation.
    pub errors: Vec<String>,
    /// The reason, as text.
    pub reason: String,
}

/// A set of checked Cedar policies.
#[derive(Debug)]
pub struct CedarPolicies {
    /// The policies in the form in which they are evaluated: each test reads the arguments in the
    /// way that suits its purpose, and each policy that requires approval has a second copy for all
    /// readings.
    policies: PolicySet,
    details: BTreeMap<String, PolicyDetails>,
    reads: AttributeReads,
    dialect: CedarDialect,
    types: ArgumentTypes,
    names: TypeNames,
    entities_cache: EntitiesCache,
}

/// Facts about a policy besides the policy itself.
#[derive(Debug)]
struct PolicyDetails {
    effect: Effect,
    approval: Option<String>,
    reads: AttributeReads,
    selector: ToolSelector,
}

impl CedarPolicies {
    /// Reads and checks policies. `schema` replaces the schema generated from `tools`; for a fault
    /// in it, the text index is one past the last of `texts`.
    pub fn load(
        texts: &[CedarText],
        schema: Option<&CedarText>,
        tools: &[ToolDefinition],
    ) -> (Option<Self>, Vec<CedarFault>) {
        load::load(texts, schema, tools)
    }

    /// Whether these policies provably permit nothing that `old` did not: every forbid is still
    /// there, no permit is new, and none that required approval is gone. Types and names must be
    /// the same.
    pub fn tightens(&self, old: &Self) -> bool {
        let of = |cedar: &Self, effect: Effect| -> BTreeSet<String> {
            let policies = cedar.policies.policies().filter(|policy| policy.effect() == effect);
            policies.map(ToString::to_string).collect()
        };
        let asks = |cedar: &Self| -> BTreeSet<String> {
            let asks = |policy: &&cedar_policy::Policy| {
                let id = policy.id().to_string();
                cedar.details.get(&id).is_some_and(|kept| kept.approval.is_some())
            };
            cedar.policies.policies().filter(asks).map(ToString::to_string).collect()
        };
        let same = |one: &dyn std::fmt::Debug, two: &dyn std::fmt::Debug| {
            format!("{one:?}") == format!("{two:?}")
        };
        of(self, Effect::Forbid).is_superset(&of(old, Effect::Forbid))
            && of(self, Effect::Permit).is_subset(&of(old, Effect::Permit))
            && asks(self) == asks(old)
            && same(&self.dialect, &old.dialect)
            && same(&self.types, &old.types)
    }

    /// How many policies there are.
    pub fn len(&self) -> usize {
        self.details.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.details.is_empty()
    }

    /// The workflows that policies require by `@approval`, sorted and without duplicates.
    pub fn workflows(&self) -> Vec<String> {
        let all: BTreeSet<&String> =
            self.details.values().filter_map(|kept| kept.approval.as_ref()).collect();
        all.into_iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
