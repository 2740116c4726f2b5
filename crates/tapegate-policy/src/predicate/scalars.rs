//! How servers convert numbers, true, false, null and words for them into one another.

use tapegate_core::json::{self, Number};
use tapegate_core::lenient::equivalence::{is_null_word, parse_bool_word};
use tapegate_core::lenient::numbers::{self, NumberReadings};

use super::{equals_scalar, in_range};

/// Whether a number, true, false or null could be read as a JSON scalar.
pub(super) fn scalar_may_equal(wanted: &[u8], value: &[u8]) -> bool {
    if equals_scalar(wanted, value) {
        return true;
    }
    match (wanted, value) {
        (b"true", b"false" | b"null") | (b"false" | b"null", b"true") => false,
        // Most languages take every number but zero as true.
        (b"true", number) => !numbers::of_number(number).all_zero(),
        (b"false", b"null") => true,
        (b"false", number) => numbers::of_number(number).any_zero(),
        (b"null", _) => false,
        ([b'"', ..], _) => {
            json::string(wanted).is_some_and(|text| scalar_may_equal_text(&text, value))
        }
        (number, b"true") => Number::read(number) == Number::read(b"1"),
        (number, b"false" | b"null") => Number::read(number) == Number::read(b"0"),
        (number, value) => numbers::of_number(value).contains(number),
    }
}

/// Whether a number, true, false or null could be read as a text, or both as the same value.
pub(super) fn scalar_may_equal_text(wanted: &str, value: &[u8]) -> bool {
    let as_word = match value {
        b"true" => parse_bool_word(wanted) == Some(true),
        b"false" => parse_bool_word(wanted) == Some(false),
        b"null" => is_null_word(wanted),
        value => {
            let (value, wanted_numbers) = (numbers::of_number(value), numbers::of_text(wanted));
            let same = |one: &String| value.contains(one.as_bytes());
            let as_number = !wanted_numbers.unclear && wanted_numbers.numbers.iter().any(same);
            as_number
                || parse_bool_word(wanted)
                    .is_some_and(|is| value.contains(if is { b"1" } else { b"0" }))
        }
    };
    as_word || texts_of(value).iter().any(|text| text == wanted)
}

/// Whether a text could be read as a JSON scalar that is not a string.
pub(super) fn text_may_equal(wanted: &[u8], text: &str) -> bool {
    match wanted {
        // JavaScript takes every non-empty text as true.
        b"true" => !text.is_empty(),
        // Java takes every text but `true` as false.
        b"false" => !text.eq_ignore_ascii_case("true"),
        b"null" => is_null_word(text),
        [b'"', ..] => false,
        number => {
            let readings = numbers::of_text(text);
            readings.odd_digits
                || readings.contains(number)
                || match parse_bool_word(text) {
                    Some(true) => Number::read(number) == Number::read(b"1"),
                    Some(false) => Number::read(number) == Number::read(b"0"),
                    // A server that converts an empty value to a number gets 0.
                    None => is_null_word(text) && Number::read(number) == Number::read(b"0"),
                }
        }
    }
}

pub(super) fn numbers_in_range(
    readings: &NumberReadings,
    min: Option<&str>,
    max: Option<&str>,
) -> bool {
    let inside = |number: &String| in_range(number.as_bytes(), min, max) != Some(false);
    readings.unclear || readings.numbers.iter().any(inside)
}

/// The texts that a number, true, false or null is converted to.
pub(super) fn texts_of(value: &[u8]) -> Vec<String> {
    let words: &[&str] = match value {
        b"true" => &["true", "True", "TRUE", "1"],
        b"false" => &["false", "False", "FALSE", "0", ""],
        b"null" => &["null", "None", "nil", "undefined", ""],
        value => {
            let mut texts = vec![String::from_utf8_lossy(value).into_owned()];
            let shortest = number_text(value).into_iter();
            for number in numbers::of_number(value).numbers.into_iter().chain(shortest) {
                // Python prints a float with `.0` where JavaScript prints an integer.
                texts.push(format!("{number}.0"));
                texts.push(number);
            }
            return texts;
        }
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A number as it is printed after parsing: `1e3` is `1000`, and so is `1000.0`. `None` for numbers
/// so large that they are printed with an exponent, since formats differ there.
pub(super) fn number_text(number: &[u8]) -> Option<String> {
    let float = std::str::from_utf8(number).ok()?.parse::<f64>().ok()?;
    (float.abs() < 1e21).then(|| float.to_string())
}
