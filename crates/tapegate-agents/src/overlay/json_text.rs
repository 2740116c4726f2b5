//! A value of a config as JSON.

use crate::edit::quote;
use crate::tree::{ConfigNode, ConfigValue};

/// The value on one line. Numbers stay as they are written, so they are JSON where the config is.
pub(super) fn json_text(node: &ConfigNode) -> String {
    match &node.value {
        ConfigValue::Bool(yes) => yes.to_string(),
        ConfigValue::Number(text) | ConfigValue::Other(text) => text.clone(),
        ConfigValue::Text(text) => quote(text),
        ConfigValue::Null => "null".to_owned(),
        ConfigValue::List(elements) => {
            let elements: Vec<String> = elements.iter().map(json_text).collect();
            format!("[{}]", elements.join(", "))
        }
        ConfigValue::Map(members) => {
            let member = |one: &crate::tree::ConfigMember| {
                format!("{}: {}", quote(&one.key), json_text(&one.node))
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}
