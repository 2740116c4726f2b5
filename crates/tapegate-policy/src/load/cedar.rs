//! Loads the Cedar policies that a policy names.

use tapegate_cedar::{CedarFault, CedarPolicies, CedarText};
use tapegate_yaml::field::MapFields;
use tapegate_yaml::files::FileError;
use tapegate_yaml::node::{Node, NodeKey, Spot};

use super::PolicyLoader;
use super::language::CEDAR;
use super::read::KnownWorkflows;
use crate::pins::PinLock;

/// A Cedar text and its position.
struct CedarSource {
    text: CedarText,
    stands: CedarLocation,
}

/// The position of a Cedar text.
enum CedarLocation {
    /// In a file of its own.
    File(u16),
    /// In the policy, with the position of its first line and the indentation of all lines.
    Inline { first: Spot, indent: u32 },
}

impl PolicyLoader<'_> {
    /// Loads and checks the Cedar policies; `asked` says whether any rule uses them.
    pub(super) fn load_cedar(
        &mut self,
        (top, main): (&Node, &str),
        known: &KnownWorkflows<'_>,
        is_used: bool,
        lock: &PinLock,
    ) -> Option<CedarPolicies> {
        let node = MapFields::of(top).get("cedar")?;
        if !is_used && node.as_map().is_some() {
            let message = "Cedar is unused: no rule has `action: policy`";
            self.findings.error(node.spot, message);
        }
        self.findings.push_step("cedar");
        let cedar = self.load_cedar_section((node, main), known, lock);
        self.findings.pop_step();
        cedar
    }

    fn load_cedar_section(
        &mut self,
        (node, main): (&Node, &str),
        known: &KnownWorkflows<'_>,
        lock: &PinLock,
    ) -> Option<CedarPolicies> {
        let fields = MapFields::of(node);
        let mut whole = true;
        let mut places = Vec::new();
        let policies = fields.get("policies");
        let list = policies.map(|node| node.as_list().unwrap_or(std::slice::from_ref(node)));
        for (index, node) in list.unwrap_or_default().iter().enumerate() {
            self.findings.push_step(&format!("policies[{index}]"));
            let source = self.load_cedar_file(node);
            self.findings.pop_step();
            whole &= source.is_some();
            places.extend(source);
        }
        if let Some(node) = fields.get("inline")
            && let Some(text) = node.as_text()
        {
            let stands = inline(node.spot, text, main);
            let text = CedarText { name: "inline".to_owned(), text: text.to_owned() };
            places.push(CedarSource { text, stands });
        }
        let schema = match fields.get("schema") {
            Some(node) => {
                self.findings.push_step("schema");
                let schema = self.load_cedar_file(node);
                self.findings.pop_step();
                whole &= schema.is_some();
                schema
            }
            None => None,
        };
        if places.is_empty() && whole && node.as_map().is_some_and(is_known) {
            self.findings
                .error(node.spot, "there are no policies here; give `policies` or `inline`");
        }
        // With a file missing, checking would only report spurious errors.
        if !whole || places.is_empty() {
            return None;
        }
        let tools = lock.tools();
        let texts: Vec<CedarText> = places.iter().map(|source| source.text.clone()).collect();
        let (cedar, faults) =
            CedarPolicies::load(&texts, schema.as_ref().map(|source| &source.text), &tools);
        let all: Vec<CedarSource> = places.into_iter().chain(schema).collect();
        for fault in faults {
            self.report_cedar_fault(fault, &all, node);
        }
        let cedar = cedar?;
        for workflow in cedar.workflows() {
            if let Err(message) = known.check(&workflow) {
                self.findings.error(
                    annotation_spot(&workflow, &all, node),
                    format!("`@approval`: {message}"),
                );
            }
        }
        Some(cedar)
    }

    /// Reads a file that is named here.
    fn load_cedar_file(&mut self, node: &Node) -> Option<CedarSource> {
        let path = node.as_text()?;
        match self.read_named_file(path) {
            Ok(Some((text, file))) => {
                let text = CedarText { name: path.to_owned(), text };
                Some(CedarSource { text, stands: CedarLocation::File(file) })
            }
            Ok(None) => None,
            Err(error) => {
                let message = match error {
                    FileError::Missing => {
                        format!("there is no file `{path}`, relative to the folder of this file")
                    }
                    error => format!("the file `{path}` cannot be read: {error}"),
                };
                self.findings.error(node.spot, message);
                None
            }
        }
    }

    fn report_cedar_fault(&mut self, fault: CedarFault, places: &[CedarSource], node: &Node) {
        let CedarFault { text, line, column, error, message: words } = fault;
        let spot = places.get(text).map_or(node.spot, |source| source.spot(line, column));
        match error {
            true => self.findings.error(spot, words),
            false => self.findings.warning(spot, words),
        }
    }
}

impl CedarSource {
    /// The position that people see for a line and column of the text.
    fn spot(&self, line: u32, column: u32) -> Spot {
        match self.stands {
            CedarLocation::File(file) => Spot { file, line, column },
            CedarLocation::Inline { first, .. } if line == 0 => first,
            CedarLocation::Inline { first, indent } => {
                Spot { file: first.file, line: first.line + line - 1, column: column + indent }
            }
        }
    }
}

/// Whether all keys of the section are known; if not, that is already reported.
fn is_known(entries: &[(NodeKey, Node)]) -> bool {
    entries.iter().all(|(key, _)| CEDAR.entry(&key.name).is_some())
}

/// The position of a text inside the policy. A block starts at its first line that is not empty.
fn inline(spot: Spot, text: &str, main: &str) -> CedarLocation {
    let line = main.lines().nth(spot.line.saturating_sub(1) as usize).unwrap_or_default();
    // The node's position is that of its first text. How lines are counted from there depends on
    // the style: a block drops its indentation, a quoted text starts after the quote.
    let begins = line.chars().nth(spot.column.saturating_sub(1) as usize);
    let quote = matches!(begins, Some('"' | '\''));
    let empty = text.bytes().take_while(|byte| *byte == b'\n').count() as u32;
    let before = if quote { 0 } else { empty };
    let first = Spot { line: spot.line.saturating_sub(before), ..spot };
    CedarLocation::Inline { first, indent: spot.column.saturating_sub(1) + u32::from(quote) }
}

/// The position where `@approval` names this workflow.
fn annotation_spot(workflow: &str, places: &[CedarSource], node: &Node) -> Spot {
    let quoted = format!("\"{workflow}\"");
    for source in places {
        for (index, line) in source.text.text.lines().enumerate() {
            let Some(at) = line.find("@approval") else { continue };
            if line[at..].contains(&quoted) {
                let column = line[..at].chars().count() as u32 + 1;
                return source.spot(index as u32 + 1, column);
            }
        }
    }
    node.spot
}
