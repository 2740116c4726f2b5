//! Masking secrets in plain text.

use std::borrow::Cow;

use super::pattern_search::{SecretHit, SecretPatterns};
use super::placeholder::RedactionKey;

/// How many layers of escapes are searched.
const LAYERS_MAX: usize = 4;

/// `text` with every secret replaced, or `None` if there is none.
///
/// Masking repeats until nothing more is found, so it is idempotent. A secret that only shows after
/// unescaping (such as JSON inside a string) cannot be cut out of the text, so then the whole text
/// is replaced.
pub(super) fn mask(patterns: &SecretPatterns, key: &RedactionKey, text: &str) -> Option<String> {
    let mut masked = Cow::Borrowed(text);
    loop {
        let hits = patterns.hits(&masked);
        if hits.is_empty() {
            break;
        }
        masked = Cow::Owned(replace(key, &masked, &hits));
    }
    if let Some(name) = find_hidden_secret(patterns, masked.as_bytes()) {
        return Some(key.placeholder(name, &masked));
    }
    match masked {
        Cow::Owned(masked) => Some(masked),
        Cow::Borrowed(_) => None,
    }
}

/// `text` with `hits` replaced by placeholders.
pub(super) fn replace(key: &RedactionKey, text: &str, hits: &[SecretHit]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for hit in hits {
        out.push_str(&text[at..hit.span.start]);
        out.push_str(&key.placeholder(hit.name, &text[hit.span.clone()]));
        at = hit.span.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The kind of a secret that `text` contains in escaped form, or with NUL bytes in between as in
/// UTF-16.
pub(super) fn find_hidden_secret(patterns: &SecretPatterns, text: &[u8]) -> Option<&'static str> {
    let nul = memchr::memchr(0, text).is_some();
    if !nul && memchr::memchr(b'\\', text).is_none() {
        return None;
    }
    // UTF-16 text of ASCII secrets has a NUL at every other byte.
    let mut shown: Vec<u8> = text.iter().copied().filter(|&byte| byte != 0).collect();
    for _ in 0..LAYERS_MAX {
        let next = unescape(&shown);
        let done = next == shown;
        if done && !nul {
            return None;
        }
        shown = next;
        if let Some(hit) = patterns.hits(&String::from_utf8_lossy(&shown)).first() {
            return Some(hit.name);
        }
        if done {
            return None;
        }
    }
    None
}

/// `text` without one layer of JSON escapes. Invalid escapes stay, since the text may be anything.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (shown, length) = match rest.get(at + 1) {
            // All of them end a token, so one white space character stands for each.
            Some(b'n' | b'r' | b't' | b'b' | b'f') => (Some('\n'), 2),
            Some(&plain @ (b'"' | b'\\' | b'/')) => (Some(char::from(plain)), 2),
            Some(b'u') => (unit(&rest[at + 2..]), 6),
            _ => (None, 1),
        };
        match shown {
            Some(shown) => out.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes()),
            None => out.push(b'\\'),
        }
        rest = &rest[at + if shown.is_some() { length } else { 1 }..];
    }
    out.extend_from_slice(rest);
    out
}

/// The character for four hex digits; secrets are ASCII, so surrogate pairs need no handling.
fn unit(text: &[u8]) -> Option<char> {
    let digits = std::str::from_utf8(text.get(..4)?).ok()?;
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3";

    fn masked(text: &str) -> Option<String> {
        let (patterns, key) = (SecretPatterns::all(), RedactionKey::for_tape([3; 32]));
        let once = mask(&patterns, &key, text)?;
        assert_eq!(mask(&patterns, &key, &once), None, "{once}");
        Some(once)
    }

    #[test]
    fn only_the_secret_goes() {
        let place = RedactionKey::for_tape([3; 32]).placeholder("github", SECRET);
        assert_eq!(masked(&format!("é {SECRET}, {SECRET}!")), Some(format!("é {place}, {place}!")));
        assert_eq!(masked("nothing here"), None);
    }

    #[test]
    fn escapes_inside_the_text_do_not_hide_a_secret() {
        for layers in 1..=LAYERS_MAX {
            let slashes = "\\".repeat(1 << (layers - 1));
            let text = format!("{{\"a\":\"{slashes}u0067{}\"}}", &SECRET[1..]);
            let whole = masked(&text).unwrap();
            assert!(whole.starts_with("[REDACTED:github:") && whole.len() == 30, "{text} {whole}");
        }
    }

    #[test]
    fn wide_text_does_not_hide_a_secret() {
        let wide: Vec<u8> = SECRET.bytes().flat_map(|byte| [byte, 0]).collect();
        assert_eq!(find_hidden_secret(&SecretPatterns::all(), &wide), Some("github"));
        assert_eq!(find_hidden_secret(&SecretPatterns::all(), b"a\0b\\u00zz\\"), None);
    }

    #[test]
    fn a_path_on_windows_is_left_alone() {
        assert_eq!(masked(r"C:\users\name\new\u12"), None);
    }
}
