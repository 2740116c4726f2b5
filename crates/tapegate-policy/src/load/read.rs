//! Converts a tree that was checked against the tables to a policy.
//!
//! Errors that the tables have reported are not reported again: parts that cannot be converted are
//! skipped, and any error keeps the whole policy from being used.

mod approval;
mod channels;
mod command;
mod governance;
mod lock_checks;
mod path_glob;
mod regex_checks;
mod remaining_sections;
mod rule_checks;
mod sources;
mod suspicious_tests;
mod telemetry;
mod test;
mod unused_keys;

use std::collections::BTreeMap;
use std::time::Duration;

use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, Spot};

use super::telemetry::TelemetryUse;
use super::{PolicyLoader, duration};
use crate::glob::Glob;
use crate::model::{OnDrift, PinSettings, Policy, PolicyRule, Workflow};

/// The workflow that is used when the policy defines none.
const BUILT_IN: &str = "default";

impl PolicyLoader<'_> {
    /// Converts a policy; `text` is its source text.
    pub(super) fn policy(&mut self, node: &Node, text: &str) -> Option<Policy> {
        let workflows = approval::read_workflows(node, &mut self.findings);
        let known = KnownWorkflows { names: workflows.keys().map(String::as_str).collect() };
        // Rules are checked against the workflows and servers, so those are read first.
        let sources = sources::read(node, &mut self.findings);
        let governance = governance::read(node, &known, &sources, &mut self.findings);
        let profiles = remaining_sections::read_profiles(node, &mut self.findings);
        let mut pins = remaining_sections::read_pins(node, &known, &profiles, &mut self.findings);
        // Before Cedar, whose argument types come from the pinned definitions.
        pins.lock = self.lock(node, &pins);
        // A caller that is about to write the pins does not need what is derived from them.
        let cedar = match self.pinned {
            true => {
                check_unpinned_annotations(&governance.rules, &pins, &mut self.findings);
                lock_checks::check(&governance.rules, &sources, &pins.lock, &mut self.findings);
                self.load_cedar((node, text), &known, governance.asks_cedar, &pins.lock)
            }
            false => None,
        };
        let channels = channels::read(node, &self.folder, &workflows, &mut self.findings);
        let findings = &mut self.findings;
        let asks_cedar = governance.asks_cedar;
        let policy = Policy {
            version: String::new(),
            rules: governance.rules,
            // Without a default there is no safe answer for calls that match no rule.
            default: governance.default?,
            own_files: governance.own_files,
            embedded_messages: governance.embedded_messages,
            cedar,
            redaction: remaining_sections::redaction(node, findings),
            pins,
            recording: remaining_sections::read_recording(node, findings),
            activity: remaining_sections::read_activity(node, findings),
            telemetry: telemetry::read(node, findings),
            principal: remaining_sections::principal(node, findings),
            profile: remaining_sections::profile(node, findings),
            profiles,
            sources,
            workflows,
            channels,
        };
        let uses = unused_keys::PolicyUses {
            cedar: asks_cedar,
            telemetry: self.telemetry == TelemetryUse::Sent,
        };
        unused_keys::check(node, &policy, uses, findings);
        Some(policy)
    }
}

/// Warns if rules test annotations although there are no pins to read them from.
fn check_unpinned_annotations(rules: &[PolicyRule], pins: &PinSettings, findings: &mut Findings) {
    let Some(rule) = rules.iter().find(|rule| !rule.hints.is_empty()) else { return };
    let message = if pins.on_drift == OnDrift::Ignore {
        "`annotations` are all unknown, since `pins.on_drift` is `ignore`"
    } else if pins.lock.servers.is_empty() {
        "`annotations` are all unknown, since no tool is pinned; run `tapegate policy pin`"
    } else {
        return;
    };
    findings.warning(Spot { line: rule.line, column: 1, ..Spot::default() }, message);
}

/// The workflows that are defined.
pub(super) struct KnownWorkflows<'a> {
    names: Vec<&'a str>,
}

impl KnownWorkflows<'_> {
    /// The workflow that is used: the one that is named, or the only one.
    fn choose_workflow(
        &self,
        fields: &MapFields<'_>,
        spot: Spot,
        findings: &mut Findings,
    ) -> Option<String> {
        if fields.get("approval").is_some() {
            return self.named_workflow(fields, findings);
        }
        self.sole_workflow(spot, findings)
    }

    /// The only workflow, if there is just one.
    fn sole_workflow(&self, spot: Spot, findings: &mut Findings) -> Option<String> {
        match self.names.as_slice() {
            [only] => Some((*only).to_owned()),
            names => {
                let names = quoted(names);
                let message =
                    format!("`approval` is missing: there is more than one workflow, {names}");
                findings.error(spot, message);
                None
            }
        }
    }

    /// The workflow for questions that name none: the built-in one, or the first.
    fn default_workflow(&self) -> Option<String> {
        let default = self.names.iter().find(|name| **name == BUILT_IN);
        default.or(self.names.first()).map(|name| (*name).to_owned())
    }

    /// The workflow that is named, if there is a name.
    fn named_workflow(&self, fields: &MapFields<'_>, findings: &mut Findings) -> Option<String> {
        let name = fields.text("approval", findings)?;
        if let Err(message) = self.check(name) {
            let spot = fields.get("approval").map_or(Spot::default(), |node| node.spot);
            findings.with_step("approval", |findings| findings.error(spot, message));
        }
        Some(name.to_owned())
    }

    /// Checks that a workflow of this name exists.
    pub(super) fn check(&self, name: &str) -> Result<(), String> {
        if self.names.contains(&name) {
            return Ok(());
        }
        let hint = match tapegate_yaml::shape::nearest_name(name, self.names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("available: {}", quoted(&self.names)),
        };
        Err(format!("there is no workflow `{name}` in `approval`; {hint}"))
    }
}

/// The workflows of a policy that defines none: approvers are asked at the terminal.
fn built_in_workflows() -> BTreeMap<String, Workflow> {
    BTreeMap::from([(BUILT_IN.to_owned(), Workflow::default())])
}

/// Names, quoted for people.
fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Reads the value of a key, with the key added to the path of findings.
fn read_under<T>(
    node: &Node,
    key: &str,
    findings: &mut Findings,
    read: impl FnOnce(&Node, &mut Findings) -> T,
) -> Option<T> {
    let node = MapFields::of(node).get(key)?;
    Some(findings.with_step(key, |findings| read(node, findings)))
}

/// Reports elements of a list with the same value under a key that must be unique.
fn check_duplicates(list: &[Node], key: &str, what: &str, findings: &mut Findings) {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for (index, node) in list.iter().enumerate() {
        let Some(node) = MapFields::of(node).get(key) else { continue };
        let Some(text) = node.as_text() else { continue };
        match seen.get(text) {
            Some(line) => {
                let message = format!("{what} `{text}` is already on line {line}");
                findings.push_step(&format!("[{index}]"));
                findings.with_step(key, |findings| findings.error(node.spot, message));
                findings.pop_step();
            }
            None => drop(seen.insert(text, node.spot.line)),
        }
    }
}

/// The duration under a key.
fn duration(fields: &MapFields<'_>, key: &str) -> Option<Duration> {
    duration::parse(fields.get(key)?.as_text()?).ok()
}

/// One text, or several.
fn texts(node: Option<&Node>) -> Vec<&Node> {
    match node {
        Some(node) => match node.as_list() {
            Some(list) => list.iter().filter(|node| node.as_text().is_some()).collect(),
            None => node.as_text().map(|_| node).into_iter().collect(),
        },
        None => Vec::new(),
    }
}

/// The same, as owned strings.
fn strings(node: Option<&Node>) -> Vec<String> {
    texts(node).into_iter().filter_map(Node::as_text).map(str::to_owned).collect()
}

/// One glob, or several.
fn globs(node: Option<&Node>, findings: &mut Findings) -> Vec<Glob> {
    let mut globs = Vec::new();
    for node in texts(node) {
        let text = node.as_text().unwrap_or_default();
        if text.contains('{') && text.contains(',') && text.contains('}') {
            let message = format!("braces are literal in the glob `{text}`; write a list of globs");
            findings.warning(node.spot, message);
        }
        globs.extend(Glob::parse(text).ok());
    }
    globs
}
