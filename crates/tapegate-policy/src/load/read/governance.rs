//! Reads the rules and the default action.

use tapegate_yaml::field::Fields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, Spot, Value};

use super::{Known, globs, quoted, rule_checks, test, twice};
use crate::glob::Glob;
use crate::methods::fold;
use crate::model::{Act, EmbeddedMessages, Rule, Source};
use crate::own_files::OwnFiles;
use crate::pins::{Hint, HintTest, HintValue};
use crate::predicate::ArgumentTest;

/// The default of `context.policy_id`.
const POLICY_ID: &str = "default";
/// The maximum number of rules; each may be tested for every call.
const RULES_MAX: usize = 10_000;

/// The section `governance`.
#[derive(Default)]
pub(super) struct Governance {
    pub(super) rules: Vec<Rule>,
    /// `None` only after an error, which has been reported.
    pub(super) default: Option<Act>,
    pub(super) own_files: OwnFiles,
    pub(super) embedded_messages: EmbeddedMessages,
    /// Whether a rule or the default uses Cedar.
    pub(super) asks_cedar: bool,
    /// Whether there is a section with Cedar policies.
    has_cedar: bool,
}

pub(super) fn read(
    top: &Node,
    known: &Known<'_>,
    sources: &[Source],
    findings: &mut Findings,
) -> Governance {
    let has_cedar = Fields::of(top).get("cedar").is_some();
    let mut governance = Governance { has_cedar, ..Governance::default() };
    let Some(node) = Fields::of(top).get("governance") else { return governance };
    findings.enter("governance");
    let fields = Fields::of(node);
    if let Some(node) = fields.get("defaults") {
        findings.enter("defaults");
        governance.default = act(node, true, known, findings);
        governance.note(node, governance.default.clone().as_ref(), findings);
        findings.leave();
    }
    let builtin = fields.get("builtin").map(Fields::of);
    let own_files = builtin.and_then(|builtin| builtin.get("own_files")).and_then(Node::as_text);
    governance.own_files.refuse = own_files != Some("forward");
    if fields.get("embedded_messages").and_then(Node::as_text) == Some("refuse") {
        governance.embedded_messages = EmbeddedMessages::Refuse;
    }
    if let Some(node) = fields.get("rules") {
        findings.within("rules", |f| governance.rules(node, known, sources, f));
    }
    findings.leave();
    governance
}

impl Governance {
    fn rules(
        &mut self,
        node: &Node,
        known: &Known<'_>,
        sources: &[Source],
        findings: &mut Findings,
    ) {
        let rules = node.as_list().unwrap_or_default();
        if rules.len() > RULES_MAX {
            let words = format!("there are {} rules; the maximum is {RULES_MAX}", rules.len());
            return findings.error(node.spot, words);
        }
        let mut regexes = test::REGEXES_MAX;
        for (index, node) in rules.iter().enumerate() {
            findings.enter(&format!("[{index}]"));
            if let Some(rule) = rule(node, index, known, sources, &mut regexes, findings) {
                self.note(node, Some(&rule.act), findings);
                rule_checks::check(node, &rule, (&self.rules, sources), findings);
                self.rules.push(rule);
            }
            findings.leave();
        }
        // Two rules with the same name could not be told apart in a log.
        twice(rules, "id", "the rule", findings);
    }

    /// Records that Cedar is used; the first time, reports if there are no Cedar policies.
    fn note(&mut self, node: &Node, act: Option<&Act>, findings: &mut Findings) {
        if !matches!(act, Some(Act::Policy { .. })) {
            return;
        }
        if !self.asks_cedar && !self.has_cedar {
            let spot = Fields::of(node).get("action").map_or(node.spot, |action| action.spot);
            let words =
                "`action: policy` asks Cedar, but there is no `cedar` section with policies";
            findings.within("action", |findings| findings.error(spot, words));
        }
        self.asks_cedar = true;
    }
}

fn rule(
    node: &Node,
    index: usize,
    known: &Known<'_>,
    sources: &[Source],
    regexes: &mut usize,
    findings: &mut Findings,
) -> Option<Rule> {
    let fields = Fields::of(node);
    let text = |key: &str| fields.get(key).and_then(Node::as_text).map(str::to_owned);
    let act = act(node, false, known, findings);
    let matches = match fields.get("match") {
        Some(node) => findings.within("match", |findings| {
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
    let methods = findings.within("method", |findings| globs(fields.get("method"), findings));
    // Methods are folded before they are compared, so the globs are folded too.
    let folded = methods.iter().map(|glob| Glob::parse(&fold(glob.text())).ok());
    let methods = methods.iter().zip(folded).map(|(glob, folded)| folded.unwrap_or(glob.clone()));
    let methods: Vec<Glob> = methods.collect();
    let from = findings.within("source", |findings| {
        let globs = globs(fields.get("source"), findings);
        known_sources(fields.get("source"), &globs, sources, findings);
        globs
    });
    for key in ["method", "source"] {
        if let Some(node) = fields.get(key).filter(|n| n.as_list().is_some_and(<[Node]>::is_empty))
        {
            let words = format!("an empty list matches nothing; leave `{key}` out to match all");
            findings.within(key, |findings| findings.error(node.spot, words));
        }
    }
    let arguments = arguments(&fields, act.as_ref(), regexes, findings);
    let hints = findings.within("annotations", |findings| {
        fields.get("annotations").map_or_else(Vec::new, |node| hints(node, findings))
    });
    let (name, act) = (text("id").unwrap_or_else(|| format!("rules[{index}]")), act?);
    Some(Rule {
        reason: format!("rule `{name}` {}", act.words()).into(),
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
    fields: &Fields<'_>,
    act: Option<&Act>,
    regexes: &mut usize,
    findings: &mut Findings,
) -> Vec<ArgumentTest> {
    let mut arguments = findings.within("arguments", |findings| {
        fields.get("arguments").map_or_else(Vec::new, |node| test::read(node, regexes, findings))
    });
    if let Some(node) = fields.get("other_arguments") {
        let known = findings.within("other_arguments", |findings| {
            test::other_arguments(node, &arguments, act, findings)
        });
        arguments.push(ArgumentTest::NoOthers(known));
    }
    arguments
}

/// Reads a rule's tests on the hints about a tool.
fn hints(node: &Node, findings: &mut Findings) -> Vec<HintTest> {
    let fields = Fields::of(node);
    let mut tests = Vec::new();
    for hint in Hint::ALL {
        let Some(node) = fields.get(hint.name()) else { continue };
        let nodes = node.as_list().unwrap_or(std::slice::from_ref(node));
        let value = |node: &Node| match &node.value {
            Value::Bool(value) => Some(HintValue::Known(*value)),
            Value::Text(text) if text == "unknown" => Some(HintValue::Unknown),
            _ => None,
        };
        let wanted: Vec<HintValue> = nodes.iter().filter_map(value).collect();
        if nodes.is_empty() {
            let words = "an empty list matches nothing; leave the key out to match all";
            findings.within(hint.name(), |findings| findings.error(node.spot, words));
        }
        tests.push(HintTest { hint, wanted });
    }
    if node.as_map() == Some(&[]) {
        findings.error(node.spot, "`annotations` is empty; leave it out to match all tools");
    }
    tests
}

/// Reads the action of a rule or of the default.
fn act(node: &Node, is_default: bool, known: &Known<'_>, findings: &mut Findings) -> Option<Act> {
    let fields = Fields::of(node);
    let action = fields.get("action")?.as_text()?;
    let policy_id = fields.get("policy_id");
    if let Some(id) = policy_id.filter(|_| action != "policy") {
        let words = format!("`policy_id` does nothing with `action: {action}`, only with `policy`");
        findings.within("policy_id", |findings| findings.warning(id.spot, words));
    }
    match action {
        "forward" | "deny" => {
            if let Some(node) = fields.get("approval") {
                let words =
                    format!("`approval` does nothing with `action: {action}`: no person is asked");
                findings.within("approval", |findings| findings.error(node.spot, words));
                known.named(&fields, findings);
            }
            Some(if action == "deny" { Act::Deny } else { Act::Forward })
        }
        "approve" => Some(Act::Approve { workflow: known.choose(&fields, node.spot, findings) }),
        "policy" => {
            let policy_id = match policy_id.and_then(Node::as_text) {
                Some(id) => id.to_owned(),
                None if is_default => {
                    let words = format!("`policy_id` is not given; Cedar receives `{POLICY_ID}`");
                    findings.warning(node.spot, words);
                    POLICY_ID.to_owned()
                }
                None => {
                    if policy_id.is_none() {
                        let words = "`policy_id` is missing; `action: policy` requires it";
                        findings.error(node.spot, words);
                    }
                    String::new()
                }
            };
            Some(Act::Policy { policy_id, workflow: known.named(&fields, findings) })
        }
        _ => None,
    }
}

/// Reports globs that match no source, which are probably misspelt.
fn known_sources(node: Option<&Node>, globs: &[Glob], sources: &[Source], findings: &mut Findings) {
    if sources.is_empty() || sources.iter().any(|source| source.id == "*") {
        return;
    }
    for glob in globs.iter().filter(|g| !sources.iter().any(|source| g.matches(&source.id))) {
        let names: Vec<&str> = sources.iter().map(|source| source.id.as_str()).collect();
        let spot = super::texts(node).into_iter().find(|n| n.as_text() == Some(glob.text()));
        let hint = match tapegate_yaml::shape::near(glob.text(), names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("available: {}", quoted(&names)),
        };
        let words = format!("there is no server `{}` in `sources`; {hint}", glob.text());
        findings.error(spot.map_or(Spot::default(), |node| node.spot), words);
    }
}
