//! The content of a config, independent of its format.

use tapegate_core::json::{self, JsonFault, JsonStr, string};
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, NodeValue};
use tapegate_yaml::yaml;
use toml::de::{DeTable, DeValue};

use super::jsonc;
use super::table::ConfigFormat;

/// How deeply nested values are read.
const DEPTH_MAX: usize = 64;

/// A value in a config. Dates and the like are not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConfigValue {
    Bool(bool),
    /// As written.
    Number(String),
    Text(String),
    List(Vec<ConfigValue>),
    Map(Vec<(String, ConfigValue)>),
    Other,
}

impl ConfigValue {
    /// Parses a config, or returns what is wrong with it.
    pub(super) fn read(text: &str, format: ConfigFormat) -> Result<Self, String> {
        // Editors on Windows put a byte order mark at the start.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(Self::Other);
        }
        match format {
            ConfigFormat::Json => {
                let plain = jsonc::strip_comments(text);
                json::check(plain.as_bytes())
                    .map_err(|fault| format!("not valid JSON: {fault}"))?;
                // A removed comment or anything else before the value leaves whitespace.
                Ok(Self::from_json(plain.trim().as_bytes(), DEPTH_MAX))
            }
            ConfigFormat::Toml => match DeTable::parse(text) {
                Ok(table) => Ok(Self::from_table(table.get_ref(), DEPTH_MAX)),
                Err(error) => Err(format!("not valid TOML: {}", error.message())),
            },
            ConfigFormat::Yaml => {
                let mut findings = Findings::default();
                match yaml::parse(text, 0, &mut findings) {
                    Some(node) if !findings.has_errors() => Ok(Self::from_node(&node, DEPTH_MAX)),
                    _ => {
                        let first = findings.into_list().into_iter().next();
                        let (line, message) =
                            first.map_or((0, String::new()), |one| (one.spot.line, one.message));
                        Err(format!("not valid YAML: line {line}: {message}"))
                    }
                }
            }
        }
    }

    fn from_json(text: &[u8], depth: usize) -> Self {
        let Some(depth) = depth.checked_sub(1) else { return Self::Other };
        match text.first() {
            Some(b'"') => string(text).map_or(Self::Other, |text| Self::Text(text.into_owned())),
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'[') => {
                let items = tapegate_core::frame::array_items(text);
                Self::List(items.into_iter().map(|item| Self::from_json(item, depth)).collect())
            }
            Some(b'{') => Self::Map(members(text, depth).unwrap_or_default()),
            Some(b'-' | b'0'..=b'9') => Self::Number(String::from_utf8_lossy(text).into_owned()),
            _ => Self::Other,
        }
    }

    fn from_table(table: &DeTable<'_>, depth: usize) -> Self {
        let Some(depth) = depth.checked_sub(1) else { return Self::Other };
        let entries = table.iter().map(|(key, value)| {
            (key.get_ref().to_string(), Self::from_toml(value.get_ref(), depth))
        });
        Self::Map(entries.collect())
    }

    fn from_toml(value: &DeValue<'_>, depth: usize) -> Self {
        let Some(depth) = depth.checked_sub(1) else { return Self::Other };
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Boolean(yes) => Self::Bool(*yes),
            DeValue::Integer(number) => Self::Number(number.to_string()),
            DeValue::Float(number) => Self::Number(number.to_string()),
            DeValue::Array(items) => Self::List(
                items.iter().map(|item| Self::from_toml(item.get_ref(), depth)).collect(),
            ),
            DeValue::Table(table) => Self::from_table(table, depth),
            _ => Self::Other,
        }
    }

    fn from_node(node: &Node, depth: usize) -> Self {
        let Some(depth) = depth.checked_sub(1) else { return Self::Other };
        match &node.value {
            NodeValue::Bool(yes) => Self::Bool(*yes),
            NodeValue::Text(text) => Self::Text(text.clone()),
            NodeValue::Number(text) => Self::Number(text.clone()),
            NodeValue::List(items) => {
                Self::List(items.iter().map(|item| Self::from_node(item, depth)).collect())
            }
            NodeValue::Map(entries) => {
                let entries = entries.iter();
                Self::Map(
                    entries
                        .map(|(key, node)| (key.name.clone(), Self::from_node(node, depth)))
                        .collect(),
                )
            }
            NodeValue::Null | NodeValue::Raw(_) => Self::Other,
        }
    }

    /// The value of a key in a map. If a key occurs twice, the last one counts, as it does for the
    /// clients.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().rev().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// The entries of a map.
    pub(super) fn entries(&self) -> &[(String, Self)] {
        match self {
            Self::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The text; an unquoted number in YAML may be one.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            _ => None,
        }
    }

    /// The texts of a list; `None` if it is not a list or contains anything else.
    pub(super) fn texts(&self) -> Option<Vec<String>> {
        let Self::List(elements) = self else { return None };
        elements.iter().map(|element| element.as_text().map(str::to_owned)).collect()
    }
}

fn members(text: &[u8], depth: usize) -> Option<Vec<(String, ConfigValue)>> {
    let read = |member: Result<(JsonStr<'_>, &[u8]), JsonFault>| {
        let (key, value) = member.ok()?;
        Some((key.decode().into_owned(), ConfigValue::from_json(value, depth)))
    };
    json::members(text).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_config_is_the_same_whatever_it_is_written_in() {
        let json = "\u{feff}{ // one\n \"s\": {\"a\": {\"command\": \"x\", \"args\": [\"1\", \"2\",], \"on\": true}} }";
        let toml = "[s.a]\ncommand = \"x\"\nargs = ['1', \"2\"]\non = true\n";
        let yaml = "s:\n  a:\n    command: x\n    args: [\"1\", \"2\"]\n    on: true\n";
        let read = |text, format| ConfigValue::read(text, format).unwrap();
        let expected = read(json, ConfigFormat::Json);
        let entry = expected.get("s").unwrap().get("a").unwrap();
        assert_eq!(entry.get("args").unwrap().texts().unwrap(), ["1", "2"]);
        for (text, format) in [(toml, ConfigFormat::Toml), (yaml, ConfigFormat::Yaml)] {
            let tree = read(text, format);
            let other = tree.get("s").unwrap().get("a").unwrap();
            for key in ["command", "args", "on"] {
                assert_eq!(other.get(key), entry.get(key), "{format:?}");
            }
        }
    }

    #[test]
    fn blanks_and_comments_may_stand_before_a_config_and_after_it() {
        let expected = ConfigValue::read(r#"{"a": {"b": [1, true]}}"#, ConfigFormat::Json).unwrap();
        for text in [
            " {\"a\": {\"b\": [1, true]}}",
            "\r\n\t{\"a\":\n {\"b\" : [ 1 , true ] } }\n",
            "// mine\n{\"a\": /* 1 */ {\"b\": /* 2 */ [1, /* 3 */ true,],}} // end",
            "/* mine */ {\"a\": {\"b\": [1, true]}}",
        ] {
            assert_eq!(ConfigValue::read(text, ConfigFormat::Json).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_broken_is_told_and_what_is_empty_says_nothing() {
        for (text, format) in [
            ("{", ConfigFormat::Json),
            ("{\"a\": }", ConfigFormat::Json),
            ("[a\n", ConfigFormat::Toml),
            ("a: [", ConfigFormat::Yaml),
        ] {
            assert!(ConfigValue::read(text, format).is_err(), "{text}");
        }
        for format in [ConfigFormat::Json, ConfigFormat::Toml, ConfigFormat::Yaml] {
            assert_eq!(ConfigValue::read(" \n", format), Ok(ConfigValue::Other));
        }
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let _ = ConfigValue::read(&deep, ConfigFormat::Json);
    }
}
