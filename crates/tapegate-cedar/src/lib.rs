//! Cedar policies about calls: the schema they are checked by, and what they decide.
//!
//! This crate is the only one that knows Cedar, which is slow to build; others hand in texts and
//! calls and get decisions. It reads no clock, no file and no environment.

mod ask;
mod build;
mod check;
mod combine;
mod context;
mod dialect;
mod load;
mod moment;
mod own_schema;
mod pattern;
mod plan;
mod polarity;
mod reads;
mod scene;
mod schema;
mod selector;
mod shape;
mod statements;
mod tree;
mod types;
mod typing;
mod value;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{Effect, PolicySet};

use dialect::Dialect;
use reads::Reads;
use scene::{Names, Scenes};
use selector::Selector;
use typing::Types;

/// A text of Cedar and the name it goes by in errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// A file's name, or the like.
    pub name: String,
    /// The policies.
    pub text: String,
}

/// Something wrong in a text, or worth knowing about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The text, by its place in the list.
    pub text: usize,
    /// The line, from 1; 0 if it is about the whole text.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// Whether it keeps the policies from running.
    pub error: bool,
    /// What is wrong, and the way out.
    pub words: String,
}

/// A tool as its server defines it, for the types of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The server.
    pub server: String,
    /// The tool.
    pub name: String,
    /// Its `inputSchema`: JSON text.
    pub input_schema: String,
}

/// Who calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The application or user.
    pub name: &'a str,
    /// Where it runs.
    pub namespace: &'a str,
    /// What it runs as.
    pub service_account: &'a str,
    /// What it may act as.
    pub roles: &'a [String],
    /// The agent, as it called itself.
    pub client: Option<&'a str>,
}

/// A call.
#[derive(Debug, Clone, Default)]
pub struct Question<'a> {
    /// Who calls.
    pub caller: Caller<'a>,
    /// The server.
    pub server: &'a str,
    /// The method.
    pub method: &'a str,
    /// The name of the tool or prompt, or the URI.
    pub name: &'a str,
    /// The raw JSON of the arguments.
    pub arguments: Option<&'a [u8]>,
    /// What `context.policy_id` says.
    pub policy_id: &'a str,
    /// Microseconds since 1970.
    pub wall_us: i64,
    /// How servers read URLs, if that is to be seen to.
    pub url_reader: Option<UrlReader>,
}

/// What a text may be read as if it is a URL, besides as it is written; `None` if that is too much.
pub type UrlReader = fn(&str) -> Option<Vec<String>>;

/// What Cedar says of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is permitted.
    pub permit: bool,
    /// The policies that decided, by `@id` or by their place.
    pub policies: Vec<String>,
    /// The workflow that a permitting policy asks for by `@approval`.
    pub approval: Option<String>,
    /// What went wrong in policies while they were held against the call.
    pub errors: Vec<String>,
    /// Why, in words.
    pub reason: String,
}

/// Cedar policies that were checked.
#[derive(Debug)]
pub struct Cedar {
    /// As they are asked: each test reads what it is there for, and each policy that has people asked
    /// stands twice, the second time for whatever may be read so.
    policies: PolicySet,
    kept: BTreeMap<String, Kept>,
    reads: Reads,
    dialect: Dialect,
    types: Types,
    names: Names,
    scenes: Scenes,
}

/// What is kept of a policy besides the policy.
#[derive(Debug)]
struct Kept {
    effect: Effect,
    approval: Option<String>,
    reads: Reads,
    selector: Selector,
}

impl Cedar {
    /// Reads and checks policies. `schema` replaces the schema that is made from `tools`; a fault
    /// in it has the text number after the last of `texts`.
    pub fn load(
        texts: &[Text],
        schema: Option<&Text>,
        tools: &[Tool],
    ) -> (Option<Self>, Vec<Fault>) {
        load::load(texts, schema, tools)
    }

    /// Whether these policies surely permit nothing that `old` did not: every forbid is still there,
    /// no permit is new, and none is gone that asked for approval. Types and names must be the same.
    pub fn tightens(&self, old: &Self) -> bool {
        let of = |cedar: &Self, effect: Effect| -> BTreeSet<String> {
            let policies = cedar.policies.policies().filter(|policy| policy.effect() == effect);
            policies.map(ToString::to_string).collect()
        };
        let asks = |cedar: &Self| -> BTreeSet<String> {
            let asks = |policy: &&cedar_policy::Policy| {
                let id = policy.id().to_string();
                cedar.kept.get(&id).is_some_and(|kept| kept.approval.is_some())
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
        self.kept.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The workflows that policies ask for by `@approval`, in order and each once.
    pub fn workflows(&self) -> Vec<String> {
        let all: BTreeSet<&String> =
            self.kept.values().filter_map(|kept| kept.approval.as_ref()).collect();
        all.into_iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
