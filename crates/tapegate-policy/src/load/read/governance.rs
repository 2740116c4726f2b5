//! Reads the rules and the default action.

use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, NodeValue, Spot};

use super::{KnownWorkflows, check_duplicates, command, globs, quoted, rule_checks, test};
use crate::glob::Glob;
use crate::methods::fold;
use crate::model::{EmbeddedMessages, PolicyRule, RuleAction, ServerSource};
use crate::own_files::OwnFiles;
use crate::pins::{Hint, HintTest, HintValue};
use crate::predicate::ArgumentTest;

/// The default of `context.policy_id`.
const POLICY_ID: &str = "default";
/// The maximum number of rules; a call may be tested against all of them.
const RULES_MAX: usize = 10_000;

/// The section `governance`.
#[derive(Default)]
pub(super) struct GovernanceSection {
    pub(super) rules: Vec<PolicyRule>,
    /// `None` only after an error, which has been reported.
    pub(super) default: Option<RuleAction>,
    pub(super) own_files: OwnFiles,
    pub(super) embedded_messages: EmbeddedMessages,
    /// Whether a rule or the default uses Cedar.
    pub(super) asks_cedar: bool,
    /// Whether there is a section with Cedar policies.
    has_cedar: bool,
}

pub(super) fn read(
    top: &Node,
    known: &KnownWorkflows<'_>,
    sources: &[ServerSource],
    findings: &mut Findings,
) -> GovernanceSection {
    let has_cedar = MapFields::of(top).get("cedar").is_some();
    let mut governance = GovernanceSection { has_cedar, ..GovernanceSection::default() };
    let Some(node) = MapFields::of(top).get("governance") else { return governance };
    findings.push_step("governance");
    let fields = MapFields::of(node);
    if let Some(node) = fields.get("defaults") {
        findings.push_step("defaults");
        governance.default = read_action(node, true, known, findings);
        governance.note_cedar_use(node, governance.default.clone().as_ref(), findings);
        findings.pop_step();
    }
    let builtin = fields.get("builtin").map(MapFields::of);
    let own_files = builtin.and_then(|builtin| builtin.get("own_files")).and_then(Node::as_text);
    // Only the exact word lifts the rule; a misspelt one is an error and leaves it on.
    governance.own_files.refuse = own_files != Some("forward");
    if fields.get("embedded_messages").and_then(Node::as_text) == Some("refuse") {
        governance.embedded_messages = EmbeddedMessages::Refuse;
    }
    if let Some(node) = fields.get("rules") {
        findings.with_step("rules", |f| governance.rules(node, known, sources, f));
    }
    findings.pop_step();
    if let Some(node) = MapFields::of(top).get("policies") {
        let groups = findings.with_step("policies", |f| command::read_groups(node, known, f));
        governance.rules.extend(groups);
    }
    governance
}

impl GovernanceSection {
    fn rules(
        &mut self,
        node: &Node,
        known: &KnownWorkflows<'_>,
        sources: &[ServerSource],
        findings: &mut Findings,
    ) {
        let rules = node.as_list().unwrap_or_default();
        if rules.len() > RULES_MAX {
            let message = format!("there are {} rules; the maximum is {RULES_MAX}", rules.len());
            return findings.error(node.spot, message);
        }
        let mut regexes = test::REGEXES_MAX;
        for (index, node) in rules.iter().enumerate() {
            findings.push_step(&format!("[{index}]"));
            if let Some(rule) = rule(node, index, known, sources, &mut regexes, findings) {
                self.note_cedar_use(node, Some(&rule.act), findings);
                rule_checks::check(node, &rule, (&self.rules, sources), findings);
                self.rules.push(rule);
            }
            findings.pop_step();
        }
        // Two rules with the same name could not be told apart in a log.
        check_duplicates(rules, "id", "the rule", findings);
    }

    /// Records that Cedar is used; the first time, reports if there are no Cedar policies.
    fn note_cedar_use(&mut self, node: &Node, act: Option<&RuleAction>, findings: &mut Findings) {
        if !matches!(act, Some(RuleAction::Policy { .. })) {
            return;
        }
        if !self.asks_cedar && !self.has_cedar {
            let spot = MapFields::of(node).get("action").map_or(node.spot, |action| action.spot);
            let message =
                "`action: policy` asks Cedar, but there is no `cedar` section with policies";
            findings.with_step("action", |findings| findings.error(spot, message));
        }
        self.asks_cedar = true;
    }
}

fn rule(
    node: &Node,
    index: usize,
    known: &KnownWorkflows<'_>,
    sources: &[ServerSource],
    regexes: &mut usize,
    findings: &mut Findings,
) -> Option<PolicyRule> {
    let fields = MapFields::of(node);
    let text = |key: &str| fields.get(key).and_then(Node::as_text).map(str::to_owned);
    let act = read_action(node, false, known, findings);
    let matches = match fields.get("match") {
        Some(node) => findings.with_step("match", |findings| {
            let globs = globs(Some(node), findings);
            if node.as_list().is_some_and(<[Node]>::is_empty) {
                findings.error(
                    node.spot,
                    "an empty list matches nothing; leave `match` out to match everything",
                );
            }
            globs
        }),
        None => Glob::parse("*").into_iter().collect(),
    };
    let methods = findings.with_step("method", |findings| globs(fields.get("method"), findings));
    // Methods are folded before they are compared, so the globs are folded too.
    let folded = methods.iter().map(|glob| Glob::parse(&fold(glob.text())).ok());
    let methods = methods.iter().zip(folded).map(|(glob, folded)| folded.unwrap_or(glob.clone()));
    let methods: Vec<Glob> = methods.collect();
    let from = findings.with_step("source", |findings| {
        let globs = globs(fields.get("source"), findings);
        check_sources(fields.get("source"), &globs, sources, findings);
        globs
    });
    for key in ["method", "source"] {
        if let Some(node) = fields.get(key).filter(|n| n.as_list().is_some_and(<[Node]>::is_empty))
        {
            let message = format!("an empty list matches nothing; leave `{key}` out to match all");
            findings.with_step(key, |findings| findings.error(node.spot, message));
        }
    }
    let arguments = arguments(&fields, act.as_ref(), regexes, findings);
    let hints = findings.with_step("annotations", |findings| {
        fields.get("annotations").map_or_else(Vec::new, |node| hints(node, findings))
    });
    let (name, act) = (text("id").unwrap_or_else(|| format!("rules[{index}]")), act?);
    Some(PolicyRule {
        reason: format!("rule `{name}` {}", act.describe()).into(),
        name: name.into(),
        line: node.spot.line,
        matches,
        methods,
        sources: from,
        arguments,
        hints,
        act,
        description: text("description"),
    })
}

/// Reads a rule's tests on the arguments.
fn arguments(
    fields: &MapFields<'_>,
    act: Option<&RuleAction>,
    regexes: &mut usize,
    findings: &mut Findings,
) -> Vec<ArgumentTest> {
    let mut arguments = findings.with_step("arguments", |findings| {
        fields.get("arguments").map_or_else(Vec::new, |node| test::read(node, regexes, findings))
    });
    if let Some(node) = fields.get("command") {
        let test = findings.with_step("command", |findings| command::read(node, findings));
        arguments.extend(test.map(|test| ArgumentTest::Command(Box::new(test))));
    }
    if let Some(node) = fields.get("other_arguments") {
        let known = findings.with_step("other_arguments", |findings| {
            test::read_other_arguments(node, &arguments, act, findings)
        });
        arguments.push(ArgumentTest::NoOthers(known));
    }
    arguments
}

/// Reads a rule's tests on the hints about a tool.
fn hints(node: &Node, findings: &mut Findings) -> Vec<HintTest> {
    let fields = MapFields::of(node);
    let mut tests = Vec::new();
    for hint in Hint::ALL {
        let Some(node) = fields.get(hint.name()) else { continue };
        let nodes = node.as_list().unwrap_or(std::slice::from_ref(node));
        let value = |node: &Node| match &node.value {
            NodeValue::Bool(value) => Some(HintValue::Known(*value)),
            NodeValue::Text(text) if text == "unknown" => Some(HintValue::Unknown),
            _ => None,
        };
        let wanted: Vec<HintValue> = nodes.iter().filter_map(value).collect();
        if nodes.is_empty() {
            let message = "an empty list matches nothing; leave the key out to match all";
            findings.with_step(hint.name(), |findings| findings.error(node.spot, message));
        }
        tests.push(HintTest { hint, wanted });
    }
    if node.as_map() == Some(&[]) {
        findings.error(node.spot, "`annotations` is empty; leave it out to match all tools");
    }
    tests
}

/// Reads the action of a rule or of the default.
fn read_action(
    node: &Node,
    is_default: bool,
    known: &KnownWorkflows<'_>,
    findings: &mut Findings,
) -> Option<RuleAction> {
    let fields = MapFields::of(node);
    let action = fields.get("action")?.as_text()?;
    let policy_id = fields.get("policy_id");
    if let Some(id) = policy_id.filter(|_| action != "policy") {
        let message =
            format!("`policy_id` does nothing with `action: {action}`, only with `policy`");
        findings.with_step("policy_id", |findings| findings.warning(id.spot, message));
    }
    match action {
        "forward" | "deny" => {
            if let Some(node) = fields.get("approval") {
                let message =
                    format!("`approval` does nothing with `action: {action}`: no person is asked");
                findings.with_step("approval", |findings| findings.error(node.spot, message));
                known.named_workflow(&fields, findings);
            }
            Some(if action == "deny" { RuleAction::Deny } else { RuleAction::Forward })
        }
        "approve" => Some(RuleAction::Approve {
            workflow: known.choose_workflow(&fields, node.spot, findings),
        }),
        "policy" => {
            let policy_id = match policy_id.and_then(Node::as_text) {
                Some(id) => id.to_owned(),
                None if is_default => {
                    let message = format!("`policy_id` is not given; Cedar receives `{POLICY_ID}`");
                    findings.warning(node.spot, message);
                    POLICY_ID.to_owned()
                }
                None => {
                    if policy_id.is_none() {
                        let message = "`policy_id` is missing; `action: policy` requires it";
                        findings.error(node.spot, message);
                    }
                    String::new()
                }
            };
            Some(RuleAction::Policy {
                policy_id,
                workflow: known.named_workflow(&fields, findings),
            })
        }
        _ => None,
    }
}

/// Reports globs that match no source, which are probably misspelt.
fn check_sources(
    node: Option<&Node>,
    globs: &[Glob],
    sources: &[ServerSource],
    findings: &mut Findings,
) {
    if sources.is_empty() || sources.iter().any(|source| source.id == "*") {
        return;
    }
    for glob in globs.iter().filter(|g| !sources.iter().any(|source| g.matches(&source.id))) {
        let names: Vec<&str> = sources.iter().map(|source| source.id.as_str()).collect();
        let spot = super::texts(node).into_iter().find(|n| n.as_text() == Some(glob.text()));
        let hint = match tapegate_yaml::shape::nearest_name(glob.text(), names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("available: {}", quoted(&names)),
        };
        let message = format!("there is no server `{}` in `sources`; {hint}", glob.text());
        findings.error(spot.map_or(Spot::default(), |node| node.spot), message);
    }
}
