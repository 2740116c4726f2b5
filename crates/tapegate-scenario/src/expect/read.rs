//! Reading expectations from a scenario.

use tapegate_core::json::path::JsonPath;
use tapegate_yaml::choice::WordChoice;

use super::expectation_test::{self, ExpectationTest, TEXTS, expected};
use super::{Expectation, ExpectationRule, ExpectationSeverity, MessagePattern};
use crate::finding::Findings;
use crate::node::{Node, NodeKey, NodeValue};
use crate::pattern::SimpleGlob;
use crate::shape::{Table, language, nearest_name};

impl Expectation {
    /// Reads an expectation. If it is invalid, reports why and returns `None`.
    pub fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        let Some(entries) = node.as_map() else {
            let message = "expected a map with `id` and one of `never` and `must`";
            findings.error(node.spot, message);
            return None;
        };
        check_keys(entries, &language::EXPECTATION, findings);
        let id = text(node, "id", findings);
        if node.get("id").is_none() {
            findings.error(node.spot, "an expectation needs an `id`, which reports show");
        }
        let (rule, name, pattern) = match (node.get("never"), node.get("must")) {
            (Some(pattern), None) => (ExpectationRule::Never, "never", pattern),
            (None, Some(pattern)) => (ExpectationRule::Must, "must", pattern),
            (None, None) => {
                let message = "an expectation needs `never` or `must`";
                findings.error(node.spot, message);
                return None;
            }
            (Some(_), Some(must)) => {
                let message = "give either `never` or `must`, not both";
                findings.error(must.spot, message);
                return None;
            }
        };
        let pattern = findings.with_step(name, |findings| MessagePattern::read(pattern, findings));
        let after = node.get("after").map(|after| {
            findings.with_step("after", |findings| MessagePattern::read(after, findings))
        });
        // Last, so that the other faults are reported first.
        let id = id?;
        Some(Self {
            spot: node.spot,
            title: text(node, "title", findings).unwrap_or_else(|| id.clone()),
            id,
            severity: severity(node, findings),
            help: text(node, "help", findings),
            rule,
            pattern,
            after,
            count: count(node, findings),
        })
    }
}

impl MessagePattern {
    /// Reads the description of a message.
    pub fn read(node: &Node, findings: &mut Findings) -> Self {
        let mut pattern = Self::default();
        let Some(entries) = node.as_map().filter(|entries| !entries.is_empty()) else {
            let keys = list_text(&keys_of(&language::SIGHTING));
            findings.error(node.spot, format!("expected a map with keys of a message: {keys}"));
            return pattern;
        };
        check_keys(entries, &language::SIGHTING, findings);
        for (key, value) in entries {
            findings.with_step(&key.name, |findings| match key.name.as_str() {
                "method" => pattern.methods = globs(value, findings),
                "name" => pattern.names = globs(value, findings),
                "phase" => pattern.phases = globs(value, findings),
                "reply" => pattern.replies = globs(value, findings),
                "args" => pattern.args = places(value, findings),
                "where" => pattern.places = places(value, findings),
                "contains" => {
                    let parts = texts(value, findings).into_iter().map(ExpectationTest::Contains);
                    pattern.texts.push(ExpectationTest::Any(parts.collect()));
                }
                "regex" => {
                    let patterns = texts(value, findings);
                    let patterns = patterns
                        .iter()
                        .map(|one| ExpectationTest::read_regex(one, value, findings))
                        .collect();
                    pattern.texts.push(ExpectationTest::Any(patterns));
                }
                _ => {}
            });
        }
        pattern
    }
}

/// The error message for an unknown name, with a suggestion if one is similar.
pub(super) fn unknown_name_message(what: &str, name: &str, known: &[&str]) -> String {
    match nearest_name(name, known.iter().copied()) {
        Some(known) => format!("there is no {what} `{name}`; did you mean `{known}`?"),
        None => format!("there is no {what} `{name}`; there are {}", list_text(known)),
    }
}

fn check_keys(entries: &[(NodeKey, Node)], table: &Table, findings: &mut Findings) {
    for (key, _) in entries.iter().filter(|(key, _)| table.entry(&key.name).is_none()) {
        findings.error(key.spot, unknown_name_message("key", &key.name, &keys_of(table)));
    }
}

fn keys_of(table: &Table) -> Vec<&'static str> {
    table.entries().map(|entry| entry.name).collect()
}

fn text(node: &Node, key: &str, findings: &mut Findings) -> Option<String> {
    let value = node.get(key)?;
    match value.as_text().filter(|text| !text.trim().is_empty()) {
        Some(text) => Some(text.trim().to_owned()),
        None => {
            let message = format!("expected text, found {}", value.kind());
            findings.with_step(key, |findings| findings.error(value.spot, message));
            None
        }
    }
}

fn severity(node: &Node, findings: &mut Findings) -> ExpectationSeverity {
    let Some(value) = node.get("severity") else { return ExpectationSeverity::default() };
    let word = value.as_text().unwrap_or_default();
    ExpectationSeverity::from_word(word).unwrap_or_else(|| {
        let message = unknown_name_message("severity", word, ExpectationSeverity::WORDS);
        findings.with_step("severity", |findings| findings.error(value.spot, message));
        ExpectationSeverity::default()
    })
}

fn count(node: &Node, findings: &mut Findings) -> u64 {
    let Some(value) = node.get("count") else { return 1 };
    let number = match &value.value {
        NodeValue::Number(text) => text.parse().ok().filter(|count| *count > 0),
        _ => None,
    };
    number.unwrap_or_else(|| {
        let message = "expected a whole number, at least 1";
        findings.with_step("count", |findings| findings.error(value.spot, message));
        1
    })
}

/// One glob or several.
fn globs(node: &Node, findings: &mut Findings) -> Vec<SimpleGlob> {
    texts(node, findings).iter().map(|text| SimpleGlob::new(text)).collect()
}

/// One text or several, but at least one.
fn texts(node: &Node, findings: &mut Findings) -> Vec<String> {
    let texts = match node.as_list() {
        Some([]) => expected(TEXTS, node, findings),
        _ => expectation_test::texts(node, findings),
    };
    texts.unwrap_or_default()
}

/// Paths, and the test for each.
fn places(node: &Node, findings: &mut Findings) -> Vec<(JsonPath, ExpectationTest)> {
    let Some(entries) = node.as_map() else {
        let message = format!("expected a map of paths and tests, found {}", node.kind());
        findings.error(node.spot, message);
        return Vec::new();
    };
    let mut places = Vec::new();
    for (key, value) in entries {
        match JsonPath::read(&key.name) {
            Ok(path) => {
                let test = findings
                    .with_step(&key.name, |findings| ExpectationTest::read(value, findings));
                places.push((path, test));
            }
            Err(fault) => {
                let message =
                    format!("not a valid path: character {}: {}", fault.at + 1, fault.what);
                findings.error(key.spot, message);
            }
        }
    }
    places
}

fn list_text(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
