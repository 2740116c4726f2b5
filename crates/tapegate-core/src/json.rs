//! JSON as a view on bytes: a validating cursor that builds no tree.
//!
//! Everything here works on borrowed text and keeps positions, so that a caller can cut out the exact
//! bytes of a value. The grammar is exactly that of RFC 8259: numbers of any size, lone surrogate
//! escapes and duplicate keys are accepted; a raw control character in a string, a leading zero or
//! bytes after the value are not. Nesting is tracked without recursion, at one bit per level, so deep
//! input cannot overflow the stack.

mod byte_runs;
mod children;
mod code_points;
mod compact;
mod cursor;
/// The differences between two texts.
pub mod diff;
mod likeness;
mod location;
mod member;
mod number;
mod object;
/// Paths into messages, as people write them.
pub mod path;
mod splice;
mod strings;
mod tokens;

pub(crate) use byte_runs::BracketStack;
pub use children::{children, elements, map_members, members, whole_object};
pub use code_points::CodePoints;
pub use compact::compact;
pub use cursor::{Cursor, JsonKind};
pub use location::{JsonLocation, LocationStep};
pub use member::{first_member, member, string};
pub use number::Number;
pub use object::{JsonObject, array, quoted};
pub use splice::{JsonEdits, place_of};
pub use strings::{JsonStr, write_exact, write_str};
pub use tokens::{JsonToken, tokens};

/// Where text stops being JSON, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct JsonFault {
    /// Offset of the first byte that does not fit.
    pub at: usize,
    /// What was expected or found there.
    pub what: &'static str,
}

/// The value of [`JsonFault::what`] when a complete value is followed by more.
const TRAILING: &str = "bytes after the value";

impl JsonFault {
    /// Whether the text is valid up to the fault, where another value may begin.
    pub fn is_trailing(&self) -> bool {
        self.what == TRAILING
    }
}

/// Checks that `text` is exactly one JSON value, with optional white space around it, and returns it
/// trimmed.
pub fn check(text: &[u8]) -> Result<&[u8], JsonFault> {
    let mut cursor = Cursor::new(text)?;
    let value = cursor.value()?;
    cursor.expect_end()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn accepts(text: &str) {
        assert_eq!(check(text.as_bytes()), Ok(text.trim().as_bytes()), "{text}");
    }

    #[track_caller]
    fn rejects(text: &[u8], what: &str, at: usize) {
        let fault = check(text).unwrap_err();
        assert_eq!((fault.what, fault.at), (what, at), "{}", String::from_utf8_lossy(text));
    }

    #[test]
    fn every_legal_oddity_is_accepted() {
        for text in [
            "0",
            "-0",
            "1e309",
            "-1.5E+7",
            "18446744073709551616",
            "12345678901234567890123",
            r#""""#,
            r#""\ud800""#,
            r#""\u0000\/\b\f\n\r\t\"\\""#,
            "\"é\u{2028}😀\"",
            "[]",
            "{}",
            " [ ] ",
            "[1,[2,[3,{}]]]",
            r#"{"a":1,"a":2}"#,
            "true",
            "false",
            "null",
            " \t\r\n7\r\n",
        ] {
            accepts(text);
        }
    }

    #[test]
    fn faults_name_the_place() {
        rejects(b"", "the text ends too early", 0);
        rejects(b"{\"a\":1", "the text ends too early", 6);
        rejects(b"01", "bytes after the value", 1);
        rejects(b"1.", "the text ends too early", 2);
        rejects(b"+1", "no JSON value", 0);
        rejects(b"nul", "no JSON value", 0);
        rejects(b"{} {}", "bytes after the value", 3);
        rejects(b"[1,]", "no JSON value", 3);
        rejects(b"{\"a\":1,}", "no key", 7);
        rejects(b"{1:2}", "no key", 1);
        rejects(b"\"a\x01\"", "a raw control character in a string", 2);
        rejects(b"\"\\x\"", "an unknown escape", 2);
        rejects(b"\"\\u12g4\"", "an unknown escape", 5);
        rejects(b"[1}", "a bracket that does not match", 2);
        rejects(b"\"\xff\"", "not UTF-8", 1);
        rejects(b"\xef\xbb\xbf{}", "a byte order mark", 0);
        rejects(b"{}\0", "bytes after the value", 2);
    }

    #[test]
    fn a_million_levels_need_no_stack() {
        let mut deep = vec![b'['; 1_000_000];
        deep.extend(std::iter::repeat_n(b']', 1_000_000));
        assert!(check(&deep).is_ok());
        deep.pop();
        assert!(check(&deep).is_err());
    }
}
