//! A hash of the value of a JSON text, independent of its spelling.
//!
//! A client that repeats the same arguments may order keys, escape strings or write numbers
//! differently. Replay must still see the same placeholder, so the hash ignores all that.

use tapegate_core::json::{Cursor, JsonFault, JsonKind, Number};

use super::placeholder::RedactionKey;

/// Below this many levels a value is hashed as written, to limit recursion.
const DEPTH_MAX: usize = 100;

/// The hashes of a key and of its value.
type MemberHash = ([u8; 32], [u8; 32]);

/// The keyed hash of the value of `json`, which must be a single value.
pub(super) fn digest(key: &RedactionKey, json: &[u8]) -> Result<blake3::Hash, JsonFault> {
    value(key, &mut Cursor::new(json)?, 0)
}

fn value(
    key: &RedactionKey,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<blake3::Hash, JsonFault> {
    let mut hasher = key.hasher();
    match cursor.kind()? {
        JsonKind::Object | JsonKind::Array if depth == DEPTH_MAX => {
            hasher.update(b"t").update(cursor.value()?);
        }
        JsonKind::Object => {
            // A letter for each kind, so that `1` and `"1"`, or `[]` and `{}`, have different
            // hashes.
            hasher.update(b"o");
            for (name, value) in members(key, cursor, depth)? {
                hasher.update(&name).update(&value);
            }
        }
        JsonKind::Array => {
            hasher.update(b"a");
            cursor.open()?;
            while cursor.next_item()? {
                hasher.update(value(key, cursor, depth + 1)?.as_bytes());
            }
        }
        JsonKind::String => drop(hasher.update(b"s").update(cursor.string()?.decode().as_bytes())),
        JsonKind::Number => drop(hasher.update(b"n").update(number(cursor.value()?).as_bytes())),
        JsonKind::Bool | JsonKind::Null => drop(hasher.update(b"w").update(cursor.value()?)),
    }
    Ok(hasher.finalize())
}

/// The members of an object, sorted by the hash of their keys; duplicate keys keep their order.
fn members(
    key: &RedactionKey,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<Vec<MemberHash>, JsonFault> {
    let mut members = Vec::new();
    cursor.open()?;
    while let Some(name) = cursor.next_key()? {
        let mut hasher = key.hasher();
        let name = *hasher.update(b"k").update(name.decode().as_bytes()).finalize().as_bytes();
        members.push((name, *value(key, cursor, depth + 1)?.as_bytes()));
    }
    // Stable: the order of duplicate keys matters, since readers take the first or the last.
    members.sort_by_key(|member| member.0);
    Ok(members)
}

/// A number as sign, digits without leading and trailing zeros, and a power of ten: `1.50` and
/// `15e-1` are both `15e-1`.
fn number(text: &[u8]) -> String {
    let number = Number::read(text);
    let power = match number.power() {
        Ok(power) => power,
        // An exponent that does not fit can only be compared as text.
        Err(text) => return String::from_utf8_lossy(text).into_owned(),
    };
    let sign = if number.is_negative() { "-" } else { "" };
    let digits: String = number.digits().map(char::from).collect();
    if digits.is_empty() { "0".to_owned() } else { format!("{sign}{digits}e{power}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(json: &str) -> blake3::Hash {
        digest(&RedactionKey::for_tape([1; 32]), json.as_bytes()).unwrap()
    }

    #[test]
    fn writing_does_not_count() {
        for (one, other) in [
            (r#"{"a":1,"b":[true,null]}"#, r#"{ "b" : [ true , null ], "\u0061": 1.0 }"#),
            (r#""a/b""#, r#""\u0061\/b""#),
            ("100", "1e2"),
            ("1.50", "15E-1"),
            ("0.0", "-0"),
            ("-12e+1", "-120"),
        ] {
            assert_eq!(hash(one), hash(other), "{one} {other}");
        }
    }

    #[test]
    fn meaning_does() {
        let all = [
            "1",
            "\"1\"",
            "-1",
            "10",
            "[1]",
            "[[1]]",
            "{}",
            "[]",
            "null",
            "true",
            "false",
            "\"\"",
            "1e999999999999999999999",
            "2e999999999999999999999",
            r#"{"a":1}"#,
            r#"{"b":1}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":2,"b":1}"#,
            "[1,2]",
            "[2,1]",
        ];
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                assert_ne!(hash(one), hash(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn depth_needs_no_stack() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(hash(&deep), hash(&deep));
    }
}
