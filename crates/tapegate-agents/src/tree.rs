//! The content of a config, independent of its format, with the place of every value in the text.
//!
//! Edits replace ranges of the text, so that whatever is not replaced stays as it is.

mod json;
mod toml;
mod yaml;

use std::ops::Range;

/// How deeply nested values are read.
const DEPTH_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigFormat {
    /// JSON, with or without comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

/// A value and its place.
#[derive(Debug, Clone)]
pub struct ConfigNode {
    pub value: ConfigValue,
    /// The bytes of the text that it is written in. A table of TOML has the span of its header.
    pub span: Range<usize>,
}

/// A value in a config.
#[derive(Debug, Clone)]
pub enum ConfigValue {
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(String),
    Text(String),
    List(Vec<ConfigNode>),
    /// A map, in order.
    Map(Vec<ConfigMember>),
    Null,
    /// A date, or a value that is nested too deeply, as written.
    Other(String),
}

/// A key of a map and its value.
#[derive(Debug, Clone)]
pub struct ConfigMember {
    pub key: String,
    /// Where the key is written.
    pub key_span: Range<usize>,
    /// The value.
    pub node: ConfigNode,
    /// Whether it is written in this map. A merge key of YAML brings members from elsewhere.
    pub is_own: bool,
}

impl ConfigNode {
    /// Parses a config, or returns what is wrong with it. An empty text is null.
    pub fn read(text: &str, format: ConfigFormat) -> Result<Self, String> {
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Ok(Self { value: ConfigValue::Null, span: 0..text.len() });
        }
        // Editors on Windows put a byte order mark at the start. Blanked rather than removed, so
        // that places stay as they are.
        let blanked = text.strip_prefix('\u{feff}').map(|rest| format!("   {rest}"));
        let plain = blanked.as_deref().unwrap_or(text);
        match format {
            ConfigFormat::Json => json::read(plain),
            ConfigFormat::Toml => toml::read(plain),
            // It would take the blanks for indentation, and knows the mark.
            ConfigFormat::Yaml => yaml::read(text),
        }
    }

    /// The member with this key, if it is a map. If a key occurs twice, the last one counts, as it
    /// does for the clients.
    pub fn member(&self, key: &str) -> Option<&ConfigMember> {
        self.members().iter().rev().find(|member| member.key == key)
    }

    /// The value of a key, if it is a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.member(key).map(|member| &member.node)
    }

    /// The members of a map.
    pub fn members(&self) -> &[ConfigMember] {
        match &self.value {
            ConfigValue::Map(members) => members,
            _ => &[],
        }
    }

    /// The elements of a list.
    pub fn elements(&self) -> &[Self] {
        match &self.value {
            ConfigValue::List(elements) => elements,
            _ => &[],
        }
    }

    /// The text; an unquoted number in YAML may be one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            ConfigValue::Text(text) | ConfigValue::Number(text) => Some(text),
            _ => None,
        }
    }

    /// The texts of a list; `None` if it is not a list or contains anything else.
    pub fn texts(&self) -> Option<Vec<String>> {
        let ConfigValue::List(elements) = &self.value else { return None };
        elements.iter().map(|element| element.as_text().map(str::to_owned)).collect()
    }

    /// Where its last member ends, however deep; a table of TOML is written by lines.
    pub(crate) fn last_end(&self) -> usize {
        let inner = self.members().iter().map(|member| member.node.last_end());
        inner.max().unwrap_or(0).max(self.span.end)
    }

    /// Whether two values are equal, wherever and however they are written. The order of members
    /// counts.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (ConfigValue::List(own), ConfigValue::List(others)) => {
                own.len() == others.len()
                    && own.iter().zip(others).all(|(own, other)| own.is_same(other))
            }
            (ConfigValue::Map(own), ConfigValue::Map(others)) => {
                let is_same = |own: &ConfigMember, other: &ConfigMember| {
                    own.key == other.key && own.node.is_same(&other.node)
                };
                own.len() == others.len() && own.iter().zip(others).all(|(a, b)| is_same(a, b))
            }
            (ConfigValue::Bool(own), ConfigValue::Bool(other)) => own == other,
            (ConfigValue::Number(own), ConfigValue::Number(other))
            | (ConfigValue::Text(own), ConfigValue::Text(other))
            | (ConfigValue::Other(own), ConfigValue::Other(other)) => own == other,
            (ConfigValue::Null, ConfigValue::Null) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
