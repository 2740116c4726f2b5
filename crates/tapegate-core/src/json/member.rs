//! Looks up one member of an object, for the few places that need more than an envelope.

use std::borrow::Cow;

use super::{Cursor, JsonKind, JsonStr, members};

/// The raw text of the member `name` of the object `text`; the last one if it is repeated.
pub fn member<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut found = None;
    for member in members(text) {
        // A text that is cut off counts as having no member at all.
        let (key, value) = member.ok()?;
        if key.is(name) {
            found = Some(value);
        }
    }
    found
}

/// The raw text of the first member `name` of the object `text`. The rest is not read.
pub fn first_member<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut cursor = Cursor::from_utf8(text);
    cursor.open().ok().filter(|kind| *kind == JsonKind::Object)?;
    while let Some(key) = cursor.next_key().ok()? {
        let value = cursor.value().ok()?;
        if key.is(name) {
            return Some(value);
        }
    }
    None
}

/// The decoded value of the JSON string `text`, or `None` if it is not a string.
pub fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    JsonStr::read(text).map(|string| string.decode())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_members_counts_however_it_is_written() {
        let text = br#" {"a":1, "b" : {"a":2} , "\u0061": "x\n" }"#;
        assert_eq!(member(text, "a"), Some(&br#""x\n""#[..]));
        assert_eq!(member(text, "b").and_then(|b| member(b, "a")), Some(&b"2"[..]));
        assert_eq!(member(text, "c"), None);
        assert_eq!(member(b"[1]", "a"), None);
        assert_eq!(string(br#""x\n""#).as_deref(), Some("x\n"));
        assert_eq!(string(b"1"), None);
    }

    #[test]
    fn the_first_of_several_members_is_found_without_looking_further() {
        assert_eq!(first_member(br#" {"b":{"a":0},"\u0061": 1 ,"a":2}"#, "a"), Some(&b"1"[..]));
        assert_eq!(first_member(br#"{"a":1,!"#, "a"), Some(&b"1"[..]));
        assert_eq!(first_member(br#"{"b":1}"#, "a"), None);
        assert_eq!(first_member(br#"["a",1]"#, "a"), None);
    }
}
