//! What is made of the arguments of a call.

use cedar_policy::RestrictedExpression;

use crate::types::Record;

/// An argument that Cedar cannot be shown as what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Where it is; empty for the arguments as a whole.
    pub(crate) path: Vec<String>,
    /// What is wrong with it.
    pub(crate) why: String,
    /// Whether it concerns only policies that want a path there.
    pub(crate) climbs: bool,
}

/// What else an argument may be read as.
#[derive(Debug)]
pub(crate) struct Alternatives {
    pub(crate) path: Vec<String>,
    /// The readings, each in words and as a value.
    pub(crate) readings: Vec<(String, RestrictedExpression)>,
}

/// The folders that an argument lies in, of those that policies ask for.
#[derive(Debug)]
pub(crate) struct FolderFacts {
    pub(crate) path: Vec<String>,
    /// Those it lies in whoever reads it.
    pub(crate) sure: Vec<String>,
    /// Those it lies in for some reader.
    pub(crate) possible: Vec<String>,
}

/// A value, of which parts can still be replaced.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    One(RestrictedExpression),
    Record(Members),
}

pub(crate) type Members = Vec<(String, Shown)>;

/// The types of an object's members: what is declared, and what policies take the rest for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemberTypes<'a> {
    pub(crate) declared: Option<&'a Record>,
    pub(crate) implied: Option<&'a Record>,
}

/// The arguments of a call.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) members: Members,
    pub(crate) misfits: Vec<Misfit>,
    pub(crate) alternatives: Vec<Alternatives>,
    pub(crate) folders: Vec<FolderFacts>,
}

/// A record of Cedar; `None` if a name stands in it twice.
pub(crate) fn record(members: Members) -> Option<RestrictedExpression> {
    let members: Option<Vec<(String, RestrictedExpression)>> = members
        .into_iter()
        .map(|(name, shown)| match shown {
            Shown::One(value) => Some((name, value)),
            Shown::Record(members) => Some((name, record(members)?)),
        })
        .collect();
    RestrictedExpression::new_record(members?).ok()
}
