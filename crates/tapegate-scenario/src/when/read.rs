//! Reads the conditions of triggers and branches.

use tapegate_core::signature::canonical;

use super::test::Test;
use super::{Condition, When};
use crate::finding::Findings;
use crate::form::{Step, Variable, path};
use crate::node::{Key, Node, Value};
use crate::pattern::{Glob, REGEX, regex};
use crate::shape::near_within;

/// How deeply a condition may be nested.
const DEPTH_MAX: usize = 64;

/// The names of all operators.
const OPERATORS: [&str; 12] = [
    "contains",
    "prefix",
    "starts_with",
    "suffix",
    "ends_with",
    "regex",
    "any_of",
    "exists",
    "gt",
    "lt",
    "equals",
    "glob",
];

/// The roots a path may start with; anything else is a member of the params.
const ROOTS: [&str; 12] = [
    "args",
    "arguments",
    "params",
    "tool",
    "resource",
    "prompt",
    "phase",
    "request",
    "connection",
    "env",
    "reply",
    "uri",
];

impl When {
    /// Reads a condition: a map from paths to tests.
    pub fn read(node: &Node, findings: &mut Findings) -> Self {
        let mut when = Self::default();
        match node.as_map() {
            Some(entries) => {
                for (key, inner) in entries {
                    findings.within(&key.name, |findings| match path(&key.name) {
                        Ok(steps) => when.add(&steps, inner, findings),
                        Err(why) => findings.error(key.spot, format!("not a valid path: {why}")),
                    });
                }
            }
            None => findings.error(node.spot, format!("expected a map, found {}", node.kind())),
        }
        when
    }

    fn add(&mut self, steps: &[Step], node: &Node, findings: &mut Findings) {
        let Some(entries) = node.as_map() else {
            let tests = plain(node, findings).into_iter().collect();
            return self.push(steps, tests);
        };
        if entries.is_empty() || steps.len() > DEPTH_MAX {
            return findings.error(node.spot, "there is nothing to compare with");
        }
        if entries.iter().any(|(key, _)| OPERATORS.contains(&key.name.as_str())) {
            let read = |(key, inner): &(Key, Node)| {
                findings.within(&key.name, |findings| operator(key, inner, findings))
            };
            let tests = entries.iter().filter_map(read).collect();
            return self.push(steps, tests);
        }
        for (key, inner) in entries {
            findings.within(&key.name, |findings| {
                // Short names, and those that differ more, are as likely to be real members.
                let long = OPERATORS.into_iter().filter(|known| known.len() > 4);
                if let Some(near) = near_within(1, &key.name, long) {
                    let words = format!("treated as a member of the value; did you mean `{near}`?");
                    findings.warning(key.spot, words);
                }
                match path(&key.name) {
                    Ok(more) => self.add(&[steps, &more].concat(), inner, findings),
                    Err(why) => findings.error(key.spot, format!("not a valid path: {why}")),
                }
            });
        }
    }

    fn push(&mut self, steps: &[Step], tests: Vec<Test>) {
        let known =
            matches!(steps.first(), Some(Step::Key(root)) if ROOTS.contains(&root.as_str()));
        let variable = match (known, steps) {
            // `uri` alone is the parameter of a read; `uri.NAME` is a variable of the template.
            (_, [Step::Key(root)]) if root == "uri" => Variable::Params(steps.to_vec()),
            (true, steps) => Variable::named(steps.to_vec()),
            (false, steps) => Variable::Params(steps.to_vec()),
        };
        self.conditions.push(Condition { variable, tests });
    }
}

/// The test of a value given without an operator.
fn plain(node: &Node, findings: &mut Findings) -> Option<Test> {
    match &node.value {
        Value::Text(text) => match text.strip_prefix(REGEX) {
            Some(pattern) => regex(pattern, node, findings).map(Test::Regex),
            None => Some(Test::Glob(Glob::new(text))),
        },
        Value::Number(text) => Some(Test::Number(text.clone())),
        Value::List(elements) => Some(Test::Any(
            elements.iter().filter_map(|element| plain(element, findings)).collect(),
        )),
        Value::Map(_) | Value::Null | Value::Bool(_) | Value::Raw(_) => Some(exactly(node)),
    }
}

fn operator(key: &Key, node: &Node, findings: &mut Findings) -> Option<Test> {
    match key.name.as_str() {
        unknown if !OPERATORS.contains(&unknown) => {
            let words = format!("unknown comparison; known comparisons: {}", OPERATORS.join(", "));
            findings.error(key.spot, words);
            None
        }
        "exists" => match node.value {
            Value::Bool(there) => Some(Test::Exists(there)),
            _ => wrong(node, "true or false", findings),
        },
        name @ ("gt" | "lt") => {
            let text = match &node.value {
                Value::Number(text) | Value::Text(text) => text.as_str(),
                _ => "",
            };
            match text.parse::<f64>().ok().filter(|number| number.is_finite()) {
                Some(limit) if name == "gt" => Some(Test::Over(limit)),
                Some(limit) => Some(Test::Under(limit)),
                None => wrong(node, "a number", findings),
            }
        }
        "any_of" => match node.value {
            Value::List(_) => plain(node, findings),
            _ => wrong(node, "a list", findings),
        },
        "equals" => Some(match &node.value {
            Value::Number(text) => Test::Number(text.clone()),
            _ => exactly(node),
        }),
        name => {
            let Some(text) = node.as_text() else { return wrong(node, "text", findings) };
            match name {
                "contains" => Some(Test::Contains(text.to_owned())),
                "prefix" | "starts_with" => Some(Test::Prefix(text.to_owned())),
                "suffix" | "ends_with" => Some(Test::Suffix(text.to_owned())),
                "glob" => Some(Test::Glob(Glob::new(text))),
                _ => regex(text, node, findings).map(Test::Regex),
            }
        }
    }
}

fn exactly(node: &Node) -> Test {
    Test::Exactly(canonical(&node.to_json()))
}

fn wrong(node: &Node, wanted: &str, findings: &mut Findings) -> Option<Test> {
    findings.error(node.spot, format!("this must be {wanted}, not {}", node.kind()));
    None
}
