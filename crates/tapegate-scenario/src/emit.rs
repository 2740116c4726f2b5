//! Scenarios as YAML that people read and edit: trees with comments, written so that every reader
//! sees the same.
//!
//! Text stands in double quotes unless it is a plain word under YAML 1.1 and 1.2 alike, and as a
//! `|` block only where every character of it can be seen. What a terminal or an editor would hide
//! (control characters, marks of direction, characters without width) is escaped. What cannot be a
//! tree (lone surrogates, keys that come twice) is JSON under `$json`.

mod scalar;

use crate::finding::Findings;
use crate::node::{Key, Node, Value};
use crate::yaml;

use scalar::Style;

/// A text to be written: a tree with comments.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Comments at the top, line by line.
    pub head: Vec<String>,
    /// The entries of the map at the top.
    pub entries: Vec<Entry>,
}

/// An entry of a map.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What stands above it, line by line.
    pub comments: Vec<String>,
    /// Whether an empty line stands above that.
    pub apart: bool,
    /// The key.
    pub key: String,
    /// The value.
    pub value: Part,
}

/// An element of a list.
#[derive(Debug, Clone)]
pub struct Element {
    /// What stands above it, line by line.
    pub comments: Vec<String>,
    /// Whether an empty line stands above that.
    pub apart: bool,
    /// The value.
    pub value: Part,
}

/// A part of a document.
#[derive(Debug, Clone)]
pub enum Part {
    /// A tree without comments.
    Node(Node),
    /// A map.
    Map(Vec<Entry>),
    /// A list.
    List(Vec<Element>),
}

/// How far a level is indented.
const INDENT: usize = 2;
/// How long a list may be that is written on one line.
const FLOW_BYTES_MAX: usize = 72;
/// How long a key may be that stands on the line of its value; readers must know by 1024.
const KEY_BYTES_MAX: usize = 900;

/// The document as YAML.
pub fn write(document: &Document) -> String {
    let mut out = Writer { out: String::new() };
    for line in &document.head {
        out.comment(0, line);
    }
    if document.entries.is_empty() {
        out.out.push_str("{}\n");
    }
    out.map(&document.entries, 0, false);
    out.out
}

/// Whether a reader finds in `text` exactly what the document says; else why not.
pub fn reads_back(document: &Document, text: &str) -> Result<(), String> {
    let mut findings = Findings::default();
    let read = yaml::parse(text, 0, &mut findings);
    if let Some(finding) = findings.into_list().into_iter().next() {
        return Err(format!("line {}: {}", finding.spot.line, finding.words));
    }
    let (read, meant) = (read.map(|node| as_read(&node)), document.to_node());
    match read == Some(meant) {
        true => Ok(()),
        false => Err("a reader finds something else in it than was meant".to_owned()),
    }
}

impl Document {
    /// The tree without its comments, as a reader finds it.
    pub fn to_node(&self) -> Node {
        Node::new(Value::Map(self.entries.iter().map(Entry::to_node).collect()))
    }
}

impl Entry {
    /// An entry without comments.
    pub fn new(key: impl Into<String>, value: impl Into<Part>) -> Self {
        Self { comments: Vec::new(), apart: false, key: key.into(), value: value.into() }
    }

    /// The entry with a comment above it.
    #[must_use]
    pub fn about(mut self, comment: impl Into<String>) -> Self {
        self.comments.push(comment.into());
        self
    }

    /// The entry with an empty line above it.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.apart = true;
        self
    }

    fn to_node(&self) -> (Key, Node) {
        (Key { spot: Default::default(), name: self.key.clone() }, self.value.to_node())
    }
}

impl Element {
    /// An element without comments.
    pub fn new(value: impl Into<Part>) -> Self {
        Self { comments: Vec::new(), apart: false, value: value.into() }
    }

    /// The element with a comment above it.
    #[must_use]
    pub fn about(mut self, comment: impl Into<String>) -> Self {
        self.comments.push(comment.into());
        self
    }
}

impl Part {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Node(Node::text(text))
    }

    /// The tree without its comments, as a reader finds it: `$json` is a key like any other.
    pub fn to_node(&self) -> Node {
        match self {
            Self::Node(node) => as_read(node),
            Self::Map(entries) => {
                Node::new(Value::Map(entries.iter().map(Entry::to_node).collect()))
            }
            Self::List(elements) => {
                let elements = elements.iter().map(|element| element.value.to_node());
                Node::new(Value::List(elements.collect()))
            }
        }
    }
}

impl From<Node> for Part {
    fn from(node: Node) -> Self {
        Self::Node(node)
    }
}

impl From<Vec<Entry>> for Part {
    fn from(entries: Vec<Entry>) -> Self {
        Self::Map(entries)
    }
}

impl From<Vec<Element>> for Part {
    fn from(elements: Vec<Element>) -> Self {
        Self::List(elements)
    }
}

/// The node with JSON as the map that it is written as.
fn as_read(node: &Node) -> Node {
    Node::new(match &node.value {
        Value::Raw(text) => raw(text).value,
        Value::List(elements) => Value::List(elements.iter().map(as_read).collect()),
        Value::Map(entries) => Value::Map(
            entries
                .iter()
                .map(|(key, node)| {
                    (Key { spot: Default::default(), name: key.name.clone() }, as_read(node))
                })
                .collect(),
        ),
        other => other.clone(),
    })
}

fn raw(text: &str) -> Node {
    let key = Key { spot: Default::default(), name: "$json".to_owned() };
    Node::new(Value::Map(vec![(key, Node::text(text))]))
}

/// What is written so far.
struct Writer {
    out: String,
}

/// A value that is about to be written, with comments or without.
enum View<'a> {
    Scalar(&'a Node),
    Map(Vec<MapView<'a>>),
    List(Vec<ListView<'a>>),
    /// A list on one line.
    Flow(String),
}

struct MapView<'a> {
    comments: &'a [String],
    apart: bool,
    key: &'a str,
    value: Seen<'a>,
}

struct ListView<'a> {
    comments: &'a [String],
    apart: bool,
    value: Seen<'a>,
}

#[derive(Clone, Copy)]
enum Seen<'a> {
    Part(&'a Part),
    Node(&'a Node),
    /// What stands under `$json`.
    Json(&'a str),
}

impl<'a> Seen<'a> {
    fn view(self) -> View<'a> {
        match self {
            Self::Part(Part::Node(node)) | Self::Node(node) => view_node(node),
            Self::Part(Part::Map(entries)) => View::Map(entries.iter().map(view_entry).collect()),
            Self::Part(Part::List(elements)) => View::List(
                elements
                    .iter()
                    .map(|element| ListView {
                        comments: &element.comments,
                        apart: element.apart,
                        value: Seen::Part(&element.value),
                    })
                    .collect(),
            ),
            Self::Json(text) => View::Flow(scalar::quoted(text)),
        }
    }
}

fn view_entry(entry: &Entry) -> MapView<'_> {
    let Entry { comments, apart, key, value } = entry;
    MapView { comments, apart: *apart, key, value: Seen::Part(value) }
}

fn view_node(node: &Node) -> View<'_> {
    let bare = |key, value| MapView { comments: &[], apart: false, key, value };
    match &node.value {
        Value::Map(entries) => {
            let entries = entries.iter();
            View::Map(entries.map(|(key, node)| bare(&key.name, Seen::Node(node))).collect())
        }
        Value::List(elements) => match flow(elements) {
            Some(line) => View::Flow(line),
            None => {
                let bare = |node| ListView { comments: &[], apart: false, value: Seen::Node(node) };
                View::List(elements.iter().map(bare).collect())
            }
        },
        Value::Raw(text) => View::Map(vec![bare("$json", Seen::Json(text))]),
        _ => View::Scalar(node),
    }
}

/// A list of a few scalars, on one line.
fn flow(elements: &[Node]) -> Option<String> {
    let mut line = String::from("[");
    for (index, element) in elements.iter().enumerate() {
        line.push_str(if index == 0 { "" } else { ", " });
        match &element.value {
            Value::Text(text) if text.len() <= FLOW_BYTES_MAX => {
                line.push_str(&scalar::quoted(text));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                line.push_str(&scalar::bare(element));
            }
            _ => return None,
        }
        if line.len() > FLOW_BYTES_MAX {
            return None;
        }
    }
    line.push(']');
    Some(line)
}

impl Writer {
    /// Writes the entries of a map; the first one goes on a line that has begun, if `begun`.
    fn map(&mut self, entries: &[Entry], indent: usize, begun: bool) {
        self.entries(&entries.iter().map(view_entry).collect::<Vec<_>>(), indent, begun);
    }

    fn entries(&mut self, entries: &[MapView<'_>], indent: usize, mut begun: bool) {
        for entry in entries {
            if !begun {
                self.above(entry.apart, entry.comments, indent);
                self.pad(indent);
            }
            begun = false;
            let key = scalar::key(entry.key);
            if key.len() > KEY_BYTES_MAX {
                self.out.push_str(&format!("? {key}\n"));
                self.pad(indent);
                self.out.push(':');
            } else {
                self.out.push_str(&key);
                self.out.push(':');
            }
            self.value(entry.value.view(), indent);
        }
    }

    /// Writes what follows a colon.
    fn value(&mut self, view: View<'_>, indent: usize) {
        match view {
            View::Map(entries) if entries.is_empty() => self.out.push_str(" {}\n"),
            View::List(elements) if elements.is_empty() => self.out.push_str(" []\n"),
            View::Map(entries) => {
                self.out.push('\n');
                self.entries(&entries, indent + INDENT, false);
            }
            View::List(elements) => {
                self.out.push('\n');
                self.elements(&elements, indent + INDENT, false);
            }
            View::Flow(line) => {
                self.out.push(' ');
                self.out.push_str(&line);
                self.out.push('\n');
            }
            View::Scalar(node) => {
                self.out.push(' ');
                self.scalar(node, indent + INDENT);
            }
        }
    }

    fn elements(&mut self, elements: &[ListView<'_>], indent: usize, mut begun: bool) {
        for element in elements {
            let view = element.value.view();
            if !begun {
                self.above(element.apart, element.comments, indent);
                // What stands above the first entry of a map must stand above its dash.
                if let View::Map(entries) = &view
                    && let Some(first) = entries.first()
                {
                    self.above(first.apart, first.comments, indent);
                }
                self.pad(indent);
            }
            begun = false;
            self.out.push('-');
            match view {
                View::Map(entries) if !entries.is_empty() => {
                    self.out.push(' ');
                    self.entries(&entries, indent + INDENT, true);
                }
                View::List(elements) if !elements.is_empty() => {
                    self.out.push(' ');
                    self.elements(&elements, indent + INDENT, true);
                }
                other => self.value(other, indent),
            }
        }
    }

    fn scalar(&mut self, node: &Node, indent: usize) {
        let Value::Text(text) = &node.value else {
            self.out.push_str(&scalar::bare(node));
            self.out.push('\n');
            return;
        };
        match Style::of(text) {
            Style::Plain => self.out.push_str(text),
            Style::Quoted => self.out.push_str(&scalar::quoted(text)),
            Style::Block => {
                let body = text.strip_suffix('\n');
                self.out.push_str(if body.is_some() { "|" } else { "|-" });
                for line in body.unwrap_or(text).split('\n') {
                    self.out.push('\n');
                    if !line.is_empty() {
                        self.pad(indent);
                        self.out.push_str(line);
                    }
                }
            }
        }
        self.out.push('\n');
    }

    fn above(&mut self, apart: bool, comments: &[String], indent: usize) {
        if apart && !self.out.is_empty() {
            self.out.push('\n');
        }
        for comment in comments {
            self.comment(indent, comment);
        }
    }

    fn comment(&mut self, indent: usize, words: &str) {
        self.pad(indent);
        self.out.push('#');
        if !words.is_empty() {
            self.out.push(' ');
            self.out.push_str(&scalar::visible(words));
        }
        self.out.push('\n');
    }

    fn pad(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }
}

#[cfg(test)]
mod tests;
