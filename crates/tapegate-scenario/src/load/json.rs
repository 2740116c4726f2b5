//! Parses JSON into a tree of nodes.
//!
//! Values that a tree cannot hold exactly, because of a duplicate key or a lone surrogate, stay raw
//! text.

use tapegate_core::json::{Cursor, JsonFault, JsonKind, JsonStr, compact};

use super::variables::TextPosition;
use crate::finding::Findings;
use crate::node::{Node, NodeKey, NodeValue, Spot};
use crate::yaml::NESTING_MAX;

/// Parses a text that is one JSON value; if it is invalid, reports why and returns `None`.
pub(super) fn read(text: &str, file: u16, findings: &mut Findings) -> Option<Node> {
    let mut reader = JsonNodeReader {
        cursor: Cursor::new(text.as_bytes()).ok()?,
        lines: Some(LinePositions::new(text, file)),
        depth_max: NESTING_MAX,
        stays_raw: |_| false,
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

/// Parses JSON that is in no file. Values nested deeper than `depth_max`, and objects with a key
/// for which `stays_raw` holds, stay raw text.
pub(crate) fn read_unplaced(
    text: &[u8],
    depth_max: usize,
    stays_raw: fn(&str) -> bool,
) -> Result<Node, JsonFault> {
    let cursor = Cursor::new(text)?;
    JsonNodeReader { cursor, lines: None, depth_max, stays_raw }.value(0)
}

struct JsonNodeReader<'t> {
    cursor: Cursor<'t>,
    lines: Option<LinePositions<'t>>,
    depth_max: usize,
    stays_raw: fn(&str) -> bool,
}

impl JsonNodeReader<'_> {
    fn value(&mut self, depth: usize) -> Result<Node, JsonFault> {
        let kind = self.cursor.kind()?;
        let start = self.cursor.position();
        let spot = self.lines.as_mut().map_or_else(Spot::default, |lines| lines.spot(start));
        let value = match kind {
            JsonKind::Null => self.cursor.value().map(|_| Some(NodeValue::Null))?,
            JsonKind::Bool => Some(NodeValue::Bool(self.cursor.value()? == b"true")),
            JsonKind::Number => Some(NodeValue::Number(text_of(self.cursor.value()?))),
            JsonKind::String => {
                let string = self.cursor.string()?;
                is_exact(&string).then(|| NodeValue::Text(string.decode().into_owned()))
            }
            JsonKind::Object | JsonKind::Array if depth >= self.depth_max => {
                // Skipped without recursion; the text is kept below.
                self.cursor.value().map(|_| None)?
            }
            JsonKind::Array => Some(self.list(depth)?),
            JsonKind::Object => self.map(depth)?,
        };
        let value = value.unwrap_or_else(|| {
            // Exactly as written, but on one line, since it may be sent in a message.
            let text = self.cursor.slice(start, self.cursor.position());
            NodeValue::Raw(text_of(&compact(text)))
        });
        Ok(Node { spot, value })
    }

    fn list(&mut self, depth: usize) -> Result<NodeValue, JsonFault> {
        self.cursor.open()?;
        let mut elements = Vec::new();
        while self.cursor.next_item()? {
            elements.push(self.value(depth + 1)?);
        }
        Ok(NodeValue::List(elements))
    }

    /// Parses a map; `None` if a key is duplicate, contains a lone surrogate or must stay raw.
    fn map(&mut self, depth: usize) -> Result<Option<NodeValue>, JsonFault> {
        self.cursor.open()?;
        let mut entries: Vec<(NodeKey, Node)> = Vec::new();
        let mut names = std::collections::HashSet::<String, foldhash::fast::RandomState>::default();
        let mut exact = true;
        while let Some(key) = self.cursor.next_key()? {
            let name = key.decode().into_owned();
            // The walk goes on, because the cursor must reach the end of the value in any case.
            exact &= is_exact(&key) && !(self.stays_raw)(&name) && names.insert(name.clone());
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
    position: TextPosition,
}

impl<'t> LinePositions<'t> {
    fn new(text: &'t str, file: u16) -> Self {
        Self { text, file, at: 0, position: TextPosition::default() }
    }

    fn spot(&mut self, to: usize) -> Spot {
        self.position.advance(self.text.get(self.at..to).unwrap_or_default());
        self.at = to.max(self.at);
        self.position.spot(self.file)
    }
}
