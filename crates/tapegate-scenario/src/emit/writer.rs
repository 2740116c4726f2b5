//! Writes a document line by line.

use super::scalar::{self, TextStyle};
use super::{DocumentPart, ListElement, MapEntry, YamlDocument};
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
    /// A map or a list on lines of its own; never empty.
    Block(Vec<ChildView<'a>>),
    /// A value on the line of its key.
    Flow(String),
}

/// An entry of a map, or an element of a list, which has no key.
struct ChildView<'a> {
    comments: &'a [String],
    apart: bool,
    key: Option<&'a str>,
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
                block(entries.iter().map(view_entry).collect(), "{}")
            }
            Self::Part(DocumentPart::List(elements)) => {
                let view = |element: &'a ListElement| {
                    let ListElement { comments, apart, value } = element;
                    let (apart, value) = (*apart, ViewSource::Part(value));
                    ChildView { comments, apart, key: None, value }
                };
                block(elements.iter().map(view).collect(), "[]")
            }
            Self::Json(text) => ValueView::Flow(scalar::quoted(text)),
        }
    }
}

fn block<'a>(children: Vec<ChildView<'a>>, empty: &str) -> ValueView<'a> {
    match children.is_empty() {
        true => ValueView::Flow(empty.to_owned()),
        false => ValueView::Block(children),
    }
}

fn view_entry(entry: &MapEntry) -> ChildView<'_> {
    let MapEntry { comments, apart, key, value } = entry;
    ChildView { comments, apart: *apart, key: Some(key), value: ViewSource::Part(value) }
}

fn view_node(node: &Node) -> ValueView<'_> {
    let bare = |key, value| ChildView { comments: &[], apart: false, key, value };
    match &node.value {
        NodeValue::Map(entries) => {
            let children = entries
                .iter()
                .map(|(key, node)| bare(Some(key.name.as_str()), ViewSource::Node(node)));
            block(children.collect(), "{}")
        }
        NodeValue::List(elements) => match flow(elements) {
            Some(line) => ValueView::Flow(line),
            None => {
                let children = elements.iter().map(|node| bare(None, ViewSource::Node(node)));
                block(children.collect(), "[]")
            }
        },
        NodeValue::Raw(text) => ValueView::Block(vec![bare(Some("$json"), ViewSource::Json(text))]),
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
        self.children(&entries, 0, false);
    }

    /// Writes the entries of a map or the elements of a list; if `begun`, the first one continues
    /// the current line.
    fn children(&mut self, children: &[ChildView<'_>], indent: usize, mut begun: bool) {
        for child in children {
            let view = child.value.view();
            if !begun {
                self.write_comments_above(child.apart, child.comments, indent);
                // Comments above the first entry of a map in a list go above its dash.
                if let (None, ValueView::Block(inner)) = (child.key, &view)
                    && let Some(first) = inner.first().filter(|first| first.key.is_some())
                {
                    self.write_comments_above(first.apart, first.comments, indent);
                }
                self.pad(indent);
            }
            begun = false;
            match (child.key, view) {
                (Some(key), view) => {
                    self.key(key, indent);
                    self.value(view, indent);
                }
                (None, ValueView::Block(inner)) => {
                    self.out.push_str("- ");
                    self.children(&inner, indent + INDENT, true);
                }
                (None, view) => {
                    self.out.push('-');
                    self.value(view, indent);
                }
            }
        }
    }

    /// Writes a key and its colon.
    fn key(&mut self, key: &str, indent: usize) {
        let key = scalar::key(key);
        if key.len() > KEY_BYTES_MAX {
            // An explicit key has no length limit.
            self.out.push_str(&format!("? {key}\n"));
            self.pad(indent);
        } else {
            self.out.push_str(&key);
        }
        self.out.push(':');
    }

    /// Writes the value after a colon or a dash.
    fn value(&mut self, view: ValueView<'_>, indent: usize) {
        match view {
            ValueView::Block(children) => {
                self.out.push('\n');
                self.children(&children, indent + INDENT, false);
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
