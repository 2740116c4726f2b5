//! Tests on the arguments of a call.
//!
//! A predicate is evaluated in one of two ways. A rule that permits a call asks whether it
//! [must hold](Predicate::must_hold): for each value at the path, exactly as written. A rule that
//! stops a call asks whether it [may hold](Predicate::may_hold): for at least one value, in any way
//! some server could read it. Numbers are compared by their digits, not only as floating point, so
//! no integer is too large.

mod argument_test;
mod argument_texts;
mod coerce;
mod joined_lists;
mod known_arguments;
mod lenient;
mod scalars;
mod urls;
mod values;

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::Regex;
use tapegate_core::json::path::JsonPath;
use tapegate_core::json::{Number, string};
use tapegate_core::lenient::folder::{FolderPath, has_parent_step};
use tapegate_core::lenient::numbers;
use tapegate_core::lenient::reading::ScanBudget;

use crate::glob::Glob;
use coerce::CoercedTest;
use lenient::LenientPath;

pub use argument_test::ArgumentTest;
pub use argument_texts::ArgumentTexts;
pub use known_arguments::KnownArguments;

/// What comes before the path in the message for an argument that a call does not have.
pub const NO_ARGUMENT: &str = "the call has no argument ";

/// A path into the arguments, and a test of the values there.
#[derive(Debug)]
pub struct Predicate {
    path: JsonPath,
    lenient: LenientPath,
    /// The path as it was written.
    path_text: String,
    test: ValueTest,
    /// What the test looks for in the forms into which servers convert a value.
    coerced: Box<CoercedTest>,
    /// Whether the test must fail.
    not: bool,
    /// Whether it also holds where the value is missing or `null`.
    optional: bool,
}

/// A test of the value at a path.
#[derive(Debug)]
pub enum ValueTest {
    /// Any value.
    Exists,
    /// A string that the glob matches.
    Glob(Glob),
    /// A string in which the expression is found.
    Regex(Regex),
    /// A number within inclusive bounds.
    Range {
        /// The minimum: the text of a JSON number.
        min: Option<String>,
        /// The maximum.
        max: Option<String>,
    },
    /// One of these JSON scalars, compared by value.
    OneOf(Vec<String>),
    /// A path inside one of these folders.
    Under(Vec<FolderPath>),
}

impl Predicate {
    /// A test of the values at a path; with `not`, it must fail. `path_text` is the path as
    /// written.
    pub fn new(path: JsonPath, path_text: String, test: ValueTest, not: bool) -> Self {
        let (lenient, coerced) = (LenientPath::new(&path), Box::new(CoercedTest::new(&test)));
        Self { lenient, path, path_text, test, coerced, not, optional: false }
    }

    /// The path, parsed and as written.
    pub fn path(&self) -> (&JsonPath, &str) {
        (&self.path, &self.path_text)
    }

    /// The test, and whether it must fail.
    pub fn test(&self) -> (&ValueTest, bool) {
        (&self.test, self.not)
    }

    /// The same test, which also holds where the value is missing or `null`.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Whether the predicate holds for the raw JSON of a call's arguments, however a server reads
    /// it.
    ///
    /// Where the path leads nowhere, the predicate fails, even when negated; only [`ValueTest::Exists`]
    /// can hold for a missing value. It always fails for arguments that are not JSON.
    pub fn must_hold(&self, arguments: &[u8]) -> bool {
        let budget = ScanBudget::new(arguments.len());
        // Lenient about keys: an argument that only a lenient server finds is not left out.
        if self.optional && self.is_left_out(arguments, &budget) {
            return true;
        }
        let (mut seen, mut all) = (false, true);
        let whole = values::visit_values_at(arguments, &self.path, &mut |value| {
            seen = true;
            all = all && self.must_pass(value, &budget);
        });
        let exists = matches!(self.test, ValueTest::Exists);
        // `exists: false` holds only where nothing is seen, every other test only where something
        // is.
        if !whole || seen == (exists && self.not) || !all {
            return false;
        }
        if self.not {
            // A negated test must also fail for the values that only a lenient reader finds.
            let reads_as = &mut |value: &[u8]| self.reads_as(value, &budget);
            return self.lenient.walk(arguments, &budget, reads_as).is_continue();
        }
        // The server may use a value under a lookalike key, or one in JSON inside a string. There
        // must be none of the first, and the second must pass as well.
        exists
            || !self.lenient.has_lookalike(arguments, &budget)
                && self.holds_nested(arguments, &budget)
    }

    /// Whether some server could read the arguments so that the predicate holds. Assumed to be so
    /// if the arguments cannot be analysed.
    pub fn may_hold(&self, arguments: &[u8]) -> bool {
        let budget = ScanBudget::new(arguments.len());
        let (mut seen, mut hit) = (false, false);
        let whole = values::visit_values_at(arguments, &self.path, &mut |value| {
            // Many servers treat `null` as missing, so a blocking test for absence or with
            // `optional` does too.
            seen |= value != b"null" || !(self.not || self.optional);
            hit = hit || self.holds_for(value);
        });
        if self.optional && !seen {
            return true;
        }
        if let (ValueTest::Exists, true) = (&self.test, self.not) {
            // Strict about keys: a lookalike key may be ignored by the server, and the argument is
            // missing then.
            return !whole || !seen;
        }
        let may_pass = &mut |value: &[u8]| self.may_pass(value, &budget);
        // A walk that is unclear breaks too, so arguments that cannot be analysed are stopped.
        hit || self.lenient.walk(arguments, &budget, may_pass).is_break()
    }

    /// Whether the test also holds for the values that only a lenient reader finds, such as those
    /// in JSON inside a string.
    fn holds_nested(&self, arguments: &[u8], budget: &ScanBudget) -> bool {
        self.lenient.walk(arguments, budget, &mut |value| !self.test.matches(value)).is_continue()
    }

    /// Whether every reader, even one that is lenient about keys, finds nothing or `null` here.
    fn is_left_out(&self, arguments: &[u8], budget: &ScanBudget) -> bool {
        self.lenient.walk(arguments, budget, &mut |value| value != b"null").is_continue()
    }

    /// A hint about a reason for failure that is easily missed.
    pub fn advice(&self, arguments: &[u8]) -> Option<&'static str> {
        let message = "relative paths never match `under`, because the server's folder is not known; use an absolute path";
        (!self.not && self.has_relative_path(arguments)).then_some(message)
    }

    /// Whether the value is a relative path although the test is about folders.
    pub fn has_relative_path(&self, arguments: &[u8]) -> bool {
        let mut is_relative = false;
        if matches!(self.test, ValueTest::Under(_)) {
            values::visit_values_at(arguments, &self.path, &mut |value| {
                let text = string(value).unwrap_or_default();
                is_relative |= !text.is_empty() && !text.starts_with('/') && !text.contains(':');
            });
        }
        is_relative
    }

    /// A message that the arguments could be read so that the predicate holds: "`force` could be
    /// read as true".
    pub fn possible_match_text(&self) -> String {
        let message = self.describe(self.not);
        let path = &self.path_text;
        match message.strip_prefix("is ") {
            Some(rest) if matches!(self.test, ValueTest::Under(_)) => format!(
                "`{path}` could be read as {rest}; an absolute path without `..` and escapes has only one reading"
            ),
            Some(rest) => format!("`{path}` could be read as {rest}"),
            None => format!("`{path}` could be read so that it {message}"),
        }
    }

    /// Whether the predicate holds for a value as it is written.
    fn holds_for(&self, value: &[u8]) -> bool {
        self.test.matches(value) != self.not
    }

    fn must_pass(&self, value: &[u8], budget: &ScanBudget) -> bool {
        self.holds_for(value) && !(self.not && self.reads_as(value, budget))
    }

    fn may_pass(&self, value: &[u8], budget: &ScanBudget) -> bool {
        if self.not { !self.test.matches(value) } else { self.reads_as(value, budget) }
    }

    /// Whether some server could read a value so that the test holds; true when the budget is used
    /// up.
    fn reads_as(&self, value: &[u8], budget: &ScanBudget) -> bool {
        self.test.matches(value) || self.coerced.may_match(&self.test, value, budget)
    }
}

impl ValueTest {
    /// Whether the test holds for a value exactly as written.
    fn matches(&self, value: &[u8]) -> bool {
        match self {
            Self::Exists => true,
            Self::Glob(glob) => string(value).is_some_and(|text| {
                // A path with `..` does not lead where its text suggests.
                let path = glob.text().contains('/') && !glob.text().contains("..");
                glob.matches(&text) && !(path && has_parent_step(&text))
            }),
            Self::Regex(regex) => string(value).is_some_and(|text| {
                // A policy that writes `..` itself is about such paths and must still match them.
                let path = regex.as_str().contains('/') && !regex.as_str().contains("..");
                let path = path && !regex.as_str().contains(r"\.\.");
                regex.is_match(&text) && !(path && has_parent_step(&text))
            }),
            Self::OneOf(texts) => texts.iter().any(|text| equals_scalar(text.as_bytes(), value)),
            Self::Range { min, max } => {
                is_number(value)
                    // An exponent that is too large to compare fails here, and matches in a
                    // blocking rule.
                    && in_range(value, min.as_deref(), max.as_deref()).unwrap_or_default()
            }
            Self::Under(folders) => {
                string(value).is_some_and(|text| folders.iter().any(|folder| folder.holds(&text)))
            }
        }
    }
}

/// Whether a number is within bounds; `None` if an exponent is too large to compare.
fn in_range(number: &[u8], min: Option<&str>, max: Option<&str>) -> Option<bool> {
    let number = Number::read(number);
    let within = |bound: Option<&str>, beyond: Ordering| match bound {
        None => Some(true),
        Some(bound) => Some(numbers::order(&number, &Number::read(bound.as_bytes()))? != beyond),
    };
    Some(within(min, Ordering::Less)? && within(max, Ordering::Greater)?)
}

impl Predicate {
    /// A message for arguments that fail the predicate: "`path` does not match `/data/*`".
    pub(crate) fn mismatch_text(&self, arguments: &[u8]) -> String {
        let mut is_missing = !matches!(self.test, ValueTest::Exists);
        values::visit_values_at(arguments, &self.path, &mut |_| is_missing = false);
        match is_missing {
            true => format!("{NO_ARGUMENT}`{}`", self.path_text),
            false => format!("`{}` {}", self.path_text, self.describe(!self.not)),
        }
    }

    /// The test or its negation as a verb phrase that follows the path.
    fn describe(&self, not: bool) -> Cow<'_, str> {
        match (&self.test, not) {
            (ValueTest::Exists, false) => "exists".into(),
            (ValueTest::Exists, true) => "does not exist".into(),
            (ValueTest::Glob(glob), false) => format!("matches `{}`", glob.text()).into(),
            (ValueTest::Glob(glob), true) => format!("does not match `{}`", glob.text()).into(),
            (ValueTest::Regex(regex), false) => format!("matches `{regex}`").into(),
            (ValueTest::Regex(regex), true) => format!("does not match `{regex}`").into(),
            (ValueTest::OneOf(texts), false) => format!("is {}", texts.join(" or ")).into(),
            (ValueTest::OneOf(texts), true) => format!("is not {}", texts.join(" or ")).into(),
            (ValueTest::Under(folders), not) => {
                let texts: Vec<String> =
                    folders.iter().map(|folder| format!("`{}`", folder.text())).collect();
                let is = if not { "is not" } else { "is" };
                format!("{is} under {}", texts.join(" or ")).into()
            }
            (ValueTest::Range { min, max }, not) => {
                let bounds = match (min, max) {
                    (Some(min), Some(max)) => format!("from {min} to {max}"),
                    (Some(min), None) => format!("at least {min}"),
                    (None, Some(max)) => format!("at most {max}"),
                    (None, None) => "a number".to_owned(),
                };
                format!("is {}{bounds}", if not { "not " } else { "" }).into()
            }
        }
    }
}

impl std::fmt::Display for Predicate {
    /// The predicate for people: "`path` matches `/data/*`".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or = if self.optional { ", or is left out" } else { "" };
        write!(f, "`{}` {}{or}", self.path_text, self.describe(self.not))
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

/// Whether a JSON scalar equals a JSON value.
fn equals_scalar(wanted: &[u8], value: &[u8]) -> bool {
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
