//! Environment variables in the values of a policy: `${VAR}` and `${VAR:-default}`.
//!
//! They are substituted after YAML has been parsed, so a variable cannot introduce a key, a list or
//! another rule. A substituted value is not expanded again, and stays text unless a number or a
//! boolean is expected in its place. Every missing variable is reported.

use std::collections::{BTreeMap, BTreeSet};

use tapegate_yaml::files::Files;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, NodeValue};
use tapegate_yaml::shape::{self, Shape};
use tapegate_yaml::yaml;

/// The variables that were looked up, and their values.
pub(super) type AskedVariables = BTreeMap<String, Option<String>>;

/// Delimits the mark of a variable; see [`VariableHandling::Marked`]. Texts of policies that are compared
/// must not contain it.
pub(crate) const MARK: char = '\u{f8ff}';

/// What replaces a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableHandling {
    /// Its value.
    Filled,
    /// Its value and a mark of how it was written, so that two values are equal only if they are
    /// equal in every environment.
    Marked,
}

/// The state of substituting variables.
pub(super) struct EnvExpander<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) put_in: VariableHandling,
    pub(super) used_variables: AskedVariables,
    /// The variables with their defaults, as written.
    pub(super) written: BTreeSet<String>,
    pub(super) findings: &'a mut Findings,
}

impl EnvExpander<'_> {
    /// Substitutes variables in every text under `node`, which should have this shape.
    pub(super) fn fill(&mut self, node: &mut Node, shape: &Shape) {
        match &mut node.value {
            // A policy that contains the mark itself could make two different texts look equal.
            NodeValue::Text(text)
                if self.put_in == VariableHandling::Marked && text.contains(MARK) =>
            {
                self.findings.error(node.spot, format!("{MARK:?} cannot be compared"));
            }
            NodeValue::Text(text) if text.contains("${") => {
                let Some(filled) = self.text(&text.clone(), node) else {
                    node.value = NodeValue::Null;
                    return;
                };
                node.value = NodeValue::Text(filled);
                settle(node, shape);
            }
            NodeValue::List(elements) => {
                let inner = inner(shape, |shape| match shape {
                    Shape::List(inner) => Some(**inner),
                    _ => None,
                });
                for (index, element) in elements.iter_mut().enumerate() {
                    self.findings.push_step(&format!("[{index}]"));
                    self.fill(element, &inner);
                    self.findings.pop_step();
                }
            }
            NodeValue::Map(entries) => {
                entries
                    .iter_mut()
                    .for_each(|(key, value)| self.fill_entry(&key.name, value, shape));
            }
            _ => {}
        }
    }

    /// Substitutes variables in the value of a key of a map that should have this shape.
    pub(super) fn fill_entry(&mut self, name: &str, value: &mut Node, shape: &Shape) {
        let inner = inner(shape, |shape| match shape {
            Shape::MapOf(inner) => Some(**inner),
            Shape::Table(table) => table.entry(name).map(|entry| entry.shape),
            _ => None,
        });
        self.findings.push_step(name);
        self.fill(value, &inner);
        self.findings.pop_step();
    }

    /// A text with its variables substituted; `None` if that failed, which has been reported.
    fn text(&mut self, text: &str, node: &Node) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let (mut rest, mut whole) = (text, true);
        while let Some(at) = rest.find("${") {
            // The result is not scanned again, so a value with `${` in it stays as it is.
            if let Some(before) = rest[..at].strip_suffix('$') {
                out.push_str(before);
                out.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            out.push_str(&rest[..at]);
            let inside = &rest[at + 2..];
            let Some(end) = inside.find('}') else {
                self.findings.error(node.spot, "a `${` has no `}`; write `$${` for a literal `${`");
                return None;
            };
            match self.variable(&inside[..end]) {
                Ok(value) => {
                    out.push_str(&value);
                    self.mark(&inside[..end], &mut out);
                }
                Err(message) => {
                    self.findings.error(node.spot, message);
                    whole = false;
                }
            }
            rest = &inside[end + 1..];
        }
        out.push_str(rest);
        whole.then_some(out)
    }

    fn mark(&mut self, inside: &str, out: &mut String) {
        if self.put_in == VariableHandling::Marked {
            // The hash has no characters that are special in globs or expressions.
            let hash = blake3::hash(inside.as_bytes()).to_hex();
            out.extend([MARK.to_string().as_str(), &hash[..16], MARK.to_string().as_str()]);
        }
        self.written.insert(format!("${{{inside}}}"));
    }

    /// The value for the text between the braces.
    fn variable(&mut self, inside: &str) -> Result<String, String> {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let starts = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if !starts || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(format!(
                "`${{{inside}}}` is not a valid variable; write `$${{` for a literal `${{`"
            ));
        }
        if default.is_some_and(|default| default.contains("${")) {
            return Err(format!(
                "the default of `{name}` contains a variable; variables cannot be nested"
            ));
        }
        let value = self.files.variable(name);
        // Unset variables are noted too: setting one later makes another policy.
        self.used_variables.insert(name.to_owned(), value.clone());
        value.or_else(|| default.map(str::to_owned)).ok_or_else(|| {
            format!(
                "the variable `{name}` is not set; give it a value, or a default: `${{{name}:-…}}`"
            )
        })
    }
}

/// The shape inside a shape, or inside one of several.
fn inner(shape: &Shape, find: impl Fn(&Shape) -> Option<Shape> + Copy) -> Shape {
    let found = match shape {
        Shape::Either(shapes) => shapes.iter().find_map(find),
        shape => find(shape),
    };
    found.unwrap_or(Shape::Any)
}

/// Converts a text to a number or a boolean if one is expected in its place.
fn settle(node: &mut Node, shape: &Shape) {
    // Text has priority: a variable with the value `123` stays text where text is accepted.
    if shape::accepts(shape, node) {
        return;
    }
    if let Some(text) = node.as_text()
        && let Ok(value @ (NodeValue::Number(_) | NodeValue::Bool(_))) =
            yaml::parse_word(text.trim())
    {
        let other = Node { spot: node.spot, value };
        if shape::accepts(shape, &other) {
            *node = other;
        }
    }
}
