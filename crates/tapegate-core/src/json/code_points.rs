//! The decoded code points of a JSON string.

use super::JsonStr;

/// The code points of a string. A lone surrogate, which is not a code point, is represented by its
/// own number, so that two strings are equal exactly if these sequences are.
#[derive(Debug, Clone)]
pub struct CodePoints<'a> {
    rest: &'a str,
}

impl<'a> JsonStr<'a> {
    /// The decoded code points of the string.
    pub fn scalars(&self) -> CodePoints<'a> {
        CodePoints { rest: self.text() }
    }

    /// Whether two strings are equal after decoding.
    pub fn has_same_value(&self, other: &JsonStr<'_>) -> bool {
        self.compare_value(other).is_eq()
    }

    /// Compares strings by their decoded values.
    pub fn compare_value(&self, other: &JsonStr<'_>) -> std::cmp::Ordering {
        match self.escaped || other.escaped {
            true => self.scalars().cmp(other.scalars()),
            // The byte order of UTF-8 is the order of code points.
            false => self.raw.cmp(other.raw),
        }
    }
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let letter = self.rest.chars().next()?;
        let (code, length) = match letter {
            '\\' => escape(self.rest),
            letter => (u32::from(letter), letter.len_utf8()),
        };
        self.rest = self.rest.get(length..).unwrap_or_default();
        Some(code)
    }
}

/// The value and the length of the escape that `text` starts with.
fn escape(text: &str) -> (u32, usize) {
    let simple = match text.as_bytes().get(1) {
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => 0x0a,
        Some(b'r') => 0x0d,
        Some(b't') => 0x09,
        Some(b'u') => return units(text),
        Some(&other) => other,
        None => b'\\',
    };
    (u32::from(simple), 2)
}

fn units(text: &str) -> (u32, usize) {
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let high = unit(0).unwrap_or(0xfffd);
    match unit(6).filter(|low| (0xdc00..0xe000).contains(low)) {
        Some(low) if (0xd800..0xdc00).contains(&high) => {
            (0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
        }
        _ => (high, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(raw: &str) -> JsonStr<'_> {
        JsonStr { raw: raw.as_bytes(), escaped: raw.contains('\\') }
    }

    #[test]
    fn escapes_mean_what_they_stand_for() {
        let codes = |raw| string(raw).scalars().collect::<Vec<u32>>();
        assert_eq!(codes(r#"a\n\"\\\/é"#), [0x61, 0x0a, 0x22, 0x5c, 0x2f, 0xe9]);
        assert_eq!(codes(r"\u00e9😀\ud83d\ude00"), [0xe9, 0x1_f600, 0x1_f600]);
        assert_eq!(codes(r"\ud83dx\udc00"), [0xd83d, 0x78, 0xdc00]);
        assert_eq!(codes(r"\ud83d\ud83d\ude00"), [0xd83d, 0x1_f600]);
    }

    #[test]
    fn a_lone_surrogate_is_not_the_text_it_is_written_with() {
        assert!(string(r"\u006dethod").has_same_value(&string("method")));
        assert!(string(r"\uD800").has_same_value(&string(r"\ud800")));
        assert!(!string(r"\ud800").has_same_value(&string(r"\\ud800")));
        assert!(string("é").compare_value(&string(r"\ud800")).is_lt());
        assert!(string("\u{e000}").compare_value(&string(r"\udfff")).is_gt());
    }
}
