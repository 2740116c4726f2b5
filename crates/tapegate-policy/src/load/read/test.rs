//! Reads tests on arguments.

use tapegate_core::json::path::JsonPath;
use tapegate_yaml::field::{MapFields, report_expected};
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, NodeValue};

use crate::glob::Glob;
use crate::load::expression;
use crate::model::RuleAction;
use crate::predicate::{ArgumentTest, KnownArguments, Predicate, ValueTest};
use tapegate_core::lenient::folder::FolderPath;

/// The maximum number of regular expressions in a policy; each may take a lot of memory.
pub(super) const REGEXES_MAX: usize = 1_000;

/// Reads paths and their tests; `regexes` is the number of expressions that are still allowed.
pub(super) fn read(node: &Node, regexes: &mut usize, findings: &mut Findings) -> Vec<ArgumentTest> {
    let mut predicates = Vec::new();
    for (key, node) in node.as_map().unwrap_or_default() {
        findings.push_step(&key.name);
        match JsonPath::read(&key.name) {
            Ok(path) => {
                let mut found = Vec::new();
                read_tests(node, false, &mut found, findings);
                super::path_glob::check(&key.name, node, findings);
                let count =
                    found.iter().filter(|(test, _)| matches!(test, ValueTest::Regex(_))).count();
                if *regexes < count {
                    let message =
                        format!("a policy may have at most {REGEXES_MAX} regular expressions");
                    findings.error(node.spot, message);
                    found.clear();
                }
                *regexes = regexes.saturating_sub(count);
                let is_map = node.as_map().is_some();
                let optional =
                    is_map && MapFields::of(node).flag("optional", findings) == Some(true);
                predicates.extend(found.into_iter().map(|(test, not)| {
                    let made = Predicate::new(path.clone(), key.name.clone(), test, not);
                    ArgumentTest::Value(if optional { made.optional() } else { made })
                }));
            }
            Err(fault) => {
                let message =
                    format!("not a valid path: {} at character {}", fault.what, fault.at + 1);
                findings.error(key.spot, message);
            }
        }
        findings.pop_step();
    }
    predicates
}

/// Reads which arguments a rule permits besides those that its tests name: a list of names, which
/// may have any value, or `none`.
pub(super) fn read_other_arguments(
    node: &Node,
    tests: &[ArgumentTest],
    act: Option<&RuleAction>,
    findings: &mut Findings,
) -> KnownArguments {
    if act.is_some_and(|act| *act != RuleAction::Forward) {
        let message = "`other_arguments` works only with `action: forward`; one additional argument would bypass a rule that stops calls";
        findings.error(node.spot, message);
    }
    let mut known = KnownArguments::default();
    for test in tests {
        if let ArgumentTest::Value(predicate) = test {
            let (path, text) = predicate.path();
            known.add(path, text);
        }
    }
    for node in node.as_list().unwrap_or_default() {
        let text = node.as_text().unwrap_or_default();
        match JsonPath::read(text) {
            Ok(path) => known.add(&path, text),
            Err(fault) => {
                let (what, at) = (fault.what, fault.at + 1);
                findings.error(node.spot, format!("not a valid path: {what} at character {at}"));
            }
        }
    }
    known
}

/// The tests in a node, each with whether it is negated.
fn read_tests(node: &Node, not: bool, found: &mut Vec<(ValueTest, bool)>, findings: &mut Findings) {
    if node.as_map().is_none() {
        let test = match &node.value {
            NodeValue::Text(text) => Glob::parse(text).ok().map(ValueTest::Glob),
            _ => scalar(node, findings).map(|text| ValueTest::OneOf(vec![text])),
        };
        return found.extend(test.map(|test| (test, not)));
    }
    let fields = MapFields::of(node);
    let text = |key: &str| fields.get(key).and_then(Node::as_text);
    let glob = text("glob").and_then(|text| Glob::parse(text).ok()).map(ValueTest::Glob);
    let regex = text("regex").and_then(|text| expression::parse(text).ok()).map(ValueTest::Regex);
    // Here `null` is a value, not a missing one.
    let equals = node.get("equals").and_then(|node| {
        Some(ValueTest::OneOf(vec![
            findings.with_step("equals", |findings| scalar(node, findings))?,
        ]))
    });
    let one_of = fields.get("in").and_then(Node::as_list).map(|list| {
        if list.is_empty() {
            findings.error(node.spot, "`in` is an empty list, which matches nothing");
        }
        findings.push_step("in");
        let texts = list.iter().filter_map(|node| scalar(node, findings)).collect();
        findings.pop_step();
        ValueTest::OneOf(texts)
    });
    let folders: Vec<FolderPath> = super::texts(fields.get("under"))
        .into_iter()
        .filter_map(|node| FolderPath::parse(node.as_text()?).ok())
        .collect();
    if fields.get("under").is_some_and(|node| node.as_list().is_some_and(<[Node]>::is_empty)) {
        findings.error(node.spot, "`under` is an empty list, which matches no path");
    }
    let under = (!folders.is_empty()).then_some(ValueTest::Under(folders));
    let count = found.len();
    found.extend(
        [glob, regex, equals, one_of, range(node, findings), under]
            .into_iter()
            .flatten()
            .map(|test| (test, not)),
    );
    if let Some(exists) = fields.flag("exists", findings) {
        if !exists && found.len() > count {
            let message =
                "`exists: false` excludes other tests; a missing value passes none of them";
            findings.error(node.spot, message);
        }
        found.push((ValueTest::Exists, exists == not));
    }
    if let Some(inner) = fields.get("not") {
        findings.push_step("not");
        read_negated(inner, not, found, findings);
        findings.pop_step();
    }
    let is_optional = node.get("optional").is_some();
    if is_optional && (not || node.get("exists").is_some()) {
        let message = "`optional` goes beside a test, but not in `not` and not with `exists`";
        findings.error(node.spot, message);
    }
    let has_none = node.as_map().is_some_and(|keys| keys.len() == usize::from(is_optional));
    if found.len() == count && !findings.has_error_at(node.spot) && has_none {
        findings.error(node.spot, "there is no test here; write `exists: true` for any value");
    }
}

/// Reads a negated test; only a single one is allowed, since "not both" is ambiguous.
fn read_negated(
    node: &Node,
    not: bool,
    found: &mut Vec<(ValueTest, bool)>,
    findings: &mut Findings,
) {
    let mut inner = Vec::new();
    read_tests(node, true, &mut inner, findings);
    if not {
        findings.error(node.spot, "`not` cannot contain `not`");
    } else if inner.len() > 1 {
        findings.error(node.spot, "`not` takes one test; write a rule for each");
    }
    found.extend(inner);
}

/// The bounds of a number, if there are any.
fn range(node: &Node, findings: &mut Findings) -> Option<ValueTest> {
    let bound = |key: &str| match &node.get(key)?.value {
        NodeValue::Number(text) => Some(text.clone()),
        _ => None,
    };
    let (min, max) = (bound("min"), bound("max"));
    if min.is_none() && max.is_none() {
        return None;
    }
    if let (Some(min), Some(max)) = (&min, &max)
        && crate::predicate::is_less(max, min)
    {
        findings.error(node.spot, format!("no number is from {min} to {max}"));
    }
    Some(ValueTest::Range { min, max })
}

/// The JSON text of a scalar.
fn scalar(node: &Node, findings: &mut Findings) -> Option<String> {
    match node.value {
        NodeValue::List(_) | NodeValue::Map(_) | NodeValue::Raw(_) => {
            report_expected(node, "a text, a number, true, false or null", findings);
            None
        }
        _ => String::from_utf8(node.to_json()).ok(),
    }
}
