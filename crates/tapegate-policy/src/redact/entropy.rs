//! Random-looking text, for secrets of unknown format.
//!
//! This is a heuristic and therefore opt-in: hashes and file names can look random too.

use std::ops::Range;

const TOKEN_BYTES_MIN: usize = 20;
/// Longer runs are images and archives, not keys.
const TOKEN_BYTES_MAX: usize = 256;
const HEX_BYTES_MIN: usize = 32;
const HEX_BITS_MIN: f64 = 3.0;
const MIXED_BITS_MIN: f64 = 4.0;

/// The parts of `text` that look random.
pub(super) fn random_parts(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| in_token(**byte)).count();
        if is_random(&bytes[at..at + length]) {
            found.push(at..at + length);
        }
        at += length + 1;
    }
    found
}

fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-')
}

fn is_random(token: &[u8]) -> bool {
    if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
        return false;
    }
    let has = |class: fn(&u8) -> bool| token.iter().any(class);
    let digit = has(u8::is_ascii_digit);
    if token.iter().all(u8::is_ascii_hexdigit) {
        let letter = has(u8::is_ascii_alphabetic);
        return digit && letter && token.len() >= HEX_BYTES_MIN && bits(token) >= HEX_BITS_MIN;
    }
    let mixed = digit && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    mixed && bits(token) >= MIXED_BITS_MIN
}

/// Shannon entropy in bits per byte.
fn bits(token: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for &byte in token {
        counts[usize::from(byte)] += 1;
    }
    let total = token.len() as f64;
    let share = |count: &u32| f64::from(*count) / total;
    counts.iter().filter(|count| **count > 0).map(share).map(|p| -p * p.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_text_is_told_from_words() {
        for text in ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzKEY1", "9f86d081884c7d659a2feaa0c55ad015"] {
            let line = format!("key {text}.");
            let found: Vec<_> = random_parts(&line).into_iter().map(|part| &line[part]).collect();
            assert_eq!(found, [text]);
        }
        for text in [
            "a-perfectly-ordinary-file-name-2024",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAa1",
            "2026-01-01T00:00:00.000000Z",
            "0123456789012345678901234567890123456789",
            &"aB3".repeat(100),
        ] {
            assert!(random_parts(text).is_empty(), "{text}");
        }
    }
}
