//! Writes a document line by line.

use super::scalar::{self, TextStyle};
use super::{DocumentPart, MapEntry, YamlDocument};
use crate::node::{Node, NodeValue};

/// The indentation per level.
const INDENT: usize = 2;
/// The longest list written on one line.
const FLOW_BYTES_MAX: usize = 72;
/// The longest key on the line of its value; YAML requires the colon within 1024 characters.
const KEY_BYTES_MAX: usize = 900;

/// The output so far.
#[derive(Default)]
pub(super) struct YamlWriter {
    pub(super) out: String,
}

/// A value to be written, with or without comments.
enum ValueView<'a> {
    Scalar(&'a Node),
    Map(Vec<EntryView<'a>>),
    List(Vec<ElementView<'a>>),
    /// A list on one line.
    Flow(String),
}

struct EntryView<'a> {
    comments: &'a [String],
    apart: bool,
    key: &'a str,
    value: ViewSource<'a>,
}

struct ElementView<'a> {
    comments: &'a [String],
    apart: bool,
    value: ViewSource<'a>,
}

#[derive(Clone, Copy)]
enum ViewSource<'a> {
    Part(&'a DocumentPart),
    Node(&'a Node),
    /// The text under `$json`.
    Json(&'a str),
}

impl<'a> ViewSource<'a> {
    fn view(self) -> ValueView<'a> {
        match self {
            Self::Part(DocumentPart::Node(node)) | Self::Node(node) => view_node(node),
            Self::Part(DocumentPart::Map(entries)) => {
                ValueView::Map(entries.iter().map(view_entry).collect())
            }
            Self::Part(DocumentPart::List(elements)) => ValueView::List(
                elements
                    .iter()
                    .map(|element| ElementView {
                        comments: &element.comments,
                        apart: element.apart,
                        value: ViewSource::Part(&element.value),
                    })
                    .collect(),
            ),
            Self::Json(text) => ValueView::Flow(scalar::quoted(text)),
        }
    }
}

fn view_entry(entry: &MapEntry) -> EntryView<'_> {
    let MapEntry { comments, apart, key, value } = entry;
    EntryView { comments, apart: *apart, key, value: ViewSource::Part(value) }
}

fn view_node(node: &Node) -> ValueView<'_> {
    let bare = |key, value| EntryView { comments: &[], apart: false, key, value };
    match &node.value {
        NodeValue::Map(entries) => {
            let entries = entries.iter();
            ValueView::Map(
                entries.map(|(key, node)| bare(&key.name, ViewSource::Node(node))).collect(),
            )
        }
        NodeValue::List(elements) => match flow(elements) {
            Some(line) => ValueView::Flow(line),
            None => {
                let bare = |node| ElementView {
                    comments: &[],
                    apart: false,
                    value: ViewSource::Node(node),
                };
                ValueView::List(elements.iter().map(bare).collect())
            }
        },
        NodeValue::Raw(text) => ValueView::Map(vec![bare("$json", ViewSource::Json(text))]),
        _ => ValueView::Scalar(node),
    }
}

/// A list of a few scalars, on one line.
fn flow(elements: &[Node]) -> Option<String> {
    let mut line = String::from("[");
    for (index, element) in elements.iter().enumerate() {
        line.push_str(if index == 0 { "" } else { ", " });
        match &element.value {
            NodeValue::Text(text) if text.len() <= FLOW_BYTES_MAX => {
                line.push_str(&scalar::quoted(text));
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
                line.push_str(&scalar::scalar_text(element));
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

impl YamlWriter {
    pub(super) fn document(&mut self, document: &YamlDocument) {
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
    fn entries(&mut self, entries: &[EntryView<'_>], indent: usize, mut begun: bool) {
        for entry in entries {
            if !begun {
                self.write_comments_above(entry.apart, entry.comments, indent);
                self.pad(indent);
            }
            begun = false;
            let key = scalar::key(entry.key);
            if key.len() > KEY_BYTES_MAX {
                // An explicit key has no length limit.
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
    fn value(&mut self, view: ValueView<'_>, indent: usize) {
        match view {
            ValueView::Map(entries) if entries.is_empty() => self.out.push_str(" {}\n"),
            ValueView::List(elements) if elements.is_empty() => self.out.push_str(" []\n"),
            ValueView::Map(entries) => {
                self.out.push('\n');
                self.entries(&entries, indent + INDENT, false);
            }
            ValueView::List(elements) => {
                self.out.push('\n');
                self.elements(&elements, indent + INDENT, false);
            }
            ValueView::Flow(line) => {
                self.out.push(' ');
                self.out.push_str(&line);
                self.out.push('\n');
            }
            ValueView::Scalar(node) => {
                self.out.push(' ');
                self.scalar(node, indent + INDENT);
            }
        }
    }

    fn elements(&mut self, elements: &[ElementView<'_>], indent: usize, mut begun: bool) {
        for element in elements {
            let view = element.value.view();
            if !begun {
                self.write_comments_above(element.apart, element.comments, indent);
                // Comments above the first entry of a map go above its dash.
                if let ValueView::Map(entries) = &view
                    && let Some(first) = entries.first()
                {
                    self.write_comments_above(first.apart, first.comments, indent);
                }
                self.pad(indent);
            }
            begun = false;
            self.out.push('-');
            match view {
                ValueView::Map(entries) if !entries.is_empty() => {
                    self.out.push(' ');
                    self.entries(&entries, indent + INDENT, true);
                }
                ValueView::List(elements) if !elements.is_empty() => {
                    self.out.push(' ');
                    self.elements(&elements, indent + INDENT, true);
                }
                other => self.value(other, indent),
            }
        }
    }

    fn scalar(&mut self, node: &Node, indent: usize) {
        let NodeValue::Text(text) = &node.value else {
            self.out.push_str(&scalar::scalar_text(node));
            self.out.push('\n');
            return;
        };
        match TextStyle::of(text) {
            TextStyle::Plain => self.out.push_str(text),
            TextStyle::Quoted => self.out.push_str(&scalar::quoted(text)),
            TextStyle::Block => {
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

    fn write_comments_above(&mut self, apart: bool, comments: &[String], indent: usize) {
        if apart && !self.out.is_empty() {
            self.out.push('\n');
        }
        for comment in comments {
            self.comment(indent, comment);
        }
    }

    fn comment(&mut self, indent: usize, message: &str) {
        self.pad(indent);
        self.out.push('#');
        if !message.is_empty() {
            self.out.push(' ');
            self.out.push_str(&scalar::visible_comment(message));
        }
        self.out.push('\n');
    }

    fn pad(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }
}
