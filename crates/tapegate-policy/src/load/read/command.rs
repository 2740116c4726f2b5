//! Reads tests of commands.

use tapegate_shell::classifier::CommandClass;
use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Node;

use super::{KnownWorkflows, check_duplicates, globs, strings, texts};
use crate::command_rules::{CommandTest, FOLDER_ARGUMENT, RunPattern};
use crate::glob::Glob;
use crate::model::{PolicyRule, RuleAction};
use crate::predicate::{ArgumentTest, ArgumentTexts};
use tapegate_core::lenient::folder::FolderPath;

/// The argument with the command line of the tool `bash_recorder.execute`.
const COMMAND: &str = "command";
/// The names of that tool.
const TOOLS: [&str; 2] = ["bash_recorder.execute", "bash_recorder_execute"];

/// Reads the test of a rule.
pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<CommandTest> {
    let fields = MapFields::of(node);
    let mut test = CommandTest {
        argument: argument(&fields, "in", COMMAND, findings)?,
        folder_argument: argument(&fields, "folder_in", FOLDER_ARGUMENT, findings)?,
        folder: fields.get("folder").and_then(Node::as_text).map(str::to_owned),
        run: runs(fields.get("run")),
        lines: strings(fields.get("line")).iter().map(|line| line.trim().to_owned()).collect(),
        classes: Vec::new(),
        under: Vec::new(),
        redirects_to: globs(fields.get("redirects_to"), findings),
        piped_from: runs(fields.get("piped_from")),
    };
    let classes = texts(fields.get("class")).into_iter().filter_map(Node::as_text);
    test.classes = classes.filter_map(CommandClass::parse).collect();
    let folders = texts(fields.get("under")).into_iter().filter_map(Node::as_text);
    test.under = folders.filter_map(|text| FolderPath::parse(text).ok()).collect();
    for key in ["run", "line", "class", "under", "redirects_to", "piped_from"] {
        if let Some(list) = fields.get(key).filter(|n| n.as_list().is_some_and(<[Node]>::is_empty))
        {
            let message = "an empty list matches nothing; leave the key out to match all";
            findings.with_step(key, |findings| findings.error(list.spot, message));
        }
    }
    let tests = ["run", "line", "class", "under", "redirects_to", "piped_from"];
    if !tests.iter().any(|key| fields.get(key).is_some()) {
        let message = "there is no test here; add `run`, `class` or `under`";
        findings.error(node.spot, message);
    }
    if fields
        .get("under")
        .is_some_and(|node| node.as_text().is_some_and(|text| text.contains("://")))
    {
        findings.error(node.spot, "`under` of a command takes folders, not URIs");
    }
    Some(test)
}

fn argument(
    fields: &MapFields<'_>,
    key: &str,
    default: &str,
    findings: &mut Findings,
) -> Option<ArgumentTexts> {
    let node = fields.get(key);
    let text = node.and_then(Node::as_text).unwrap_or(default);
    match ArgumentTexts::parse(text) {
        Ok(argument) => Some(argument),
        Err(message) => {
            let spot = node.map(|node| node.spot).unwrap_or_default();
            findings.with_step(key, |findings| findings.error(spot, message));
            None
        }
    }
}

fn runs(node: Option<&Node>) -> Vec<RunPattern> {
    let texts = texts(node).into_iter().filter_map(Node::as_text);
    texts.filter_map(|text| RunPattern::parse(text).ok()).collect()
}

/// Reads groups of permitted commands, as rules.
pub(super) fn read_groups(
    node: &Node,
    known: &KnownWorkflows<'_>,
    findings: &mut Findings,
) -> Vec<PolicyRule> {
    let groups = node.as_list().unwrap_or_default();
    let mut rules: Vec<PolicyRule> = Vec::new();
    // A question is stricter than a permit, so reviewed commands of all groups come first.
    for reviewed in [true, false] {
        for (index, group) in groups.iter().enumerate() {
            findings.push_step(&format!("[{index}]"));
            let rule = read_group(group, reviewed, known, findings);
            findings.pop_step();
            rules.extend(rule);
        }
    }
    check_duplicates(groups, "name", "the group", findings);
    rules
}

/// The rule for the commands of a group that need a person, or for those that do not.
fn read_group(
    group: &Node,
    reviewed: bool,
    known: &KnownWorkflows<'_>,
    findings: &mut Findings,
) -> Option<PolicyRule> {
    let fields = MapFields::of(group);
    let name = fields.get("name")?.as_text()?;
    let mut test = CommandTest {
        argument: ArgumentTexts::parse(COMMAND).ok()?,
        folder_argument: ArgumentTexts::parse(FOLDER_ARGUMENT).ok()?,
        folder: None,
        run: Vec::new(),
        lines: std::collections::BTreeSet::new(),
        classes: Vec::new(),
        under: Vec::new(),
        redirects_to: Vec::new(),
        piped_from: Vec::new(),
    };
    for node in fields.get("commands").and_then(Node::as_list).unwrap_or_default() {
        let command = MapFields::of(node);
        let flag = |key: &str, findings: &mut Findings| command.flag(key, findings) == Some(true);
        let Some(pattern) = command.get("pattern") else { continue };
        let text = pattern.as_text().unwrap_or_default();
        if flag("review", findings) != reviewed {
            continue;
        }
        if flag("exact", findings) {
            test.lines.insert(text.trim().to_owned());
            continue;
        }
        match RunPattern::parse(text) {
            Ok(run) => {
                let limit = command.get("class").and_then(Node::as_text);
                test.run.push(run.limited(limit.and_then(CommandClass::parse)));
            }
            // Once, although each group is read twice.
            Err(message) => findings.with_step("commands", |f| f.error(pattern.spot, message)),
        }
    }
    if test.run.is_empty() && test.lines.is_empty() {
        return None;
    }
    let act = match reviewed {
        true => RuleAction::Approve { workflow: known.default_workflow() },
        false => RuleAction::Forward,
    };
    let verb = if reviewed { "requires approval" } else { "sends it on" };
    Some(PolicyRule {
        name: name.into(),
        reason: format!("group `{name}` {verb}").into(),
        line: group.spot.line,
        matches: TOOLS.iter().filter_map(|tool| Glob::parse(tool).ok()).collect(),
        methods: Vec::new(),
        sources: Vec::new(),
        arguments: vec![ArgumentTest::Command(Box::new(test))],
        hints: Vec::new(),
        act,
        description: fields.get("description").and_then(Node::as_text).map(str::to_owned),
    })
}
