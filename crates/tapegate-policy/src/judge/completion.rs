//! The arguments that a completion is about.
//!
//! `completion/complete` names a prompt or a template, one of its arguments with the value typed so
//! far, and the arguments given before. A rule that stops a call with these arguments also stops
//! their completion, since the response reveals what they lead to.

use tapegate_core::frame::lenient_key_match;
use tapegate_core::json::{JsonFault, members};

/// Arguments that are not JSON, so that every rule that stops calls by arguments applies.
const UNCLEAR: &[u8] = b"?";

/// The arguments in the params of a completion, as one object; `None` if there are none.
pub(super) fn arguments(params: &[u8]) -> Option<Vec<u8>> {
    let mut members = Vec::new();
    match collect_arguments(params, &mut members) {
        Ok(true) if members.is_empty() => None,
        Ok(true) => {
            // Raw text is copied, so duplicate keys and odd escapes stay visible to the rules.
            let members: Vec<Vec<u8>> =
                members.iter().map(|(key, value)| [b"\"", *key, b"\":", *value].concat()).collect();
            Some([b"{", &members.join(&b","[..])[..], b"}"].concat())
        }
        Ok(false) | Err(_) => Some(UNCLEAR.to_vec()),
    }
}

/// The raw text of a key, without its quotes, and that of its value.
type RawMember<'p> = (&'p [u8], &'p [u8]);

/// Collects the members of all arguments; false if they cannot be determined.
fn collect_arguments<'p>(
    params: &'p [u8],
    members: &mut Vec<RawMember<'p>>,
) -> Result<bool, JsonFault> {
    let mut is_clear = true;
    each_member(params, |name, _, value| {
        match name {
            "argument" => match typed_argument(value)? {
                Some(member) => members.push(member),
                None => is_clear = false,
            },
            // Servers may treat the arguments given before as those of the prompt, so they count as
            // well.
            "context" => is_clear &= given_arguments(value, members)?,
            // Not in any revision of the protocol, but a server may accept them.
            "arguments" => is_clear &= copy(value, members)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(is_clear)
}

/// The argument being completed: its name and the value typed so far.
fn typed_argument(argument: &[u8]) -> Result<Option<RawMember<'_>>, JsonFault> {
    let (mut key, mut typed) = (None, None);
    if !is_object(argument) {
        return Ok(None);
    }
    each_member(argument, |name, _, value| {
        match name {
            "name" => {
                key = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
            }
            "value" => typed = Some(value),
            _ => {}
        }
        Ok(())
    })?;
    Ok(key.zip(typed))
}

/// Collects the arguments that were given before.
fn given_arguments<'p>(
    context: &'p [u8],
    members: &mut Vec<RawMember<'p>>,
) -> Result<bool, JsonFault> {
    let mut is_clear = is_object(context) || context == b"null";
    if !is_object(context) {
        return Ok(is_clear);
    }
    each_member(context, |name, _, value| {
        if name == "arguments" {
            is_clear &= copy(value, members)?;
        }
        Ok(())
    })?;
    Ok(is_clear)
}

/// Copies the members of an object; false for any other value but `null`.
fn copy<'p>(object: &'p [u8], members: &mut Vec<RawMember<'p>>) -> Result<bool, JsonFault> {
    if !is_object(object) {
        return Ok(object == b"null");
    }
    each_member(object, |_, key, value| {
        members.push((key, value));
        Ok(())
    })?;
    Ok(true)
}

/// Visits the members of an object: the known name a lenient reader takes the key for, the key and
/// the value.
fn each_member<'p>(
    object: &'p [u8],
    mut show: impl FnMut(&str, &'p [u8], &'p [u8]) -> Result<(), JsonFault>,
) -> Result<(), JsonFault> {
    const NAMES: &[&str] = &["argument", "context", "arguments", "name", "value"];
    for member in members(object) {
        let (key, value) = member?;
        // A Go server reads `Value` as `value`, so each key counts as the name that some reader
        // takes it for.
        let name = lenient_key_match(key, NAMES).map_or("", |name| NAMES[name]);
        show(name, key.raw, value)?;
    }
    Ok(())
}

fn is_object(value: &[u8]) -> bool {
    value.starts_with(b"{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_typed_argument_and_those_before_it_are_one_object() {
        for (params, found) in [
            (r#"{"ref":{}}"#, None),
            (r#"{"argument":{"name":"a","value":"b"}}"#, Some(r#"{"a":"b"}"#)),
            (r#"{"Argument":{"NAME":"a","Value":"b"}}"#, Some(r#"{"a":"b"}"#)),
            (
                r#"{"argument":{"value":"b","name":"a\u0062"},"context":{"arguments":{"c":"d","e":5}}}"#,
                Some(r#"{"a\u0062":"b","c":"d","e":5}"#),
            ),
            (r#"{"argument":{"name":"a","value":""},"context":null}"#, Some(r#"{"a":""}"#)),
            (r#"{"argument":{"name":"a","value":1},"context":{}}"#, Some(r#"{"a":1}"#)),
            (r#"{"arguments":{"a":1}}"#, Some(r#"{"a":1}"#)),
            (r#"{"argument":{"name":5,"value":"b"}}"#, Some("?")),
            (r#"{"argument":{"name":"a"}}"#, Some("?")),
            (r#"{"argument":"a"}"#, Some("?")),
            (r#"{"context":{"arguments":["a"]}}"#, Some("?")),
            (r#"{"argument":"#, Some("?")),
        ] {
            let found = found.map(|found| found.as_bytes().to_vec());
            assert_eq!(arguments(params.as_bytes()), found, "{params}");
        }
    }
}
