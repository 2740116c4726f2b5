//! A test of one value.

use regex::Regex;
use tapegate_core::json::{Number, write_str};
use tapegate_core::signature::canonical;

use crate::pattern::SimpleGlob;
use crate::template::VariableValue;

/// A test of one value.
#[derive(Debug, Clone)]
pub(super) enum ConditionTest {
    /// Text that matches this glob.
    Glob(SimpleGlob),
    /// Text that matches this regular expression.
    Regex(Regex),
    /// This number, compared by value.
    Number(String),
    /// This value, compared in canonical form.
    Exactly(Vec<u8>),
    /// Text that contains this.
    Contains(String),
    /// Text that begins with this.
    Prefix(String),
    /// Text that ends with this.
    Suffix(String),
    /// Present, or absent.
    Exists(bool),
    /// A number above this.
    Over(f64),
    /// A number below this.
    Under(f64),
    /// One of these.
    Any(Vec<ConditionTest>),
}

impl ConditionTest {
    /// Whether a value, if there is one, passes.
    pub(super) fn matches(&self, variable_value: Option<&VariableValue<'_>>) -> bool {
        let Some(found) = variable_value else { return matches!(self, Self::Exists(false)) };
        let text = || found.clone().text();
        match self {
            Self::Exists(there) => *there,
            Self::Any(tests) => tests.iter().any(|test| test.matches(Some(found))),
            Self::Glob(glob) => glob.matches(&text()),
            Self::Regex(regex) => regex.is_match(&text()),
            Self::Contains(part) => text().contains(part.as_str()),
            Self::Prefix(part) => text().starts_with(part.as_str()),
            Self::Suffix(part) => text().ends_with(part.as_str()),
            Self::Over(limit) => number(found).is_some_and(|number| number > *limit),
            Self::Under(limit) => number(found).is_some_and(|number| number < *limit),
            Self::Exactly(json) => match found {
                VariableValue::Json(text) => canonical(text) == *json,
                VariableValue::Text(text) => {
                    let mut value = Vec::new();
                    write_str(&mut value, text);
                    canonical(&value) == *json
                }
                VariableValue::Missing => false,
            },
            Self::Number(wanted) => match found {
                VariableValue::Json(text) if matches!(text.first(), Some(b'-' | b'0'..=b'9')) => {
                    same_number(text, wanted.as_bytes())
                }
                VariableValue::Text(text) => **text == **wanted,
                _ => false,
            },
        }
    }
}

impl ConditionTest {
    /// Whether it tests for an empty map.
    pub(super) fn wants_an_empty_map(&self) -> bool {
        matches!(self, Self::Exactly(json) if *json == canonical(b"{}"))
    }
}

fn same_number(one: &[u8], two: &[u8]) -> bool {
    let canonical = |text| {
        let mut out = Vec::new();
        Number::read(text).write(&mut out);
        out
    };
    one == two || canonical(one) == canonical(two)
}

fn number(variable_value: &VariableValue<'_>) -> Option<f64> {
    let number: f64 = variable_value.clone().text().trim().parse().ok()?;
    number.is_finite().then_some(number)
}
