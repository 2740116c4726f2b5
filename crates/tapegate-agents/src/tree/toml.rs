//! TOML.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{ConfigMember, ConfigNode, ConfigValue, DEPTH_MAX};

pub(super) fn read(text: &str) -> Result<ConfigNode, String> {
    match DeTable::parse(text) {
        Ok(table) => Ok(ConfigNode {
            value: self::table(text, table.get_ref(), DEPTH_MAX),
            span: table.span(),
        }),
        Err(error) => Err(format!("not valid TOML: {}", error.message())),
    }
}

fn table(text: &str, table: &DeTable<'_>, depth: usize) -> ConfigValue {
    let mut members: Vec<ConfigMember> = table
        .iter()
        .map(|(key, value)| ConfigMember {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            node: node(text, value.get_ref(), value.span(), depth),
            is_own: true,
        })
        .collect();
    // The parser sorts by key. Elsewhere the order is that of the text.
    members.sort_by_key(|member| member.key_span.start);
    ConfigValue::Map(members)
}

fn node(text: &str, value: &DeValue<'_>, span: Range<usize>, depth: usize) -> ConfigNode {
    let as_written = || text.get(span.clone()).unwrap_or_default().to_owned();
    let Some(depth) = depth.checked_sub(1) else {
        return ConfigNode { value: ConfigValue::Other(as_written()), span };
    };
    let value = match value {
        DeValue::String(text) => ConfigValue::Text(text.to_string()),
        DeValue::Boolean(yes) => ConfigValue::Bool(*yes),
        DeValue::Integer(number) => ConfigValue::Number(number.to_string()),
        DeValue::Float(number) => ConfigValue::Number(number.to_string()),
        DeValue::Array(items) => ConfigValue::List(
            items.iter().map(|item| node(text, item.get_ref(), item.span(), depth)).collect(),
        ),
        DeValue::Table(inner) => table(text, inner, depth),
        DeValue::Datetime(_) => ConfigValue::Other(as_written()),
    };
    ConfigNode { value, span }
}
