//! A test of one value: a glob, a list of which one must match, or operators of which all must.

use regex::Regex;
use tapegate_core::json::{JsonStr, write_str};
use tapegate_core::signature::canonical;

use crate::finding::Findings;
use crate::node::{Node, NodeValue};
use crate::pattern::{self, REGEX, SimpleGlob};

/// The names of all operators.
const OPERATORS: &[&str] = &[
    "equals",
    "glob",
    "contains",
    "prefix",
    "starts_with",
    "suffix",
    "ends_with",
    "regex",
    "any_of",
    "not",
    "exists",
    "gt",
    "lt",
];

/// A test of one value.
#[derive(Debug, Clone)]
pub(super) enum ExpectationTest {
    /// It equals this value, compared in canonical form.
    Equals(Vec<u8>),
    /// A text in it matches this glob: `*` for any characters, `?` for one.
    Glob(SimpleGlob),
    /// A text in it contains this.
    Contains(String),
    /// A text in it starts with this.
    Prefix(String),
    /// A text in it ends with this.
    Suffix(String),
    /// A text in it matches.
    Regex(Regex),
    /// It is a number above this.
    Above(f64),
    /// It is a number below this.
    Below(f64),
    /// It exists, or does not.
    Exists(bool),
    /// One of these holds.
    Any(Vec<ExpectationTest>),
    /// All of these hold.
    All(Vec<ExpectationTest>),
    /// This does not hold.
    Not(Box<ExpectationTest>),
}

impl ExpectationTest {
    /// Reads a test.
    pub(super) fn read(node: &Node, findings: &mut Findings) -> Self {
        match &node.value {
            NodeValue::Text(text) => Self::read_text(text, node, findings),
            NodeValue::List(list) => {
                Self::Any(list.iter().map(|one| Self::read(one, findings)).collect())
            }
            NodeValue::Map(entries) => {
                let mut all = Vec::new();
                for (key, value) in entries {
                    let known = OPERATORS.contains(&key.name.as_str());
                    if known {
                        all.extend(findings.with_step(&key.name, |findings| {
                            Self::read_operator(&key.name, value, findings)
                        }));
                    } else {
                        let message =
                            super::read::unknown_name_message("operator", &key.name, OPERATORS);
                        findings.error(key.spot, message);
                    }
                }
                Self::All(all)
            }
            _ => Self::Equals(canonical(&node.to_json())),
        }
    }

    /// A regular expression if the text has the prefix, otherwise a glob.
    fn read_text(text: &str, node: &Node, findings: &mut Findings) -> Self {
        match text.strip_prefix(REGEX) {
            Some(pattern) => Self::read_regex(pattern, node, findings),
            None => Self::Glob(SimpleGlob::new(text)),
        }
    }

    pub(super) fn read_regex(pattern: &str, node: &Node, findings: &mut Findings) -> Self {
        // An invalid pattern matches nothing.
        let none = Self::Any(Vec::new());
        pattern::regex(pattern, node, findings).map_or(none, Self::Regex)
    }

    fn read_operator(name: &str, node: &Node, findings: &mut Findings) -> Option<Self> {
        let text = |make: fn(String) -> Self, findings: &mut Findings| {
            texts(node, findings).map(|texts| Self::Any(texts.into_iter().map(make).collect()))
        };
        match name {
            "equals" => Some(Self::Equals(canonical(&node.to_json()))),
            "glob" => text(|text| Self::Glob(SimpleGlob::new(&text)), findings),
            "contains" => text(Self::Contains, findings),
            "prefix" | "starts_with" => text(Self::Prefix, findings),
            "suffix" | "ends_with" => text(Self::Suffix, findings),
            "regex" => {
                let patterns = texts(node, findings)?;
                let patterns = patterns.iter().map(|one| Self::read_regex(one, node, findings));
                Some(Self::Any(patterns.collect()))
            }
            "any_of" => match node.as_list() {
                Some(list) => {
                    Some(Self::Any(list.iter().map(|one| Self::read(one, findings)).collect()))
                }
                None => expected("a list", node, findings),
            },
            "not" => Some(Self::Not(Box::new(Self::read(node, findings)))),
            "exists" => match node.value {
                NodeValue::Bool(there) => Some(Self::Exists(there)),
                _ => expected("true or false", node, findings),
            },
            name => match number(&node.to_json()) {
                Some(bound) if name == "gt" => Some(Self::Above(bound)),
                Some(bound) => Some(Self::Below(bound)),
                None => expected("a number", node, findings),
            },
        }
    }

    /// Whether a JSON value, or its absence, passes.
    pub(super) fn matches(&self, value: Option<&[u8]>) -> bool {
        match (self, value) {
            (Self::Exists(there), value) => *there == value.is_some(),
            (Self::Any(tests), value) => tests.iter().any(|test| test.matches(value)),
            (Self::All(tests), value) => tests.iter().all(|test| test.matches(value)),
            // Before the case without a value: `not` holds for a missing one.
            (Self::Not(test), value) => !test.matches(value),
            (_, None) => false,
            (Self::Equals(json), Some(value)) => canonical(value) == *json,
            (Self::Above(bound), Some(value)) => number(value).is_some_and(|it| it > *bound),
            (Self::Below(bound), Some(value)) => number(value).is_some_and(|it| it < *bound),
            (test, Some(value)) => each_text(value, &mut |text| test.holds_for(text)),
        }
    }

    /// Whether a text passes.
    pub(super) fn holds_for(&self, text: &str) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(text),
            Self::Contains(part) => text.contains(part.as_str()),
            Self::Prefix(part) => text.starts_with(part.as_str()),
            Self::Suffix(part) => text.ends_with(part.as_str()),
            Self::Regex(regex) => regex.is_match(text),
            Self::Any(tests) => tests.iter().any(|test| test.holds_for(text)),
            Self::All(tests) => tests.iter().all(|test| test.holds_for(text)),
            Self::Not(test) => !test.holds_for(text),
            Self::Equals(json) => {
                let mut quoted = Vec::new();
                write_str(&mut quoted, text);
                canonical(&quoted) == *json
            }
            Self::Exists(there) => *there,
            Self::Above(_) | Self::Below(_) => false,
        }
    }
}

/// What [`texts`] reads, for messages.
pub(super) const TEXTS: &str = "text or a list of texts";

/// A text, or several alternatives.
pub(super) fn texts(node: &Node, findings: &mut Findings) -> Option<Vec<String>> {
    let one = |node: &Node| node.as_text().map(str::to_owned);
    let found = match node.as_list() {
        Some(list) => list.iter().map(one).collect(),
        None => one(node).map(|text| vec![text]),
    };
    found.or_else(|| expected(TEXTS, node, findings))
}

pub(super) fn expected<T>(what: &str, node: &Node, findings: &mut Findings) -> Option<T> {
    findings.error(node.spot, format!("expected {what}, found {}", node.kind()));
    None
}

/// Passes the texts of a value to `take` until it returns true: a string decoded, another scalar as
/// written, and for a list or an object every string in it, keys included.
pub(super) fn each_text(json: &[u8], take: &mut dyn FnMut(&str) -> bool) -> bool {
    match json.first() {
        Some(b'"' | b'{' | b'[') => each_string(json, take),
        _ => take(&String::from_utf8_lossy(json)),
    }
}

/// Passes every string in valid JSON to `take` until it returns true. Not recursive.
fn each_string(json: &[u8], take: &mut dyn FnMut(&str) -> bool) -> bool {
    let mut rest = json;
    while let Some(open) = memchr::memchr(b'"', rest) {
        let (mut end, mut escaped) = (open + 1, false);
        while let Some(step) = rest.get(end..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
            end += step;
            if rest[end] == b'"' {
                break;
            }
            escaped = true;
            end += 2;
        }
        let string = JsonStr { raw: rest.get(open + 1..end).unwrap_or_default(), escaped };
        if take(&string.decode()) {
            return true;
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    false
}

fn number(json: &[u8]) -> Option<f64> {
    let number = matches!(json.first(), Some(b'-' | b'0'..=b'9'));
    std::str::from_utf8(json).ok().filter(|_| number)?.parse().ok()
}
