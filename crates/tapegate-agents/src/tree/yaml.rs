//! YAML, read as `tapegate-yaml` reads it, with the places of values.

use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use tapegate_yaml::node::NodeValue;
use tapegate_yaml::yaml::{NESTING_MAX, parse_word};

use super::{ConfigMember, ConfigNode, ConfigValue};

/// How many values aliases may add.
const ALIASED_MAX: usize = 100_000;

pub(super) fn read(text: &str) -> Result<ConfigNode, String> {
    let places = BytePlaces::new(text);
    let mut builder =
        TreeBuilder { text, anchors: HashMap::new(), open: Vec::new(), aliased: 0, done: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| at_line(error.marker().line(), error.info()))?;
        builder
            .event(event, places.range(&span))
            .map_err(|reason| at_line(span.start.line(), reason))?;
    }
    Ok(builder.done.unwrap_or(ConfigNode { value: ConfigValue::Null, span: 0..text.len() }))
}

fn at_line(line: usize, reason: &str) -> String {
    format!("not valid YAML: line {line}: {reason}")
}

/// Turns the parser's positions, which count characters, into those of bytes.
struct BytePlaces {
    /// The byte at which each character begins; empty if every character is one byte.
    starts: Vec<usize>,
    length: usize,
}

impl BytePlaces {
    fn new(text: &str) -> Self {
        let starts = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().map(|(at, _)| at).collect()
        };
        Self { starts, length: text.len() }
    }

    fn range(&self, span: &Span) -> Range<usize> {
        let byte = |at: usize| match self.starts.is_empty() {
            true => at.min(self.length),
            false => self.starts.get(at).copied().unwrap_or(self.length),
        };
        byte(span.start.index())..byte(span.end.index())
    }
}

/// Builds a tree from the parser's events.
struct TreeBuilder<'a> {
    text: &'a str,
    anchors: HashMap<usize, ConfigNode>,
    open: Vec<UnfinishedNode>,
    aliased: usize,
    done: Option<ConfigNode>,
}

/// A list or a map that is not complete yet.
struct UnfinishedNode {
    anchor: usize,
    start: usize,
    content: UnfinishedContent,
}

enum UnfinishedContent {
    List(Vec<ConfigNode>),
    Map { members: Vec<ConfigMember>, key: Option<(String, Range<usize>)> },
}

impl TreeBuilder<'_> {
    fn event(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), &'static str> {
        match event {
            Event::DocumentStart(_) if self.done.is_some() => {
                // Clients read the first one or the last.
                return Err("a second document begins here; only one is allowed");
            }
            Event::Scalar(text, style, anchor, _) => {
                let value = match style {
                    ScalarStyle::Plain => plain(&text),
                    _ => ConfigValue::Text(text.into_owned()),
                };
                self.add(anchor, ConfigNode { value, span })?;
            }
            Event::Alias(anchor) => {
                let value = match self.anchors.get(&anchor) {
                    Some(node) => node.value.clone(),
                    None => return Err("an alias refers to an anchor that is not complete"),
                };
                // A few lines of nested aliases can stand for billions of values.
                self.aliased += count(&value);
                if self.aliased > ALIASED_MAX {
                    return Err("aliases make it too large");
                }
                self.add(0, ConfigNode { value, span })?;
            }
            Event::SequenceStart(anchor, _) => {
                self.begin(anchor, span.start, UnfinishedContent::List(Vec::new()))?;
            }
            Event::MappingStart(anchor, _) => {
                self.begin(
                    anchor,
                    span.start,
                    UnfinishedContent::Map { members: Vec::new(), key: None },
                )?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(&span)?,
            _ => {}
        }
        Ok(())
    }

    fn begin(
        &mut self,
        anchor: usize,
        start: usize,
        content: UnfinishedContent,
    ) -> Result<(), &'static str> {
        // Later steps walk the tree by recursion.
        if self.open.len() >= NESTING_MAX {
            return Err("it is nested too deeply");
        }
        self.open.push(UnfinishedNode { anchor, start, content });
        Ok(())
    }

    fn end(&mut self, span: &Range<usize>) -> Result<(), &'static str> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let (value, last) = match open.content {
            UnfinishedContent::List(elements) => {
                let last = elements.last().map(|element| element.span.end);
                (ConfigValue::List(elements), last)
            }
            UnfinishedContent::Map { members, .. } => {
                let last = members.last().map(|member| member.node.span.end);
                (ConfigValue::Map(merged(members)), last)
            }
        };
        // A list or map in brackets ends with its bracket. Any other ends with its last value; the
        // parser notices that only at the next one.
        let end = if span.is_empty() { last.unwrap_or(span.end) } else { span.end };
        self.add(open.anchor, ConfigNode { value, span: open.start..end.max(open.start) })
    }

    fn add(&mut self, anchor: usize, mut node: ConfigNode) -> Result<(), &'static str> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.done = Some(node),
            Some(UnfinishedContent::List(elements)) => elements.push(node),
            Some(UnfinishedContent::Map { members, key }) => match key.take() {
                Some((name, key_span)) => {
                    if node.span.is_empty() {
                        // A key without a value. The parser says where it noticed that; a value
                        // goes behind the colon.
                        let rest = &self.text[key_span.end..];
                        let at = rest.find(':').map_or(key_span.end, |at| key_span.end + at + 1);
                        node.span = at..at;
                    }
                    members.push(ConfigMember { key: name, key_span, node, is_own: true });
                }
                None => match node.as_text() {
                    Some(name) => *key = Some((name.to_owned(), node.span)),
                    None if matches!(node.value, ConfigValue::Bool(_) | ConfigValue::Null) => {
                        // Keys such as `on` in other tools' settings; no server is named so.
                        *key = Some((format!("{:?}", node.value), node.span));
                    }
                    None => return Err("a key is not a text"),
                },
            },
        }
        Ok(())
    }
}

fn plain(text: &str) -> ConfigValue {
    match parse_word(text) {
        Ok(NodeValue::Null) => ConfigValue::Null,
        Ok(NodeValue::Bool(yes)) => ConfigValue::Bool(yes),
        Ok(NodeValue::Number(number)) => ConfigValue::Number(number),
        _ => ConfigValue::Text(text.to_owned()),
    }
}

/// Members that merge keys bring are added; those of the map itself win.
fn merged(mut members: Vec<ConfigMember>) -> Vec<ConfigMember> {
    let merges: Vec<ConfigNode> =
        members.iter().filter(|one| one.key == "<<").map(|one| one.node.clone()).collect();
    for node in &merges {
        let maps = match &node.value {
            ConfigValue::List(maps) => maps.iter().collect(),
            _ => vec![node],
        };
        for member in maps.into_iter().flat_map(ConfigNode::members) {
            if !members.iter().any(|own| own.key == member.key) {
                members.push(ConfigMember { is_own: false, ..member.clone() });
            }
        }
    }
    members
}

fn count(value: &ConfigValue) -> usize {
    match value {
        ConfigValue::List(elements) => {
            1 + elements.iter().map(|one| count(&one.value)).sum::<usize>()
        }
        ConfigValue::Map(members) => {
            1 + members.iter().map(|one| count(&one.node.value)).sum::<usize>()
        }
        _ => 1,
    }
}
