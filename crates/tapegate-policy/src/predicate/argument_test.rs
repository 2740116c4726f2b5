//! One thing that a rule wants of a call's arguments.

use std::fmt::{self, Display};

use super::{KnownArguments, Predicate};

/// One thing that a rule wants of a call's arguments.
#[derive(Debug)]
pub enum ArgumentTest {
    /// What a path leads to is as it must be.
    Value(Predicate),
    /// There are no arguments that the rule does not name. Only rules that forward have this: in one
    /// that stops, an argument more would get around it.
    NoOthers(KnownArguments),
}

impl ArgumentTest {
    /// The words for arguments that it does not hold for.
    pub(crate) fn refuted(&self) -> String {
        match self {
            Self::Value(predicate) => predicate.refuted(),
            Self::NoOthers(known) => known.refuted(),
        }
    }

    /// Why the arguments are not as they must be, where that is easily missed.
    pub fn advice(&self, arguments: &[u8]) -> Option<&'static str> {
        match self {
            Self::Value(predicate) => predicate.advice(arguments),
            _ => None,
        }
    }

    /// Whether there is a relative path where one in a folder, or out of it, is wanted.
    pub fn has_relative_path(&self, arguments: &[u8]) -> bool {
        matches!(self, Self::Value(predicate) if predicate.has_relative_path(arguments))
    }

    /// Whether the raw JSON of a call's arguments is as it must be, whoever reads it.
    pub fn must_hold(&self, arguments: &[u8]) -> bool {
        match self {
            Self::Value(predicate) => predicate.must_hold(arguments),
            Self::NoOthers(known) => known.are_all(arguments),
        }
    }

    /// Whether some server could read the arguments as they must be.
    pub fn may_hold(&self, arguments: &[u8]) -> bool {
        match self {
            Self::Value(predicate) => predicate.may_hold(arguments),
            Self::NoOthers(known) => known.are_all(arguments),
        }
    }

    /// That the arguments could be read as they must be, in words for people.
    pub fn possible_words(&self) -> String {
        match self {
            Self::Value(predicate) => predicate.possible_words(),
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
