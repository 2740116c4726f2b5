//! What a rule wants of a call's arguments.
//!
//! A path may lead to several values, by `[*]`, by `..` or because a key comes twice. What lets a
//! call through must then hold for all of them, what stops it for one; see [`Predicate::every`].
//! Numbers are compared by their digits, never as floating point, so that no integer is too large.

mod numbers;
mod values;

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::Regex;
use tapegate_core::json::path::Path;
use tapegate_core::json::{Number, string};

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
    /// Whether it must hold for every value that the path leads to; else one is enough.
    pub every: bool,
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
        /// The least: the text of a JSON number.
        min: Option<String>,
        /// The most.
        max: Option<String>,
    },
    /// One of these JSON texts, none of which is a list or a map, compared by value.
    OneOf(Vec<String>),
}

impl Predicate {
    /// Whether the raw JSON of a call's arguments is as it must be.
    ///
    /// Where the path leads nowhere nothing holds, also not that something is not so; only
    /// [`Test::Exists`] can be told of what is not there. Arguments that are no JSON hold nothing.
    pub fn holds(&self, arguments: &[u8]) -> bool {
        let (mut seen, mut good, mut bad) = (false, false, false);
        let whole = values::at(arguments, &self.path, &mut |value| {
            seen = true;
            match self.passes(value) {
                true => good = true,
                false => bad = true,
            }
        });
        match (&self.test, whole) {
            (_, false) => false,
            (Test::Exists, true) => seen != self.not,
            (_, true) => good && !(bad && self.every),
        }
    }

    fn passes(&self, value: &[u8]) -> bool {
        match self.test.says(value) {
            Some(yes) => yes != self.not,
            // A number where text was expected is not known to be harmless.
            None => self.not && !self.every,
        }
    }
}

impl Test {
    /// What the test says of a value; `None` if it is about values of another kind.
    fn says(&self, value: &[u8]) -> Option<bool> {
        match self {
            Self::Exists => Some(true),
            Self::Glob(glob) => Some(glob.matches(&string(value)?)),
            Self::Regex(regex) => Some(regex.is_match(&string(value)?)),
            Self::OneOf(texts) => Some(texts.iter().any(|text| same(text.as_bytes(), value))),
            Self::Range { min, max } => {
                if !is_number(value) {
                    return None;
                }
                let order = |bound: &Option<String>, least: Ordering| match bound {
                    None => Some(true),
                    Some(bound) => {
                        let (bound, value) = (Number::read(bound.as_bytes()), Number::read(value));
                        Some(numbers::order(&value, &bound)? != least)
                    }
                };
                Some(order(min, Ordering::Less)? && order(max, Ordering::Greater)?)
            }
        }
    }
}

impl std::fmt::Display for Predicate {
    /// The predicate in words for people: "`path` is like `/data/*`".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Cow<'_, str> = match (&self.test, self.not) {
            (Test::Exists, false) => "is there".into(),
            (Test::Exists, true) => "is not there".into(),
            (Test::Glob(glob), false) => format!("is like `{}`", glob.text()).into(),
            (Test::Glob(glob), true) => format!("is not like `{}`", glob.text()).into(),
            (Test::Regex(regex), false) => format!("matches `{regex}`").into(),
            (Test::Regex(regex), true) => format!("does not match `{regex}`").into(),
            (Test::OneOf(texts), false) => format!("is {}", texts.join(" or ")).into(),
            (Test::OneOf(texts), true) => format!("is not {}", texts.join(" or ")).into(),
            (Test::Range { min, max }, not) => {
                let bounds = match (min, max) {
                    (Some(min), Some(max)) => format!("from {min} to {max}"),
                    (Some(min), None) => format!("at least {min}"),
                    (None, Some(max)) => format!("at most {max}"),
                    (None, None) => "a number".to_owned(),
                };
                format!("is {}{bounds}", if not { "not " } else { "" }).into()
            }
        };
        write!(f, "`{}` {words}", self.path_text)
    }
}

/// Whether one JSON number is less than another.
pub(crate) fn is_less(one: &str, two: &str) -> bool {
    let (one, two) = (Number::read(one.as_bytes()), Number::read(two.as_bytes()));
    numbers::order(&one, &two) == Some(Ordering::Less)
}

fn is_number(value: &[u8]) -> bool {
    value.first().is_some_and(|byte| *byte == b'-' || byte.is_ascii_digit())
}

/// Whether two JSON texts, of which the first is no list and no map, mean the same.
fn same(wanted: &[u8], value: &[u8]) -> bool {
    match (is_number(wanted), is_number(value)) {
        (true, true) => Number::read(wanted) == Number::read(value),
        (false, false) => match (string(wanted), string(value)) {
            (Some(wanted), Some(value)) => wanted == value,
            (None, None) => wanted == value,
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests;
