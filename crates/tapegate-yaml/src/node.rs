//! A parsed text as a tree of nodes with source positions.
//!
//! Numbers keep their text and maps keep their order, so that values are sent as they were written.

use tapegate_core::json;

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Spot {
    /// The number of the file.
    pub file: u16,
    /// The line, from 1; 0 if it is in no file.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub spot: Spot,
    pub value: NodeValue,
}

/// A key of a map and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeKey {
    /// Where it begins.
    pub spot: Spot,
    /// The key itself.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, in its JSON spelling.
    Number(String),
    Text(String),
    List(Vec<Node>),
    /// A map, in order, without duplicate keys.
    Map(Vec<(NodeKey, Node)>),
    /// JSON that is sent as it is, because a tree cannot hold it exactly: `$json`.
    Raw(String),
}

impl Node {
    /// Creates a node that is in no file.
    pub fn new(value: NodeValue) -> Self {
        Self { spot: Spot::default(), value }
    }

    /// Creates a text node that is in no file.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(NodeValue::Text(text.into()))
    }

    /// Creates a number that is in no file.
    pub fn number(number: u64) -> Self {
        Self::new(NodeValue::Number(number.to_string()))
    }

    /// Creates a boolean that is in no file.
    pub fn flag(yes: bool) -> Self {
        Self::new(NodeValue::Bool(yes))
    }

    /// Creates a list that is in no file.
    pub fn list(elements: Vec<Node>) -> Self {
        Self::new(NodeValue::List(elements))
    }

    /// Creates a map that is in no file.
    pub fn map(entries: Vec<(NodeKey, Node)>) -> Self {
        Self::new(NodeValue::Map(entries))
    }

    /// Creates an entry of a map; the key is in no file.
    pub fn entry(name: impl Into<String>, node: Node) -> (NodeKey, Node) {
        (NodeKey { spot: Spot::default(), name: name.into() }, node)
    }

    /// The value of a key, if it is a map.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let entries = self.as_map()?;
        entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// The entries, if it is a map.
    pub fn as_map(&self) -> Option<&[(NodeKey, Node)]> {
        match &self.value {
            NodeValue::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The elements, if it is a list.
    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            NodeValue::List(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "true or false",
            NodeValue::Number(_) => "a number",
            NodeValue::Text(_) => "text",
            NodeValue::List(_) => "a list",
            NodeValue::Map(_) => "a map",
            NodeValue::Raw(_) => "JSON",
        }
    }

    /// Appends the node as JSON, on one line.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.value {
            NodeValue::Null => out.extend_from_slice(b"null"),
            NodeValue::Bool(yes) => out.extend_from_slice(if *yes { b"true" } else { b"false" }),
            NodeValue::Number(text) => out.extend_from_slice(text.as_bytes()),
            // On one line, since it may become part of a message.
            NodeValue::Raw(text) => out.extend_from_slice(&json::compact(text.as_bytes())),
            NodeValue::Text(text) => json::write_str(out, text),
            NodeValue::List(elements) => {
                out.push(b'[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    element.write_json(out);
                }
                out.push(b']');
            }
            NodeValue::Map(entries) => {
                out.push(b'{');
                for (index, (key, node)) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    json::write_str(out, &key.name);
                    out.push(b':');
                    node.write_json(out);
                }
                out.push(b'}');
            }
        }
    }

    /// The node as JSON, on one line.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_json(&mut out);
        out
    }

    /// Changes every text in the node; the result is in no file.
    pub fn map_text(self, change: fn(&str) -> String) -> Self {
        Self::new(match self.value {
            NodeValue::Text(text) => NodeValue::Text(change(&text)),
            NodeValue::List(elements) => {
                NodeValue::List(elements.into_iter().map(|node| node.map_text(change)).collect())
            }
            NodeValue::Map(entries) => NodeValue::Map(
                entries.into_iter().map(|(key, node)| (key, node.map_text(change))).collect(),
            ),
            other => other,
        })
    }
}
