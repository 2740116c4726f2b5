//! Parses JSON into a tree of nodes.
//!
//! Values that a tree cannot hold exactly, because of a duplicate key or a lone surrogate, stay raw
//! text.

use tapegate_core::json::{Cursor, JsonFault, JsonKind, JsonStr};

use crate::finding::Findings;
use crate::node::{Node, NodeKey, NodeValue, Spot};
use crate::yaml::NESTING_MAX;

/// Parses a text that is one JSON value; if it is invalid, reports why and returns `None`.
pub(super) fn read(text: &str, file: u16, findings: &mut Findings) -> Option<Node> {
    let mut reader = JsonNodeReader {
        cursor: Cursor::new(text.as_bytes()).ok()?,
        lines: LinePositions::new(text, file),
    };
    let node = reader.value(0).and_then(|node| reader.cursor.expect_end().map(|()| node));
    match node {
        Ok(node) => Some(node),
        Err(fault) => {
            let spot = LinePositions::new(text, file).spot(fault.at.min(text.len()));
            findings.error(spot, format!("not valid JSON: {}", fault.what));
            None
        }
    }
}

struct JsonNodeReader<'t> {
    cursor: Cursor<'t>,
    lines: LinePositions<'t>,
}

impl JsonNodeReader<'_> {
    fn value(&mut self, depth: usize) -> Result<Node, JsonFault> {
        let kind = self.cursor.kind()?;
        let start = self.cursor.position();
        let spot = self.lines.spot(start);
        let mut value = match kind {
            JsonKind::Null => self.cursor.value().map(|_| NodeValue::Null)?,
            JsonKind::Bool => NodeValue::Bool(self.cursor.value()? == b"true"),
            JsonKind::Number => NodeValue::Number(text_of(self.cursor.value()?)),
            JsonKind::String => {
                let string = self.cursor.string()?;
                if is_exact(&string) {
                    NodeValue::Text(string.decode().into_owned())
                } else {
                    NodeValue::Raw(text_of(self.cursor.slice(start, self.cursor.position())))
                }
            }
            JsonKind::Object | JsonKind::Array if depth >= NESTING_MAX => {
                NodeValue::Raw(text_of(self.cursor.value()?))
            }
            JsonKind::Array => self.list(depth)?,
            JsonKind::Object => self.map(depth)?.unwrap_or(NodeValue::Raw(String::new())),
        };
        // A marker: the raw text is known only once the cursor has passed the whole value.
        if value == NodeValue::Raw(String::new()) {
            value = NodeValue::Raw(text_of(self.cursor.slice(start, self.cursor.position())));
        }
        Ok(Node { spot, value })
    }

    fn list(&mut self, depth: usize) -> Result<NodeValue, JsonFault> {
        self.cursor.open()?;
        let mut elements = Vec::new();
        let mut first = true;
        while self.cursor.next_element(&mut first)? {
            elements.push(self.value(depth + 1)?);
        }
        Ok(NodeValue::List(elements))
    }

    /// Parses a map; `None` if a key is duplicate or contains a lone surrogate.
    fn map(&mut self, depth: usize) -> Result<Option<NodeValue>, JsonFault> {
        self.cursor.open()?;
        let mut entries: Vec<(NodeKey, Node)> = Vec::new();
        let mut names = std::collections::HashSet::<String, foldhash::fast::RandomState>::default();
        let mut exact = true;
        let mut first = true;
        while let Some(key) = self.cursor.key(&mut first)? {
            let name = key.decode().into_owned();
            // The walk goes on, because the cursor must reach the end of the value in any case.
            exact &= is_exact(&key) && names.insert(name.clone());
            let node = self.value(depth + 1)?;
            entries.push((NodeKey { spot: node.spot, name }, node));
        }
        Ok(exact.then_some(NodeValue::Map(entries)))
    }
}

/// Whether a string is valid Unicode text, without lone surrogates.
fn is_exact(string: &JsonStr<'_>) -> bool {
    !string.escaped || string.scalars().all(|scalar| char::from_u32(scalar).is_some())
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Converts byte positions, given in ascending order, to lines and columns.
struct LinePositions<'t> {
    text: &'t str,
    file: u16,
    at: usize,
    line: u32,
    start: usize,
    column: u32,
}

impl<'t> LinePositions<'t> {
    fn new(text: &'t str, file: u16) -> Self {
        Self { text, file, at: 0, line: 1, start: 0, column: 1 }
    }

    fn spot(&mut self, to: usize) -> Spot {
        let passed = self.text.get(self.at..to).unwrap_or_default();
        if let Some(last) = memchr::memrchr(b'\n', passed.as_bytes()) {
            self.line += memchr::memchr_iter(b'\n', passed.as_bytes()).count() as u32;
            self.start = self.at + last + 1;
            self.column = 1;
            self.at = self.start;
        }
        self.column += self.text.get(self.at..to).unwrap_or_default().chars().count() as u32;
        self.at = to.max(self.at);
        Spot { file: self.file, line: self.line, column: self.column }
    }
}
