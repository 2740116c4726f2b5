//! Reads single fields of a map, and reports invalid ones.
//!
//! A place where the tables have already reported an error is not reported again.

use tapegate_core::json::Number;

use crate::amount;
use crate::finding::Findings;
use crate::node::{Node, NodeValue};

/// A map whose fields are read one by one.
pub struct MapFields<'a> {
    node: &'a Node,
}

impl<'a> MapFields<'a> {
    /// The fields of `node`; none if it is not a map.
    pub fn of(node: &'a Node) -> Self {
        Self { node }
    }

    /// The value of `name`, if it is present and not null.
    pub fn get(&self, name: &str) -> Option<&'a Node> {
        // `key:` without a value means the same as no key.
        self.node.get(name).filter(|node| node.value != NodeValue::Null)
    }

    /// A required field.
    pub fn required(&self, name: &str, findings: &mut Findings) -> Option<&'a Node> {
        let found = self.get(name);
        // The node itself may be wrong, and one error for it is enough.
        if found.is_none() && !findings.has_error_at(self.node.spot) {
            findings.error(self.node.spot, format!("`{name}` is missing"));
        }
        found
    }

    /// A non-negative whole number.
    pub fn whole_number(&self, name: &str, findings: &mut Findings) -> Option<u64> {
        let node = self.get(name)?;
        findings.with_step(name, |findings| read_whole_number(node, findings))
    }

    /// A number of bytes: `1024`, `64kb`, `1mb`.
    pub fn bytes(&self, name: &str, findings: &mut Findings) -> Option<usize> {
        let node = self.get(name)?;
        findings.with_step(name, |findings| match node.as_text() {
            Some(text) => {
                let size = amount::read_bytes(text).map(to_usize);
                if size.is_none() {
                    report_wrong(
                        node,
                        format!("`{text}` is not a size such as 1024 or 64kb"),
                        findings,
                    );
                }
                size
            }
            None => read_whole_number(node, findings).map(to_usize),
        })
    }

    pub fn text(&self, name: &str, findings: &mut Findings) -> Option<&'a str> {
        let node = self.get(name)?;
        let text = node.as_text();
        if text.is_none() {
            findings.with_step(name, |findings| report_expected(node, "text", findings));
        }
        text
    }

    /// A boolean.
    pub fn flag(&self, name: &str, findings: &mut Findings) -> Option<bool> {
        let node = self.get(name)?;
        if let NodeValue::Bool(yes) = node.value {
            return Some(yes);
        }
        findings.with_step(name, |findings| report_expected(node, "true or false", findings));
        None
    }

    /// One of a few words.
    pub fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
        findings: &mut Findings,
    ) -> Option<T> {
        let node = self.get(name)?;
        findings.with_step(name, |findings| choose(node, choices, findings))
    }
}

/// The choice that a node names.
pub fn choose<T: Copy>(node: &Node, choices: &[(&str, T)], findings: &mut Findings) -> Option<T> {
    let found = choices.iter().find(|(word, _)| node.as_text() == Some(word));
    if found.is_none() {
        let words: Vec<_> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
        let got = node.as_text().map_or_else(|| node.kind().to_owned(), |text| format!("`{text}`"));
        report_wrong(node, format!("{got} is not one of {}", words.join(", ")), findings);
    }
    found.map(|(_, choice)| *choice)
}

/// Reports that something else was expected.
pub fn report_expected(node: &Node, what: &str, findings: &mut Findings) {
    report_wrong(node, format!("expected {what}, found {}", node.kind()), findings);
}

fn report_wrong(node: &Node, message: String, findings: &mut Findings) {
    if !findings.has_error_at(node.spot) {
        findings.error(node.spot, message);
    }
}

/// Converts to `usize`, saturating.
pub fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn read_whole_number(node: &Node, findings: &mut Findings) -> Option<u64> {
    let NodeValue::Number(text) = &node.value else {
        report_expected(node, "a whole number", findings);
        return None;
    };
    let number = Number::read(text.as_bytes());
    // `-0` is zero, as in JSON.
    let whole = number.as_u64().filter(|whole| !number.is_negative() || *whole == 0);
    if whole.is_none() {
        let reason = if number.is_negative() { "is negative" } else { "is not a whole number" };
        report_wrong(node, format!("`{text}` {reason}"), findings);
    }
    whole
}
