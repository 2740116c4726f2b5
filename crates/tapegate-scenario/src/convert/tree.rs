//! Recorded JSON as a node tree, or as raw JSON where a tree cannot hold it exactly.

use tapegate_core::json::{self, Cursor, JsonKind, JsonStr};

use crate::node::{Node, NodeKey, NodeValue};

/// The depth limit of a tree. Deeper values become JSON on one line, because YAML loaders limit the
/// depth and people cannot read it.
const DEPTH_MAX: usize = 32;

/// Keys that a scenario loader interprets anywhere.
const DIRECTIVES: [&str; 5] = ["$include", "$file", "$generate", "$json", "override"];

/// Parses JSON to a tree. Invalid JSON becomes text; a tape that was read has none.
pub(super) fn read(text: &[u8]) -> Node {
    value(text, DEPTH_MAX).unwrap_or_else(|| Node::text(String::from_utf8_lossy(text)))
}

/// An entry of a map.
pub(super) fn entry(name: &str, node: Node) -> (NodeKey, Node) {
    (NodeKey { spot: Default::default(), name: name.to_owned() }, node)
}

pub(super) fn map(entries: Vec<(NodeKey, Node)>) -> Node {
    Node::new(NodeValue::Map(entries))
}

pub(super) fn number(number: u64) -> Node {
    Node::new(NodeValue::Number(number.to_string()))
}

/// The members of a JSON object, in order; empty if it is not an object.
pub(super) fn members(text: &[u8]) -> Vec<(String, &[u8])> {
    let mut found = Vec::new();
    // Messages were validated when the tape was read.
    collect(text, &mut found).unwrap_or_default();
    found
}

fn collect<'a>(text: &'a [u8], found: &mut Vec<(String, &'a [u8])>) -> Result<(), json::JsonFault> {
    let mut cursor = Cursor::new(text)?;
    if cursor.kind()? != JsonKind::Object {
        return Ok(());
    }
    cursor.open()?;
    let mut first = true;
    while let Some(key) = cursor.key(&mut first)? {
        found.push((key.decode().into_owned(), cursor.value()?));
    }
    Ok(())
}

fn value(text: &[u8], depth: usize) -> Option<Node> {
    let mut cursor = Cursor::new(text).ok()?;
    let read = match cursor.kind().ok()? {
        JsonKind::Null => NodeValue::Null,
        JsonKind::Bool => NodeValue::Bool(text.trim_ascii() == b"true"),
        JsonKind::Number => {
            NodeValue::Number(String::from_utf8_lossy(text.trim_ascii()).into_owned())
        }
        JsonKind::String => match exact(cursor.string().ok()?) {
            Some(text) => NodeValue::Text(text),
            None => raw(text),
        },
        JsonKind::Object | JsonKind::Array if depth == 0 => raw(text),
        JsonKind::Array => {
            let mut elements = Vec::new();
            for element in items(text) {
                elements.push(value(element, depth - 1)?);
            }
            NodeValue::List(elements)
        }
        JsonKind::Object => match object(text, depth) {
            Some(entries) => NodeValue::Map(entries),
            None => raw(text),
        },
    };
    Some(Node::new(read))
}

/// The entries of an object; `None` if its keys prevent it from being a map.
fn object(text: &[u8], depth: usize) -> Option<Vec<(NodeKey, Node)>> {
    let mut cursor = Cursor::new(text).ok()?;
    cursor.open().ok()?;
    let mut entries: Vec<(NodeKey, Node)> = Vec::new();
    let mut names = std::collections::HashSet::new();
    let mut first = true;
    while let Some(key) = cursor.key(&mut first).ok()? {
        let name = exact(key)?;
        // The loader would run a directive and drop a duplicate, so such an object stays raw JSON.
        if DIRECTIVES.contains(&name.as_str()) || !names.insert(name.clone()) {
            return None;
        }
        entries.push(entry(&name, value(cursor.value().ok()?, depth - 1)?));
    }
    Some(entries)
}

/// The elements of an array; empty if it is not an array.
pub(super) fn items(text: &[u8]) -> Vec<&[u8]> {
    tapegate_core::frame::array_items(text)
}

/// The decoded string; `None` if it contains a lone surrogate.
fn exact(text: JsonStr<'_>) -> Option<String> {
    let decoded = text.decode().into_owned();
    if !text.escaped {
        return Some(decoded);
    }
    let mut exact = Vec::with_capacity(decoded.len());
    text.write_value_bytes(&mut exact);
    (exact == decoded.as_bytes()).then_some(decoded)
}

fn raw(text: &[u8]) -> NodeValue {
    NodeValue::Raw(String::from_utf8_lossy(&json::compact(text.trim_ascii())).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_says_what_the_json_says() {
        for text in [
            r#"{"a":[1,1.0,-0,1e400,12345678901234567890123],"b":{"":null,"c":[true,false,"x"]}}"#,
            r#"["\u0000\t\r\n","é😀",{"k":{}},[]]"#,
        ] {
            assert_eq!(read(text.as_bytes()).to_json(), text.as_bytes());
        }
    }

    #[test]
    fn what_no_tree_holds_is_json() {
        let raw =
            |text: &str| matches!(read(text.as_bytes()).value, NodeValue::Raw(raw) if raw == text);
        assert!(raw(r#""\ud800""#));
        assert!(raw(r#"{"a":1,"a":2}"#));
        assert!(raw(r#"{"\udc00":1}"#));
        assert!(raw(r#"{"$file":"/etc/passwd"}"#));
        assert!(raw(r#"{"override":{}}"#));
        assert!(!raw(r##"{"$ref":"#/a","$schema":"s"}"##));
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert_eq!(read(deep.as_bytes()).to_json(), deep.as_bytes());
    }
}
