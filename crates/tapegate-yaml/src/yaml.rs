//! Parses YAML into nodes with source positions.
//!
//! YAML 1.2 with the core schema: `yes` and `on` are text, `0x10` is a number. Anchors, aliases and
//! merge keys are supported, but their expansion is bounded, and so is nesting. Parsing takes time
//! linear in the text.

mod merge;
mod origin;
mod scalar;

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

pub use origin::SourceMap;

use crate::finding::{Findings, Severity};
use crate::node::{Node, NodeKey, NodeValue, Spot};

/// How deeply lists and maps may be nested.
pub const NESTING_MAX: usize = 64;
/// How many bytes aliases may add, counting some overhead per node.
const ALIASED_BYTES_MAX: usize = 64 << 20;

/// Parses a text that is one document; if it cannot be parsed, reports why and returns `None`. An
/// empty text is null.
pub fn parse(text: &str, file: u16, findings: &mut Findings) -> Option<Node> {
    parse_from(text, file, &SourceMap::default(), findings)
}

/// Like `parse`, but a duplicate key is an error: in a policy, the one that is ignored may be the
/// one meant to protect.
pub fn parse_strict(text: &str, file: u16, findings: &mut Findings) -> Option<Node> {
    run(text, file, &SourceMap::default(), Severity::Error, findings)
}

/// Parses an unquoted scalar: text, a number, a boolean or null; on failure, the error message.
pub fn parse_word(text: &str) -> Result<NodeValue, String> {
    scalar::parse_plain(text.into())
}

/// Parses a text in which parts were substituted; positions refer to the original.
pub fn parse_from(
    text: &str,
    file: u16,
    origin: &SourceMap,
    findings: &mut Findings,
) -> Option<Node> {
    run(text, file, origin, Severity::Warning, findings)
}

fn run(
    text: &str,
    file: u16,
    origin: &SourceMap,
    twice: Severity,
    findings: &mut Findings,
) -> Option<Node> {
    let mut builder = NodeBuilder {
        file,
        origin,
        twice,
        findings,
        anchors: HashMap::default(),
        open: Vec::new(),
        aliased_bytes: 0,
        done: None,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let spot = builder.spot(error.marker());
                builder.findings.error(spot, format!("this is not valid YAML: {}", error.info()));
                return None;
            }
        };
        let spot = builder.spot(&span.start);
        // An error that leaves the tree in an unknown state ends parsing; all others are collected.
        builder.event(event, spot)?;
    }
    Some(
        builder
            .done
            .unwrap_or(Node { spot: Spot { file, line: 1, column: 1 }, value: NodeValue::Null }),
    )
}

/// Builds a tree from the parser's events.
struct NodeBuilder<'f> {
    file: u16,
    origin: &'f SourceMap,
    /// The severity of a duplicate key.
    twice: Severity,
    findings: &'f mut Findings,
    anchors: HashMap<usize, Node, RandomState>,
    open: Vec<OpenNode>,
    aliased_bytes: usize,
    done: Option<Node>,
}

/// A list or a map that is not complete yet.
struct OpenNode {
    spot: Spot,
    anchor: usize,
    inside: OpenContent,
}

enum OpenContent {
    List(Vec<Node>),
    Map { entries: Vec<(NodeKey, Node)>, merges: Vec<merge::MergeKey>, slot: MapSlot },
}

/// What a map expects next.
enum MapSlot {
    Key,
    Value(NodeKey),
    Merge(Spot),
    /// A value whose key was invalid.
    Nothing,
}

impl NodeBuilder<'_> {
    fn event(&mut self, event: Event<'_>, spot: Spot) -> Option<()> {
        match event {
            // Silently using one of two documents could drop the rules of the other.
            Event::DocumentStart(_) if self.done.is_some() => {
                self.findings.error(spot, "a second document begins here; only one is allowed");
                None
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text, style, anchor, tag.as_deref(), spot)
            }
            Event::SequenceStart(anchor, tag) => {
                self.known_tag(tag.as_deref(), "seq", spot);
                self.begin(OpenNode { spot, anchor, inside: OpenContent::List(Vec::new()) })
            }
            Event::MappingStart(anchor, tag) => {
                self.known_tag(tag.as_deref(), "map", spot);
                let inside = OpenContent::Map {
                    entries: Vec::new(),
                    merges: Vec::new(),
                    slot: MapSlot::Key,
                };
                self.begin(OpenNode { spot, anchor, inside })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let OpenNode { spot, anchor, inside } = self.open.pop()?;
                let value = match inside {
                    OpenContent::List(elements) => NodeValue::List(elements),
                    OpenContent::Map { entries, merges, .. } => {
                        NodeValue::Map(merge::settle(entries, merges, self.twice, self.findings))
                    }
                };
                self.finish(Node { spot, value }, anchor)
            }
            Event::Alias(anchor) => self.alias(anchor, spot),
            // Comments and the beginning of the stream.
            _ => Some(()),
        }
    }

    fn spot(&self, marker: &Marker) -> Spot {
        let (line, column) = (marker.line() as u32, marker.col() as u32 + 1);
        let (line, column) = self.origin.original_position(line.max(1), column);
        Spot { file: self.file, line, column }
    }

    fn begin(&mut self, open: OpenNode) -> Option<()> {
        // Later steps walk the tree by recursion, so its depth is bounded here.
        if self.open.len() == NESTING_MAX {
            let message = format!("lists and maps are nested more than {NESTING_MAX} levels deep");
            self.findings.error(open.spot, message);
            return None;
        }
        self.open.push(open);
        Some(())
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        spot: Spot,
    ) -> Option<()> {
        if let Some(OpenNode {
            inside: OpenContent::Map { slot: slot @ MapSlot::Key, .. }, ..
        }) = self.open.last_mut()
        {
            let plain = style == ScalarStyle::Plain;
            // A quoted `"<<"` is an ordinary key.
            *slot = if plain && text == "<<" {
                MapSlot::Merge(spot)
            } else {
                MapSlot::Value(NodeKey { spot, name: text.clone().into_owned() })
            };
            if plain && text.is_empty() {
                self.findings.error(spot, "a key is missing");
            }
            if anchor != 0 {
                let value = NodeValue::Text(text.into_owned());
                // Keys never become nodes, so their anchors are kept separately.
                self.anchors.insert(anchor, Node { spot, value });
            }
            return Some(());
        }
        let value = scalar::read(text, style, tag).unwrap_or_else(|message| {
            self.findings.error(spot, message);
            NodeValue::Null
        });
        self.finish(Node { spot, value }, anchor)
    }

    fn known_tag(&mut self, tag: Option<&Tag>, wanted: &str, spot: Spot) {
        let Some(tag) = tag else { return };
        if !(tag.is_yaml_core_schema() && tag.suffix == wanted) {
            self.findings.error(spot, format!("the tag `{tag}` is not supported here"));
        }
    }

    /// Adds a complete node to its parent.
    fn finish(&mut self, node: Node, anchor: usize) -> Option<()> {
        // Copied before it moves to its parent; an alias may refer to it from anywhere below.
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.done = Some(node);
            return Some(());
        };
        match &mut open.inside {
            OpenContent::List(elements) => elements.push(node),
            OpenContent::Map { entries, merges, slot } => {
                match std::mem::replace(slot, MapSlot::Key) {
                    MapSlot::Value(key) => entries.push((key, node)),
                    MapSlot::Merge(spot) => {
                        merges.push(merge::MergeKey { at: entries.len(), spot, node });
                    }
                    MapSlot::Nothing => {}
                    MapSlot::Key => {
                        let message = format!("a key must be text, but this is {}", node.kind());
                        self.findings.error(node.spot, message);
                        // The value of an invalid key is parsed and dropped, so that further errors
                        // are found too.
                        *slot = MapSlot::Nothing;
                    }
                }
            }
        }
        Some(())
    }

    fn alias(&mut self, anchor: usize, spot: Spot) -> Option<()> {
        // The parser knows the anchor, but its value is not complete yet.
        let Some(node) = self.anchors.get(&anchor) else {
            self.findings.error(spot, "this alias refers to a value that contains it");
            return None;
        };
        // Aliases of aliases grow exponentially ("billion laughs"), so their total is bounded, not
        // each one.
        let left = ALIASED_BYTES_MAX - self.aliased_bytes;
        let room = NESTING_MAX.saturating_sub(self.open.len());
        let Some(cost) = node.cost(room, left) else {
            let message = "aliases expand to too much text or nest too deeply";
            self.findings.error(spot, message);
            return None;
        };
        self.aliased_bytes += cost;
        // The position of the alias: that is where the author has to look.
        let node = Node { spot, ..node.clone() };
        if let Some(OpenNode { inside: OpenContent::Map { slot: slot @ MapSlot::Key, .. }, .. }) =
            self.open.last_mut()
            && let NodeValue::Text(name) = node.value
        {
            *slot = MapSlot::Value(NodeKey { spot, name });
            return Some(());
        }
        self.finish(node, 0)
    }
}

impl Node {
    /// The approximate cost of a copy in bytes; `None` if over `bytes_max` or deeper than
    /// `depth_max`.
    pub fn cost(&self, depth_max: usize, bytes_max: usize) -> Option<usize> {
        let own = size_of::<Self>();
        let mut cost = own;
        match &self.value {
            NodeValue::Null | NodeValue::Bool(_) => {}
            NodeValue::Number(text) | NodeValue::Text(text) | NodeValue::Raw(text) => {
                cost += text.len()
            }
            NodeValue::List(elements) => {
                let depth_max = depth_max.checked_sub(1)?;
                for element in elements {
                    cost += element.cost(depth_max, bytes_max.checked_sub(cost)?)?;
                }
            }
            NodeValue::Map(entries) => {
                let depth_max = depth_max.checked_sub(1)?;
                for (key, node) in entries {
                    cost += key.name.len() + own;
                    cost += node.cost(depth_max, bytes_max.checked_sub(cost)?)?;
                }
            }
        }
        (cost <= bytes_max).then_some(cost)
    }
}

#[cfg(test)]
mod tests;
