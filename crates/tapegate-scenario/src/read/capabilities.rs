//! A server's capabilities, combined from several places.

use crate::model::State;
use crate::node::{Key, Node, Value};
use crate::shape::language;

/// Capabilities with the keys in the spelling in which they are sent.
pub(super) fn read(node: &Node) -> Option<Node> {
    let mut node = node.clone();
    let Value::Map(entries) = &mut node.value else { return None };
    for (_, capability) in entries.iter_mut() {
        let Value::Map(entries) = &mut capability.value else { continue };
        for (key, _) in entries.iter_mut() {
            if let Some(entry) = language::CAPABILITY.entry(&key.name) {
                key.name = entry.name.to_owned();
            }
        }
    }
    Some(node)
}

/// Overlays capabilities: each one replaces that of the same name completely.
pub(super) fn overlaid(base: Option<Node>, over: Option<Node>) -> Option<Node> {
    let (base, over) = match (base, over) {
        (Some(base), Some(over)) => (base, over),
        (base, over) => return over.or(base),
    };
    let (spot, Value::Map(mut entries), Value::Map(more)) = (base.spot, base.value, over.value)
    else {
        return None;
    };
    for (key, node) in more {
        match entries.iter_mut().find(|(known, _)| known.name == key.name) {
            Some((_, known)) => *known = node,
            None => entries.push((key, node)),
        }
    }
    Some(Node { spot, value: Value::Map(entries) })
}

/// The default capabilities of a server with these items.
pub(super) fn inferred(state: &State) -> Node {
    let kinds = [
        ("tools", !state.tools.is_empty()),
        ("resources", !state.resources.is_empty() || !state.templates.is_empty()),
        ("prompts", !state.prompts.is_empty()),
    ];
    let entries = kinds.into_iter().filter(|(_, there)| *there).map(|(name, _)| {
        let key = Key { spot: Default::default(), name: name.to_owned() };
        (key, Node::new(Value::Map(Vec::new())))
    });
    Node::new(Value::Map(entries.collect()))
}
