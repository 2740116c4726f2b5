//! Duplicate members in the params of a call, at any depth.
//!
//! In params and in the objects directly inside them, such as the arguments, names that differ only
//! in case are duplicates. Deeper objects may be maps whose keys are data.

use tapegate_core::frame::{Envelope, fold, lenient_key_match};
use tapegate_core::json::{JsonFault, JsonStr, JsonToken, tokens};

use super::MessageFault;

/// How deep the params of a call may be nested.
const DEPTH_MAX: usize = 512;
/// Objects with at most this many members are compared pair by pair.
const PAIRS_MAX: usize = 16;
/// The initial capacity: enough for most calls.
const ROOM: usize = 16;
/// The members of params that receivers act on.
const NAMES: &[&str] = &[
    "name",
    "uri",
    "arguments",
    "ref",
    "argument",
    "task",
    "notifications",
    "inputResponses",
    "requestState",
];

/// An open object or array.
struct NestingLevel {
    /// Whether keys that differ only in case are duplicates.
    folds: bool,
    /// The index of its first key among all keys.
    keys: usize,
}

/// Checks that no member of the params of a call occurs twice.
pub(super) fn check(envelope: &Envelope<'_>) -> Result<(), MessageFault> {
    // Most params were found to be plain when the message was parsed.
    match envelope.params {
        Some(params) if !envelope.plain => walk(params).unwrap_or(Err(MessageFault::NotJson)),
        _ => Ok(()),
    }
}

fn walk(params: &[u8]) -> Result<Result<(), MessageFault>, JsonFault> {
    let mut keys: Vec<JsonStr<'_>> = Vec::with_capacity(ROOM);
    let mut levels: Vec<NestingLevel> = Vec::with_capacity(ROOM);
    for token in tokens(params)? {
        match token? {
            JsonToken::Open(_) if levels.len() == DEPTH_MAX => return Ok(Err(MessageFault::Deep)),
            JsonToken::Open(_) => {
                let folds = match levels.len() {
                    0 => true,
                    // The keys of `inputResponses` are names that the server chose.
                    1 => keys.last().is_none_or(|key| !key.is("inputResponses")),
                    _ => false,
                };
                levels.push(NestingLevel { folds, keys: keys.len() });
            }
            JsonToken::Key(key) => keys.push(key),
            JsonToken::Close => {
                let Some(level) = levels.pop() else { break };
                // An array has no keys of its own, which are distinct.
                let own = &keys[level.keys..];
                let odd = if levels.is_empty() { check_lookalike_keys(own) } else { Ok(()) };
                if let Err(fault) = odd.and_then(|()| differ(own, level.folds)) {
                    return Ok(Err(fault));
                }
                keys.truncate(level.keys);
            }
            JsonToken::String(_) | JsonToken::Scalar(_) => {}
        }
    }
    Ok(Ok(()))
}

/// Checks that no key of params can be confused with one that receivers act on.
fn check_lookalike_keys(keys: &[JsonStr<'_>]) -> Result<(), MessageFault> {
    if keys.iter().any(is_lookalike_key) { Err(MessageFault::Twin) } else { Ok(()) }
}

fn is_lookalike_key(key: &JsonStr<'_>) -> bool {
    let usual = matches!(key.raw, b"name" | b"arguments" | b"_meta" | b"uri");
    !usual && lenient_key_match(*key, NAMES).is_some_and(|name| !key.is(NAMES[name]))
}

/// Checks that the keys of one object are distinct to every reader.
fn differ(keys: &[JsonStr<'_>], folds: bool) -> Result<(), MessageFault> {
    if keys.len() <= PAIRS_MAX && keys.iter().all(|key| !key.escaped) {
        let same = |one: &JsonStr<'_>, two: &JsonStr<'_>| match folds {
            true => one.raw.eq_ignore_ascii_case(two.raw),
            false => one.raw == two.raw,
        };
        let twice = |(index, one): (usize, &JsonStr<'_>)| {
            keys[index + 1..].iter().find(|two| same(one, two)).map(|two| one.raw == two.raw)
        };
        let found = keys.iter().enumerate().find_map(twice);
        let ascii = !folds || keys.iter().all(|key| key.raw.is_ascii());
        match found {
            Some(exact) => {
                return Err(if exact { MessageFault::Repeated } else { MessageFault::Twin });
            }
            None if ascii => return Ok(()),
            None => {}
        }
    }
    let mut exact: Vec<Vec<u8>> = keys.iter().map(key_value).collect();
    if !are_distinct(&mut exact) {
        return Err(MessageFault::Repeated);
    }
    let mut folded: Vec<Vec<u8>> = match folds {
        true => keys.iter().map(|key| fold(*key).into_owned()).collect(),
        false => Vec::new(),
    };
    if are_distinct(&mut folded) { Ok(()) } else { Err(MessageFault::Twin) }
}

fn key_value(key: &JsonStr<'_>) -> Vec<u8> {
    let mut exact = Vec::with_capacity(key.raw.len());
    key.write_value_bytes(&mut exact);
    exact
}

fn are_distinct(keys: &mut [Vec<u8>]) -> bool {
    keys.sort_unstable();
    keys.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tapegate_core::frame::Frame;

    use super::*;

    /// Keys that some reader takes for the same, and others.
    fn key() -> impl Strategy<Value = String> {
        let known =
            ["name", "Name", "n\\u0061me", "arguments", "argument", "_meta", "a", "A", "b", "ä"];
        let known = prop::sample::select(known.to_vec()).prop_map(str::to_owned);
        prop_oneof![known, "[a-c_ ]{0,2}"]
    }

    fn value() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec!["1", "\"x\"", "null", "[]", "{}"]);
        leaf.prop_map(str::to_owned).prop_recursive(3, 24, 5, |inner| {
            let object = prop::collection::vec((key(), inner.clone()), 0..10).prop_map(|members| {
                let members: Vec<String> =
                    members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            });
            let array = prop::collection::vec(inner, 0..3)
                .prop_map(|elements| format!("[{}]", elements.join(",")));
            prop_oneof![3 => object, 1 => array]
        })
    }

    proptest! {
        #[test]
        fn the_look_on_the_way_passes_nothing_that_the_close_one_does_not(params in value()) {
            let text = format!(r#"{{"method":"tools/call","params":{params}}}"#);
            let frame = Frame::read(text.as_bytes());
            let close = walk(params.as_bytes()).unwrap();
            prop_assert_eq!(check(frame.envelope().unwrap()), close, "{}", params);
        }
    }
}
