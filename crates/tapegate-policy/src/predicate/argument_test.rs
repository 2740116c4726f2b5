//! One test on a call's arguments.

use std::fmt::{self, Display};

use super::{KnownArguments, Predicate};

/// One test on a call's arguments.
#[derive(Debug)]
pub enum ArgumentTest {
    /// A test of the values at a path.
    Value(Predicate),
    /// There are no arguments that the rule does not name. Only rules that forward have this: in a
    /// rule that stops calls, an extra argument would bypass it.
    NoOthers(KnownArguments),
}

impl ArgumentTest {
    /// A message for arguments that fail the test.
    pub(crate) fn mismatch_text(&self) -> String {
        match self {
            Self::Value(predicate) => predicate.mismatch_text(),
            Self::NoOthers(known) => known.mismatch_text(),
        }
    }

    /// A hint about a reason for failure that is easily missed.
    pub fn advice(&self, arguments: &[u8]) -> Option<&'static str> {
        match self {
            Self::Value(predicate) => predicate.advice(arguments),
            _ => None,
        }
    }

    /// Whether the value is a relative path although the test is about folders.
    pub fn has_relative_path(&self, arguments: &[u8]) -> bool {
        matches!(self, Self::Value(predicate) if predicate.has_relative_path(arguments))
    }

    /// Whether the test holds for the raw JSON of a call's arguments, however a server reads it.
    pub fn must_hold(&self, arguments: &[u8]) -> bool {
        match self {
            Self::Value(predicate) => predicate.must_hold(arguments),
            Self::NoOthers(known) => known.cover(arguments),
        }
    }

    /// Whether some server could read the arguments so that the test holds.
    pub fn may_hold(&self, arguments: &[u8]) -> bool {
        match self {
            Self::Value(predicate) => predicate.may_hold(arguments),
            Self::NoOthers(known) => known.cover(arguments),
        }
    }

    /// A message that the arguments could be read so that the test holds.
    pub fn possible_match_text(&self) -> String {
        match self {
            Self::Value(predicate) => predicate.possible_match_text(),
            Self::NoOthers(known) => known.to_string(),
        }
    }
}

impl Display for ArgumentTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(predicate) => predicate.fmt(f),
            Self::NoOthers(known) => known.fmt(f),
        }
    }
}
