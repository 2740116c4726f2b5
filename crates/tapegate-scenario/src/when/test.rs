//! What one value must be.

use regex::Regex;
use tapegate_core::json::{Number, write_str};
use tapegate_core::signature::canonical;

use crate::form::Found;
use crate::pattern::Glob;

/// What one value must be.
#[derive(Debug, Clone)]
pub(super) enum Test {
    /// Text of this shape.
    Glob(Glob),
    /// Text in which this is found.
    Regex(Regex),
    /// Exactly this number, by its value.
    Number(String),
    /// Exactly this value, in its canonical text, whatever its spelling.
    Exactly(Vec<u8>),
    /// Text that has this in it.
    Contains(String),
    /// Text that begins with this.
    Prefix(String),
    /// Text that ends with this.
    Suffix(String),
    /// There, or not.
    Exists(bool),
    /// A number over this.
    Over(f64),
    /// A number under this.
    Under(f64),
    /// One of these.
    Any(Vec<Test>),
}

impl Test {
    /// Whether a value, if there is one, is as it must be.
    pub(super) fn fits(&self, found: Option<&Found<'_>>) -> bool {
        let Some(found) = found else { return matches!(self, Self::Exists(false)) };
        let text = || found.clone().text();
        match self {
            Self::Exists(there) => *there,
            Self::Any(tests) => tests.iter().any(|test| test.fits(Some(found))),
            Self::Glob(glob) => glob.fits(&text()),
            Self::Regex(regex) => regex.is_match(&text()),
            Self::Contains(part) => text().contains(part.as_str()),
            Self::Prefix(part) => text().starts_with(part.as_str()),
            Self::Suffix(part) => text().ends_with(part.as_str()),
            Self::Over(limit) => number(found).is_some_and(|number| number > *limit),
            Self::Under(limit) => number(found).is_some_and(|number| number < *limit),
            Self::Exactly(json) => match found {
                Found::Json(text) => canonical(text) == *json,
                Found::Text(text) => {
                    let mut value = Vec::new();
                    write_str(&mut value, text);
                    canonical(&value) == *json
                }
                Found::Missing => false,
            },
            Self::Number(wanted) => match found {
                Found::Json(text) if matches!(text.first(), Some(b'-' | b'0'..=b'9')) => {
                    same_number(text, wanted.as_bytes())
                }
                Found::Text(text) => **text == **wanted,
                _ => false,
            },
        }
    }
}

impl Test {
    /// Whether it is an empty map that is wanted.
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

fn number(found: &Found<'_>) -> Option<f64> {
    let number: f64 = found.clone().text().trim().parse().ok()?;
    number.is_finite().then_some(number)
}
