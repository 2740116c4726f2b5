//! Reads the conditions of triggers and branches.

use tapegate_core::signature::canonical;

use super::value_test::ConditionTest;
use super::{Condition, RequestMatcher};
use crate::finding::Findings;
use crate::node::{Node, NodeKey, NodeValue};
use crate::pattern::{REGEX, SimpleGlob, regex};
use crate::shape::nearest_name_within;
use crate::template::{AccessStep, ROOTS, TemplateVariable, path};

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

impl RequestMatcher {
    /// Reads a condition: a map from paths to tests.
    pub fn read(node: &Node, findings: &mut Findings) -> Self {
        let mut when = Self::default();
        match node.as_map() {
            Some(entries) => {
                for (key, inner) in entries {
                    findings.with_step(&key.name, |findings| match path(&key.name) {
                        Ok(steps) => when.add(&steps, inner, findings),
                        Err(reason) => {
                            findings.error(key.spot, format!("not a valid path: {reason}"))
                        }
                    });
                }
            }
            None => findings.error(node.spot, format!("expected a map, found {}", node.kind())),
        }
        when
    }

    fn add(&mut self, steps: &[AccessStep], node: &Node, findings: &mut Findings) {
        let Some(entries) = node.as_map() else {
            let tests = read_plain_test(node, findings).into_iter().collect();
            return self.push(steps, tests);
        };
        if entries.is_empty() || steps.len() > DEPTH_MAX {
            return findings.error(node.spot, "there is nothing to compare with");
        }
        // One operator is enough: then a misspelt one beside it is an error, and not taken for a
        // member.
        if entries.iter().any(|(key, _)| OPERATORS.contains(&key.name.as_str())) {
            let read = |(key, inner): &(NodeKey, Node)| {
                findings.with_step(&key.name, |findings| operator(key, inner, findings))
            };
            let tests = entries.iter().filter_map(read).collect();
            return self.push(steps, tests);
        }
        for (key, inner) in entries {
            findings.with_step(&key.name, |findings| {
                // Short names, and those that differ more, are as likely to be real members.
                let long = OPERATORS.into_iter().filter(|known| known.len() > 4);
                if let Some(near) = nearest_name_within(1, &key.name, long) {
                    let message =
                        format!("treated as a member of the value; did you mean `{near}`?");
                    findings.warning(key.spot, message);
                }
                match path(&key.name) {
                    Ok(more) => self.add(&[steps, &more].concat(), inner, findings),
                    Err(reason) => findings.error(key.spot, format!("not a valid path: {reason}")),
                }
            });
        }
    }

    fn push(&mut self, steps: &[AccessStep], tests: Vec<ConditionTest>) {
        // A path with another root names a member of the params.
        let known =
            matches!(steps.first(), Some(AccessStep::Key(root)) if ROOTS.contains(&root.as_str()));
        let variable = match (known, steps) {
            // `uri` alone is the parameter of a read; `uri.NAME` is a variable of the template.
            (_, [AccessStep::Key(root)]) if root == "uri" => {
                TemplateVariable::Params(steps.to_vec())
            }
            (true, steps) => TemplateVariable::from_steps(steps.to_vec()),
            (false, steps) => TemplateVariable::Params(steps.to_vec()),
        };
        self.conditions.push(Condition { variable, tests });
    }
}

/// The test of a value given without an operator.
fn read_plain_test(node: &Node, findings: &mut Findings) -> Option<ConditionTest> {
    match &node.value {
        NodeValue::Text(text) => match text.strip_prefix(REGEX) {
            Some(pattern) => regex(pattern, node, findings).map(ConditionTest::Regex),
            None => Some(ConditionTest::Glob(SimpleGlob::new(text))),
        },
        NodeValue::Number(text) => Some(ConditionTest::Number(text.clone())),
        NodeValue::List(elements) => Some(ConditionTest::Any(
            elements.iter().filter_map(|element| read_plain_test(element, findings)).collect(),
        )),
        NodeValue::Map(_) | NodeValue::Null | NodeValue::Bool(_) | NodeValue::Raw(_) => {
            Some(exact_test(node))
        }
    }
}

fn operator(key: &NodeKey, node: &Node, findings: &mut Findings) -> Option<ConditionTest> {
    match key.name.as_str() {
        unknown if !OPERATORS.contains(&unknown) => {
            let message =
                format!("unknown comparison; known comparisons: {}", OPERATORS.join(", "));
            findings.error(key.spot, message);
            None
        }
        "exists" => match node.value {
            NodeValue::Bool(there) => Some(ConditionTest::Exists(there)),
            _ => report_wrong(node, "true or false", findings),
        },
        name @ ("gt" | "lt") => {
            let text = match &node.value {
                NodeValue::Number(text) | NodeValue::Text(text) => text.as_str(),
                _ => "",
            };
            match text.parse::<f64>().ok().filter(|number| number.is_finite()) {
                Some(limit) if name == "gt" => Some(ConditionTest::Over(limit)),
                Some(limit) => Some(ConditionTest::Under(limit)),
                None => report_wrong(node, "a number", findings),
            }
        }
        "any_of" => match node.value {
            NodeValue::List(_) => read_plain_test(node, findings),
            _ => report_wrong(node, "a list", findings),
        },
        "equals" => Some(match &node.value {
            // By value, so that 1 and 1.0 are equal.
            NodeValue::Number(text) => ConditionTest::Number(text.clone()),
            _ => exact_test(node),
        }),
        name => {
            let Some(text) = node.as_text() else { return report_wrong(node, "text", findings) };
            match name {
                "contains" => Some(ConditionTest::Contains(text.to_owned())),
                "prefix" | "starts_with" => Some(ConditionTest::Prefix(text.to_owned())),
                "suffix" | "ends_with" => Some(ConditionTest::Suffix(text.to_owned())),
                "glob" => Some(ConditionTest::Glob(SimpleGlob::new(text))),
                _ => regex(text, node, findings).map(ConditionTest::Regex),
            }
        }
    }
}

fn exact_test(node: &Node) -> ConditionTest {
    // Canonical, since clients choose the order of members.
    ConditionTest::Exactly(canonical(&node.to_json()))
}

fn report_wrong(node: &Node, wanted: &str, findings: &mut Findings) -> Option<ConditionTest> {
    findings.error(node.spot, format!("this must be {wanted}, not {}", node.kind()));
    None
}
