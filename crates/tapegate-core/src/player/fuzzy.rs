//! How similar two requests are: the share of equal leaves. Values that naturally change from run
//! to run (times, UUIDs, hashes, large numbers) count as equal to others of their kind.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::json::{Cursor, JsonFault, JsonKind};

/// The minimum length of hexadecimal digits that count as a hash.
const HEX_MIN: usize = 16;
/// The minimum length of digits that count as a time or an id.
const DIGITS_MIN: usize = 9;
/// How many differing leaves are named.
const DIFFERING_MAX: usize = 32;

/// The leaves of a value, as hashes of path and masked text, sorted.
pub(super) struct LeafHashes(Box<[u64]>);

impl LeafHashes {
    /// The leaves of canonical params; `without` names a member that is known to be equal.
    pub(super) fn of(params: &[u8], without: Option<&str>) -> Self {
        let hasher = FixedState::default();
        let mut leaves = Vec::new();
        walk(params, without, &mut |leaf| {
            leaves.push(hasher.hash_one((leaf.at, masked(leaf.text))));
        });
        // Sorted, so that two sets are compared in one pass.
        leaves.sort_unstable();
        Self(leaves.into())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The share of leaves that are equal, from 0 to 1; `unequal` more are known to differ.
    pub(super) fn score(&self, other: &Self, unequal: usize) -> f64 {
        let (mut one, mut two) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut equal = 0u32;
        while let (Some(left), Some(right)) = (one.peek(), two.peek()) {
            match left.cmp(right) {
                std::cmp::Ordering::Less => drop(one.next()),
                std::cmp::Ordering::Greater => drop(two.next()),
                std::cmp::Ordering::Equal => {
                    equal += 1;
                    one.next();
                    two.next();
                }
            }
        }
        // The longer side counts, so that extra arguments lower the score.
        match self.0.len().max(other.0.len()) + unequal {
            0 => 1.0,
            all => f64::from(equal) / all as f64,
        }
    }
}

/// The first paths at which two values differ, in the order they are written.
pub(super) fn differing(one: &[u8], two: &[u8]) -> Vec<String> {
    let leaves = |text| {
        let mut leaves = HashMap::new();
        walk(text, None, &mut |leaf| drop(leaves.insert(leaf.at, leaf.text.to_vec())));
        leaves
    };
    let (ones, twos) = (leaves(one), leaves(two));
    let mut paths = Vec::new();
    let mut name = |leaf: JsonLeaf<'_>, differs: bool| {
        if differs && paths.len() < DIFFERING_MAX {
            paths.push(leaf.path.to_owned());
        }
    };
    walk(one, None, &mut |leaf| {
        name(leaf, twos.get(&leaf.at).is_none_or(|text| text != leaf.text));
    });
    walk(two, None, &mut |leaf| name(leaf, !ones.contains_key(&leaf.at)));
    paths
}

/// A scalar or an empty container.
#[derive(Clone, Copy)]
struct JsonLeaf<'a> {
    /// The hash of its path, computed step by step: paths may be long and numerous.
    at: u64,
    path: &'a str,
    text: &'a [u8],
}

/// An open container while a value is walked.
struct OpenContainer {
    object: bool,
    /// How many children were visited.
    seen: usize,
    /// The length of its path, and the hash of the path.
    length: usize,
    at: u64,
}

/// Visits every scalar and every empty container with its path.
fn walk(text: &[u8], without: Option<&str>, visit: &mut dyn FnMut(JsonLeaf<'_>)) {
    // Canonical text is JSON; for anything else, the part that could be read counts.
    try_walk(text, without, visit).unwrap_or_default();
}

fn try_walk(
    text: &[u8],
    without: Option<&str>,
    visit: &mut dyn FnMut(JsonLeaf<'_>),
) -> Result<(), JsonFault> {
    let hasher = FixedState::default();
    let mut cursor = Cursor::new(text)?;
    let (mut path, mut at) = (String::from("params"), 0);
    let mut open: Vec<OpenContainer> = Vec::new();
    loop {
        let kind = cursor.kind()?;
        if matches!(kind, JsonKind::Object | JsonKind::Array) {
            cursor.open()?;
            open.push(OpenContainer {
                object: kind == JsonKind::Object,
                seen: 0,
                length: path.len(),
                at,
            });
        } else {
            visit(JsonLeaf { at, path: &path, text: cursor.value()? });
        }
        loop {
            let top = open.len() == 1;
            let Some(inner) = open.last_mut() else { return Ok(()) };
            path.truncate(inner.length);
            let more = if inner.object {
                let key = cursor.next_key()?;
                key.map(|key| (format!(".{}", key.decode()), Some(key)))
            } else {
                let more = cursor.next_item()?;
                more.then(|| (format!("[{}]", inner.seen), None))
            };
            let Some((step, key)) = more else {
                // An empty container counts as a leaf, or `{}` and a missing member would score
                // alike.
                if inner.seen == 0 {
                    let text = if inner.object { b"{}" } else { b"[]" };
                    visit(JsonLeaf { at: inner.at, path: &path, text });
                }
                open.pop();
                continue;
            };
            inner.seen += 1;
            // The subject is compared by itself. As a leaf, it would make short requests look
            // similar.
            if top && key.zip(without).is_some_and(|(key, name)| key.is(name)) {
                cursor.value()?;
                continue;
            }
            path.push_str(&step);
            at = hasher.hash_one((inner.at, step));
            break;
        }
    }
}

/// A scalar with everything masked that naturally changes from run to run.
fn masked(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        // Digits inside a word, such as `v1234567890`, are part of a name and do not vary.
        let inside = out.last().is_some_and(|last: &u8| last.is_ascii_alphanumeric());
        let (length, sign) = if inside { (0, 0) } else { volatile(rest) };
        if length > 0 {
            out.push(sign);
            rest = &rest[length..];
        } else {
            out.push(byte);
            rest = &rest[1..];
        }
    }
    out
}

/// The length of the volatile prefix of `text`, and the placeholder for it.
fn volatile(text: &[u8]) -> (usize, u8) {
    let moment = date_length(text);
    if moment > 0 {
        return (moment, 0x01);
    }
    if is_uuid(text) {
        return (36, 0x02);
    }
    let row = |fits: fn(&u8) -> bool| text.iter().take_while(|byte| fits(byte)).count();
    let ends = |length: usize| !text.get(length).is_some_and(u8::is_ascii_alphanumeric);
    let digits = row(u8::is_ascii_digit);
    // A longer run, as in `123456789abc`, is not a number, but may still be a hash.
    if digits >= DIGITS_MIN && ends(digits) {
        return (digits, 0x03);
    }
    let hex = row(u8::is_ascii_hexdigit);
    // Letters alone may be a word.
    let mixed = text[..hex].iter().any(u8::is_ascii_digit);
    if hex >= HEX_MIN && mixed && ends(hex) { (hex, 0x04) } else { (0, 0) }
}

/// The length of the date, or date and time, at the start of `text`.
fn date_length(text: &[u8]) -> usize {
    let shaped = |at: usize, shape: &[u8]| {
        let part = text.get(at..at + shape.len())?;
        let fits = shape.iter().zip(part).all(|(form, byte)| match form {
            b'0' => byte.is_ascii_digit(),
            b'T' => matches!(byte, b'T' | b't' | b' ' | b'_'),
            form => form == byte,
        });
        fits.then_some(at + shape.len())
    };
    let Some(mut end) = shaped(0, b"0000-00-00") else { return 0 };
    if let Some(time) = shaped(end, b"T00:00:00").or_else(|| shaped(end, b"T00-00-00")) {
        end = time;
        if let Some(b'.' | b',') = text.get(end) {
            end += 1 + text[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        }
        end = match text.get(end) {
            Some(b'Z' | b'z') => end + 1,
            _ => ["+00:00", "-00:00", "+0000", "-0000"]
                .iter()
                .find_map(|zone| shaped(end, zone.as_bytes()))
                .unwrap_or(end),
        };
    }
    end
}

fn is_uuid(text: &[u8]) -> bool {
    let Some(part) = text.get(..36) else { return false };
    let ends = !text.get(36).is_some_and(u8::is_ascii_alphanumeric);
    ends && part.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(one: &str, two: &str) -> f64 {
        LeafHashes::of(one.as_bytes(), None).score(&LeafHashes::of(two.as_bytes(), None), 0)
    }

    #[test]
    fn the_score_is_the_share_of_equal_leaves() {
        assert!((score(r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#) - 0.5).abs() < 1e-9);
        assert!(
            (score(r#"{"a":[1,2,3,{"c":4}]}"#, r#"{"a":[1,2,3,{"c":5}]}"#) - 0.75).abs() < 1e-9
        );
        assert!((score("{}", "{}") - 1.0).abs() < 1e-9);
        assert!(score("{}", r#"{"a":1}"#) < 1e-9);
        assert!(score(r#"{"a":{}}"#, r#"{"a":[]}"#) < 1e-9);
    }

    #[test]
    fn what_changes_by_nature_counts_as_equal_to_its_like() {
        for (one, two) in [
            ("2026-11-15T10:02:33.488994Z", "2025-01-02 03:04:05+01:00"),
            ("550e8400-e29b-41d4-a716-446655440000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
            ("/tmp/run-1731664953488/x", "/tmp/run-1731664953499/x"),
            (
                "da39a3ee5e6b4b0d3255bfef95601890afd80709",
                "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
            ),
            ("log_2026-11-15.txt", "log_2026-11-16.txt"),
        ] {
            let (one, two) = (format!("{{\"x\":\"{one}\"}}"), format!("{{\"x\":\"{two}\"}}"));
            assert!((score(&one, &two) - 1.0).abs() < 1e-9, "{one} {two}");
        }
        assert!((score(r#"{"x":1731664953488}"#, r#"{"x":1731664953499}"#) - 1.0).abs() < 1e-9);
        for (one, two) in [("12345678", "12345679"), ("deadbeefdeadbeef", "feedbeefdeadbeef")] {
            let (one, two) = (format!("{{\"x\":\"{one}\"}}"), format!("{{\"x\":\"{two}\"}}"));
            assert!(score(&one, &two) < 1e-9, "{one} {two}");
        }
    }

    #[test]
    fn differing_leaves_are_named() {
        let one = br#"{"arguments":{"a":1,"b":["x","y"]},"name":"t"}"#;
        let two = br#"{"arguments":{"a":2,"b":["x"]},"name":"t"}"#;
        assert_eq!(differing(one, two), ["params.arguments.a", "params.arguments.b[1]"]);
    }

    #[test]
    fn a_leaf_on_every_level_costs_no_more_than_a_leaf() {
        let deep = |leaf: &str| {
            let (open, close) = ("{\"a\":1,\"b\":".repeat(50_000), "}".repeat(50_000));
            format!("{open}{leaf}{close}")
        };
        let (one, two) = (deep("1"), deep("2"));
        assert!(score(&one, &two) > 0.99);
        assert_eq!(differing(one.as_bytes(), two.as_bytes()).len(), 1);
    }

    #[test]
    fn a_value_of_any_depth_is_walked_without_recursion() {
        let deep = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
        assert!((score(&deep, &deep) - 1.0).abs() < 1e-9);
    }
}
