//! What a text may be read as by whoever opens files by it.

use unicode_normalization::UnicodeNormalization;

/// How often escapes are decoded: what is encoded twice is decoded by two readers in a row.
const ROUNDS: usize = 3;

/// A text in lower case as it is written, and as a reader of URLs, of escapes, of Windows paths and a
/// shell may read it.
pub(super) fn readings(text: &str) -> Vec<String> {
    // Letters of another width or shape are the plain ones to some readers.
    let plain: String = text.nfkc().filter(|letter| !is_ignored(*letter)).collect();
    let mut all = vec![plain.to_lowercase()];
    let mut add = |reading: String| {
        if !all.contains(&reading) {
            all.push(reading);
        }
    };
    if plain.contains('%') {
        let mut decoded = plain.clone();
        for _ in 0..ROUNDS {
            decoded = percent_decoded(&decoded);
        }
        add(decoded.to_lowercase());
    }
    if plain.contains('\\') {
        add(unescaped(&plain).to_lowercase());
        add(plain.replace('\\', "/").to_lowercase());
    }
    if plain.contains(['\'', '"', '\\']) {
        let joined: String = plain.chars().filter(|l| !matches!(l, '\'' | '"' | '\\')).collect();
        add(joined.to_lowercase());
    }
    all
}

/// Characters that some file systems ignore in names.
fn is_ignored(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A text with `\uXXXX` and `\xXX` decoded, as JSON in a string and as shells write them.
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
