//! Edits of a config: ranges of its text are replaced, and every other byte stays.
//!
//! Strings and lists are written in a form that JSON, TOML and YAML have in common, so the formats
//! differ only in keys and in the lists of YAML that have an element on each line.

use std::fmt::Write as _;
use std::ops::Range;

use crate::tree::{ConfigFormat, ConfigMember, ConfigNode, ConfigValue};

/// Replacements to make in a config.
#[derive(Debug)]
pub struct ConfigEdits<'a> {
    text: &'a str,
    format: ConfigFormat,
    parts: Vec<(Range<usize>, String)>,
}

impl<'a> ConfigEdits<'a> {
    /// A config without replacements.
    pub fn new(text: &'a str, format: ConfigFormat) -> Self {
        Self { text, format, parts: Vec::new() }
    }

    /// Replaces a range.
    pub fn replace(&mut self, range: Range<usize>, with: impl Into<String>) {
        self.parts.push((range, with.into()));
    }

    /// Replaces a value.
    pub fn set(&mut self, node: &ConfigNode, value: &str) {
        // A key of YAML without a value has nothing to replace, and needs a blank.
        let blank = if node.span.is_empty() { " " } else { "" };
        self.replace(node.span.clone(), format!("{blank}{value}"));
    }

    /// Renames a key.
    pub fn rename(&mut self, member: &ConfigMember, key: &str) {
        let key = if self.format == ConfigFormat::Json { quote(key) } else { key.to_owned() };
        self.replace(member.key_span.clone(), key);
    }

    /// Puts elements before those of a list.
    pub fn prepend(&mut self, list: &ConfigNode, elements: &[String]) {
        // Nothing shows how the elements of an empty list are laid out.
        let Some(first) = list.elements().first() else {
            return self.set(list, &write_list(elements));
        };
        let quoted = elements.iter().map(|element| quote(element));
        let start = first.span.start;
        if self.is_bracketed(list) {
            // A list with an element on each line stays one.
            let lead = self.lead(start);
            let separator =
                if lead.is_some() { "," } else { ", " }.to_owned() + lead.unwrap_or_default();
            let added = quoted.map(|element| element + &separator).collect::<String>();
            return self.replace(start..start, added);
        }
        // An element of YAML on a line of its own, after its dash.
        let dash = self.text[..start].rfind('-').unwrap_or(start);
        let indent = self.line_break(dash) + &self.text[self.line_start(dash)..dash];
        // A nested list may begin on the line of its key or of another dash.
        let indent = indent.replace(|one: char| !one.is_whitespace(), " ");
        let added = quoted.map(|element| format!("- {element}{indent}")).collect::<String>();
        self.replace(dash..dash, added);
    }

    /// Adds a member before another one of the same map.
    pub fn add_before(&mut self, member: &ConfigMember, map: &ConfigNode, key: &str, value: &str) {
        let start = member.key_span.start;
        let added = match self.format {
            ConfigFormat::Json => format!("{}: {value}", quote(key)),
            ConfigFormat::Toml => format!("{key} = {value}"),
            ConfigFormat::Yaml => format!("{key}: {value}"),
        };
        let separator = if self.is_bracketed(map) {
            self.lead(start).map_or(", ".to_owned(), |lead| format!(",{lead}"))
        } else {
            let before = &self.text[self.line_start(start)..start];
            match self.format {
                // A dotted key repeats the names of its tables.
                ConfigFormat::Toml => self.line_break(start) + before,
                // The first key of an element stands behind a dash.
                _ => self.line_break(start) + &" ".repeat(before.chars().count()),
            }
        };
        self.replace(start..start, added + &separator);
    }

    /// Removes a member of a map.
    pub fn remove(&mut self, map: &ConfigNode, key: &str) {
        self.remove_all(map, &[key]);
    }

    /// Removes members of a map, of each key the last one.
    pub fn remove_all(&mut self, map: &ConfigNode, keys: &[&str]) {
        // Members that a merge key brings are written elsewhere, where others use them.
        let own: Vec<&ConfigMember> = map.members().iter().filter(|one| one.is_own).collect();
        let at = |key: &&str| own.iter().rposition(|member| member.key == *key);
        let mut removed: Vec<usize> = keys.iter().filter_map(at).collect();
        removed.sort_unstable();
        removed.dedup();
        if self.format == ConfigFormat::Toml && !self.is_bracketed(map) {
            let lines: Vec<_> = removed.iter().map(|at| self.toml_lines(own[*at])).collect();
            return lines.into_iter().for_each(|lines| self.replace(lines, ""));
        }
        // Neighbours go together, since each takes a comma with it.
        for run in removed.chunk_by(|one, two| one + 1 == *two) {
            let (Some(&first), Some(&last)) = (run.first(), run.last()) else { continue };
            let (start, end) = (own[first].key_span.start, own[last].node.span.end);
            let range = match (own.get(last + 1), first.checked_sub(1)) {
                (Some(next), _) => start..next.key_span.start,
                // Together with the comma between them.
                (None, Some(before)) => own[before].node.span.end..end,
                (None, None) => start..end,
            };
            self.replace(range, "");
        }
    }

    /// The lines of a member of a table: its own, or its header and those of its members.
    fn toml_lines(&self, member: &ConfigMember) -> Range<usize> {
        let is_table = matches!(member.node.value, ConfigValue::Map(_))
            && self.text[member.node.span.clone()].starts_with('[');
        let start = if is_table { member.node.span.start } else { member.key_span.start };
        let end = if is_table { member.node.last_end() } else { member.node.span.end };
        let line_end = self.text[end..].find('\n').map_or(self.text.len(), |at| end + at + 1);
        let mut line_start = self.line_start(start);
        if is_table {
            // The blank line above a header goes with it.
            let above = self.text[..line_start].trim_end_matches(['\r', '\n']).len();
            let blank =
                self.text[above..line_start].find('\n').map_or(line_start, |at| above + at + 1);
            line_start = blank;
        }
        line_start..line_end
    }

    /// The text with all replacements made; `None` if two of them overlap.
    pub fn finish(mut self) -> Option<String> {
        // Stable, so that what is added at one place keeps its order.
        self.parts.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut at = 0;
        for (range, with) in &self.parts {
            // Out of bounds if ranges overlap, and then there is no text at all.
            out.push_str(self.text.get(at..range.start)?);
            out.push_str(with);
            at = range.end;
        }
        out.push_str(self.text.get(at..)?);
        Some(out)
    }

    /// Whether a list or map is written in brackets rather than by lines.
    fn is_bracketed(&self, node: &ConfigNode) -> bool {
        let first = self.text[node.span.clone()].chars().next();
        match self.format {
            ConfigFormat::Json => true,
            // The span of a table is that of its header.
            ConfigFormat::Toml => match node.value {
                ConfigValue::Map(_) => first == Some('{'),
                _ => true,
            },
            ConfigFormat::Yaml => matches!(first, Some('[' | '{')),
        }
    }

    /// The line break and indentation before `at`, if nothing else is before it on its line.
    fn lead(&self, at: usize) -> Option<&'a str> {
        let before = &self.text[..at];
        let lead = &before[before.trim_end_matches([' ', '\t']).len()..];
        let broken = before.len() - lead.len();
        let start = match () {
            () if before[..broken].ends_with("\r\n") => broken - 2,
            () if before[..broken].ends_with('\n') => broken - 1,
            () => return None,
        };
        Some(&before[start..])
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |at| at + 1)
    }

    /// A line break as it is written near `at`.
    fn line_break(&self, at: usize) -> String {
        let near = self.text[at..].find('\n').map(|end| at + end);
        let near = near.or_else(|| self.text[..at].rfind('\n'));
        let is_windows = near.is_some_and(|end| self.text[..end].ends_with('\r'));
        if is_windows { "\r\n" } else { "\n" }.to_owned()
    }
}

/// A list of texts that every format can read.
pub fn write_list(elements: &[String]) -> String {
    let quoted: Vec<String> = elements.iter().map(|element| quote(element)).collect();
    format!("[{}]", quoted.join(", "))
}

/// A text in double quotes that every format can read: JSON, TOML and YAML share these escapes.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for one in text.chars() {
        match one {
            '"' | '\\' => out.extend(['\\', one]),
            // Not allowed, or taken for a line break, in at least one of the formats.
            '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                // Writing to a string cannot fail.
                write!(out, "\\u{:04x}", u32::from(one)).ok();
            }
            _ => out.push(one),
        }
    }
    out.push('"');
    out
}
