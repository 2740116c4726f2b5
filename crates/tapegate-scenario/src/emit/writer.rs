//! Writes a document line by line.

use super::scalar::{self, Style};
use super::{Document, Entry, Part};
use crate::node::{Node, Value};

/// The indentation per level.
const INDENT: usize = 2;
/// The longest list written on one line.
const FLOW_BYTES_MAX: usize = 72;
/// The longest key on the line of its value; YAML requires the colon within 1024 characters.
const KEY_BYTES_MAX: usize = 900;

/// The output so far.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) out: String,
}

/// A value to be written, with or without comments.
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
    /// The text under `$json`.
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
    pub(super) fn document(&mut self, document: &Document) {
        for line in &document.head {
            self.comment(0, line);
        }
        if document.entries.is_empty() {
            self.out.push_str("{}\n");
        }
        let entries: Vec<_> = document.entries.iter().map(view_entry).collect();
        self.entries(&entries, 0, false);
    }

    /// Writes the entries of a map; if `begun`, the first one continues the current line.
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

    /// Writes the value after a colon.
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
                // Comments above the first entry of a map go above its dash.
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
