//! What a rule wants of a call's arguments.

use regex::Regex;
use tapegate_core::json::path::Path;

use crate::glob::Glob;

/// A path into the arguments, and what must be there.
#[derive(Debug)]
pub struct Predicate {
    /// Where to look.
    pub path: Path,
    /// The path as it was written.
    pub path_text: String,
    /// What must be there.
    pub test: Test,
    /// Whether what must be there must not.
    pub not: bool,
}

/// What must be at a path.
#[derive(Debug)]
pub enum Test {
    /// Anything.
    Exists,
    /// Text that a glob matches.
    Glob(Glob),
    /// Text in which an expression is found.
    Regex(Regex),
    /// A number within bounds, both of which belong to the range.
    Range {
        /// The least.
        min: Option<f64>,
        /// The most.
        max: Option<f64>,
    },
    /// One of these JSON texts, compared by value.
    OneOf(Vec<String>),
}

impl Predicate {
    /// Whether the arguments are as wanted.
    pub fn holds(&self, arguments: Option<&[u8]>) -> bool {
        let _ = arguments;
        false
    }
}
