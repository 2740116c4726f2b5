//! Writes scenarios as readable YAML: trees with comments, in a form that all loaders read alike.
//!
//! Text is in double quotes unless it is a plain word in both YAML 1.1 and 1.2, and a `|` block
//! only if every character is visible. Characters that a terminal or an editor would hide (control,
//! direction and zero-width characters) are escaped. Values that a tree cannot hold (lone
//! surrogates, duplicate keys) become JSON under `$json`.

mod scalar;
mod writer;

use crate::finding::Findings;
use crate::node::{Node, NodeKey, NodeValue};
use crate::yaml;

use writer::YamlWriter;

/// A document to be written: a tree with comments.
#[derive(Debug, Clone, Default)]
pub struct YamlDocument {
    /// The comments at the top, line by line.
    pub head: Vec<String>,
    /// The entries of the top-level map.
    pub entries: Vec<MapEntry>,
}

#[derive(Debug, Clone)]
pub struct MapEntry {
    /// The comments above it, line by line.
    pub comments: Vec<String>,
    /// Whether an empty line precedes them.
    pub apart: bool,
    pub key: String,
    pub value: DocumentPart,
}

#[derive(Debug, Clone)]
pub struct ListElement {
    /// The comments above it, line by line.
    pub comments: Vec<String>,
    /// Whether an empty line precedes them.
    pub apart: bool,
    pub value: DocumentPart,
}

#[derive(Debug, Clone)]
pub enum DocumentPart {
    /// A tree without comments.
    Node(Node),
    Map(Vec<MapEntry>),
    List(Vec<ListElement>),
}

/// Writes a document as YAML.
pub fn write(document: &YamlDocument) -> String {
    let mut writer = YamlWriter::default();
    writer.document(document);
    writer.out
}

/// Checks that loading `text` yields exactly the document; on failure, why not.
pub fn check_roundtrip(document: &YamlDocument, text: &str) -> Result<(), String> {
    let mut findings = Findings::default();
    let read = yaml::parse(text, 0, &mut findings);
    // Warnings count too: a document of our own should cause none.
    if let Some(finding) = findings.into_list().into_iter().next() {
        return Err(format!("line {}: {}", finding.spot.line, finding.message));
    }
    let (read, meant) = (read.map(|node| as_read(&node)), document.to_node());
    match read == Some(meant) {
        true => Ok(()),
        false => Err("the text does not read back as it was written".to_owned()),
    }
}

impl YamlDocument {
    /// The tree without comments, as a loader sees it.
    pub fn to_node(&self) -> Node {
        Node::map(self.entries.iter().map(MapEntry::to_node).collect())
    }
}

impl MapEntry {
    /// Creates an entry without comments.
    pub fn new(key: impl Into<String>, value: impl Into<DocumentPart>) -> Self {
        Self { comments: Vec::new(), apart: false, key: key.into(), value: value.into() }
    }

    /// Adds a comment above the entry.
    #[must_use]
    pub fn with_comment(mut self, comment: impl Into<String>) -> Self {
        self.comments.push(comment.into());
        self
    }

    /// Adds an empty line above the entry.
    #[must_use]
    pub fn with_blank_line(mut self) -> Self {
        self.apart = true;
        self
    }

    fn to_node(&self) -> (NodeKey, Node) {
        Node::entry(&self.key, self.value.to_node())
    }
}

impl ListElement {
    /// Creates an element without comments.
    pub fn new(value: impl Into<DocumentPart>) -> Self {
        Self { comments: Vec::new(), apart: false, value: value.into() }
    }

    /// Adds a comment above the element.
    #[must_use]
    pub fn with_comment(mut self, comment: impl Into<String>) -> Self {
        self.comments.push(comment.into());
        self
    }
}

impl DocumentPart {
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Node(Node::text(text))
    }

    /// The tree without comments, as a loader sees it: `$json` is an ordinary key.
    pub fn to_node(&self) -> Node {
        match self {
            Self::Node(node) => as_read(node),
            Self::Map(entries) => Node::map(entries.iter().map(MapEntry::to_node).collect()),
            Self::List(elements) => {
                let elements = elements.iter().map(|element| element.value.to_node());
                Node::list(elements.collect())
            }
        }
    }
}

impl From<Node> for DocumentPart {
    fn from(node: Node) -> Self {
        Self::Node(node)
    }
}

impl From<Vec<MapEntry>> for DocumentPart {
    fn from(entries: Vec<MapEntry>) -> Self {
        Self::Map(entries)
    }
}

impl From<Vec<ListElement>> for DocumentPart {
    fn from(elements: Vec<ListElement>) -> Self {
        Self::List(elements)
    }
}

/// Replaces raw JSON by the map that it is written as.
fn as_read(node: &Node) -> Node {
    match &node.value {
        NodeValue::Raw(text) => Node::map(vec![Node::entry("$json", Node::text(text))]),
        NodeValue::List(elements) => Node::list(elements.iter().map(as_read).collect()),
        NodeValue::Map(entries) => {
            let read = |(key, node): &(NodeKey, Node)| Node::entry(&key.name, as_read(node));
            Node::map(entries.iter().map(read).collect())
        }
        other => Node::new(other.clone()),
    }
}

#[cfg(test)]
mod tests;
