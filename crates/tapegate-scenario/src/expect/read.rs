//! Reading expectations from a scenario.

use tapegate_core::json::path::Path;

use super::test::Test;
use super::{Expectation, Grade, Rule, Sighting};
use crate::finding::Findings;
use crate::node::{Key, Node, Value};
use crate::pattern::Glob;
use crate::shape::near;

/// The keys of an expectation.
const KEYS: &[&str] = &["id", "title", "severity", "help", "never", "must", "after", "count"];
/// The keys that describe a message.
const SIGHTING_KEYS: &[&str] =
    &["method", "name", "phase", "reply", "args", "where", "contains", "regex"];

impl Expectation {
    /// Reads an expectation. If it is invalid, reports why and returns `None`.
    pub fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        let Some(entries) = node.as_map() else {
            let words = "expected a map with `id` and one of `never` and `must`";
            findings.error(node.spot, words);
            return None;
        };
        check_keys(entries, KEYS, findings);
        let id = text(node, "id", findings);
        if node.get("id").is_none() {
            findings.error(node.spot, "an expectation needs an `id`, which reports show");
        }
        let (rule, name, sighting) = match (node.get("never"), node.get("must")) {
            (Some(sighting), None) => (Rule::Never, "never", sighting),
            (None, Some(sighting)) => (Rule::Must, "must", sighting),
            (None, None) => {
                let words = "an expectation needs `never` or `must`";
                findings.error(node.spot, words);
                return None;
            }
            (Some(_), Some(must)) => {
                let words = "give either `never` or `must`, not both";
                findings.error(must.spot, words);
                return None;
            }
        };
        let sighting = findings.within(name, |findings| Sighting::read(sighting, findings));
        let after = node
            .get("after")
            .map(|after| findings.within("after", |findings| Sighting::read(after, findings)));
        let id = id?;
        Some(Self {
            spot: node.spot,
            title: text(node, "title", findings).unwrap_or_else(|| id.clone()),
            id,
            severity: severity(node, findings),
            help: text(node, "help", findings),
            rule,
            sighting,
            after,
            count: count(node, findings),
        })
    }
}

impl Sighting {
    /// Reads the description of a message.
    pub fn read(node: &Node, findings: &mut Findings) -> Self {
        let mut sighting = Self::default();
        let Some(entries) = node.as_map().filter(|entries| !entries.is_empty()) else {
            let keys = listed(SIGHTING_KEYS);
            findings.error(node.spot, format!("expected a map with keys of a message: {keys}"));
            return sighting;
        };
        check_keys(entries, SIGHTING_KEYS, findings);
        for (key, value) in entries {
            findings.within(&key.name, |findings| match key.name.as_str() {
                "method" => sighting.methods = globs(value, findings),
                "name" => sighting.names = globs(value, findings),
                "phase" => sighting.phases = globs(value, findings),
                "reply" => sighting.replies = globs(value, findings),
                "args" => sighting.args = places(value, findings),
                "where" => sighting.places = places(value, findings),
                "contains" => {
                    let parts = texts(value, findings).into_iter().map(Test::Contains);
                    sighting.texts.push(Test::Any(parts.collect()));
                }
                "regex" => {
                    let patterns = texts(value, findings);
                    let patterns =
                        patterns.iter().map(|one| Test::read_regex(one, value, findings)).collect();
                    sighting.texts.push(Test::Any(patterns));
                }
                _ => {}
            });
        }
        sighting
    }
}

/// The error message for an unknown name, with a suggestion if one is similar.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match near(name, known.iter().copied()) {
        Some(known) => format!("there is no {what} `{name}`; did you mean `{known}`?"),
        None => format!("there is no {what} `{name}`; there are {}", listed(known)),
    }
}

fn check_keys(entries: &[(Key, Node)], known: &[&str], findings: &mut Findings) {
    for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
        findings.error(key.spot, unknown("key", &key.name, known));
    }
}

fn text(node: &Node, key: &str, findings: &mut Findings) -> Option<String> {
    let value = node.get(key)?;
    match value.as_text().filter(|text| !text.trim().is_empty()) {
        Some(text) => Some(text.trim().to_owned()),
        None => {
            let words = format!("expected text, found {}", value.kind());
            findings.within(key, |findings| findings.error(value.spot, words));
            None
        }
    }
}

fn severity(node: &Node, findings: &mut Findings) -> Grade {
    let Some(value) = node.get("severity") else { return Grade::default() };
    let word = value.as_text().unwrap_or_default();
    Grade::ALL.into_iter().find(|grade| grade.word() == word).unwrap_or_else(|| {
        let words = unknown("severity", word, &Grade::ALL.map(Grade::word));
        findings.within("severity", |findings| findings.error(value.spot, words));
        Grade::default()
    })
}

fn count(node: &Node, findings: &mut Findings) -> u64 {
    let Some(value) = node.get("count") else { return 1 };
    let number = match &value.value {
        Value::Number(text) => text.parse().ok().filter(|count| *count > 0),
        _ => None,
    };
    number.unwrap_or_else(|| {
        let words = "expected a whole number, at least 1";
        findings.within("count", |findings| findings.error(value.spot, words));
        1
    })
}

/// One glob or several.
fn globs(node: &Node, findings: &mut Findings) -> Vec<Glob> {
    texts(node, findings).iter().map(|text| Glob::new(text)).collect()
}

/// One text or several.
fn texts(node: &Node, findings: &mut Findings) -> Vec<String> {
    let list = node.as_list().unwrap_or(std::slice::from_ref(node));
    let texts: Option<Vec<String>> =
        list.iter().map(|one| one.as_text().map(str::to_owned)).collect();
    match texts.filter(|texts| !texts.is_empty()) {
        Some(texts) => texts,
        None => {
            let words = format!("expected text or a list of texts, found {}", node.kind());
            findings.error(node.spot, words);
            Vec::new()
        }
    }
}

/// Paths, and the test for each.
fn places(node: &Node, findings: &mut Findings) -> Vec<(Path, Test)> {
    let Some(entries) = node.as_map() else {
        let words = format!("expected a map of paths and tests, found {}", node.kind());
        findings.error(node.spot, words);
        return Vec::new();
    };
    let mut places = Vec::new();
    for (key, value) in entries {
        match Path::read(&key.name) {
            Ok(path) => {
                let test = findings.within(&key.name, |findings| Test::read(value, findings));
                places.push((path, test));
            }
            Err(fault) => {
                let words = format!("not a valid path: character {}: {}", fault.at + 1, fault.what);
                findings.error(key.spot, words);
            }
        }
    }
    places
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
