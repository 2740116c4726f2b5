//! Whether some server could read a value as one that a test wants.
//!
//! Servers convert: pydantic takes `"yes"` for true and `"5000"` for a number, JavaScript any text for
//! true, Java any text but `true` for false; many parse JSON that comes as text and unpack a list of
//! one. Where a number is wanted and nobody can tell which it is, it counts as the one that is.

use tapegate_core::json::{self, Cursor, Fault, Kind, Number};
use tapegate_core::lenient::alike::{self, bool_word, embedded, is_null_word};
use tapegate_core::lenient::folder::{Folder, each_reading, normal_path};
use tapegate_core::lenient::numbers::{self, Readings};
use tapegate_core::lenient::spelling::{nfc, nfd, nfkc, spellings};

use super::lenient::NESTED_MAX;
use super::{Test, in_range, is_number, same, urls};
use crate::glob::Glob;

/// How deep lists and objects are followed.
const DEPTH_MAX: usize = 64;

/// Whether some server could read a value so that the test holds.
pub(super) fn may_be(test: &Test, value: &[u8]) -> bool {
    read_as(test, value, 0, 0)
}

fn read_as(test: &Test, value: &[u8], depth: usize, nested: usize) -> bool {
    match value.first() {
        Some(b'"') => {
            let Some(text) = json::string(value) else { return true };
            if text_may_be(test, &text) {
                return true;
            }
            match embedded(&text) {
                Some(_) if nested == NESTED_MAX => true,
                Some(inner) => read_as(test, inner, depth, nested + 1),
                None => false,
            }
        }
        Some(b'[' | b'{') => {
            if depth == DEPTH_MAX || whole_may_be(test, value) {
                return true;
            }
            if value.first() == Some(&b'[') && joined_may_be(test, value) {
                return true;
            }
            let inside = |child: &[u8]| read_as(test, child, depth + 1, nested);
            any_child(value, inside).unwrap_or(true)
        }
        _ => scalar_may_be(test, value),
    }
}

/// Whether one of the children of a list or object is so.
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

/// Whether a list or object as a whole could be what is wanted.
fn whole_may_be(test: &Test, value: &[u8]) -> bool {
    let empty = value.get(1..value.len() - 1).is_none_or(|inside| inside.trim_ascii().is_empty());
    match test {
        Test::Exists => true,
        // An object is no number, and nobody knows what it is compared as.
        Test::Range { .. } => value.first() == Some(&b'{') || empty && scalar_may_be(test, b"0"),
        Test::OneOf(wanted) => wanted.iter().any(|wanted| match wanted.as_bytes() {
            b"true" => true,
            b"false" | b"null" | b"\"\"" => empty,
            wanted => empty && is_number(wanted) && Number::read(wanted) == Number::read(b"0"),
        }),
        Test::Glob(_) | Test::Regex(_) | Test::Under(_) => empty && text_may_be(test, ""),
    }
}

/// Whether a list could be what is wanted when somebody makes one text of it.
fn joined_may_be(test: &Test, list: &[u8]) -> bool {
    let is_text = |wanted: &String| wanted.starts_with('"');
    match test {
        Test::Exists | Test::Range { .. } => false,
        Test::OneOf(wanted) if !wanted.iter().any(is_text) => false,
        // What is wanted besides texts was looked for in the elements.
        Test::OneOf(wanted) => joined(list, 0).is_some_and(|text| {
            let texts = wanted.iter().filter(|wanted| is_text(wanted));
            texts.into_iter().any(|wanted| text_may_equal(wanted.as_bytes(), &text))
        }),
        _ => joined(list, 0).is_some_and(|text| text_may_be(test, &text)),
    }
}

/// Whether a number, true, false or null could be what is wanted.
fn scalar_may_be(test: &Test, value: &[u8]) -> bool {
    match test {
        Test::Exists => true,
        Test::Range { min, max } => match value {
            b"true" => in_range(b"1", min.as_deref(), max.as_deref()) != Some(false),
            b"false" | b"null" => in_range(b"0", min.as_deref(), max.as_deref()) != Some(false),
            value => numbers_in_range(&numbers::of_number(value), min.as_deref(), max.as_deref()),
        },
        Test::OneOf(wanted) => {
            wanted.iter().any(|wanted| scalar_may_equal(wanted.as_bytes(), value))
        }
        Test::Glob(glob) if glob.is_plain() && scalar_may_equal_text(glob.text(), value) => true,
        _ => texts_of(value).iter().any(|text| text_may_be(test, text)),
    }
}

fn scalar_may_equal(wanted: &[u8], value: &[u8]) -> bool {
    if same(wanted, value) {
        return true;
    }
    match (wanted, value) {
        (b"true", b"false" | b"null") | (b"false" | b"null", b"true") => false,
        (b"true", number) => !numbers::of_number(number).all_zero(),
        (b"false", b"null") => true,
        (b"false", number) => numbers::of_number(number).any_zero(),
        (b"null", _) => false,
        ([b'"', ..], _) => {
            json::string(wanted).is_some_and(|text| scalar_may_equal_text(&text, value))
        }
        (number, b"true") => Number::read(number) == Number::read(b"1"),
        (number, b"false" | b"null") => Number::read(number) == Number::read(b"0"),
        (number, value) => numbers::of_number(value).any_is(number),
    }
}

/// Whether a number, true, false or null could be read as a text, or both as the same.
fn scalar_may_equal_text(wanted: &str, value: &[u8]) -> bool {
    let as_word = match value {
        b"true" => bool_word(wanted) == Some(true),
        b"false" => bool_word(wanted) == Some(false),
        b"null" => is_null_word(wanted),
        value => {
            let (value, wanted_numbers) = (numbers::of_number(value), numbers::of_text(wanted));
            let same = |one: &String| value.any_is(one.as_bytes());
            let as_number = !wanted_numbers.unclear && wanted_numbers.numbers.iter().any(same);
            as_number
                || bool_word(wanted).is_some_and(|is| value.any_is(if is { b"1" } else { b"0" }))
        }
    };
    as_word || texts_of(value).iter().any(|text| text == wanted)
}

/// Whether a text could be what is wanted.
fn text_may_be(test: &Test, text: &str) -> bool {
    match test {
        Test::Exists => true,
        Test::Range { min, max } => {
            let (min, max) = (min.as_deref(), max.as_deref());
            // Who takes nothing for a number takes 0.
            numbers_in_range(&numbers::of_text(text), min, max)
                || is_null_word(text) && in_range(b"0", min, max) != Some(false)
        }
        Test::OneOf(wanted) => wanted.iter().any(|wanted| text_may_equal(wanted.as_bytes(), text)),
        Test::Glob(glob) => glob_may_match(glob, text),
        Test::Regex(regex) => {
            let mut all = spellings(text);
            all.push(text.to_owned());
            if !text.is_ascii() {
                all.push(nfc(text));
                all.push(nfd(text));
            }
            let matches = |text: &str| regex.is_match(text);
            all.iter().any(|text| matches(text)) || urls::any_reading(text, matches)
        }
        Test::Under(folders) => folders.iter().any(|folder: &Folder| folder.may_hold(text)),
    }
}

fn glob_may_match(glob: &Glob, text: &str) -> bool {
    if glob.matches(text) || glob.is_plain() && texts_may_equal(glob.text(), text) {
        return true;
    }
    let normal = (!glob.text().is_ascii()).then(|| Glob::parse(&nfkc(glob.text())).ok()).flatten();
    let matches = |text: &str| {
        glob.matches(text) || normal.as_ref().is_some_and(|glob| glob.matches(&nfkc(text)))
    };
    let as_path =
        |reading: &str| matches(reading) || normal_path(reading).is_some_and(|path| matches(&path));
    spellings(text).iter().any(|text| matches(text))
        || each_reading(text, as_path).is_break()
        || urls::may_match(glob, text)
}

/// Whether a text could be read as a JSON text that is no list and no map.
fn text_may_equal(wanted: &[u8], text: &str) -> bool {
    match wanted {
        // JavaScript takes every text for true that is not empty.
        b"true" => !text.is_empty(),
        // Java takes every text for false that is not `true`.
        b"false" => !text.eq_ignore_ascii_case("true"),
        b"null" => is_null_word(text),
        [b'"', ..] => json::string(wanted).is_some_and(|wanted| texts_may_equal(&wanted, text)),
        number => {
            let readings = numbers::of_text(text);
            readings.odd_digits
                || readings.any_is(number)
                || match bool_word(text) {
                    Some(true) => Number::read(number) == Number::read(b"1"),
                    Some(false) => Number::read(number) == Number::read(b"0"),
                    None => false,
                }
        }
    }
}

/// Whether two texts could be read as the same.
fn texts_may_equal(wanted: &str, text: &str) -> bool {
    alike::texts_may_equal(wanted, text) || urls::may_equal(wanted, text)
}

fn numbers_in_range(readings: &Readings, min: Option<&str>, max: Option<&str>) -> bool {
    let inside = |number: &String| in_range(number.as_bytes(), min, max) != Some(false);
    readings.unclear || readings.numbers.iter().any(inside)
}

/// The texts that a number, true, false or null is turned into.
fn texts_of(value: &[u8]) -> Vec<String> {
    let words: &[&str] = match value {
        b"true" => &["true", "True", "TRUE", "1"],
        b"false" => &["false", "False", "FALSE", "0", ""],
        b"null" => &["null", "None", "nil", "undefined", ""],
        value => {
            let mut texts = vec![String::from_utf8_lossy(value).into_owned()];
            let shortest = number_text(value).into_iter();
            for number in numbers::of_number(value).numbers.into_iter().chain(shortest) {
                texts.push(format!("{number}.0"));
                texts.push(number);
            }
            return texts;
        }
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A number as whoever parses and prints it writes it: `1e3` is `1000`, and so is `1000.0`. Beyond what
/// is written without an exponent everybody has their own way.
fn number_text(number: &[u8]) -> Option<String> {
    let float = std::str::from_utf8(number).ok()?.parse::<f64>().ok()?;
    (float.abs() < 1e21).then(|| float.to_string())
}

/// A list as JavaScript makes a text of it: its elements, with commas between them. `None` if one of
/// them is an object.
fn joined(list: &[u8], depth: usize) -> Option<String> {
    let mut cursor = Cursor::new(list).ok().filter(|_| depth < DEPTH_MAX)?;
    let mut texts = Vec::new();
    let mut first = true;
    cursor.open().ok()?;
    while cursor.element(&mut first).ok()? {
        let child = cursor.value().ok()?;
        texts.push(match child {
            [b'{', ..] => return None,
            [b'[', ..] => joined(child, depth + 1)?,
            [b'"', ..] => json::string(child)?.into_owned(),
            b"null" => String::new(),
            scalar => {
                number_text(scalar).unwrap_or_else(|| String::from_utf8_lossy(scalar).into_owned())
            }
        });
    }
    Some(texts.join(","))
}
