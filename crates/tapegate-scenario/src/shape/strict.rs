//! Reports the parts of a scenario that TJ-SPEC-001 does not have.

use super::{Rest, Shape, takes};
use crate::finding::Findings;
use crate::node::Node;

/// Reports every key in `node` that is an extension of ours.
pub fn beyond_001(node: &Node, shape: &Shape, findings: &mut Findings) {
    match shape {
        Shape::Elsewhere(inner) => beyond_001(node, inner, findings),
        Shape::Either(shapes) => {
            if let Some(shape) = shapes.iter().find(|shape| takes(shape, node)) {
                beyond_001(node, shape, findings);
            }
        }
        Shape::List(inner) => {
            for (index, element) in node.as_list().unwrap_or_default().iter().enumerate() {
                let step = format!("[{index}]");
                findings.within(&step, |findings| beyond_001(element, inner, findings));
            }
        }
        Shape::MapOf(inner) => {
            for (key, node) in node.as_map().unwrap_or_default() {
                findings.within(&key.name, |findings| beyond_001(node, inner, findings));
            }
        }
        Shape::Table(table) => {
            for (key, value) in node.as_map().unwrap_or_default() {
                match table.entry(&key.name) {
                    Some(entry) if !entry.ours => findings
                        .within(&key.name, |findings| beyond_001(value, &entry.shape, findings)),
                    None if table.rest == Rest::Refuse => {}
                    _ => {
                        findings.error(key.spot, format!("TJ-SPEC-001 has no `{}` here", key.name))
                    }
                }
            }
        }
        _ => {}
    }
}
