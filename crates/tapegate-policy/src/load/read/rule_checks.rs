//! Checks for valid rules that do nothing, or less than they seem to.

use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, Spot};
use tapegate_yaml::shape::nearest_name;

use super::{quoted, regex_checks};
use crate::gated_requests::GatedMethod;
use crate::glob::Glob;
use crate::methods::{PROTOCOL, fold};
use crate::model::{PolicyRule, RuleAction, ServerSource};
use crate::predicate::{ArgumentTest, Predicate, ValueTest};
use tapegate_core::lenient::folder::FolderPath;

/// How many earlier rules are checked to see whether a rule is reachable.
const BEFORE_MAX: usize = 200;
/// The methods whose calls have arguments.
const WITH_ARGUMENTS: &[GatedMethod] = &[GatedMethod::Call, GatedMethod::Prompt];
/// The same for rules that stop calls: a completion carries the values typed so far.
const WITH_ARGUMENTS_THAT_STOP: &[GatedMethod] =
    &[GatedMethod::Call, GatedMethod::Prompt, GatedMethod::Complete];
/// The methods that use items with annotations.
const WITH_ANNOTATIONS: &[GatedMethod] = &[GatedMethod::Call];

/// Reports problems of a rule, given the rules before it and the servers.
pub(super) fn check(
    node: &Node,
    rule: &PolicyRule,
    (before, sources): (&[PolicyRule], &[ServerSource]),
    findings: &mut Findings,
) {
    check_shadowed(node, rule, before, findings);
    check_hidden_names(node, rule, sources, findings);
    methods(node, rule, findings);
    check_methods_without_arguments(node, rule, findings);
    check_untested_arguments(node, rule, findings);
    check_root_folders(node, rule, findings);
    regex_checks::check(spot(node, "arguments"), rule, findings);
    super::suspicious_tests::check(node, rule, findings);
}

/// The methods of the protocol.
pub(super) fn known_methods() -> impl Iterator<Item = &'static str> {
    PROTOCOL.iter().map(|method| method.name).chain(GatedMethod::ALL.map(GatedMethod::method))
}

/// Reports a method that resembles one of the protocol.
fn methods(node: &Node, rule: &PolicyRule, findings: &mut Findings) {
    for glob in rule.methods.iter().filter(|glob| glob.is_plain()) {
        if known_methods().any(|name| glob.matches(&fold(name))) {
            continue;
        }
        if let Some(near) = nearest_name(glob.text(), known_methods()) {
            let text = glob.text();
            let message = format!("the protocol has no method `{text}`; did you mean `{near}`?");
            findings.with_step("method", |f| f.warning(spot(node, "method"), message));
        }
    }
}

/// Reports a rule whose tests can never match, because calls of its methods lack what is tested.
fn check_methods_without_arguments(node: &Node, rule: &PolicyRule, findings: &mut Findings) {
    let with_arguments = match rule.act {
        RuleAction::Forward => WITH_ARGUMENTS,
        _ => WITH_ARGUMENTS_THAT_STOP,
    };
    let tests = [
        ("arguments", with_arguments, !rule.arguments.is_empty()),
        ("annotations", WITH_ANNOTATIONS, !rule.hints.is_empty()),
    ];
    for (key, having, _) in tests.iter().filter(|(_, _, tested)| *tested) {
        let has = |glob: &Glob| having.iter().any(|gated| glob.matches(gated.method()));
        let keys = [*key, "command", "other_arguments"];
        let is_given = |key: &&str| MapFields::of(node).get(key).is_some();
        let key = keys.into_iter().find(is_given).unwrap_or(key);
        for glob in rule.methods.iter().filter(|glob| !has(glob)) {
            let Some(method) = known_methods().find(|name| glob.matches(&fold(name))) else {
                continue;
            };
            let message = format!(
                "this rule matches nothing by `method: {method}`: only {} has `{key}`{}",
                quoted(&having.iter().map(|gated| gated.method()).collect::<Vec<_>>()),
                argument_alternative(method)
            );
            findings.with_step(key, |findings| findings.error(spot(node, key), message));
        }
        let is_uri = |glob: &Glob| glob.text().contains("://");
        if rule.methods.is_empty() && !rule.matches.is_empty() && rule.matches.iter().all(is_uri) {
            let message = format!("this rule matches nothing: a resource has no `{key}`");
            findings.with_step(key, |findings| findings.error(spot(node, key), message));
        }
    }
}

/// What to write instead of a test of arguments that never exist.
fn argument_alternative(method: &str) -> &'static str {
    match method.starts_with("resources/") {
        true => "; write the URI as `match`, such as `match: \"file:///etc/*\"`",
        false => "; remove it, or the rule",
    }
}

/// Warns about a rule that forwards several tools by some of their arguments: others go unchecked.
fn check_untested_arguments(node: &Node, rule: &PolicyRule, findings: &mut Findings) {
    let closed = |test: &ArgumentTest| match test {
        ArgumentTest::NoOthers(_) | ArgumentTest::Command(_) => true,
        ArgumentTest::Value(predicate) => {
            matches!(predicate.path().1.trim_start_matches(['$', '.']), "*")
        }
    };
    let several = rule.matches.iter().any(|glob| !glob.is_plain());
    if rule.act == RuleAction::Forward
        && several
        && !rule.arguments.is_empty()
        && !rule.arguments.iter().any(closed)
    {
        let message = "this rule applies to several tools and tests only the arguments that it names; others, such as `paths`, are not checked. Name the tools, or add `other_arguments: none`";
        findings.with_step("arguments", |f| f.warning(spot(node, "arguments"), message));
    }
}

/// Warns about folders that contain every path.
fn check_root_folders(node: &Node, rule: &PolicyRule, findings: &mut Findings) {
    let predicates = rule.arguments.iter().filter_map(|test| match test {
        ArgumentTest::Value(predicate) => Some(predicate),
        ArgumentTest::NoOthers(_) | ArgumentTest::Command(_) => None,
    });
    let is_root = |predicate: &&Predicate| match predicate.test() {
        (ValueTest::Under(folders), false) => folders.iter().any(FolderPath::is_root),
        _ => false,
    };
    for predicate in predicates.filter(is_root) {
        let message = format!(
            "`{}` is tested against `/`, which contains every absolute path; name a folder, or make sure that the variable does",
            predicate.path().1
        );
        findings.with_step("arguments", |f| f.warning(spot(node, "arguments"), message));
    }
}

/// The position of a key of a rule.
fn spot(node: &Node, key: &str) -> Spot {
    MapFields::of(node).get(key).map_or(node.spot, |node| node.spot)
}

/// Reports a rule about names that no server exposes.
fn check_hidden_names(
    node: &Node,
    rule: &PolicyRule,
    sources: &[ServerSource],
    findings: &mut Findings,
) {
    let shows = |source: &ServerSource, name: &str| {
        let kinds = [&source.tools, &source.prompts, &source.resources];
        source.enabled && kinds.iter().any(|kind| kind.is_visible(name))
    };
    let plain = rule.methods.is_empty() && rule.matches.iter().all(Glob::is_plain);
    let seen = |glob: &Glob| sources.iter().any(|source| shows(source, glob.text()));
    if plain && !rule.matches.is_empty() && !rule.matches.iter().any(seen) {
        let names: Vec<&str> = rule.matches.iter().map(Glob::text).collect();
        let message = format!("this rule matches nothing: no server exposes {}", quoted(&names));
        findings.warning(node.spot, message);
    }
}

/// Reports a rule that is never reached.
fn check_shadowed(node: &Node, rule: &PolicyRule, before: &[PolicyRule], findings: &mut Findings) {
    let covers = |one: &[Glob], two: &[Glob]| {
        let has = |glob: &Glob| {
            one.iter().any(|g| g.is_all() || g == glob || glob.is_plain() && g.matches(glob.text()))
        };
        two.iter().all(has) && !two.is_empty()
    };
    let covers_or_all = |one: &[Glob], two: &[Glob]| one.is_empty() || covers(one, two);
    // A rule without `match` matches everything, unless its `match` was invalid.
    let is_read = !findings.has_errors();
    let takes = |first: &PolicyRule| match first.matches.is_empty() {
        true => is_read,
        false => covers(&first.matches, &rule.matches),
    };
    let is_gated = |glob: &Glob| {
        glob.is_plain() && GatedMethod::ALL.iter().any(|gated| glob.matches(&fold(gated.method())))
    };
    // Each rule is compared with those before it, so the work for 10,000 rules must be bounded.
    let first = before.iter().take(BEFORE_MAX).find(|first| {
        // A rule with tests may not match, so it never hides one below it for certain.
        first.arguments.is_empty()
            && first.hints.is_empty()
            && takes(first)
            && covers_or_all(&first.sources, &rule.sources)
            // Rules that name methods also apply to methods that are not gated.
            && (covers(&first.methods, &rule.methods)
                || first.methods.is_empty() && rule.methods.iter().all(is_gated))
    });
    if let Some(first) = first {
        let (name, line) = (&first.name, first.line);
        let message = format!(
            "this rule is never reached: `{name}` on line {line} comes first and matches everything that this rule matches"
        );
        findings.warning(node.spot, message);
    }
}
