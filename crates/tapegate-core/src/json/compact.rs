//! Puts pretty-printed JSON on one line.

use std::borrow::Cow;

/// `text`, which must be valid JSON, without line breaks.
///
/// A tape line is one object, so a message that was printed over several lines loses its white
/// space outside strings; any other message is kept as it was written, white space included.
pub fn compact(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'\n', b'\r', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut string = false;
    let mut escape = false;
    for &byte in text {
        if string {
            string = escape || byte != b'"';
            escape = !escape && byte == b'\\';
        } else if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            continue;
        } else {
            string = byte == b'"';
        }
        out.push(byte);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_text_is_left_alone() {
        assert!(matches!(compact(b"{ \"a\" : 1 }"), Cow::Borrowed(_)));
    }

    #[test]
    fn only_space_outside_strings_goes() {
        let pretty = b"{\r\n  \"a b\": \" \\\" \\\\\",\n\t\"c\": [1, 2]\n}";
        assert_eq!(compact(pretty).as_ref(), br#"{"a b":" \" \\","c":[1,2]}"#);
    }
}
