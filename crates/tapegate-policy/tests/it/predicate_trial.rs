//! Compares one predicate and the arguments of one call with every converting reader.
//!
//! A trial is a text: a line `[not] PATH TEST [OPERAND]`, then the arguments. A match for any
//! reader must be stopped by a denying and by an approving rule; what a rule forwards must match
//! exactly or, with `not`, match for no reader.

use std::sync::Arc;

use regex::Regex;
use tapegate_core::json::path::JsonPath;
use tapegate_core::json::write_str;
use tapegate_policy::decide::{CallFacts, DecisionOutcome, PolicyCall, decide};
use tapegate_policy::glob::Glob;
use tapegate_policy::load::load;
use tapegate_policy::model::{Policy, Profile};
use tapegate_yaml::files::MemoryFiles;

use crate::argument_lookup::{found, texts};
use crate::converters::{BOOL_READERS, ConvertedValue, NUMBER_READERS};

/// The maximum number of steps in a path; with more, readers find too much.
const STEPS_MAX: usize = 4;

/// The test of a predicate, as this oracle understands it.
enum OracleTest {
    Exists,
    Bool(bool),
    /// A range of numbers, both bounds included.
    Numbers(f64, f64),
    Text(String),
    Glob(Glob),
    Regex(Regex),
    Under(String),
}

/// A predicate under trial, and three policies with it.
pub(crate) struct PredicateTrial {
    path: JsonPath,
    wanted: OracleTest,
    not: bool,
    deny: Arc<Policy>,
    approve: Arc<Policy>,
    forward: Arc<Policy>,
}

impl PredicateTrial {
    /// Parses a predicate; `None` if it is invalid, or has numbers that this oracle would round.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (not, line) = match line.strip_prefix("not ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (path_text, rest) = line.split_once(' ')?;
        let (name, operand) = rest.split_once(' ').unwrap_or((rest, ""));
        let path = JsonPath::read(path_text).ok().filter(|path| path.steps.len() <= STEPS_MAX)?;
        let (wanted, test) = match name {
            "exists" => (OracleTest::Exists, "\"exists\":true".to_owned()),
            "is" => equal(operand)?,
            "range" => {
                let (min, max) = operand.split_once(' ')?;
                let test = format!("\"min\":{min},\"max\":{max}");
                (OracleTest::Numbers(number(min)?, number(max)?), test)
            }
            "text" => {
                (OracleTest::Text(operand.to_owned()), format!("\"equals\":{}", quoted(operand)))
            }
            "glob" => (
                OracleTest::Glob(Glob::parse(operand).ok()?),
                format!("\"glob\":{}", quoted(operand)),
            ),
            "regex" => {
                let test = format!("\"regex\":{}", quoted(operand));
                (OracleTest::Regex(Regex::new(operand).ok()?), test)
            }
            "under" if operand.starts_with('/') => {
                (OracleTest::Under(operand.to_owned()), format!("\"under\":{}", quoted(operand)))
            }
            _ => return None,
        };
        let test = if not { format!("{{\"not\":{{{test}}}}}") } else { format!("{{{test}}}") };
        let [deny, approve, forward] =
            [("deny", "forward"), ("approve", "forward"), ("forward", "deny")]
                .map(|(action, default)| policy(path_text, &test, action, default));
        Some(Self { path, wanted, not, deny: deny?, approve: approve?, forward: forward? })
    }

    /// Checks the predicate against the arguments of a call.
    pub(crate) fn check(&self, arguments: &str) {
        let Some(value) = ConvertedValue::parse(arguments) else { return };
        let outcome = |policy| outcome(policy, arguments.as_bytes());
        let stopped = [outcome(&self.deny), outcome(&self.approve)];
        assert_eq!(
            stopped[0] == DecisionOutcome::Forward,
            stopped[1] == DecisionOutcome::Forward,
            "{arguments}"
        );
        let forwarded = outcome(&self.forward) == DecisionOutcome::Forward;
        let strict = self.strict(&value);
        let found = found(&value, &self.path.steps);
        let read = found.iter().find_map(|value| self.read_as_wanted(value));
        if self.not {
            assert!(!(forwarded && read.is_some()), "forwarded: {read:?} in {arguments}");
            let other =
                strict.iter().any(|value| *value != &ConvertedValue::Null && !self.is_exact(value));
            let none = strict.is_empty() && matches!(self.wanted, OracleTest::Exists);
            assert!(
                !(other || none) || stopped[0] != DecisionOutcome::Forward,
                "not stopped: {arguments}"
            );
        } else {
            assert!(
                read.is_none() || stopped[0] != DecisionOutcome::Forward,
                "not stopped: {read:?} in {arguments}"
            );
            let exact = !strict.is_empty() && strict.iter().all(|value| self.is_exact(value));
            assert!(!forwarded || exact, "forwarded: {strict:?} in {arguments}");
        }
        assert!(
            !forwarded || stopped[0] != DecisionOutcome::Forward,
            "forwarded, not stopped: {arguments}"
        );
    }

    /// The values at the path, by exact keys.
    fn strict<'v>(&self, value: &'v ConvertedValue) -> Vec<&'v ConvertedValue> {
        crate::argument_lookup::strict(value, &self.path.steps)
    }

    /// Whether a value matches exactly.
    fn is_exact(&self, value: &ConvertedValue) -> bool {
        match (&self.wanted, value) {
            (OracleTest::Exists, _) => true,
            (OracleTest::Bool(wanted), ConvertedValue::Bool(value)) => value == wanted,
            (OracleTest::Numbers(min, max), ConvertedValue::Number(number)) => {
                (*min..=*max).contains(number)
            }
            (_, ConvertedValue::Text(text)) => self.is_text(text),
            _ => false,
        }
    }

    fn is_text(&self, text: &str) -> bool {
        match &self.wanted {
            OracleTest::Text(wanted) => text == wanted,
            OracleTest::Glob(glob) => glob.matches(text),
            OracleTest::Regex(regex) => regex.is_match(text),
            OracleTest::Under(folder) => crate::argument_lookup::lies_in(text, folder),
            OracleTest::Exists | OracleTest::Bool(_) | OracleTest::Numbers(..) => false,
        }
    }

    /// The reader that takes a value for a match, and its reading.
    fn read_as_wanted(&self, value: &ConvertedValue) -> Option<String> {
        value.unpacked().iter().find_map(|value| match &self.wanted {
            OracleTest::Exists => Some(format!("{value:?} is there")),
            OracleTest::Bool(wanted) => BOOL_READERS
                .iter()
                .find(|(_, read)| read(value) == Some(*wanted))
                .map(|(name, _)| format!("{name} reads {value:?} as {wanted}")),
            OracleTest::Numbers(min, max) => NUMBER_READERS.iter().find_map(|(name, read)| {
                let number = read(value).filter(|number| (*min..=*max).contains(number))?;
                Some(format!("{name} reads {value:?} as {number}"))
            }),
            _ => texts(value)
                .into_iter()
                .find(|text| self.is_text(text))
                .map(|text| format!("{value:?} is read as {text:?}")),
        })
    }
}

/// A test for equality with a number, true or false.
fn equal(operand: &str) -> Option<(OracleTest, String)> {
    let wanted = match operand {
        "true" => OracleTest::Bool(true),
        "false" => OracleTest::Bool(false),
        operand => OracleTest::Numbers(number(operand)?, number(operand)?),
    };
    Some((wanted, format!("\"equals\":{operand}")))
}

/// A number that floating point represents exactly.
fn number(text: &str) -> Option<f64> {
    let plain =
        text.len() <= 9 && text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write_str(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

/// A policy with one rule about the arguments of every tool.
fn policy(path: &str, test: &str, action: &str, default: &str) -> Option<Arc<Policy>> {
    let rule = format!("{{\"action\":\"{action}\",\"arguments\":{{{}:{test}}}}}", quoted(path));
    let text = format!(
        "{{\"schema\":1,\"governance\":{{\"defaults\":{{\"action\":\"{default}\"}},\"rules\":[{rule}]}}}}"
    );
    load("p.yaml", &MemoryFiles::default().with_file("p.yaml", &*text)).policy.map(Arc::new)
}

fn outcome(policy: &Policy, arguments: &[u8]) -> DecisionOutcome {
    let call =
        PolicyCall { source: "s", method: "tools/call", name: "t", arguments: Some(arguments) };
    decide(policy, Profile::Production, &call, &CallFacts::default()).outcome
}
