//! Compact ids that can be used as map keys.

use std::hash::{Hash, Hasher};

use crate::json::{Cursor, JsonKind, quoted};

/// An id as a map key: strings by value, everything else by spelling.
///
/// A server may spell a string id differently than the request did (`"é"` and `"\u00e9"`); a number
/// keeps its text, so `1`, `1.0` and `"1"` are three ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdKey(PackedId);

/// Up to 24 bytes as integers, which compare faster than text. Words overlap instead of being
/// padded, so that they can be read directly from the text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PackedId {
    Words(u8, [u64; 3]),
    Heap(Box<[u8]>),
}

/// Up to 22 bytes without an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SmallId {
    Inline(u8, [u8; 22]),
    Heap(Box<[u8]>),
}

/// The next id of ours that is not in use, as raw text; `made` counts them.
pub(crate) fn new_own_id(made: &mut u64, is_in_use: impl Fn(&IdKey) -> bool) -> Vec<u8> {
    loop {
        *made += 1;
        let id = quoted(&format!("tapegate-{made}"));
        if !is_in_use(&IdKey::new(&id)) {
            return id;
        }
    }
}

impl IdKey {
    /// The key of a raw id text.
    pub fn new(raw: &[u8]) -> Self {
        // Two spellings of one string id have one key: a server may escape it differently.
        if is_escaped(raw) {
            let decoded = Cursor::new(raw).and_then(|mut cursor| match cursor.kind()? {
                JsonKind::String => Ok(format!("\"{}\"", cursor.string()?.decode())),
                _ => Ok(String::from_utf8_lossy(raw).into_owned()),
            });
            if let Ok(decoded) = decoded {
                return Self(PackedId::new(decoded.as_bytes()));
            }
        }
        Self(PackedId::new(raw))
    }

    /// Whether the key preserves this spelling of the id.
    pub(super) fn has_spelling(&self, raw: &[u8]) -> bool {
        !is_escaped(raw) && self.len() == raw.len()
    }

    /// The length of the text in the key.
    pub(super) fn len(&self) -> usize {
        match &self.0 {
            PackedId::Words(len, _) => usize::from(*len),
            PackedId::Heap(bytes) => bytes.len(),
        }
    }

    /// The text in the key.
    pub(super) fn spelling(&self) -> Vec<u8> {
        match &self.0 {
            PackedId::Words(len, words) => unpack(usize::from(*len), words),
            PackedId::Heap(bytes) => bytes.to_vec(),
        }
    }
}

/// Whether a raw id is a string that contains an escape.
fn is_escaped(raw: &[u8]) -> bool {
    raw.starts_with(b"\"") && raw.contains(&b'\\')
}

impl PackedId {
    #[inline]
    fn new(bytes: &[u8]) -> Self {
        let word = |word: &[u8; 8]| u64::from_le_bytes(*word);
        let len = bytes.len();
        let words = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) if len <= 16 => [word(first), word(last), 0],
            (Some(first), Some(last)) if len <= 24 => {
                let middle = bytes[8..].first_chunk().map_or(0, word);
                [word(first), word(last), middle]
            }
            (Some(_), _) => return Self::Heap(bytes.into()),
            _ => [bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)), 0, 0],
        };
        Self::Words(len as u8, words)
    }
}

/// The text that was packed into words.
fn unpack(len: usize, [first, last, middle]: &[u64; 3]) -> Vec<u8> {
    if len < 8 {
        return first.to_be_bytes()[8 - len..].to_vec();
    }
    let mut text = [first.to_le_bytes(), middle.to_le_bytes(), [0; 8]].concat();
    text.truncate(len);
    // The last word overlaps the word before it.
    text[len - 8..].copy_from_slice(&last.to_le_bytes());
    text
}

impl Hash for PackedId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Words(len, [first, last, middle]) => {
                // The rotation mixes the length in without hashing a further word.
                state.write_u64(first.rotate_left(u32::from(*len)));
                state.write_u64(*last);
                state.write_u64(*middle);
            }
            Self::Heap(bytes) => state.write(bytes),
        }
    }
}

impl SmallId {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(len, bytes) => &bytes[..usize::from(*len)],
            Self::Heap(bytes) => bytes,
        }
    }

    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut inline = [0; 22];
        match inline.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Self::Inline(bytes.len() as u8, inline)
            }
            None => Self::Heap(bytes.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_every_length_are_told_apart_by_every_byte() {
        let text: Vec<u8> = (b'a'..=b'z').cycle().take(40).collect();
        let mut keys = std::collections::HashSet::new();
        for len in 0..text.len() {
            assert!(keys.insert(IdKey::new(&text[..len])), "{len}");
            assert!(keys.contains(&IdKey::new(&text.clone()[..len])), "{len}");
            assert_eq!(IdKey::new(&text[..len]).spelling(), &text[..len]);
            for at in 0..len {
                let mut other = text[..len].to_vec();
                other[at] = b'-';
                assert!(keys.insert(IdKey::new(&other)), "{len} {at}");
            }
        }
    }
}
