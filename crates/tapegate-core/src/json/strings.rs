//! JSON strings: compared and decoded while keeping the bytes they were written with.

use std::borrow::Cow;

use super::Cursor;
use super::byte_runs::is_plain;

/// A string as written in the text, without its quotes.
///
/// `escaped` is true if it contains an escape; only then does comparing or decoding cost more than
/// comparing bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonStr<'a> {
    /// The bytes between the quotes; valid UTF-8 and a legal JSON string body.
    pub raw: &'a [u8],
    /// Whether `raw` contains a backslash.
    pub escaped: bool,
}

impl<'a> JsonStr<'a> {
    /// The string that `text` starts with; `None` for any other value.
    pub fn read(text: &'a [u8]) -> Option<Self> {
        Cursor::new(text).ok()?.string().ok()
    }

    /// Whether the decoded string is `text`: `"\u006dethod"` is `method`.
    pub fn is(&self, text: &str) -> bool {
        if self.escaped { self.decode() == text } else { self.raw == text.as_bytes() }
    }

    /// The bytes of the decoded string; borrowed if nothing is escaped.
    #[inline]
    pub fn bytes(&self) -> Cow<'a, [u8]> {
        if self.escaped {
            Cow::Owned(self.decode().into_owned().into_bytes())
        } else {
            Cow::Borrowed(self.raw)
        }
    }

    /// The decoded string. A lone surrogate cannot be decoded and stays the six characters it was
    /// written with, so that different strings never become equal by replacement.
    pub fn decode(&self) -> Cow<'a, str> {
        let raw = self.text();
        if !self.escaped {
            return Cow::Borrowed(raw);
        }
        let mut out = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            rest = unescape(&rest[at..], &mut out);
        }
        out.push_str(rest);
        Cow::Owned(out)
    }

    /// Appends the decoded string as bytes that are unique to its value: a lone surrogate is
    /// written as if it were a character (WTF-8), which is never valid UTF-8.
    pub fn write_value_bytes(&self, out: &mut Vec<u8>) {
        let mut rest = self.text();
        let mut one = String::new();
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            one.clear();
            let escape = &rest[at..];
            rest = unescape(escape, &mut one);
            match (one.len(), unit(escape)) {
                // Only a lone surrogate is left as it was written.
                (6, Some(lone)) => {
                    let bits = [lone >> 6, lone].map(|bits| 0x80 | (bits & 0x3f) as u8);
                    out.extend_from_slice(&[0xed, bits[0], bits[1]]);
                }
                _ => out.extend_from_slice(one.as_bytes()),
            }
        }
        out.extend_from_slice(rest.as_bytes());
    }

    /// The string as written, with its escapes.
    pub fn text(&self) -> &'a str {
        std::str::from_utf8(self.raw).unwrap_or_default()
    }
}

/// Decodes the escape that `text` starts with into `out` and returns the rest.
fn unescape<'a>(text: &'a str, out: &mut String) -> &'a str {
    let simple = match text.as_bytes().get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unescape_unit(text, out),
        Some(&other) => char::from(other),
        None => return "",
    };
    out.push(simple);
    text.get(2..).unwrap_or_default()
}

fn unescape_unit<'a>(text: &'a str, out: &mut String) -> &'a str {
    let high = unit(text);
    let pair = match high {
        Some(0xd800..=0xdbff) => text.get(6..).and_then(unit),
        _ => None,
    };
    let units = [high.unwrap_or(0xd800), pair.unwrap_or(0)];
    let wide = pair.is_some_and(|low| (0xdc00..=0xdfff).contains(&low));
    let taken = if wide { &units[..] } else { &units[..1] };
    let length = 6 * taken.len();
    match char::decode_utf16(taken.iter().copied()).next() {
        Some(Ok(decoded)) => out.push(decoded),
        _ => out.push_str(text.get(..length).unwrap_or(text)),
    }
    text.get(length..).unwrap_or_default()
}

/// The code unit of the `\uXXXX` that `text` starts with.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

/// Appends `text` as a JSON string with quotes, escaping only what must be escaped.
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    // Nearly every text is plain, and is only tested word by word.
    if !is_plain(text.as_bytes()) {
        return write_exact(out, text.as_bytes());
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Appends bytes from [`JsonStr::write_value_bytes`] as a JSON string with quotes.
pub fn write_exact(out: &mut Vec<u8>, exact: &[u8]) {
    out.push(b'"');
    let mut start = 0;
    for (at, &byte) in exact.iter().enumerate() {
        let (short, taken) = match byte {
            b'"' => (Some(b'"'), 1),
            b'\\' => (Some(b'\\'), 1),
            b'\n' => (Some(b'n'), 1),
            b'\r' => (Some(b'r'), 1),
            b'\t' => (Some(b't'), 1),
            0x08 => (Some(b'b'), 1),
            0x0c => (Some(b'f'), 1),
            0x00..0x20 => (None, 1),
            0xed if exact.get(at + 1).is_some_and(|next| *next >= 0xa0) => (None, 3),
            _ => continue,
        };
        out.extend_from_slice(&exact[start..at]);
        start = (at + taken).min(exact.len());
        let unit = match exact.get(at + 1..at + taken) {
            Some([high, low]) => 0xd000 | u16::from(high & 0x3f) << 6 | u16::from(low & 0x3f),
            _ => u16::from(byte),
        };
        match short {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => out.extend_from_slice(format!("\\u{unit:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&exact[start..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(raw: &str) -> JsonStr<'_> {
        JsonStr { raw: raw.as_bytes(), escaped: raw.contains('\\') }
    }

    #[test]
    fn escapes_do_not_hide_a_word() {
        assert!(string("method").is("method"));
        assert!(string(r"\u006dethod").is("method"));
        assert!(string(r"tools\/call").is("tools/call"));
        assert!(!string(r"\u006dethods").is("method"));
    }

    #[test]
    fn pairs_decode_and_lone_surrogates_stay_as_written() {
        assert_eq!(string(r"a\ud83d\ude00b").decode(), "a😀b");
        assert_eq!(string(r"\ud800x").decode(), r"\ud800x");
        assert_eq!(string(r"\ud800\u0041").decode(), r"\ud800A");
        assert_eq!(string(r"\udc00").decode(), r"\udc00");
        assert_eq!(string(r#"\"\\\b\f\n\r\t"#).decode(), "\"\\\u{8}\u{c}\n\r\t");
    }

    #[test]
    fn exact_meanings_are_told_apart_and_written_back() {
        let exact = |raw: &str| {
            let mut out = Vec::new();
            string(raw).write_value_bytes(&mut out);
            out
        };
        assert_eq!(exact(r"a\ud83d\ude00\/b\n"), "a😀/b\n".as_bytes());
        assert_eq!(exact(r"\uD800"), exact(r"\ud800"));
        let all =
            [r"\ud800", r"\\ud800", r"\udfff", r"\ud800\u0041", r"\udc00\ud800", "\u{d7ff}", "x"];
        for (index, one) in all.iter().enumerate() {
            let mut written = Vec::new();
            write_exact(&mut written, &exact(one));
            let written = std::str::from_utf8(&written[1..written.len() - 1]).unwrap();
            assert_eq!(exact(written), exact(one), "{one} {written}");
            assert!(all[index + 1..].iter().all(|other| exact(one) != exact(other)), "{one}");
        }
    }

    #[test]
    fn a_text_is_written_the_same_whether_or_not_it_looks_plain() {
        for length in 0..40 {
            for odd in [b'a', b'"', b'\\', 7, 0, 0x7f] {
                for at in 0..length.max(1) {
                    let mut text = vec![b'a'; length];
                    text.get_mut(at).into_iter().for_each(|byte| *byte = odd);
                    let (mut one, mut two) = (Vec::new(), Vec::new());
                    write_str(&mut one, std::str::from_utf8(&text).unwrap());
                    write_exact(&mut two, &text);
                    assert_eq!(one, two, "{length} {at} {odd}");
                }
            }
        }
    }

    #[test]
    fn written_strings_read_back() {
        let text = "q\"b\\n\n\r\t\u{8}\u{c}\u{1}\u{1f}é😀\u{2028}";
        let mut out = Vec::new();
        write_str(&mut out, text);
        let inner = std::str::from_utf8(&out[1..out.len() - 1]).unwrap();
        assert_eq!(string(inner).decode(), text);
    }
}
