//! Builds the result of an answer from its keys.
//!
//! Keys keep the order in which they were written, and no unintended key is sent.

use super::ScenarioReader;
use crate::node::{Node, NodeKey, NodeValue, Spot};
use crate::shape::{ResponseTables, TableFields, language};

pub(super) enum ResultKind {
    /// That of `tools/call`.
    Tool,
    /// That of `resources/read`.
    Resource {
        /// The URI of parts that give none; for a template, it is known only when one is read.
        uri: Node,
        /// The MIME type of parts that give none.
        mime_type: Option<Node>,
    },
    /// That of `prompts/get`.
    Prompt,
    /// Any other.
    Method,
}

/// Keys of an answer that are not part of a result.
const BESIDES_RESULT: [&str; 4] = ["error", "result", "silent", "before"];

impl ResultKind {
    /// The tables of answers with such a result.
    pub(super) fn tables(&self) -> &'static ResponseTables {
        match self {
            Self::Tool => &language::TOOL_TABLES,
            Self::Resource { .. } => &language::RESOURCE_TABLES,
            Self::Prompt => &language::PROMPT_TABLES,
            Self::Method => &language::METHOD_TABLES,
        }
    }

    /// Whether a key is part of an answer.
    pub(super) fn has_answer_key(&self, name: &str) -> bool {
        self.tables().answer.entry(name).is_some()
    }
}

impl ScenarioReader<'_> {
    /// The result that `at` describes; if it does not set `isError`, `outer` does.
    pub(super) fn result(
        &mut self,
        at: &TableFields<'_>,
        outer: Option<&TableFields<'_>>,
        body: &ResultKind,
    ) -> Node {
        let mut entries: Vec<(NodeKey, Node)> = Vec::new();
        for (key, node) in at.node.as_map().unwrap_or_default() {
            let entry = body.tables().answer.entry(&key.name);
            let Some(entry) = entry.filter(|it| !BESIDES_RESULT.contains(&it.name)) else {
                continue;
            };
            let (name, node) = match (entry.name, body) {
                ("content", ResultKind::Resource { .. }) => ("contents", short_resource(node)),
                (name, _) => (name, node.clone()),
            };
            let node = self.with_step(&key.name, |reader| reader.part(name, node, body));
            entries.push((NodeKey { spot: key.spot, name: name.to_owned() }, node));
        }
        let (must, empty) = match body {
            ResultKind::Tool => (Some("content"), NodeValue::List(Vec::new())),
            ResultKind::Resource { .. } => (Some("contents"), NodeValue::List(Vec::new())),
            ResultKind::Prompt => (Some("messages"), NodeValue::List(Vec::new())),
            ResultKind::Method => (None, NodeValue::Null),
        };
        if let Some(name) = must.filter(|name| !has(&entries, name)) {
            entries.insert(0, new_member(at.node.spot, name, empty));
        }
        if let (ResultKind::Tool, Some(outer), false) = (body, outer, has(&entries, "isError"))
            && let Some(yes) = outer.flag("isError")
        {
            entries.push(new_member(at.node.spot, "isError", NodeValue::Bool(yes)));
        }
        Node { spot: at.node.spot, value: NodeValue::Map(entries) }
    }

    /// Converts one member of a result to the form in which it is sent.
    fn part(&mut self, name: &str, mut node: Node, body: &ResultKind) -> Node {
        let NodeValue::List(elements) = &mut node.value else { return node };
        for (index, element) in elements.iter_mut().enumerate() {
            self.with_step(&format!("[{index}]"), |reader| match (name, body) {
                ("content", _) => reader.content(element),
                ("contents", ResultKind::Resource { uri, mime_type, .. }) => {
                    resource_content(element);
                    complete_resource(element, uri, mime_type.as_ref());
                }
                ("messages", _) => reader.with_step("content", |reader| reader.message(element)),
                _ => {}
            });
        }
        node
    }

    /// Converts a content item to the form in which it is sent.
    fn content(&mut self, node: &mut Node) {
        let spot = node.spot;
        let kind = node.get("type").and_then(Node::as_text).unwrap_or_default().to_owned();
        let NodeValue::Map(entries) = &mut node.value else { return };
        let (place, needs): (&str, &[&str]) = match kind.as_str() {
            "text" => ("text", &["text"]),
            "image" | "audio" => ("data", &["data", "mimeType"]),
            "resource" => ("resource", &["resource"]),
            "resource_link" => ("text", &["uri", "name"]),
            _ => ("text", &[]),
        };
        for (key, inner) in entries.iter_mut() {
            match key.name.as_str() {
                "$generate" => lift_generator(key, inner, place),
                "resource" => resource_content(inner),
                _ => {}
            }
        }
        for name in needs {
            if !has(entries, name) {
                self.findings.warning(spot, format!("`{kind}` content has no `{name}`"));
            }
        }
        if needs.is_empty() && !kind.is_empty() {
            self.findings.warning(spot, format!("MCP has no content of type `{kind}`"));
        }
    }

    fn message(&mut self, node: &mut Node) {
        let NodeValue::Map(entries) = &mut node.value else { return };
        for (_, inner) in entries.iter_mut().filter(|(key, _)| key.name == "content") {
            if inner.as_text().is_some() {
                let text = inner.clone();
                let kind = new_member(text.spot, "type", NodeValue::Text("text".to_owned()));
                let key = NodeKey { spot: text.spot, name: "text".to_owned() };
                *inner = Node { spot: text.spot, value: NodeValue::Map(vec![kind, (key, text)]) };
            }
            self.content(inner);
        }
    }
}

/// Moves `$generate` next to other keys under the key it provides the value for.
fn lift_generator(key: &mut NodeKey, node: &mut Node, place: &str) {
    let inner = std::mem::replace(node, Node::new(NodeValue::Null));
    node.spot = inner.spot;
    node.value = NodeValue::Map(vec![(key.clone(), inner)]);
    key.name = place.to_owned();
}

/// Converts a part of a resource to the form in which it is sent.
fn resource_content(node: &mut Node) {
    let NodeValue::Map(entries) = &mut node.value else { return };
    for (key, inner) in entries.iter_mut().filter(|(key, _)| key.name == "$generate") {
        lift_generator(key, inner, "text");
    }
}

/// Adds the default members to a part of a resource.
fn complete_resource(node: &mut Node, uri: &Node, mime_type: Option<&Node>) {
    let spot = node.spot;
    let NodeValue::Map(entries) = &mut node.value else { return };
    if let (Some(mime_type), false) = (mime_type, has(entries, "mimeType")) {
        let key = NodeKey { spot, name: "mimeType".to_owned() };
        entries.insert(0, (key, mime_type.clone()));
    }
    if !has(entries, "uri") {
        entries.insert(0, (NodeKey { spot, name: "uri".to_owned() }, uri.clone()));
    }
    if !has(entries, "text") && !has(entries, "blob") {
        entries.push(new_member(spot, "text", NodeValue::Text(String::new())));
    }
}

/// The contents of a resource given only as text.
fn short_resource(text: &Node) -> Node {
    let spot = text.spot;
    let key = NodeKey { spot, name: "text".to_owned() };
    let part = Node { spot, value: NodeValue::Map(vec![(key, text.clone())]) };
    Node { spot, value: NodeValue::List(vec![part]) }
}

pub(super) fn has(entries: &[(NodeKey, Node)], name: &str) -> bool {
    entries.iter().any(|(key, _)| key.name == name)
}

pub(super) fn new_member(spot: Spot, name: &str, value: NodeValue) -> (NodeKey, Node) {
    (NodeKey { spot, name: name.to_owned() }, Node { spot, value })
}
