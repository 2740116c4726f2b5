//! Environment variables that an entry refers to.
//!
//! Clients replace the references when they start a server, so they stay in the config as they are
//! written. Here they are only found, to name those that have no value.

use std::ops::Range;

use crate::client_table::ReferenceSyntax;
use crate::tree::{ConfigFormat, ConfigNode, ConfigValue};

/// The variables that an entry refers to without a default and that are not set, each once.
pub fn undefined_variables(
    entry: &ConfigNode,
    syntax: ReferenceSyntax,
    is_set: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut names = Vec::new();
    visit_texts(entry, &mut |text| {
        for name in required_names(text, syntax) {
            if !is_set(name) && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    });
    names
}

fn visit_texts(node: &ConfigNode, visit: &mut dyn FnMut(&str)) {
    match &node.value {
        ConfigValue::Text(text) => visit(text),
        ConfigValue::List(elements) => elements.iter().for_each(|one| visit_texts(one, visit)),
        ConfigValue::Map(members) => {
            members.iter().for_each(|member| visit_texts(&member.node, visit));
        }
        _ => {}
    }
}

/// The variables in a text that have no default.
fn required_names(text: &str, syntax: ReferenceSyntax) -> Vec<&str> {
    let start = match syntax {
        ReferenceSyntax::None => return Vec::new(),
        ReferenceSyntax::Dollar | ReferenceSyntax::DollarOrBare => "${",
        ReferenceSyntax::DollarEnv => "${env:",
        ReferenceSyntax::Brace => "{env:",
    };
    let references = text.split(start).skip(1).filter_map(|rest| rest.split_once('}'));
    // With a default, the name is followed by it.
    let mut names: Vec<&str> =
        references.map(|(name, _)| name).filter(|name| is_name(name)).collect();
    if syntax == ReferenceSyntax::DollarOrBare {
        names.extend(bare_names(text));
    }
    names
}

/// The variables that are written as `$NAME`.
fn bare_names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = text.split('$').skip(1).map(move |rest| {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        &rest[..end]
    });
    // A password or a shell script in the entry may have a `$word` of its own, which the client
    // leaves as it is. Variables of the environment have capitals.
    names.filter(|name| is_name(name) && !name.contains(|c: char| c.is_ascii_lowercase()))
}

fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    text.bytes().next().is_some_and(is_letter)
        && text.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// Checks a config in which the client replaces references before it parses the text, as opencode
/// does: then a reference can make keys, servers and switches that the written text does not show.
pub fn check_replaced(
    text: &str,
    format: ConfigFormat,
    value_of: &dyn Fn(&str) -> Option<String>,
) -> Result<(), String> {
    let Ok(written) = ConfigNode::read(text, format) else { return Ok(()) };
    let replaced = replace_variables(text, value_of);
    let seen = ConfigNode::read(&replaced, format).ok();
    let Some(seen) = seen.filter(|seen| has_same_shape(&written, seen)) else {
        return Err("a reference such as `{env:NAME}` changes its keys or its structure".to_owned());
    };
    let mut values = Vec::new();
    collect_text_spans(&seen, &mut values);
    for (at, _) in replaced.match_indices("{file:") {
        let end = replaced[at..].find('}').map_or(replaced.len(), |length| at + length);
        let line = replaced[..at].rsplit('\n').next().unwrap_or_default();
        let is_in_value = values.iter().any(|span| span.start < at && end < span.end);
        if !is_in_value && !line.trim_start().starts_with("//") {
            return Err("a reference `{file:…}` stands outside of a value".to_owned());
        }
    }
    Ok(())
}

/// The text with the value of every `{env:NAME}`, or nothing if it has none. A reference may
/// contain anything but its end, also quotes.
fn replace_variables(text: &str, value_of: &dyn Fn(&str) -> Option<String>) -> String {
    const START: &str = "{env:";
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(START) {
        let (before, reference) = rest.split_at(at);
        replaced.push_str(before);
        rest = match reference[START.len()..].split_once('}') {
            Some((name, after)) if !name.is_empty() => {
                replaced.push_str(&value_of(name).unwrap_or_default());
                after
            }
            _ => {
                replaced.push_str(START);
                &reference[START.len()..]
            }
        };
    }
    replaced + rest
}

/// Whether two texts have the same keys and values, except for what is in their texts.
fn has_same_shape(one: &ConfigNode, other: &ConfigNode) -> bool {
    match (&one.value, &other.value) {
        (ConfigValue::Text(_), ConfigValue::Text(_)) => true,
        (ConfigValue::List(own), ConfigValue::List(others)) => {
            own.len() == others.len() && own.iter().zip(others).all(|(a, b)| has_same_shape(a, b))
        }
        (ConfigValue::Map(own), ConfigValue::Map(others)) => {
            own.len() == others.len()
                && own
                    .iter()
                    .zip(others)
                    .all(|(a, b)| a.key == b.key && has_same_shape(&a.node, &b.node))
        }
        _ => one.is_same(other),
    }
}

fn collect_text_spans(node: &ConfigNode, spans: &mut Vec<Range<usize>>) {
    match &node.value {
        ConfigValue::Text(_) => spans.push(node.span.clone()),
        ConfigValue::List(elements) => {
            elements.iter().for_each(|one| collect_text_spans(one, spans))
        }
        ConfigValue::Map(members) => {
            members.iter().for_each(|member| collect_text_spans(&member.node, spans));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_that_is_replaced_before_parsing_may_only_change_texts() {
        let value_of = |name: &str| match name {
            "SET" => Some("a value".to_owned()),
            "QUOTE" => Some(r#"x","command":["y"#.to_owned()),
            "LINE" => Some("\n\"b\": {},".to_owned()),
            _ => None,
        };
        let check = |text: &str| check_replaced(text, ConfigFormat::Json, &value_of);
        for text in [
            r#"{"mcp": {"a": {"command": ["{env:SET}", "{env:NOPE}", "{file:k}"], "enabled": true}}}"#,
            "{\n // {env:SET} {file:k}\n \"a\": \"{env:}\"}",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for text in [
            r#"{"a": {"comm{env:NOPE}and": ["x"]}}"#,
            r#"{"m{env:NOPE}cp": {}}"#,
            r#"{"enabled": false, "enab{env:NOPE}led": true}"#,
            r#"{"a": {"x": "{env:QUOTE}"}}"#,
            r#"{"a{env:b": "c", "d}": "e"}"#,
            "{\n // {env:LINE}\n \"a\": {}}",
            r#"{"{file:k}": {}}"#,
            r#"{ /* {file:k} */ "a": {}}"#,
        ] {
            assert!(check(text).is_err(), "{text}");
        }
    }

    fn undefined(text: &str, syntax: ReferenceSyntax) -> Vec<String> {
        let node = ConfigNode::read(text, ConfigFormat::Json).unwrap();
        undefined_variables(&node, syntax, &|name| name == "SET")
    }

    #[test]
    fn a_variable_without_value_and_default_is_named() {
        let entry = r#"{"command":"${SET}/${GONE}","args":["${D:-x}","$PLAIN","${GONE}","${"],
            "env":{"T":"${TOKEN}","U":"${env:OTHER}"}}"#;
        assert_eq!(undefined(entry, ReferenceSyntax::Dollar), ["GONE", "TOKEN"]);
        assert_eq!(undefined(entry, ReferenceSyntax::DollarOrBare), ["GONE", "PLAIN", "TOKEN"]);
        let bare =
            r#"{"args":["$SET/$A_1-x","for x in y; do echo $x; done","pa$$word$","$5","$E"]}"#;
        assert_eq!(undefined(bare, ReferenceSyntax::DollarOrBare), ["A_1", "E"]);
        assert_eq!(undefined(entry, ReferenceSyntax::DollarEnv), ["OTHER"]);
        assert_eq!(undefined(entry, ReferenceSyntax::None), [""; 0]);
        let entry = r#"{"command":["{env:A}","{file:x}","{env:SET}"]}"#;
        assert_eq!(undefined(entry, ReferenceSyntax::Brace), ["A"]);
    }
}
