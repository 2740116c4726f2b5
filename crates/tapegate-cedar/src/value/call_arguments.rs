//! The converted arguments of a call.

use cedar_policy::RestrictedExpression;

use crate::types::RecordType;

/// An argument that cannot be converted to its declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MisfitArgument {
    /// Its path; empty for the arguments as a whole.
    pub(crate) path: Vec<String>,
    pub(crate) reason: String,
    /// Whether it affects only policies with a path pattern.
    pub(crate) climbs: bool,
}

/// The other readings of an argument.
#[derive(Debug)]
pub(crate) struct AlternativeReadings {
    pub(crate) path: Vec<String>,
    /// The readings, each as text and as a value.
    pub(crate) readings: Vec<(String, RestrictedExpression)>,
}

/// The folders that an argument is in, of those that policies test for.
#[derive(Debug)]
pub(crate) struct FolderFacts {
    pub(crate) path: Vec<String>,
    /// Those it is in by every reading.
    pub(crate) sure: Vec<String>,
    /// Those it is in by some reading.
    pub(crate) possible: Vec<String>,
}

/// A value whose members can still be replaced.
#[derive(Debug, Clone)]
pub(crate) enum CedarValue {
    One(RestrictedExpression),
    Record(CedarMembers),
}

pub(crate) type CedarMembers = Vec<(String, CedarValue)>;

/// The types of an object's members: the declared ones, and those implied for the rest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemberTypes<'a> {
    pub(crate) declared: Option<&'a RecordType>,
    pub(crate) implied: Option<&'a RecordType>,
}

#[derive(Debug, Default)]
pub(crate) struct CallArguments {
    pub(crate) members: CedarMembers,
    pub(crate) misfits: Vec<MisfitArgument>,
    pub(crate) alternatives: Vec<AlternativeReadings>,
    pub(crate) folders: Vec<FolderFacts>,
}

/// A Cedar record; `None` if a name occurs twice.
pub(crate) fn record(members: CedarMembers) -> Option<RestrictedExpression> {
    let members: Option<Vec<(String, RestrictedExpression)>> = members
        .into_iter()
        .map(|(name, shown)| match shown {
            CedarValue::One(value) => Some((name, value)),
            CedarValue::Record(members) => Some((name, record(members)?)),
        })
        .collect();
    RestrictedExpression::new_record(members?).ok()
}
