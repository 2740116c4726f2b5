//! Reports the parts of a scenario that TJ-SPEC-001 does not have.

use super::{Shape, UnknownKeys, accepts};
use crate::finding::Findings;
use crate::node::Node;

/// Reports every key in `node` that is an extension of ours.
pub fn report_own_keys(node: &Node, shape: &Shape, findings: &mut Findings) {
    match shape {
        Shape::Elsewhere(inner) => report_own_keys(node, inner, findings),
        Shape::Either(shapes) => {
            if let Some(shape) = shapes.iter().find(|shape| accepts(shape, node)) {
                report_own_keys(node, shape, findings);
            }
        }
        Shape::List(inner) => {
            for (index, element) in node.as_list().unwrap_or_default().iter().enumerate() {
                let step = format!("[{index}]");
                findings.with_step(&step, |findings| report_own_keys(element, inner, findings));
            }
        }
        Shape::MapOf(inner) => {
            for (key, node) in node.as_map().unwrap_or_default() {
                findings.with_step(&key.name, |findings| report_own_keys(node, inner, findings));
            }
        }
        Shape::Table(table) => {
            for (key, value) in node.as_map().unwrap_or_default() {
                match table.entry(&key.name) {
                    Some(entry) if !entry.ours => findings.with_step(&key.name, |findings| {
                        report_own_keys(value, &entry.shape, findings)
                    }),
                    None if table.rest == UnknownKeys::Refuse => {}
                    _ => {
                        findings.error(key.spot, format!("TJ-SPEC-001 has no `{}` here", key.name))
                    }
                }
            }
        }
        _ => {}
    }
}
