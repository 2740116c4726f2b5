//! The readings of a text by code that opens files.

use std::borrow::Cow;

use tapegate_core::lenient::spelling::percent_decode;
use unicode_normalization::UnicodeNormalization;

/// How often escapes are decoded: two readers in a row decode a text that is encoded twice.
const ROUNDS: usize = 3;

/// What `look` finds in a text in lower case, as written or as a parser of URLs, escapes or Windows
/// paths or a shell may read it. Readings that `may_count` rules out are skipped, since a text may
/// be megabytes.
pub(super) fn any_reading<T>(
    text: &str,
    may_count: &dyn Fn(&str) -> bool,
    look: &mut dyn FnMut(&str) -> Option<T>,
) -> Option<T> {
    let mut look_at =
        |reading: &str| if may_count(reading) { look(&reading.to_lowercase()) } else { None };
    // Some readers take full-width and other variants of letters for the plain ones.
    let plain = match text.is_ascii() {
        true => Cow::Borrowed(text),
        false => text.nfkc().filter(|letter| !is_ignored(*letter)).collect(),
    };
    let decoded = decoded(&plain);
    // Backslashes are escapes in JSON and shells and separators on Windows; shells also drop
    // quotes.
    for reading in [Some(&*plain), decoded.as_deref()].into_iter().flatten() {
        let found = look_at(reading).or_else(|| {
            let escaped = reading.contains('\\');
            let mut all = [
                escaped.then(|| unescaped(reading)),
                escaped.then(|| reading.replace('\\', "/")),
                reading.contains(['\'', '"', '\\']).then(|| reading.replace(['\'', '"', '\\'], "")),
            ]
            .into_iter()
            .flatten();
            all.find_map(|reading| look_at(&reading))
        });
        if found.is_some() {
            return found;
        }
    }
    None
}

/// A text with every percent escape decoded; `None` if it has none.
fn decoded(text: &str) -> Option<String> {
    let mut decoded = percent_decode(text)?;
    for _ in 1..ROUNDS {
        let Some(next) = percent_decode(&decoded) else { break };
        decoded = next;
    }
    Some(decoded)
}

/// Characters that some file systems ignore in names.
fn is_ignored(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A text with `\uXXXX` and `\xXX` decoded, as in JSON inside a string and in shells.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let digits = match escape.as_bytes().first() {
            Some(b'u') => 4,
            Some(b'x') => 2,
            _ => 0,
        };
        let code = (digits > 0).then(|| escape.get(1..1 + digits)).flatten();
        let code = code.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match code.and_then(char::from_u32) {
            Some(letter) => {
                out.push(letter);
                rest = &escape[1 + digits..];
            }
            None => {
                out.push('\\');
                rest = escape;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readings_that_may_count_are_looked_at() {
        let mut looked = Vec::new();
        let text = "A%41 \\x42 'c'";
        any_reading(text, &|text| text.contains("AA"), &mut |reading| {
            looked.push(reading.to_owned());
            None::<()>
        });
        assert_eq!(looked, [r"aa \x42 'c'", "aa b 'c'", "aa /x42 'c'", "aa x42 c"]);
        any_reading(text, &|_| false, &mut |reading| -> Option<()> { panic!("{reading}") });
    }
}
