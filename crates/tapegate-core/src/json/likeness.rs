//! How similar two array elements are: enough to decide which of them correspond.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::diff::DEPTH_MAX;
use super::{Cursor, JsonFault, JsonKind, JsonStr, Number};
use crate::alignment::WEIGHT_MAX;

/// The members that identify an object; the first one present counts.
const LABELS: [&str; 4] = ["name", "uri", "uriTemplate", "id"];

/// The features an element is compared by. Elements that agree in all of them are almost certainly
/// equal.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementLikeness {
    kind: JsonKind,
    /// The hash of the whole value.
    whole: u64,
    /// The hash of the member that identifies it.
    label: Option<u64>,
}

impl ElementLikeness {
    /// Computes the features of an element, whose text must be valid.
    pub(super) fn of(text: &[u8]) -> Result<Self, JsonFault> {
        let mut cursor = Cursor::from_utf8(text);
        let kind = cursor.kind()?;
        let label = if kind == JsonKind::Object { label(text)? } else { None };
        let whole = hash(&mut cursor, DEPTH_MAX)?;
        Ok(Self { kind, whole, label })
    }

    /// The weight of a pair of elements in an alignment.
    pub(super) fn weight(&self, other: &Self) -> u32 {
        const LABEL: u32 = 1 << 10;
        match self {
            _ if self.kind != other.kind => 0,
            _ if self.whole == other.whole => WEIGHT_MAX,
            _ if self.label != other.label => 0,
            _ if self.label.is_some() => LABEL,
            _ => 1,
        }
    }
}

/// A hash of the value at the cursor that ignores key order and spelling.
fn hash(cursor: &mut Cursor<'_>, depth: usize) -> Result<u64, JsonFault> {
    let hasher = FixedState::default();
    let kind = cursor.kind()?;
    let inner = match kind {
        JsonKind::Object if depth > 0 => {
            cursor.open()?;
            let mut members = Vec::new();
            while let Some(key) = cursor.next_key()? {
                members.push((string(key), hash(cursor, depth - 1)?));
            }
            // Of members with the same key the last counts.
            members.reverse();
            members.sort_by_key(|(key, _)| *key);
            members.dedup_by_key(|(key, _)| *key);
            hasher.hash_one(members)
        }
        JsonKind::Array if depth > 0 => {
            cursor.open()?;
            let mut row = 0u64;
            while cursor.next_item()? {
                row = hasher.hash_one((row, hash(cursor, depth - 1)?));
            }
            row
        }
        JsonKind::String => string(cursor.string()?),
        JsonKind::Number => {
            let number = Number::read(cursor.value()?);
            let digits = number.digits().fold(0, |row: u64, digit| hasher.hash_one((row, digit)));
            hasher.hash_one((number.is_negative(), number.power(), digits))
        }
        _ => hasher.hash_one(cursor.value()?),
    };
    Ok(hasher.hash_one((kind as u8, inner)))
}

fn string(string: JsonStr<'_>) -> u64 {
    FixedState::default().hash_one(string.decode())
}

fn label(text: &[u8]) -> Result<Option<u64>, JsonFault> {
    let mut cursor = Cursor::from_utf8(text);
    let mut found = [None; LABELS.len()];
    cursor.open()?;
    while let Some(key) = cursor.next_key()? {
        let rank = LABELS.iter().position(|label| key.is(label));
        let labels = matches!(cursor.kind()?, JsonKind::String | JsonKind::Number);
        let value = hash(&mut cursor, 0)?;
        if let Some(rank) = rank {
            found[rank] = labels.then_some(value);
        }
    }
    Ok(found.into_iter().flatten().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(one: &str, two: &str) -> u32 {
        let likeness = |text: &str| ElementLikeness::of(text.as_bytes()).unwrap();
        likeness(one).weight(&likeness(two))
    }

    #[test]
    fn the_same_meaning_weighs_most() {
        for (one, two) in [
            (r#"{"a":1,"b":[1.0,"x"]}"#, r#"{ "b":[1,"\u0078"], "a":10e-1}"#),
            ("[]", "[ ]"),
            ("null", "null"),
        ] {
            assert_eq!(weight(one, two), WEIGHT_MAX, "{one} {two}");
        }
        assert_eq!(weight("[1,2]", "[2,1]"), 1);
        assert_eq!(weight("1", "\"1\""), 0);
    }

    #[test]
    fn objects_are_known_by_their_names() {
        assert_eq!(weight(r#"{"name":"a","x":1}"#, r#"{"x":2,"name":"a"}"#), 1 << 10);
        assert_eq!(weight(r#"{"name":"a","x":1}"#, r#"{"name":"b","x":1}"#), 0);
        assert_eq!(weight(r#"{"uri":"a","x":1}"#, r#"{"name":"a","x":1}"#), 1 << 10);
        assert_eq!(weight(r#"{"type":"text","x":1}"#, r#"{"type":"image"}"#), 1);
        assert_eq!(weight(r#"{"name":{},"id":7,"x":1}"#, r#"{"id":7}"#), 1 << 10);
    }
}
