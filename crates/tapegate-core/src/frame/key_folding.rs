//! Matches keys the way lenient readers do.
//!
//! Not every reader compares keys byte for byte: Go's folds case (and takes the long s for `s`, the
//! Kelvin sign for `k`), some ignore `_` and `-`, some drop unpaired surrogates, and those written
//! in C stop at a NUL. Keys that such a reader cannot tell apart are lookalikes.

use std::borrow::Cow;

use crate::json::JsonStr;

/// The index of the name that a lenient reader takes `key` for. `names` are plain letters.
#[inline]
pub fn lenient_key_match(key: JsonStr<'_>, names: &[&str]) -> Option<usize> {
    // No reader takes a key for a name with another first letter.
    if let [first, ..] = key.raw
        && first.is_ascii_alphanumeric()
        && !names.iter().any(|name| begins_with(name, *first))
    {
        return None;
    }
    // The usual case: no separators, no escapes, so only the case can differ.
    if !key.escaped && key.raw.iter().all(u8::is_ascii_alphanumeric) {
        let alike = |name: &&str| {
            name.len() == key.raw.len() && name.as_bytes().eq_ignore_ascii_case(key.raw)
        };
        return names.iter().position(alike);
    }
    let counts = |byte: &&u8| !matches!(**byte, b'_' | b'-');
    let lower = |byte: &u8| byte.to_ascii_lowercase();
    if !key.escaped && key.raw.is_ascii() {
        let letters = key.raw.trim_ascii().iter().filter(counts).map(lower);
        return names.iter().position(|name| letters.clone().eq(name.as_bytes().iter().map(lower)));
    }
    let mut folded = fold(key).into_owned();
    folded.retain(|byte| !matches!(byte, b'_' | b'-'));
    names.iter().position(|name| folded.eq_ignore_ascii_case(name.as_bytes()))
}

#[inline]
fn begins_with(name: &str, letter: u8) -> bool {
    name.as_bytes().first().is_some_and(|first| first.eq_ignore_ascii_case(&letter))
}

/// The case-folded form of a key: lookalikes that differ in case or less have the same one.
pub fn fold(key: JsonStr<'_>) -> Cow<'_, [u8]> {
    let lower = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/');
    // Already folded, which is the case for nearly all keys, so nothing is allocated.
    if !key.escaped && key.raw.iter().all(lower) {
        return Cow::Borrowed(key.raw);
    }
    let mut exact = Vec::with_capacity(key.raw.len());
    key.write_value_bytes(&mut exact);
    // Readers in C end the key at a NUL.
    let end = memchr::memchr(0, &exact).unwrap_or(exact.len());
    // Bytes that are not UTF-8 are unpaired surrogates.
    let mut folded = String::with_capacity(end);
    for chunk in exact[..end].utf8_chunks() {
        let letters = chunk.valid().trim().chars();
        // `to_lowercase` maps the Kelvin sign to `k`, but leaves the long s alone.
        let letters = letters.map(|letter| if letter == '\u{17f}' { 's' } else { letter });
        folded.extend(letters.flat_map(char::to_lowercase));
    }
    Cow::Owned(folded.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(raw: &str) -> Option<usize> {
        let key = JsonStr { raw: raw.as_bytes(), escaped: raw.contains('\\') };
        lenient_key_match(key, &["method", "params", "task"])
    }

    #[test]
    fn keys_that_are_one_to_somebody_are_twins() {
        for method in [
            "method",
            "METHOD",
            "Method",
            r"\u004dethod",
            r"meth\ud800od",
            r"method\u0000x",
            "me_thod",
            "me-thod",
            " method ",
        ] {
            assert_eq!(taken(method), Some(0), "{method}");
        }
        for params in ["param\u{17f}", "PARAMS", r"param\u017f"] {
            assert_eq!(taken(params), Some(1), "{params}");
        }
        assert_eq!(taken("tas\u{212a}"), Some(2));
        for other in ["methods", "metho", "", "_", "mèthod", r"\u0000method"] {
            assert_eq!(taken(other), None, "{other}");
        }
    }

    #[test]
    fn a_first_letter_tells_no_more_than_the_whole_key() {
        let names = ["method", "params", "task"];
        for first in 0x20..0x7fu8 {
            for rest in ["ethod", "arams", "ask", "_ethod", "ethod\u{17f}", "", r"\u0065thod"] {
                let raw = format!("{}{rest}", char::from(first));
                if raw.starts_with(['"', '\\']) {
                    continue;
                }
                let key = JsonStr { raw: raw.as_bytes(), escaped: raw.contains('\\') };
                let mut folded = fold(key).into_owned();
                folded.retain(|byte| !matches!(byte, b'_' | b'-'));
                let found = names.iter().position(|name| folded == name.as_bytes());
                assert_eq!(lenient_key_match(key, &names), found, "{raw}");
            }
        }
    }

    #[test]
    fn plain_keys_cost_no_memory() {
        let key = JsonStr { raw: b"arguments", escaped: false };
        assert!(matches!(fold(key), Cow::Borrowed(b"arguments")));
    }
}
