//! The name that a careless reader takes a key for.
//!
//! Not every reader compares keys byte for byte: Go's folds case (and takes the long s for `s`, the
//! Kelvin sign for `k`), some leave out `_` and `-`, some drop half a surrogate pair, and those
//! written in C stop at a NUL. Two keys that are one to such a reader are twins.

use std::borrow::Cow;

use crate::json::Str;

/// Which of `names` a careless reader takes `key` for. `names` are plain letters.
#[inline]
pub fn careless(key: Str<'_>, names: &[&str]) -> Option<usize> {
    if !key.escaped && key.raw.iter().all(u8::is_ascii_alphanumeric) {
        return names.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(key.raw));
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

/// What all keys have in common that differ in case only, or not even that.
pub fn fold(key: Str<'_>) -> Cow<'_, [u8]> {
    let lower = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/');
    if !key.escaped && key.raw.iter().all(lower) {
        return Cow::Borrowed(key.raw);
    }
    let mut exact = Vec::with_capacity(key.raw.len());
    key.exact(&mut exact);
    let end = memchr::memchr(0, &exact).unwrap_or(exact.len());
    // What is no UTF-8 is half a surrogate pair.
    let mut folded = String::with_capacity(end);
    for chunk in exact[..end].utf8_chunks() {
        let letters = chunk.valid().trim().chars();
        // Lower case takes the Kelvin sign for `k` by itself, the long s for nothing.
        let letters = letters.map(|letter| if letter == '\u{17f}' { 's' } else { letter });
        folded.extend(letters.flat_map(char::to_lowercase));
    }
    Cow::Owned(folded.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(raw: &str) -> Option<usize> {
        let key = Str { raw: raw.as_bytes(), escaped: raw.contains('\\') };
        careless(key, &["method", "params", "task"])
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
    fn plain_keys_cost_no_memory() {
        let key = Str { raw: b"arguments", escaped: false };
        assert!(matches!(fold(key), Cow::Borrowed(b"arguments")));
    }
}
