//! One test on a call's arguments.

use std::fmt::{self, Display};

use super::{KnownArguments, Predicate};
use crate::command_rules::CommandTest;

/// One test on a call's arguments.
#[derive(Debug)]
pub enum ArgumentTest {
    /// A test of the values at a path.
    Value(Predicate),
    /// There are no arguments that the rule does not name. Only rules that forward have this: in a
    /// rule that stops calls, an extra argument would bypass it.
    NoOthers(KnownArguments),
    /// A test of each command that a call asks a shell to run. It is evaluated for one command, not
    /// for the arguments.
    Command(Box<CommandTest>),
}

impl ArgumentTest {
    /// A message for arguments that fail the test.
    pub(crate) fn mismatch_text(&self, arguments: &[u8]) -> String {
        match self {
            Self::Value(predicate) => predicate.mismatch_text(arguments),
            Self::NoOthers(known) => known.mismatch_text(),
            Self::Command(test) => test.mismatch_text(),
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
            Self::Command(_) => false,
        }
    }

    /// Whether some server could read the arguments so that the test holds.
    pub fn may_hold(&self, arguments: &[u8]) -> bool {
        match self {
            Self::Value(predicate) => predicate.may_hold(arguments),
            Self::NoOthers(known) => known.cover(arguments),
            Self::Command(_) => false,
        }
    }

    /// The test of a command, if it is one.
    pub(crate) fn command(&self) -> Option<&CommandTest> {
        match self {
            Self::Command(test) => Some(test),
            _ => None,
        }
    }

    /// The same, to complete it.
    pub(crate) fn command_mut(&mut self) -> Option<&mut CommandTest> {
        match self {
            Self::Command(test) => Some(test),
            _ => None,
        }
    }

    /// A message that the arguments could be read so that the test holds.
    pub fn possible_match_text(&self) -> String {
        match self {
            Self::Value(predicate) => predicate.possible_match_text(),
            Self::NoOthers(known) => known.to_string(),
            Self::Command(_) => "a part of the command is only known when it runs".to_owned(),
        }
    }
}

impl Display for ArgumentTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(predicate) => predicate.fmt(f),
            Self::NoOthers(known) => known.fmt(f),
            Self::Command(test) => test.fmt(f),
        }
    }
}
