//! A server's capabilities, combined from several places.

use crate::model::PhaseState;
use crate::node::{Node, NodeValue};
use crate::shape::language;

/// Capabilities with the keys in the spelling in which they are sent.
pub(super) fn read(node: &Node) -> Option<Node> {
    let mut node = node.clone();
    let NodeValue::Map(entries) = &mut node.value else { return None };
    for (_, capability) in entries.iter_mut() {
        let NodeValue::Map(entries) = &mut capability.value else { continue };
        for (key, _) in entries.iter_mut() {
            if let Some(entry) = language::CAPABILITY.entry(&key.name) {
                key.name = entry.name.to_owned();
            }
        }
    }
    Some(node)
}

/// Overlays capabilities: each one replaces that of the same name completely.
pub(super) fn overlay(base: Option<Node>, over: Option<Node>) -> Option<Node> {
    let (base, over) = match (base, over) {
        (Some(base), Some(over)) => (base, over),
        (base, over) => return over.or(base),
    };
    let (spot, NodeValue::Map(mut entries), NodeValue::Map(more)) =
        (base.spot, base.value, over.value)
    else {
        return None;
    };
    for (key, node) in more {
        match entries.iter_mut().find(|(known, _)| known.name == key.name) {
            Some((_, known)) => *known = node,
            None => entries.push((key, node)),
        }
    }
    Some(Node { spot, value: NodeValue::Map(entries) })
}

/// The default capabilities of a server with these items.
pub(super) fn infer(state: &PhaseState) -> Node {
    let kinds = [
        ("tools", !state.tools.is_empty()),
        ("resources", !state.resources.is_empty() || !state.templates.is_empty()),
        ("prompts", !state.prompts.is_empty()),
    ];
    let entries = kinds.into_iter().filter(|(_, there)| *there);
    Node::map(entries.map(|(name, _)| Node::entry(name, Node::map(Vec::new()))).collect())
}
