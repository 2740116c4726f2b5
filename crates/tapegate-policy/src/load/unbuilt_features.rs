//! Keys and values of related policy languages that this build does not implement, or that are
//! written in another way here.
//!
//! A key that is accepted and then ignored makes a policy look stricter than it is, so each of
//! these is an error. They are removed from the tree once reported, so the tables need not know
//! them.

use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, NodeValue, Spot};

/// Matches every element of a list, or every entry of a map.
const EACH: &str = "*";

/// Something that is not implemented, or not under this key.
struct UnbuiltFeature {
    /// The keys that lead to it.
    path: &'static [&'static str],
    /// Only this value is not implemented: the text under the key, or the `type` of the map there.
    value: Option<&'static str>,
    /// What to use instead.
    instead: &'static str,
    /// Whether that does the same.
    is_elsewhere: bool,
}

const fn key(path: &'static [&'static str], instead: &'static str) -> UnbuiltFeature {
    UnbuiltFeature { path, value: None, instead, is_elsewhere: false }
}

const fn value(path: &'static [&'static str], value: &'static str) -> UnbuiltFeature {
    UnbuiltFeature { path, value: Some(value), instead: "", is_elsewhere: false }
}

/// A feature that is configured by something else here.
const fn elsewhere(feature: UnbuiltFeature, instead: &'static str) -> UnbuiltFeature {
    UnbuiltFeature { instead, is_elsewhere: true, ..feature }
}

const DESTINATION: &[&str] = &["approval", EACH, "destination"];

const UNBUILT: &[UnbuiltFeature] = &[
    key(&["wrapper"], ""),
    key(&["sources", EACH, "prefix"], "names are never changed"),
    elsewhere(
        key(&["approval", EACH, "elicitation"], ""),
        "list the clients whose users may answer in the workflow's `in_agent`",
    ),
    elsewhere(
        value(DESTINATION, "slack"),
        "define a channel of `type: slack` in `channels`, and name it in the workflow's `channels`",
    ),
    elsewhere(
        value(DESTINATION, "webhook"),
        "define a channel of `type: webhook` in `channels`, and name it in the workflow's `channels`",
    ),
    // Before its section, so that the error names the key and not only the section.
    key(&["telemetry", "stdio", "propagate_upstream"], ""),
    key(&["telemetry", "stdio"], ""),
    key(&["telemetry", "prometheus"], "the hub serves metrics at `/metrics`"),
    key(&["telemetry", "metrics"], "the number of label values is always bounded"),
    key(&["telemetry", "content_capture"], "contents are on the tape"),
    key(&["telemetry", "otlp", "tls"], ""),
    value(&["telemetry", "otlp", "protocol"], "grpc"),
    key(&["telemetry", "sampling", "overrides"], ""),
    value(&["telemetry", "sampling", "strategy"], "tail"),
];

/// Reports everything in a policy that is not implemented, and removes it from the tree.
pub(super) fn remove_unsupported(policy: &mut Node, findings: &mut Findings) {
    for unbuilt in UNBUILT {
        visit(policy, unbuilt, unbuilt.path, findings);
    }
}

fn visit(node: &mut Node, unbuilt: &UnbuiltFeature, path: &[&str], findings: &mut Findings) {
    let Some((step, rest)) = path.split_first() else { return };
    match &mut node.value {
        NodeValue::List(elements) if *step == EACH => {
            for (index, element) in elements.iter_mut().enumerate() {
                let place = format!("[{index}]");
                findings.with_step(&place, |findings| visit(element, unbuilt, rest, findings));
            }
        }
        NodeValue::Map(entries) => entries.retain_mut(|(key, node)| {
            if *step != EACH && key.name != *step {
                return true;
            }
            let was_empty = is_empty(node);
            findings.with_step(&key.name, |findings| match rest {
                [] => !report(key.spot, node, unbuilt, findings),
                _ => {
                    visit(node, unbuilt, rest, findings);
                    // A section that held nothing else is not reported a second time.
                    was_empty || !is_empty(node)
                }
            })
        }),
        _ => {}
    }
}

fn is_empty(node: &Node) -> bool {
    node.as_map().is_some_and(<[_]>::is_empty)
}

/// Reports a node if it is not implemented; returns whether it did.
fn report(spot: Spot, node: &Node, unbuilt: &UnbuiltFeature, findings: &mut Findings) -> bool {
    let name = unbuilt.path.last().copied().unwrap_or_default();
    let (what, spot) = match unbuilt.value {
        None => (format!("`{name}`"), spot),
        Some(value) => {
            let written = node.get("type").unwrap_or(node);
            if written.as_text() != Some(value) {
                return false;
            }
            (format!("`{name}: {value}`"), written.spot)
        }
    };
    let message = match unbuilt.instead {
        instead if unbuilt.is_elsewhere => {
            format!("{what} is written in another way here: {instead}")
        }
        "" => format!("not implemented yet: {what}; remove it"),
        instead => format!("not implemented yet: {what}; remove it ({instead})"),
    };
    findings.error(spot, message);
    true
}
