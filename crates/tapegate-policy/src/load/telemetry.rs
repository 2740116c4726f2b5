//! The section `telemetry` of a policy, whose variables are substituted separately.
//!
//! They hold settings for a collector, such as a token. They do not affect decisions, so the
//! version of a policy does not depend on them, and where no telemetry is sent they are not read.

use tapegate_yaml::node::{Node, NodeKey, NodeValue};
use tapegate_yaml::shape::Shape;

use super::env::EnvExpander;

const NAME: &str = "telemetry";

/// Whether the section is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TelemetryUse {
    Sent,
    /// Nothing is sent, so a section with variables is left out.
    Withheld,
}

/// The section, removed from a policy.
pub(super) struct TelemetrySection {
    /// Its index among the keys of the policy.
    index: usize,
    key: NodeKey,
    node: Node,
}

impl TelemetrySection {
    /// Removes the section, if there is one.
    pub(super) fn take(policy: &mut Node) -> Option<Self> {
        let NodeValue::Map(entries) = &mut policy.value else { return None };
        let index = entries.iter().position(|(key, _)| key.name == NAME)?;
        let (key, node) = entries.remove(index);
        Some(Self { index, key, node })
    }

    /// Puts it back with its variables substituted.
    pub(super) fn restore(self, policy: &mut Node, env: &mut EnvExpander<'_>, shape: &Shape) {
        let Self { index, key, mut node } = self;
        env.fill_entry(NAME, &mut node, shape);
        if let NodeValue::Map(entries) = &mut policy.value {
            entries.insert(index, (key, node));
        }
    }

    pub(super) fn has_variables(&self) -> bool {
        has_variables(&self.node)
    }

    /// Whether it enables telemetry, or may do so by a variable.
    pub(super) fn is_enabled(&self) -> bool {
        let enabled = self.node.get("enabled").map(|node| &node.value);
        // A variable may turn it on, so anything that is not plainly off counts as on.
        !matches!(enabled, None | Some(NodeValue::Null | NodeValue::Bool(false)))
    }
}

fn has_variables(node: &Node) -> bool {
    match &node.value {
        NodeValue::Text(text) => text.contains("${"),
        NodeValue::List(elements) => elements.iter().any(has_variables),
        NodeValue::Map(entries) => entries.iter().any(|(_, value)| has_variables(value)),
        _ => false,
    }
}
