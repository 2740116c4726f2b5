//! The placeholders that replace secrets, and the key they are made with.
//!
//! A placeholder is `[REDACTED:<kind>:<12 hex digits>]`. The digits are a keyed hash of the masked
//! text, so equal secrets look equal and replay can match a live request that was masked with the
//! same key, but the tape alone does not reveal the secret. With the key, guesses can be tested, so
//! a short password is only safe when the key is not on the tape.

use std::fmt;
use std::ops::Range;

use tapegate_core::hex;

const OPEN: &str = "[REDACTED:";
const DIGITS: usize = 12;
/// The longest kind; a text with a longer one is not a placeholder.
const KIND_BYTES_MAX: usize = 40;
const DERIVE_CONTEXT: &str = "tapegate 2026-01 redaction key from a user's secret";

/// The key of placeholders, and whether it may be written on the tape.
#[derive(Clone, PartialEq, Eq)]
pub struct RedactionKey {
    bytes: [u8; 32],
    on_tape: bool,
}

impl RedactionKey {
    /// A key made for one tape and stored in its header, so that any user can replay it.
    pub fn for_tape(bytes: [u8; 32]) -> Self {
        Self { bytes, on_tape: true }
    }

    /// A key derived from a user's own secret. Only its id goes on the tape.
    pub fn from_secret(secret: &[u8]) -> Self {
        Self { bytes: blake3::derive_key(DERIVE_CONTEXT, secret), on_tape: false }
    }

    /// An id for the key that reveals nothing about it.
    pub fn id(&self) -> String {
        hex::encode(&self.hash(b"key id").as_bytes()[..8])
    }

    /// The key in hex, if it may be stored on the tape.
    pub(super) fn hex_if_public(&self) -> Option<String> {
        self.on_tape.then(|| hex::encode(&self.bytes))
    }

    /// Parses what [`RedactionKey::hex_if_public`] wrote.
    pub(super) fn read(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(Self::for_tape(bytes))
    }

    pub(super) fn hasher(&self) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.bytes)
    }

    fn hash(&self, bytes: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.bytes, bytes)
    }

    /// The placeholder for a piece of text.
    pub(super) fn placeholder(&self, kind: &str, secret: &str) -> String {
        placeholder(kind, &self.hash(secret.as_bytes()))
    }

    /// The placeholder for a frame of which only the length may be shown.
    pub(super) fn withheld_placeholder(&self, bytes: &[u8]) -> String {
        placeholder(&format!("withheld-{}-bytes", bytes.len()), &self.hash(bytes))
    }
}

impl fmt::Debug for RedactionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key({})", self.id())
    }
}

/// The placeholder for something with this hash.
pub(super) fn placeholder(kind: &str, hash: &blake3::Hash) -> String {
    format!("{OPEN}{kind}:{}]", hex::encode(&hash.as_bytes()[..DIGITS / 2]))
}

/// The number of placeholders in a text.
pub(super) fn count(text: &[u8]) -> usize {
    memchr::memmem::find_iter(text, OPEN).count()
}

/// Whether `text` is one placeholder and nothing else.
pub(super) fn is_placeholder(text: &str) -> bool {
    length(text) == Some(text.len())
}

/// Whether `json` is a string that is one placeholder and nothing else.
pub(super) fn is_json_placeholder(json: &[u8]) -> bool {
    let text = std::str::from_utf8(json).unwrap_or_default();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.is_some_and(is_placeholder)
}

/// The parts of `text` that are not placeholders.
pub(super) fn unmasked_ranges(text: &str) -> Vec<Range<usize>> {
    let mut gaps = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(found) = text[at..].find(OPEN) {
        at += found;
        match length(&text[at..]) {
            Some(length) => {
                gaps.push(start..at);
                at += length;
                start = at;
            }
            None => at += OPEN.len(),
        }
    }
    gaps.push(start..text.len());
    gaps.retain(|gap| !gap.is_empty());
    gaps
}

/// The length of the placeholder that `text` starts with.
fn length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(OPEN)?.as_bytes();
    let letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let kind = rest.iter().take(KIND_BYTES_MAX).take_while(|byte| letter(byte)).count();
    let digits = rest.get(kind + 1..kind + 1 + DIGITS)?;
    let hexadecimal = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let whole = kind > 0
        && rest[kind] == b':'
        && digits.iter().all(hexadecimal)
        && rest.get(kind + 1 + DIGITS) == Some(&b']');
    whole.then_some(OPEN.len() + kind + DIGITS + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_tells_its_kind_and_depends_on_key_and_secret() {
        let key = RedactionKey::for_tape([7; 32]);
        let one = key.placeholder("github", "a");
        assert!(one.starts_with("[REDACTED:github:") && one.len() == 30, "{one}");
        assert_eq!(one, key.placeholder("github", "a"));
        assert_ne!(one, key.placeholder("github", "b"));
        assert_ne!(one, RedactionKey::for_tape([8; 32]).placeholder("github", "a"));
        assert!(is_placeholder(&one) && is_json_placeholder(&tapegate_core::json::quoted(&one)));
    }

    #[test]
    fn only_whole_placeholders_are_recognised() {
        let one = "[REDACTED:path:0123456789ab]";
        assert!(is_placeholder(one));
        for text in [
            "[REDACTED:path:0123456789aB]",
            "[REDACTED:path:0123456789a]",
            "[REDACTED::0123456789ab]",
            "[REDACTED:path:0123456789ab",
            "[REDACTED:a b:0123456789ab]",
            "[REDACTED:",
        ] {
            assert!(!is_placeholder(text), "{text}");
            assert_eq!(
                unmasked_ranges(text).as_slice(),
                std::slice::from_ref(&(0..text.len())),
                "{text}"
            );
        }
        assert_eq!(unmasked_ranges(&format!("a{one}{one}b")), [0..1, 57..58]);
        assert!(unmasked_ranges(one).is_empty());
    }

    #[test]
    fn a_written_key_reads_back_and_a_secret_one_is_not_written() {
        let key = RedactionKey::for_tape([0xa5; 32]);
        assert_eq!(RedactionKey::read(&key.hex_if_public().unwrap()), Some(key));
        let own = RedactionKey::from_secret(b"correct horse");
        assert_eq!(own.hex_if_public(), None);
        assert_eq!(own.id(), RedactionKey::from_secret(b"correct horse").id());
        assert_ne!(own.id(), RedactionKey::from_secret(b"other").id());
    }
}
