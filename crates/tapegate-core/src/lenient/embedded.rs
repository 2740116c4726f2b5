//! Lists and objects embedded in strings, as JSON or as what tolerant parsers accept for it.
//!
//! Python accepts `NaN`, JSON5 comments, single quotes and trailing commas, YAML unquoted keys, and
//! parsers that repair model output also unterminated lists. Such text is converted to JSON here, so that
//! a check of a string sees what one of these parsers would see.

mod escapes;
mod tolerant;

use std::borrow::Cow;

use crate::json;

use super::spelling::{percent_decode, trimmed};

pub use escapes::unescaped;

/// What a string holds.
#[derive(Debug, PartialEq, Eq)]
pub enum EmbeddedJson<'t> {
    /// No list or object.
    Nothing,
    /// A list, an object or a string, as JSON text from the string or converted to JSON.
    Json(Cow<'t, [u8]>),
    /// Something that looks like a list or an object, but is too deep or too odd to be read.
    Unclear,
}

/// The list, object or string that some parser would read from `text`.
pub fn parse_embedded(text: &str) -> EmbeddedJson<'_> {
    let bare = trimmed(text);
    if bare.starts_with(['{', '[', '"'])
        && let Ok(json) = json::check(bare.as_bytes())
    {
        return EmbeddedJson::Json(Cow::Borrowed(json));
    }
    if looks_nested(bare) {
        return read(bare);
    }
    // A form may hold it percent-encoded.
    let decoded = bare.starts_with('%').then(|| percent_decode(bare)).flatten();
    match decoded.as_deref().map(trimmed) {
        Some(inner) if inner.starts_with(['{', '[', '"']) => match json::check(inner.as_bytes()) {
            Ok(json) => EmbeddedJson::Json(Cow::Owned(json.to_vec())),
            Err(_) if looks_nested(inner) => match read(inner) {
                EmbeddedJson::Json(json) => EmbeddedJson::Json(Cow::Owned(json.into_owned())),
                _ => EmbeddedJson::Unclear,
            },
            Err(_) => EmbeddedJson::Nothing,
        },
        _ => EmbeddedJson::Nothing,
    }
}

fn read(text: &str) -> EmbeddedJson<'_> {
    tolerant::to_json(text)
        .map_or(EmbeddedJson::Unclear, |json| EmbeddedJson::Json(Cow::Owned(json)))
}

/// Whether a text begins like a list or an object, possibly after comments, or with a quoted key.
fn looks_nested(text: &str) -> bool {
    let start = tolerant::skip_blank(text.strip_prefix("---").unwrap_or(text));
    match start.chars().next() {
        Some('{' | '[') => true,
        Some(quote @ ('"' | '\'')) => {
            let ends = start[1..].find(quote).map(|end| start[end + 2..].trim_start());
            ends.is_some_and(|rest| rest.starts_with(':'))
        }
        _ => false,
    }
}

/// The parts of a text that may be a list: split at separators, white space, brackets and quotes.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let several = text.contains([',', ';', '|', '\n', ' ', '[', '{', '(', '\t']);
    let cuts = |letter: char| {
        letter.is_whitespace()
            || matches!(letter, ',' | ';' | '|' | '[' | ']' | '{' | '}' | '(' | ')' | '\'' | '"')
    };
    text.split(cuts).filter(move |piece| several && !piece.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(text: &str) -> Option<String> {
        match parse_embedded(text) {
            EmbeddedJson::Json(json) => Some(String::from_utf8(json.into_owned()).unwrap()),
            _ => None,
        }
    }

    #[test]
    fn what_tolerant_parsers_take_is_brought_into_json() {
        for (text, json) in [
            (r#"{"force":true}"#, r#"{"force":true}"#),
            (r#"{"\u0066orce": true, "x": NaN}"#, r#"{"force":true,"x":"NaN"}"#),
            (r#"{"force": true, "x": -Infinity,}"#, r#"{"force":true,"x":"-Infinity"}"#),
            (r#"{'force': True, 'b': None}"#, r#"{"force":true,"b":null}"#),
            ("{force: yes, /* a */ b: 0x10 // c\n}", r#"{"force":"yes","b":"0x10"}"#),
            ("// a\n{force: true # b\n}", r#"{"force":true}"#),
            ("---\n{force: true}", r#"{"force":true}"#),
            (r#"{"\x66orce": true}"#, r#"{"force":true}"#),
            ("\"\\x66orce\": true\nb: 1", r#"{"force":true,"b":1}"#),
            (r#"["\u002fetc/passwd",NaN]"#, r#"["/etc/passwd","NaN"]"#),
            (r#"["/etc/passwd", ["#, r#"["/etc/passwd",[]]"#),
            ("{force=true; b=[1 2]}", r#"{"force":true,"b":["1 2",1,2]}"#),
            ("{\"a\":1}\n{\"force\":true}", r#"[{"a":1},{"force":true}]"#),
            ("%7B%22force%22%3Atrue%7D", r#"{"force":true}"#),
            ("{'a': 'it''s'}", r#"{"a":"it's"}"#),
            ("('a', 'b')", ""),
            ("{\"a\": \"b\nc\"}", r#"{"a":"b\nc"}"#),
            ("[+5, .5, 5., 1_000]", r#"["+5",".5","5.","1_000"]"#),
        ] {
            assert_eq!(read_as(text).unwrap_or_default(), json, "{text}");
        }
    }

    #[test]
    fn a_text_in_single_quotes_is_read_with_and_without_its_escapes() {
        assert_eq!(read_as(r"['\x41']").unwrap(), r#"["A","\\x41"]"#);
        assert_eq!(read_as(r"{'a': '\x41'}").unwrap(), r#"{"a":"A","a":"\\x41"}"#);
    }

    #[test]
    fn prose_holds_nothing_and_what_is_too_deep_is_unclear() {
        for text in ["", "a", "a: b", "/etc/passwd", "# x\nb", "'a' b", "100%", "%41", "5"] {
            assert_eq!(parse_embedded(text), EmbeddedJson::Nothing, "{text}");
        }
        assert_eq!(parse_embedded(&"[".repeat(100_000)), EmbeddedJson::Unclear);
        assert_eq!(parse_embedded("{'a', 'b'}"), EmbeddedJson::Unclear);
    }

    #[test]
    fn every_text_is_read_to_its_end_and_what_comes_of_it_is_json() {
        let parts =
            ["{", "}", "[", "]", "\"", "'", "\\", ":", ",", "//", "/*", "#", "a", "(", ")", "\n"];
        for one in 0..parts.len().pow(4) {
            let pick = |index: u32| parts[one / parts.len().pow(index) % parts.len()];
            let text = format!("[{}{}{}{}", pick(0), pick(1), pick(2), pick(3));
            if let EmbeddedJson::Json(json) = parse_embedded(&text) {
                assert!(json::check(&json).is_ok(), "{text}");
            }
        }
    }
}
