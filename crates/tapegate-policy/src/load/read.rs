//! Converts a tree that was checked against the tables to a policy.
//!
//! Errors that the tables have reported are not reported again: parts that cannot be converted are
//! skipped, and any error keeps the whole policy from being used.

mod approval;
mod governance;
mod idle;
mod lock_checks;
mod odd_tests;
mod path_glob;
mod regex_checks;
mod rest;
mod rule_checks;
mod sources;
mod telemetry;
mod test;

use std::collections::BTreeMap;
use std::time::Duration;

use tapegate_yaml::field::Fields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, Spot};

use super::telemetry::TelemetryUse;
use super::{Loader, time};
use crate::glob::Glob;
use crate::model::{OnDrift, Pins, Policy, Rule, Workflow};

/// The workflow that is used when the policy defines none.
const BUILT_IN: &str = "default";

impl Loader<'_> {
    /// Converts a policy; `text` is its source text.
    pub(super) fn policy(&mut self, node: &Node, text: &str) -> Option<Policy> {
        let workflows = approval::workflows(node, &mut self.findings);
        let known = Known { names: workflows.keys().map(String::as_str).collect() };
        let sources = sources::read(node, &mut self.findings);
        let governance = governance::read(node, &known, &sources, &mut self.findings);
        let profiles = rest::profiles(node, &mut self.findings);
        let mut pins = rest::pins(node, &known, &profiles, &mut self.findings);
        pins.lock = self.lock(node, &pins);
        // A caller that is about to write the pins does not need what is derived from them.
        let cedar = match self.pinned {
            true => {
                unpinned(&governance.rules, &pins, &mut self.findings);
                lock_checks::check(&governance.rules, &sources, &pins.lock, &mut self.findings);
                self.cedar((node, text), &known, governance.asks_cedar, &pins.lock)
            }
            false => None,
        };
        let findings = &mut self.findings;
        let asks_cedar = governance.asks_cedar;
        let policy = Policy {
            version: String::new(),
            rules: governance.rules,
            default: governance.default?,
            own_files: governance.own_files,
            embedded_messages: governance.embedded_messages,
            cedar,
            redaction: rest::redaction(node, findings),
            pins,
            recording: rest::recording(node, findings),
            activity: rest::activity(node, findings),
            telemetry: telemetry::read(node, findings),
            principal: rest::principal(node, findings),
            profile: rest::profile(node, findings),
            profiles,
            sources,
            workflows,
        };
        let uses =
            idle::Uses { cedar: asks_cedar, telemetry: self.telemetry == TelemetryUse::Sent };
        idle::check(node, &policy, uses, findings);
        Some(policy)
    }
}

/// Warns if rules test annotations although there are no pins to read them from.
fn unpinned(rules: &[Rule], pins: &Pins, findings: &mut Findings) {
    let Some(rule) = rules.iter().find(|rule| !rule.hints.is_empty()) else { return };
    let words = if pins.on_drift == OnDrift::Ignore {
        "`annotations` are all unknown, since `pins.on_drift` is `ignore`"
    } else if pins.lock.servers.is_empty() {
        "`annotations` are all unknown, since no tool is pinned; run `tapegate policy pin`"
    } else {
        return;
    };
    findings.warning(Spot { line: rule.line, column: 1, ..Spot::default() }, words);
}

/// The workflows that are defined.
pub(super) struct Known<'a> {
    names: Vec<&'a str>,
}

impl Known<'_> {
    /// The workflow that is used: the one that is named, or the only one.
    fn choose(&self, fields: &Fields<'_>, spot: Spot, findings: &mut Findings) -> Option<String> {
        if fields.get("approval").is_some() {
            return self.named(fields, findings);
        }
        self.only(spot, findings)
    }

    /// The only workflow, if there is just one.
    fn only(&self, spot: Spot, findings: &mut Findings) -> Option<String> {
        match self.names.as_slice() {
            [only] => Some((*only).to_owned()),
            names => {
                let names = quoted(names);
                let words =
                    format!("`approval` is missing: there is more than one workflow, {names}");
                findings.error(spot, words);
                None
            }
        }
    }

    /// The workflow that is named, if there is a name.
    fn named(&self, fields: &Fields<'_>, findings: &mut Findings) -> Option<String> {
        let name = fields.text("approval", findings)?;
        if let Err(words) = self.check(name) {
            let spot = fields.get("approval").map_or(Spot::default(), |node| node.spot);
            findings.within("approval", |findings| findings.error(spot, words));
        }
        Some(name.to_owned())
    }

    /// Checks that a workflow of this name exists.
    pub(super) fn check(&self, name: &str) -> Result<(), String> {
        if self.names.contains(&name) {
            return Ok(());
        }
        let hint = match tapegate_yaml::shape::near(name, self.names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("available: {}", quoted(&self.names)),
        };
        Err(format!("there is no workflow `{name}` in `approval`; {hint}"))
    }
}

/// The workflows of a policy that defines none: approvers are asked at the terminal.
fn built_in() -> BTreeMap<String, Workflow> {
    BTreeMap::from([(BUILT_IN.to_owned(), Workflow::default())])
}

/// Names, quoted for people.
fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Reads the value of a key, with the key added to the path of findings.
fn under<T>(
    node: &Node,
    key: &str,
    findings: &mut Findings,
    read: impl FnOnce(&Node, &mut Findings) -> T,
) -> Option<T> {
    let node = Fields::of(node).get(key)?;
    Some(findings.within(key, |findings| read(node, findings)))
}

/// Reports elements of a list with the same value under a key that must be unique.
fn twice(list: &[Node], key: &str, what: &str, findings: &mut Findings) {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for (index, node) in list.iter().enumerate() {
        let Some(node) = Fields::of(node).get(key) else { continue };
        let Some(text) = node.as_text() else { continue };
        match seen.get(text) {
            Some(line) => {
                let words = format!("{what} `{text}` is already on line {line}");
                findings.enter(&format!("[{index}]"));
                findings.within(key, |findings| findings.error(node.spot, words));
                findings.leave();
            }
            None => drop(seen.insert(text, node.spot.line)),
        }
    }
}

/// The duration under a key.
fn duration(fields: &Fields<'_>, key: &str) -> Option<Duration> {
    time::parse(fields.get(key)?.as_text()?).ok()
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
            let words = format!("braces are literal in the glob `{text}`; write a list of globs");
            findings.warning(node.spot, words);
        }
        globs.extend(Glob::parse(text).ok());
    }
    globs
}
