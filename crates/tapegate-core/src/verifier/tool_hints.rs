//! Which tools are read-only, according to a list of tools.

use std::collections::HashMap;

use crate::frame::array_items;
use crate::json::{member, string};

/// What one or more lists of tools declare about each tool.
#[derive(Debug, Default)]
pub(super) struct ToolHints {
    by_name: HashMap<String, ToolHint>,
    pages: usize,
}

/// What is declared about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolHint {
    ReadOnly,
    Destructive,
    /// Neither.
    Nothing,
}

impl ToolHints {
    /// Adds a page of tools: the text of a result with `tools`.
    pub(super) fn add(&mut self, result: &[u8]) {
        self.pages += 1;
        for tool in member(result, "tools").map(array_items).unwrap_or_default() {
            let Some(name) = member(tool, "name").and_then(string) else { continue };
            let hint = ToolHint::of(tool);
            // If lists disagree, the least harmless declaration counts.
            let worst = |known: &mut ToolHint| {
                if *known == ToolHint::ReadOnly || hint == ToolHint::Destructive {
                    *known = hint;
                }
            };
            self.by_name.entry(name.into_owned()).and_modify(worst).or_insert(hint);
        }
    }

    /// What is declared about the tool, if it is listed.
    pub(super) fn hint(&self, name: &str) -> Option<ToolHint> {
        self.by_name.get(name).copied()
    }

    /// How many pages were added.
    pub(super) fn pages(&self) -> usize {
        self.pages
    }

    /// How many tools are listed.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }
}

impl ToolHint {
    fn of(tool: &[u8]) -> Self {
        let Some(annotations) = member(tool, "annotations") else { return Self::Nothing };
        let says = |name| member(annotations, name) == Some(b"true");
        match (says("readOnlyHint"), says("destructiveHint")) {
            (_, true) => Self::Destructive,
            (true, false) => Self::ReadOnly,
            (false, false) => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, annotations: &str) -> String {
        format!(r#"{{"name":"{name}","annotations":{annotations}}}"#)
    }

    #[test]
    fn only_a_plain_word_makes_a_tool_read_only() {
        let list = [
            tool("a", r#"{"readOnlyHint":true}"#),
            tool("b", r#"{"readOnlyHint":true,"destructiveHint":true}"#),
            tool("c", r#"{"readOnlyHint":"true"}"#),
            tool("d", r#"{"readOnlyHint":true,"readOnlyHint":false}"#),
            tool("e", r#"{"destructiveHint":false}"#),
            r#"{"name":"f"}"#.to_owned(),
        ];
        let mut tools = ToolHints::default();
        tools.add(format!(r#"{{"tools":[{}]}}"#, list.join(",")).as_bytes());
        let hints = ["a", "b", "c", "d", "e", "f", "g"].map(|name| tools.hint(name));
        let nothing = Some(ToolHint::Nothing);
        let (reads, destroys) = (Some(ToolHint::ReadOnly), Some(ToolHint::Destructive));
        assert_eq!(hints, [reads, destroys, nothing, nothing, nothing, nothing, None]);
    }

    #[test]
    fn the_worst_of_several_lists_counts() {
        let mut tools = ToolHints::default();
        for annotations in [r#"{"readOnlyHint":true}"#, "{}", r#"{"readOnlyHint":true}"#] {
            tools.add(format!(r#"{{"tools":[{}]}}"#, tool("a", annotations)).as_bytes());
        }
        assert_eq!(tools.hint("a"), Some(ToolHint::Nothing));
        tools.add(
            format!(r#"{{"tools":[{}]}}"#, tool("a", r#"{"destructiveHint":true}"#)).as_bytes(),
        );
        tools.add(format!(r#"{{"tools":[{}]}}"#, tool("a", "{}")).as_bytes());
        assert_eq!(tools.hint("a"), Some(ToolHint::Destructive));
    }
}
