//! What can be found in a trial.

use crate::decide::GateName;

/// Where something stands on a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Which of the tapes.
    pub tape: usize,
    /// The line, from 1.
    pub line: u64,
    /// Its `seq`, if it has one.
    pub seq: Option<u64>,
}

/// What sort of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sort {
    /// A call that goes nowhere.
    Deny,
    /// A call that waits for people.
    Hold,
    /// A message that is not written as it must be.
    Reject,
    /// A definition that is not what was accepted.
    Drift,
    /// Something that a list no longer shows.
    Filter,
    /// Secrets that are masked.
    Redact,
    /// What is sent on, and noted.
    Forward,
    /// What nobody looks at.
    Pass,
}

/// Something that was found, without how often and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Told {
    /// Its sort.
    pub sort: Sort,
    /// What logs call it.
    pub word: &'static str,
    /// The method.
    pub method: String,
    /// The name of the tool or prompt, or the URI.
    pub name: String,
    /// The gate that decided.
    pub gate: Option<GateName>,
    /// The rule that matched.
    pub rule: Option<String>,
    /// What else there is to say: the workflow, what is wrong, what differs.
    pub detail: String,
}

/// What is alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What it is.
    pub told: Told,
    /// How often it was found.
    pub count: u64,
    /// The first places.
    pub places: Vec<Place>,
}

/// What one policy makes of a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stand {
    /// What becomes of it: `forward`, `deny`, `hold`, `filter`.
    pub word: &'static str,
    /// The gate that decided.
    pub gate: Option<GateName>,
    /// The rule that matched.
    pub rule: Option<String>,
}

/// Messages that two policies make something else of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The method.
    pub method: String,
    /// The name of the tool or prompt, or the URI.
    pub name: String,
    /// What the one policy does.
    pub before: Stand,
    /// What the other does.
    pub after: Stand,
    /// How often.
    pub count: u64,
    /// The first places.
    pub places: Vec<Place>,
}

/// Something that is listed by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub what: What,
}

/// What is listed by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Something that the policy does.
    Told(Told),
    /// Something that two policies do otherwise.
    Changed(Change),
}
