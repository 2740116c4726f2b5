//! Reduces answers and definitions to the old schema.
//!
//! Anything that it has no keys for becomes text, and a comment says what it was. Texts are escaped
//! for the passes that its loaders make: `${` is doubled here, and every `$` when all is written.

use super::gather::Of;
use super::listing::ItemKind;
use super::reply::Outcome;
use super::tree;
use crate::emit::Entry;
use crate::node::{Key, Node, Value};

/// A definition with the keys of the old schema.
pub(super) fn definition(kind: ItemKind, node: Node) -> Node {
    let known: &[&str] = match kind {
        ItemKind::Tool => &["name", "description", "inputSchema"],
        ItemKind::Prompt => &["name", "description", "arguments"],
        _ => &["uri", "name", "description", "mimeType"],
    };
    let node = opened(node);
    let name = node.get("name").and_then(Node::as_text).unwrap_or("unnamed").to_owned();
    let Value::Map(mut entries) = plain(node).value else { return tree::map(Vec::new()) };
    entries.retain(|(key, _)| known.contains(&key.name.as_str()));
    let lacks =
        |entries: &[(Key, Node)], key: &str| entries.iter().all(|entry| entry.0.name != key);
    if kind == ItemKind::Tool {
        let described = |(key, node): &(Key, Node)| {
            key.name != "description" || node.as_text().is_some_and(|text| !text.is_empty())
        };
        entries.retain(described);
        if lacks(&entries, "description") {
            entries.push(tree::entry("description", Node::text(format!("The tool {name}"))));
        }
    }
    if kind == ItemKind::Prompt {
        let arguments = entries.iter_mut().find(|(key, _)| key.name == "arguments");
        if let Some(Value::List(arguments)) = arguments.map(|(_, node)| &mut node.value) {
            for argument in arguments {
                keep(argument, &["name", "description", "required"]);
            }
        }
    }
    tree::map(entries)
}

/// An answer with the keys of the old schema.
pub(super) fn entries(of: Of, outcome: Outcome, acted: bool) -> Vec<Entry> {
    let mut comments = Vec::new();
    if acted {
        comments.push("Messages before this answer are left out.".to_owned());
    }
    let items = match outcome {
        Outcome::Members(members) => {
            for (name, node) in &members {
                if matches!(
                    name.as_str(),
                    "isError" | "structuredContent" | "_meta" | "description"
                ) {
                    comments.push(format!("Also recorded: {name} {}", shown(node)));
                }
            }
            let body = members.into_iter().find(|(name, _)| Some(name.as_str()) == body_of(of));
            match body.map(|(_, node)| node.value) {
                Some(Value::List(items)) => items,
                _ => Vec::new(),
            }
        }
        Outcome::Result(node) | Outcome::Error(node) => {
            let message = node.get("message").and_then(Node::as_text).map(str::to_owned);
            let text = message.unwrap_or_else(|| shown(&node));
            comments.push(format!("Recorded instead: {}", shown(&node)));
            vec![text_item(of, text)]
        }
        Outcome::Wants(_) | Outcome::Silence => {
            comments.push("The tape has no answer.".to_owned());
            vec![text_item(of, String::new())]
        }
    };
    let mut known: Vec<Node> = Vec::new();
    for item in items {
        known.push(degrade(of, plain(item), &mut comments));
    }
    if known.is_empty() {
        known.push(text_item(of, String::new()));
    }
    let key = body_of(of).unwrap_or("content");
    let mut entry = Entry::new(key, Node::new(Value::List(known)));
    entry.comments = comments;
    vec![entry]
}

fn body_of(of: Of) -> Option<&'static str> {
    match of {
        Of::Item(ItemKind::Tool) => Some("content"),
        Of::Item(ItemKind::Prompt) => Some("messages"),
        Of::Item(_) => Some("contents"),
        Of::Method => None,
    }
}

/// An item of an answer with the keys of the old schema.
fn degrade(of: Of, mut item: Node, comments: &mut Vec<String>) -> Node {
    if item.as_map().is_none() {
        comments.push("The recorded value was not a map.".to_owned());
        item = text_item(of, item.as_text().map_or_else(|| shown(&item), str::to_owned));
    }
    match of {
        Of::Item(ItemKind::Prompt) => {
            if let Value::Map(entries) = &mut item.value
                && let Some((_, content)) =
                    entries.iter_mut().find(|(key, _)| key.name == "content")
            {
                let taken = std::mem::replace(content, Node::new(Value::Null));
                *content = content_item(taken, &["text"], comments);
            }
            keep(&mut item, &["role", "content"]);
            item
        }
        Of::Item(ItemKind::Tool) | Of::Method => {
            content_item(item, &["text", "image", "resource"], comments)
        }
        Of::Item(_) => {
            keep(&mut item, &["uri", "mimeType", "text", "blob"]);
            item.map_text(escape)
        }
    }
}

fn content_item(mut item: Node, kinds: &[&str], comments: &mut Vec<String>) -> Node {
    let kind = item.get("type").and_then(Node::as_text).unwrap_or_default().to_owned();
    if !kinds.contains(&kind.as_str()) {
        comments.push(format!("Recorded as {kind}, which the old schema does not allow here."));
        let text = shown(&item);
        let text = item.get("text").and_then(Node::as_text).map_or(text, str::to_owned);
        return content_text(escape(&text));
    }
    let known: &[&str] = match kind.as_str() {
        "text" => &["type", "text"],
        "image" => &["type", "data", "mimeType"],
        _ => &["type", "resource"],
    };
    keep(&mut item, known);
    if let Value::Map(entries) = &mut item.value
        && let Some((_, resource)) = entries.iter_mut().find(|(key, _)| key.name == "resource")
    {
        keep(resource, &["uri", "mimeType", "text", "blob"]);
    }
    item.map_text(escape)
}

fn text_item(of: Of, text: String) -> Node {
    match of {
        Of::Item(ItemKind::Prompt) => tree::map(vec![
            tree::entry("role", Node::text("user")),
            tree::entry("content", content_text(text)),
        ]),
        Of::Item(ItemKind::Tool) | Of::Method => content_text(text),
        Of::Item(_) => tree::map(vec![tree::entry("text", Node::text(text))]),
    }
}

fn content_text(text: String) -> Node {
    tree::map(vec![tree::entry("type", Node::text("text")), tree::entry("text", Node::text(text))])
}

/// Removes all other keys from a map.
pub(super) fn keep(node: &mut Node, keys: &[&str]) {
    if let Value::Map(entries) = &mut node.value {
        entries.retain(|(key, _)| keys.contains(&key.name.as_str()));
    }
}

/// A value for a comment or a text.
fn shown(node: &Node) -> String {
    String::from_utf8_lossy(&node.to_json()).into_owned()
}

/// Replaces raw JSON by text, because the old schema has no `$json`.
fn plain(node: Node) -> Node {
    Node::new(match node.value {
        Value::Raw(text) => Value::Text(text),
        Value::List(elements) => Value::List(elements.into_iter().map(plain).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, node)| (key, plain(node))).collect())
        }
        other => other,
    })
}

/// Parses a raw JSON object to a map; of duplicate keys, the last one is kept.
fn opened(node: Node) -> Node {
    let Value::Raw(text) = &node.value else { return node };
    let mut entries: Vec<(Key, Node)> = Vec::new();
    for (name, value) in tree::members(text.as_bytes()) {
        entries.retain(|(key, _)| key.name != name);
        entries.push(tree::entry(&name, tree::read(value)));
    }
    tree::map(entries)
}

/// Escapes text so that a template yields it unchanged.
fn escape(text: &str) -> String {
    text.replace("${", "$${")
}
