//! Encodes texts as values of headers that mirror a message.

use tapegate_core::tape::{base64_decode, base64_encode};

const HEAD: &str = "=?base64?";
const TAIL: &str = "?=";

/// Encodes a text as a header value: unchanged, or in base64 if it is not plain ASCII text.
pub(super) fn write(text: &str) -> String {
    let plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let looks_coded = text.starts_with(HEAD) && text.ends_with(TAIL);
    if plain && !looks_coded && !text.is_empty() && text.trim() == text {
        return text.to_owned();
    }
    format!("{HEAD}{}{TAIL}", base64_encode(text.as_bytes()))
}

/// Decodes a header value; `None` if it is not valid base64.
pub(super) fn read(value: &str) -> Option<String> {
    match value.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(TAIL)) {
        Some(packed) => base64_decode(packed).and_then(|bytes| String::from_utf8(bytes).ok()),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_no_plain_text_are_coded_and_can_be_read() {
        for (text, value) in [
            ("plain text", "plain text"),
            ("", "=?base64??="),
            (" x", "=?base64?IHg=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(write(text), value);
            assert_eq!(read(value).as_deref(), Some(text));
        }
        for (value, text) in [
            ("=?base64?IHg?=", None),
            ("=?base64?I*g=?=", None),
            ("=?base64?//4A?=", None),
            ("=?base64?IHg=", Some("=?base64?IHg=")),
        ] {
            assert_eq!(read(value).as_deref(), text);
        }
    }
}
