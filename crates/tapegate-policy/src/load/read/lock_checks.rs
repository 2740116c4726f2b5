//! Names in a policy that no pinned server has, but that resemble one.

use std::collections::BTreeSet;

use tapegate_core::json::{member, members, string};
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Spot;
use tapegate_yaml::shape::nearest_name;

use crate::gated_requests::OfferKind;
use crate::glob::Glob;
use crate::methods::fold;
use crate::model::{Exposure, PolicyRule, RuleAction, ServerSource};
use crate::pins::{Pin, PinLock};
use crate::predicate::{ArgumentTest, Predicate, ValueTest};

/// Warns about misspelt tools and arguments, according to the pinned definitions.
pub(super) fn check(
    rules: &[PolicyRule],
    sources: &[ServerSource],
    lock: &PinLock,
    findings: &mut Findings,
) {
    if lock.servers.is_empty() {
        return;
    }
    for source in sources {
        let (Exposure::Only(globs) | Exposure::Except(globs)) = &source.tools else { continue };
        let names = pinned_names(lock, |server| source.id == "*" || source.id == server);
        for message in globs.iter().filter_map(|glob| find_misspelling(glob, &names)) {
            let message = format!("source `{}`: {message}", source.id);
            findings.warning(Spot::default(), message);
        }
    }
    for rule in rules {
        let is_meant = |server: &str| {
            rule.sources.is_empty() || rule.sources.iter().any(|glob| glob.matches(server))
        };
        let names = pinned_names(lock, is_meant);
        let spot = Spot { line: rule.line, column: 1, ..Spot::default() };
        for message in rule.matches.iter().filter_map(|glob| find_misspelling(glob, &names)) {
            findings.warning(spot, message);
        }
        let tools = tools(rule, lock, is_meant);
        let values = rule.arguments.iter().filter_map(|test| match test {
            ArgumentTest::Value(predicate) => Some(predicate),
            ArgumentTest::NoOthers(_) | ArgumentTest::Command(_) => None,
        });
        for message in values.filter_map(|predicate| argument(rule, predicate, &tools)) {
            findings.warning(spot, message);
        }
    }
}

/// The names of everything that is pinned for the selected servers.
fn pinned_names(lock: &PinLock, is_meant: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let servers = lock.servers.iter().filter(|(server, _)| is_meant(server));
    let offers = servers.flat_map(|(_, server)| server.offers.values());
    offers.flat_map(|pins| pins.keys().map(String::as_str)).collect()
}

fn find_misspelling(glob: &Glob, names: &BTreeSet<&str>) -> Option<String> {
    let name = glob.text();
    if !glob.is_plain() || names.iter().any(|known| fold(known) == fold(name)) {
        return None;
    }
    let near = nearest_name(name, names.iter().copied())?;
    Some(format!("no pinned server has `{name}`; did you mean `{near}`?"))
}

/// The tools that a rule names individually.
fn tools<'l>(
    rule: &PolicyRule,
    lock: &'l PinLock,
    is_meant: impl Fn(&str) -> bool,
) -> Vec<&'l Pin> {
    if rule.matches.is_empty() || !rule.matches.iter().all(Glob::is_plain) {
        return Vec::new();
    }
    let servers = lock.servers.iter().filter(|(server, _)| is_meant(server));
    let tools = servers.filter_map(|(_, server)| server.offers.get(&OfferKind::Tool)).flatten();
    let named = |name: &str| rule.matches.iter().any(|glob| glob.matches(name));
    tools.filter(|(name, _)| named(name)).map(|(_, pin)| pin).collect()
}

/// What is wrong with the test of an argument, according to the schemas of its tools.
fn argument(rule: &PolicyRule, predicate: &Predicate, tools: &[&Pin]) -> Option<String> {
    let text = predicate.path().1;
    let path = text.trim_start_matches("$.");
    let key = path.split(['.', '[']).next().filter(|key| !key.is_empty() && *key != "*")?;
    if tools.is_empty() || key.starts_with(['$', '"', '\'']) {
        return None;
    }
    let mut known = BTreeSet::new();
    let mut is_list = false;
    for tool in tools {
        let schema = member(&tool.definition, "inputSchema")?;
        for (name, property) in properties(schema)? {
            is_list |= name == key && is_array(property);
            known.insert(name);
        }
    }
    let same = |name: &String| fold(name) == fold(key);
    if !known.iter().any(same) && rule.act != RuleAction::Forward {
        let hint = nearest_name(key, known.iter().map(String::as_str))
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Some(format!("no tool that this rule applies to has an argument `{key}`{hint}"));
    }
    let is_of_text = matches!(
        predicate.test().0,
        ValueTest::Under(_) | ValueTest::Glob(_) | ValueTest::Regex(_)
    );
    (is_list && path == key && is_of_text).then(|| {
        format!(
            "`{key}` is a list in the pinned definition; write `{key}[*]` for each of its values"
        )
    })
}

fn is_array(property: &[u8]) -> bool {
    member(property, "type").and_then(string).is_some_and(|kind| kind == "array")
}

/// The properties of a schema; `None` if it does not list them all.
fn properties(schema: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let properties = member(schema, "properties")?;
    if !properties.starts_with(b"{") {
        return None;
    }
    let decoded = members(properties)
        .map(|member| member.map(|(key, value)| (key.decode().into_owned(), value)));
    decoded.collect::<Result<_, _>>().ok()
}
