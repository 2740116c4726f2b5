//! Whether some server could convert a value so that a test holds.
//!
//! Servers convert: pydantic takes `"yes"` as true and `"5000"` as a number, JavaScript takes any
//! non-empty text as true, Java any text but `true` as false; many parse JSON in strings and unpack
//! a list of one. If a number is tested and its value cannot be determined, it counts as matching.

use tapegate_core::json::{self, Cursor, Fault, Kind, Number};
use tapegate_core::lenient::alike::{TextForms, is_null_word};
use tapegate_core::lenient::embedded::{Embedded, embedded, pieces, unescaped};
use tapegate_core::lenient::folder::Folder;
use tapegate_core::lenient::numbers;
use tapegate_core::lenient::reading::{Budget, any_reading, fold_case};

use super::joined::{Joint, joined};
use super::lenient::NESTED_MAX;
use super::scalars::{
    numbers_in_range, scalar_may_equal, scalar_may_equal_text, text_may_equal, texts_of,
};
use super::{Test, in_range, is_number, urls};
use crate::glob::Glob;

/// How deep lists and objects are followed.
pub(super) const DEPTH_MAX: usize = 64;

/// What a test looks for in the forms into which servers convert a value. Case is ignored, except
/// in regular expressions.
#[derive(Debug)]
pub(super) struct Coerced {
    glob: Option<Glob>,
    /// The strings among the values of a `OneOf`, by their index.
    texts: Vec<Option<TextForms>>,
}

/// The state of testing one value.
struct Reading<'r> {
    test: &'r Test,
    coerced: &'r Coerced,
    budget: &'r Budget,
}

/// The position of a value.
#[derive(Clone, Copy, Default)]
struct At {
    depth: usize,
    /// How many strings were parsed on the way.
    nested: usize,
    /// Whether it is in a list that was joined to one text.
    joined: bool,
}

impl Coerced {
    pub(super) fn new(test: &Test) -> Self {
        let glob = match test {
            Test::Glob(glob) => Some(glob.any_case()),
            _ => None,
        };
        let forms = |text: &str| {
            let mut forms = TextForms::of(text);
            urls::readings(text).iter().for_each(|url| forms.add(url));
            forms
        };
        let texts = match test {
            Test::OneOf(wanted) => wanted
                .iter()
                .map(|wanted| json::string(wanted.as_bytes()).map(|text| forms(&text)))
                .collect(),
            Test::Glob(glob) if glob.is_plain() => vec![Some(forms(glob.text()))],
            _ => Vec::new(),
        };
        Self { glob, texts }
    }

    /// Whether some server could read a value so that the test holds.
    pub(super) fn may_be(&self, test: &Test, value: &[u8], budget: &Budget) -> bool {
        Reading { test, coerced: self, budget }.reads_as(value, At::default())
    }
}

impl Reading<'_> {
    fn reads_as(&self, value: &[u8], at: At) -> bool {
        if !self.budget.spend(value.len()) {
            return true;
        }
        match value.first() {
            Some(b'"') => {
                let Some(text) = json::string(value) else { return true };
                self.text_may_be(&text) || self.inside_may_be(&text, at)
            }
            Some(b'[' | b'{') => {
                if at.depth == DEPTH_MAX || self.whole_may_be(value) {
                    return true;
                }
                let mut at = At { depth: at.depth + 1, ..at };
                if value.first() == Some(&b'[') && !at.joined {
                    match self.joined_may_be(value) {
                        Some(true) => return true,
                        made => at.joined = made.is_some(),
                    }
                }
                any_child(value, |child| self.reads_as(child, at)).unwrap_or(true)
            }
            _ => self.scalar_may_be(value),
        }
    }

    /// Whether the JSON or other structure in a text could match.
    fn inside_may_be(&self, text: &str, at: At) -> bool {
        match embedded(text) {
            Embedded::Json(_) if at.nested == NESTED_MAX => true,
            Embedded::Json(inner) => self.reads_as(&inner, At { nested: at.nested + 1, ..at }),
            // The format is unknown; values in it are delimited by quotes, commas and brackets.
            Embedded::Unclear => {
                let plain = unescaped(text);
                let plain = plain.as_deref().unwrap_or(text);
                let mut all = std::iter::once(plain).chain(pieces(plain));
                all.any(|piece| self.text_may_be(piece))
            }
            Embedded::Nothing => false,
        }
    }
}

/// Whether `is` holds for a child of a list or object.
fn any_child(value: &[u8], is: impl Fn(&[u8]) -> bool) -> Result<bool, Fault> {
    let mut cursor = Cursor::new(value)?;
    let mut first = true;
    let map = cursor.open()? == Kind::Object;
    loop {
        let more =
            if map { cursor.key(&mut first)?.is_some() } else { cursor.element(&mut first)? };
        if !more {
            return Ok(false);
        }
        if is(cursor.value()?) {
            return Ok(true);
        }
    }
}

impl Reading<'_> {
    /// Whether a list or object as a whole could match.
    fn whole_may_be(&self, value: &[u8]) -> bool {
        let inside = value.get(1..value.len() - 1);
        let empty = inside.is_none_or(|inside| inside.trim_ascii().is_empty());
        match self.test {
            Test::Exists => true,
            // How a server compares an object with a number is unknown.
            Test::Range { .. } => value.first() == Some(&b'{') || empty && self.scalar_may_be(b"0"),
            Test::OneOf(wanted) => wanted.iter().any(|wanted| match wanted.as_bytes() {
                b"true" => true,
                b"false" | b"null" | b"\"\"" => empty,
                wanted => empty && is_number(wanted) && Number::read(wanted) == Number::read(b"0"),
            }),
            Test::Glob(_) | Test::Regex(_) | Test::Under(_) => empty && self.text_may_be(""),
        }
    }

    /// Whether a list could match once it is joined to one text; `None` if no server would join it.
    fn joined_may_be(&self, list: &[u8]) -> Option<bool> {
        let is_text = |wanted: &String| wanted.starts_with('"');
        match self.test {
            Test::Exists | Test::Range { .. } => return None,
            Test::OneOf(wanted) if !wanted.iter().any(is_text) => return None,
            _ => {}
        }
        for joint in Joint::ALL {
            let Some(text) = joined(list, joint, self.budget)? else { return Some(true) };
            // Other values than strings were looked for in the elements.
            let may_be = match self.test {
                Test::OneOf(_) => self.may_equal_text(&text),
                _ => self.text_may_be(&text),
            };
            if may_be {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Whether a number, true, false or null could match.
    fn scalar_may_be(&self, value: &[u8]) -> bool {
        match self.test {
            Test::Exists => true,
            Test::Range { min, max } => match value {
                b"true" => in_range(b"1", min.as_deref(), max.as_deref()) != Some(false),
                b"false" | b"null" => in_range(b"0", min.as_deref(), max.as_deref()) != Some(false),
                value => {
                    numbers_in_range(&numbers::of_number(value), min.as_deref(), max.as_deref())
                }
            },
            Test::OneOf(wanted) => {
                wanted.iter().any(|wanted| scalar_may_equal(wanted.as_bytes(), value))
            }
            Test::Glob(glob) if glob.is_plain() && scalar_may_equal_text(glob.text(), value) => {
                true
            }
            _ => texts_of(value).iter().any(|text| self.text_may_be(text)),
        }
    }

    /// Whether a text could match.
    fn text_may_be(&self, text: &str) -> bool {
        match self.test {
            Test::Exists => true,
            Test::Range { min, max } => {
                let (min, max) = (min.as_deref(), max.as_deref());
                // A server that converts an empty value to a number gets 0.
                numbers_in_range(&numbers::of_text(text), min, max)
                    || is_null_word(text) && in_range(b"0", min, max) != Some(false)
            }
            Test::OneOf(wanted) => {
                wanted.iter().any(|wanted| text_may_equal(wanted.as_bytes(), text))
                    || self.may_equal_text(text)
            }
            Test::Glob(glob) => {
                self.any_reading(text, |reading| {
                    let folded = &self.coerced.glob;
                    glob.matches(reading)
                        || folded
                            .as_ref()
                            .is_some_and(|glob| glob.matches_decoded(&fold_case(reading)))
                }) || self.may_equal_text(text)
            }
            Test::Regex(regex) => self.any_reading(text, |reading| regex.is_match(reading)),
            Test::Under(folders) => {
                !self.budget.spend(text.len())
                    || folders.iter().any(|folder: &Folder| folder.may_hold(text))
            }
        }
    }

    /// Whether a text could equal one of the wanted strings.
    fn may_equal_text(&self, text: &str) -> bool {
        let wanted = || self.coerced.texts.iter().flatten();
        wanted().next().is_some()
            && (wanted().any(|wanted| wanted.means_text(text))
                || self
                    .any_reading(text, |reading| wanted().any(|wanted| wanted.is_spelled(reading))))
    }

    /// Whether `is` holds for some reading of a text.
    fn any_reading(&self, text: &str, is: impl Fn(&str) -> bool) -> bool {
        any_reading(text, self.budget, &is) || urls::any_reading(text, is)
    }
}
