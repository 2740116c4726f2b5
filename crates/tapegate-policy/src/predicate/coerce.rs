//! Whether some server could convert a value so that a test holds.
//!
//! Servers convert: pydantic takes `"yes"` as true and `"5000"` as a number, JavaScript takes any
//! non-empty text as true, Java any text but `true` as false; many parse JSON in strings and unpack
//! a list of one. If a number is tested and its value cannot be determined, it counts as matching.

use tapegate_core::json::{self, JsonFault, Number};
use tapegate_core::lenient::embedded::{EmbeddedJson, parse_embedded, pieces, unescaped};
use tapegate_core::lenient::equivalence::{TextForms, is_null_word};
use tapegate_core::lenient::folder::FolderPath;
use tapegate_core::lenient::numbers;
use tapegate_core::lenient::reading::{ScanBudget, any_reading, fold_case};

use super::joined_lists::{ElementSeparator, join_list};
use super::lenient::NESTED_MAX;
use super::scalars::{
    numbers_in_range, scalar_may_equal, scalar_may_equal_text, text_may_equal, texts_of,
};
use super::{ValueTest, in_range, is_number, urls};
use crate::glob::Glob;

/// How deep lists and objects are followed.
pub(super) const DEPTH_MAX: usize = 64;

/// What a test looks for in the forms into which servers convert a value. Case is ignored, except
/// in regular expressions.
#[derive(Debug)]
pub(super) struct CoercedTest {
    glob: Option<Glob>,
    /// The strings among the values of a `OneOf`, by their index.
    texts: Vec<Option<TextForms>>,
}

/// The state of testing one value.
struct ValueReading<'r> {
    test: &'r ValueTest,
    coerced: &'r CoercedTest,
    budget: &'r ScanBudget,
}

#[derive(Clone, Copy, Default)]
struct ValuePosition {
    depth: usize,
    /// How many strings were parsed on the way.
    nested: usize,
    /// Whether it is in a list that was joined to one text.
    joined: bool,
}

impl CoercedTest {
    pub(super) fn new(test: &ValueTest) -> Self {
        let glob = match test {
            ValueTest::Glob(glob) => Some(glob.case_folded()),
            _ => None,
        };
        // Computed once when the policy is loaded; comparing a call then needs only set lookups.
        let forms = |text: &str| {
            let mut forms = TextForms::of(text);
            urls::readings(text).iter().for_each(|url| forms.add(url));
            forms
        };
        let texts = match test {
            ValueTest::OneOf(wanted) => wanted
                .iter()
                .map(|wanted| json::string(wanted.as_bytes()).map(|text| forms(&text)))
                .collect(),
            ValueTest::Glob(glob) if glob.is_plain() => vec![Some(forms(glob.text()))],
            _ => Vec::new(),
        };
        Self { glob, texts }
    }

    /// Whether some server could read a value so that the test holds.
    pub(super) fn may_match(&self, test: &ValueTest, value: &[u8], budget: &ScanBudget) -> bool {
        ValueReading { test, coerced: self, budget }.reads_as(value, ValuePosition::default())
    }
}

impl ValueReading<'_> {
    fn reads_as(&self, value: &[u8], at: ValuePosition) -> bool {
        // A value that costs more than its size allows is crafted, so it counts as matching.
        if !self.budget.spend(value.len()) {
            return true;
        }
        match value.first() {
            Some(b'"') => {
                let Some(text) = json::string(value) else { return true };
                self.text_may_match(&text) || self.embedded_may_match(&text, at)
            }
            Some(b'[' | b'{') => {
                if at.depth == DEPTH_MAX || self.whole_may_match(value) {
                    return true;
                }
                let mut at = ValuePosition { depth: at.depth + 1, ..at };
                // Joined once, at the outermost list: the joined text includes the elements of the
                // inner ones.
                if value.first() == Some(&b'[') && !at.joined {
                    match self.joined_may_match(value) {
                        Some(true) => return true,
                        made => at.joined = made.is_some(),
                    }
                }
                any_child(value, |child| self.reads_as(child, at)).unwrap_or(true)
            }
            _ => self.scalar_may_match(value),
        }
    }

    /// Whether the JSON or other structure in a text could match.
    fn embedded_may_match(&self, text: &str, at: ValuePosition) -> bool {
        match parse_embedded(text) {
            EmbeddedJson::Json(_) if at.nested == NESTED_MAX => true,
            EmbeddedJson::Json(inner) => {
                self.reads_as(&inner, ValuePosition { nested: at.nested + 1, ..at })
            }
            // The format is unknown; values in it are delimited by quotes, commas and brackets.
            EmbeddedJson::Unclear => {
                let plain = unescaped(text);
                let plain = plain.as_deref().unwrap_or(text);
                let mut all = std::iter::once(plain).chain(pieces(plain));
                all.any(|piece| self.text_may_match(piece))
            }
            EmbeddedJson::Nothing => false,
        }
    }
}

/// Whether `is` holds for a child of a list or object.
fn any_child(value: &[u8], is: impl Fn(&[u8]) -> bool) -> Result<bool, JsonFault> {
    for child in json::children(value) {
        if is(child?.1) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl ValueReading<'_> {
    /// Whether a list or object as a whole could match.
    fn whole_may_match(&self, value: &[u8]) -> bool {
        let inside = value.get(1..value.len() - 1);
        let empty = inside.is_none_or(|inside| inside.trim_ascii().is_empty());
        match self.test {
            ValueTest::Exists => true,
            // How a server compares an object with a number is unknown.
            ValueTest::Range { .. } => {
                value.first() == Some(&b'{') || empty && self.scalar_may_match(b"0")
            }
            ValueTest::OneOf(wanted) => wanted.iter().any(|wanted| match wanted.as_bytes() {
                // JavaScript and Python take a list or an object as true; Python takes empty ones
                // as false.
                b"true" => true,
                b"false" | b"null" | b"\"\"" => empty,
                wanted => empty && is_number(wanted) && Number::read(wanted) == Number::read(b"0"),
            }),
            ValueTest::Glob(_) | ValueTest::Regex(_) | ValueTest::Under(_) => {
                empty && self.text_may_match("")
            }
        }
    }

    /// Whether a list could match once it is joined to one text; `None` if no server would join it.
    fn joined_may_match(&self, list: &[u8]) -> Option<bool> {
        let is_text = |wanted: &String| wanted.starts_with('"');
        match self.test {
            ValueTest::Exists | ValueTest::Range { .. } => return None,
            ValueTest::OneOf(wanted) if !wanted.iter().any(is_text) => return None,
            _ => {}
        }
        for joint in ElementSeparator::ALL {
            let Some(text) = join_list(list, joint, self.budget)? else { return Some(true) };
            // Other values than strings were looked for in the elements.
            let may_be = match self.test {
                ValueTest::OneOf(_) => self.may_equal_text(&text),
                _ => self.text_may_match(&text),
            };
            if may_be {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Whether a number, true, false or null could match.
    fn scalar_may_match(&self, value: &[u8]) -> bool {
        match self.test {
            ValueTest::Exists => true,
            ValueTest::Range { min, max } => match value {
                b"true" => in_range(b"1", min.as_deref(), max.as_deref()) != Some(false),
                // `Some(false)` only if it is certainly outside: `None`, an uncomparable number,
                // may match.
                b"false" | b"null" => in_range(b"0", min.as_deref(), max.as_deref()) != Some(false),
                value => {
                    numbers_in_range(&numbers::of_number(value), min.as_deref(), max.as_deref())
                }
            },
            ValueTest::OneOf(wanted) => {
                wanted.iter().any(|wanted| scalar_may_equal(wanted.as_bytes(), value))
            }
            ValueTest::Glob(glob)
                if glob.is_plain() && scalar_may_equal_text(glob.text(), value) =>
            {
                true
            }
            _ => texts_of(value).iter().any(|text| self.text_may_match(text)),
        }
    }

    /// Whether a text could match.
    fn text_may_match(&self, text: &str) -> bool {
        match self.test {
            ValueTest::Exists => true,
            ValueTest::Range { min, max } => {
                let (min, max) = (min.as_deref(), max.as_deref());
                // A server that converts an empty value to a number gets 0.
                numbers_in_range(&numbers::of_text(text), min, max)
                    || is_null_word(text) && in_range(b"0", min, max) != Some(false)
            }
            ValueTest::OneOf(wanted) => {
                wanted.iter().any(|wanted| text_may_equal(wanted.as_bytes(), text))
                    || self.may_equal_text(text)
            }
            ValueTest::Glob(glob) => {
                self.any_reading(text, |reading| {
                    let folded = &self.coerced.glob;
                    glob.matches(reading)
                        || folded
                            .as_ref()
                            .is_some_and(|glob| glob.matches_decoded(&fold_case(reading)))
                }) || self.may_equal_text(text)
            }
            ValueTest::Regex(regex) => self.any_reading(text, |reading| regex.is_match(reading)),
            ValueTest::Under(folders) => {
                !self.budget.spend(text.len())
                    || folders.iter().any(|folder: &FolderPath| folder.may_hold(text))
            }
        }
    }

    /// Whether a text could equal one of the wanted strings.
    fn may_equal_text(&self, text: &str) -> bool {
        let wanted = || self.coerced.texts.iter().flatten();
        wanted().next().is_some()
            && (wanted().any(|wanted| wanted.has_same_meaning(text))
                || self.any_reading(text, |reading| {
                    wanted().any(|wanted| wanted.has_spelling(reading))
                }))
    }

    /// Whether `is` holds for some reading of a text.
    fn any_reading(&self, text: &str, is: impl Fn(&str) -> bool) -> bool {
        any_reading(text, self.budget, &is) || urls::any_reading(text, is)
    }
}
