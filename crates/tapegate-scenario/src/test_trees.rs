//! Node trees for tests.

use crate::node::{Node, NodeValue};

/// Converts JSON to a node, each part with a position of its own.
pub(crate) fn node_of(text: &str) -> Node {
    fn convert(value: &serde_json::Value, line: &mut u32) -> Node {
        *line += 1;
        let spot = crate::node::Spot { file: 0, line: *line, column: 1 };
        let value = match value {
            serde_json::Value::Null => NodeValue::Null,
            serde_json::Value::Bool(yes) => NodeValue::Bool(*yes),
            serde_json::Value::Number(number) => NodeValue::Number(number.to_string()),
            serde_json::Value::String(text) => NodeValue::Text(text.clone()),
            serde_json::Value::Array(list) => {
                NodeValue::List(list.iter().map(|element| convert(element, line)).collect())
            }
            serde_json::Value::Object(map) => NodeValue::Map(
                map.iter()
                    .map(|(name, value)| {
                        let node = convert(value, line);
                        (crate::node::NodeKey { spot: node.spot, name: name.clone() }, node)
                    })
                    .collect(),
            ),
        };
        Node { spot, value }
    }
    convert(&serde_json::from_str(text).unwrap(), &mut 0)
}
