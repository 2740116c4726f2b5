//! Reduces answers and definitions to the old schema.
//!
//! Anything that it has no keys for becomes text, and a comment says what it was. Texts are escaped
//! for the passes that its loaders make: `${` is doubled here, and every `$` when all is written.

use super::reply::OutcomeDraft;
use super::tape_contents::OperationKind;
use super::tree;
use crate::emit::MapEntry;
use crate::model::ItemKind;
use crate::node::{Node, NodeKey, NodeValue};
use crate::shape::{Table, language};

/// A definition with the keys of the old schema.
pub(super) fn definition(kind: ItemKind, node: Node) -> Node {
    let node = open_json_map(node);
    let name = node.get("name").and_then(Node::as_text).unwrap_or("unnamed").to_owned();
    let mut node = without_json(node);
    retain_old_keys(&mut node, kind.info().definition);
    let NodeValue::Map(mut entries) = node.value else { return Node::map(Vec::new()) };
    let lacks =
        |entries: &[(NodeKey, Node)], key: &str| entries.iter().all(|entry| entry.0.name != key);
    if kind == ItemKind::Tool {
        let described = |(key, node): &(NodeKey, Node)| {
            key.name != "description" || node.as_text().is_some_and(|text| !text.is_empty())
        };
        entries.retain(described);
        if lacks(&entries, "description") {
            entries.push(Node::entry("description", Node::text(format!("The tool {name}"))));
        }
    }
    if kind == ItemKind::Prompt {
        let arguments = entries.iter_mut().find(|(key, _)| key.name == "arguments");
        if let Some(NodeValue::List(arguments)) = arguments.map(|(_, node)| &mut node.value) {
            for argument in arguments {
                retain_old_keys(argument, &language::ARGUMENT);
            }
        }
    }
    Node::map(entries)
}

/// An answer with the keys of the old schema.
pub(super) fn entries(of: OperationKind, outcome: OutcomeDraft, acted: bool) -> Vec<MapEntry> {
    let mut comments = Vec::new();
    if acted {
        comments.push("Messages before this answer are left out.".to_owned());
    }
    let items = match outcome {
        OutcomeDraft::Members(members) => {
            for (name, node) in &members {
                if matches!(
                    name.as_str(),
                    "isError" | "structuredContent" | "_meta" | "description"
                ) {
                    comments.push(format!("Also recorded: {name} {}", value_text(node)));
                }
            }
            let body = members.into_iter().find(|(name, _)| Some(name.as_str()) == body_of(of));
            match body.map(|(_, node)| node.value) {
                Some(NodeValue::List(items)) => items,
                _ => Vec::new(),
            }
        }
        OutcomeDraft::Result(node) | OutcomeDraft::Error(node) => {
            let message = node.get("message").and_then(Node::as_text).map(str::to_owned);
            let text = message.unwrap_or_else(|| value_text(&node));
            comments.push(format!("Recorded instead: {}", value_text(&node)));
            vec![text_item(of, text)]
        }
        OutcomeDraft::Wants(_) | OutcomeDraft::Silence => {
            comments.push("The tape has no answer.".to_owned());
            vec![text_item(of, String::new())]
        }
    };
    let mut known: Vec<Node> = Vec::new();
    for item in items {
        known.push(downgrade(of, without_json(item), &mut comments));
    }
    if known.is_empty() {
        known.push(text_item(of, String::new()));
    }
    let key = body_of(of).unwrap_or("content");
    let mut entry = MapEntry::new(key, Node::list(known));
    entry.comments = comments;
    vec![entry]
}

fn body_of(of: OperationKind) -> Option<&'static str> {
    match of {
        OperationKind::Item(ItemKind::Tool) => Some("content"),
        OperationKind::Item(ItemKind::Prompt) => Some("messages"),
        OperationKind::Item(_) => Some("contents"),
        OperationKind::Method => None,
    }
}

/// An item of an answer with the keys of the old schema.
fn downgrade(of: OperationKind, mut item: Node, comments: &mut Vec<String>) -> Node {
    if item.as_map().is_none() {
        comments.push("The recorded value was not a map.".to_owned());
        item = text_item(of, item.as_text().map_or_else(|| value_text(&item), str::to_owned));
    }
    match of {
        OperationKind::Item(ItemKind::Prompt) => {
            if let NodeValue::Map(entries) = &mut item.value
                && let Some((_, content)) =
                    entries.iter_mut().find(|(key, _)| key.name == "content")
            {
                let taken = std::mem::replace(content, Node::new(NodeValue::Null));
                *content = content_item(taken, &["text"], comments);
            }
            retain_old_keys(&mut item, &language::MESSAGE);
            item
        }
        OperationKind::Item(ItemKind::Tool) | OperationKind::Method => {
            content_item(item, &["text", "image", "resource"], comments)
        }
        OperationKind::Item(_) => {
            retain_keys(&mut item, &["uri", "mimeType", "text", "blob"]);
            item.map_text(escape)
        }
    }
}

fn content_item(mut item: Node, kinds: &[&str], comments: &mut Vec<String>) -> Node {
    let kind = item.get("type").and_then(Node::as_text).unwrap_or_default().to_owned();
    if !kinds.contains(&kind.as_str()) {
        comments.push(format!("Recorded as {kind}, which the old schema does not allow here."));
        let text = value_text(&item);
        let text = item.get("text").and_then(Node::as_text).map_or(text, str::to_owned);
        return content_text(escape(&text));
    }
    let known: &[&str] = match kind.as_str() {
        "text" => &["type", "text"],
        "image" => &["type", "data", "mimeType"],
        _ => &["type", "resource"],
    };
    retain_keys(&mut item, known);
    if let NodeValue::Map(entries) = &mut item.value
        && let Some((_, resource)) = entries.iter_mut().find(|(key, _)| key.name == "resource")
    {
        retain_keys(resource, &["uri", "mimeType", "text", "blob"]);
    }
    item.map_text(escape)
}

fn text_item(of: OperationKind, text: String) -> Node {
    match of {
        OperationKind::Item(ItemKind::Prompt) => Node::map(vec![
            Node::entry("role", Node::text("user")),
            Node::entry("content", content_text(text)),
        ]),
        OperationKind::Item(ItemKind::Tool) | OperationKind::Method => content_text(text),
        OperationKind::Item(_) => Node::map(vec![Node::entry("text", Node::text(text))]),
    }
}

fn content_text(text: String) -> Node {
    Node::map(vec![Node::entry("type", Node::text("text")), Node::entry("text", Node::text(text))])
}

/// Removes the keys from a map that the old schema does not have.
pub(super) fn retain_old_keys(node: &mut Node, table: &Table) {
    let is_old = |name: &str| table.entry(name).is_some_and(|it| it.name == name && !it.ours);
    if let NodeValue::Map(entries) = &mut node.value {
        entries.retain(|(key, _)| is_old(&key.name));
    }
}

/// Removes all other keys from a map.
fn retain_keys(node: &mut Node, keys: &[&str]) {
    if let NodeValue::Map(entries) = &mut node.value {
        entries.retain(|(key, _)| keys.contains(&key.name.as_str()));
    }
}

/// A value for a comment or a text.
fn value_text(node: &Node) -> String {
    String::from_utf8_lossy(&node.to_json()).into_owned()
}

/// Replaces raw JSON by text, because the old schema has no `$json`.
fn without_json(node: Node) -> Node {
    Node::new(match node.value {
        NodeValue::Raw(text) => NodeValue::Text(text),
        NodeValue::List(elements) => {
            NodeValue::List(elements.into_iter().map(without_json).collect())
        }
        NodeValue::Map(entries) => NodeValue::Map(
            entries.into_iter().map(|(key, node)| (key, without_json(node))).collect(),
        ),
        other => other,
    })
}

/// Parses a raw JSON object to a map; of duplicate keys, the last one is kept.
fn open_json_map(node: Node) -> Node {
    let NodeValue::Raw(text) = &node.value else { return node };
    let mut entries: Vec<(NodeKey, Node)> = Vec::new();
    for (name, value) in tree::members(text.as_bytes()) {
        entries.retain(|(key, _)| key.name != name);
        entries.push(Node::entry(&name, tree::read(value)));
    }
    Node::map(entries)
}

/// Escapes text so that a template yields it unchanged.
fn escape(text: &str) -> String {
    text.replace("${", "$${")
}
