//! What a text says, before anybody knows what it means: a tree that knows where it stands.
//!
//! Numbers keep their text and maps keep their order, so that what was written is what is sent.

use tapegate_core::json;

/// Where something stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Spot {
    /// Which of the files that were read.
    pub file: u16,
    /// The line, from 1; 0 if it stands in no file.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub spot: Spot,
    /// What it is.
    pub value: Value,
}

/// A key of a map and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Where it begins.
    pub spot: Spot,
    /// The key itself.
    pub name: String,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number, by the text that JSON writes it with.
    Number(String),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map, in its order. No key comes twice.
    Map(Vec<(Key, Node)>),
    /// JSON that must be sent as it is, because no tree holds it exactly: `$json`.
    Raw(String),
}

impl Node {
    /// A node that stands in no file.
    pub fn new(value: Value) -> Self {
        Self { spot: Spot::default(), value }
    }

    /// Text that stands in no file.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Value::Text(text.into()))
    }

    /// What a map has under this key.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let entries = self.as_map()?;
        entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// The entries, if it is a map.
    pub fn as_map(&self) -> Option<&[(Key, Node)]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The elements, if it is a list.
    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, in words for people.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a yes or no",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
            Value::Raw(_) => "JSON",
        }
    }

    /// Appends it as JSON, on one line.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.value {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(yes) => out.extend_from_slice(if *yes { b"true" } else { b"false" }),
            Value::Number(text) => out.extend_from_slice(text.as_bytes()),
            Value::Raw(text) => out.extend_from_slice(&json::compact(text.as_bytes())),
            Value::Text(text) => json::write_str(out, text),
            Value::List(elements) => {
                out.push(b'[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    element.write_json(out);
                }
                out.push(b']');
            }
            Value::Map(entries) => {
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

    /// It as JSON, on one line.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_json(&mut out);
        out
    }

    /// The node with every text in it changed; it then stands in no file.
    pub fn map_text(self, change: fn(&str) -> String) -> Self {
        Self::new(match self.value {
            Value::Text(text) => Value::Text(change(&text)),
            Value::List(elements) => {
                Value::List(elements.into_iter().map(|node| node.map_text(change)).collect())
            }
            Value::Map(entries) => Value::Map(
                entries.into_iter().map(|(key, node)| (key, node.map_text(change))).collect(),
            ),
            other => other,
        })
    }
}
