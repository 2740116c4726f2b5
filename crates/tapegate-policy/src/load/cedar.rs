//! Loads the Cedar policies that a policy names.

use tapegate_cedar::{Cedar, Fault, Text};
use tapegate_yaml::field::Fields;
use tapegate_yaml::files::FileError;
use tapegate_yaml::node::{Key, Node, Spot};

use super::Loader;
use super::language::CEDAR;
use super::read::Known;
use crate::pins::Lock;

/// A Cedar text and its position.
struct Place {
    text: Text,
    stands: Stands,
}

/// The position of a Cedar text.
enum Stands {
    /// In a file of its own.
    File(u16),
    /// In the policy, with the position of its first line and the indentation of all lines.
    Inline { first: Spot, indent: u32 },
}

impl Loader<'_> {
    /// Loads and checks the Cedar policies; `asked` says whether any rule uses them.
    pub(super) fn cedar(
        &mut self,
        (top, main): (&Node, &str),
        known: &Known<'_>,
        asked: bool,
        lock: &Lock,
    ) -> Option<Cedar> {
        let node = Fields::of(top).get("cedar")?;
        if !asked && node.as_map().is_some() {
            let words = "Cedar is unused: no rule has `action: policy`";
            self.findings.error(node.spot, words);
        }
        self.findings.enter("cedar");
        let cedar = self.cedar_section((node, main), known, lock);
        self.findings.leave();
        cedar
    }

    fn cedar_section(
        &mut self,
        (node, main): (&Node, &str),
        known: &Known<'_>,
        lock: &Lock,
    ) -> Option<Cedar> {
        let fields = Fields::of(node);
        let mut whole = true;
        let mut places = Vec::new();
        let policies = fields.get("policies");
        let list = policies.map(|node| node.as_list().unwrap_or(std::slice::from_ref(node)));
        for (index, node) in list.unwrap_or_default().iter().enumerate() {
            self.findings.enter(&format!("policies[{index}]"));
            let place = self.cedar_file(node);
            self.findings.leave();
            whole &= place.is_some();
            places.extend(place);
        }
        if let Some(node) = fields.get("inline")
            && let Some(text) = node.as_text()
        {
            let stands = inline(node.spot, text, main);
            let text = Text { name: "inline".to_owned(), text: text.to_owned() };
            places.push(Place { text, stands });
        }
        let schema = match fields.get("schema") {
            Some(node) => {
                self.findings.enter("schema");
                let schema = self.cedar_file(node);
                self.findings.leave();
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
        let texts: Vec<Text> = places.iter().map(|place| place.text.clone()).collect();
        let (cedar, faults) = Cedar::load(&texts, schema.as_ref().map(|place| &place.text), &tools);
        let all: Vec<Place> = places.into_iter().chain(schema).collect();
        for fault in faults {
            self.cedar_fault(fault, &all, node);
        }
        let cedar = cedar?;
        for workflow in cedar.workflows() {
            if let Err(words) = known.check(&workflow) {
                self.findings
                    .error(annotated(&workflow, &all, node), format!("`@approval`: {words}"));
            }
        }
        Some(cedar)
    }

    /// Reads a file that is named here.
    fn cedar_file(&mut self, node: &Node) -> Option<Place> {
        let path = node.as_text()?;
        match self.named(path) {
            Ok(Some((text, file))) => {
                let text = Text { name: path.to_owned(), text };
                Some(Place { text, stands: Stands::File(file) })
            }
            Ok(None) => None,
            Err(error) => {
                let words = match error {
                    FileError::Missing => {
                        format!("there is no file `{path}`, relative to the folder of this file")
                    }
                    error => format!("the file `{path}` cannot be read: {error}"),
                };
                self.findings.error(node.spot, words);
                None
            }
        }
    }

    fn cedar_fault(&mut self, fault: Fault, places: &[Place], node: &Node) {
        let Fault { text, line, column, error, words } = fault;
        let spot = places.get(text).map_or(node.spot, |place| place.spot(line, column));
        match error {
            true => self.findings.error(spot, words),
            false => self.findings.warning(spot, words),
        }
    }
}

impl Place {
    /// The position that people see for a line and column of the text.
    fn spot(&self, line: u32, column: u32) -> Spot {
        match self.stands {
            Stands::File(file) => Spot { file, line, column },
            Stands::Inline { first, .. } if line == 0 => first,
            Stands::Inline { first, indent } => {
                Spot { file: first.file, line: first.line + line - 1, column: column + indent }
            }
        }
    }
}

/// Whether all keys of the section are known; if not, that is already reported.
fn is_known(entries: &[(Key, Node)]) -> bool {
    entries.iter().all(|(key, _)| CEDAR.entry(&key.name).is_some())
}

/// The position of a text inside the policy. A block starts at its first line that is not empty.
fn inline(spot: Spot, text: &str, main: &str) -> Stands {
    let line = main.lines().nth(spot.line.saturating_sub(1) as usize).unwrap_or_default();
    let begins = line.chars().nth(spot.column.saturating_sub(1) as usize);
    let quote = matches!(begins, Some('"' | '\''));
    let empty = text.bytes().take_while(|byte| *byte == b'\n').count() as u32;
    let before = if quote { 0 } else { empty };
    let first = Spot { line: spot.line.saturating_sub(before), ..spot };
    Stands::Inline { first, indent: spot.column.saturating_sub(1) + u32::from(quote) }
}

/// The position where `@approval` names this workflow.
fn annotated(workflow: &str, places: &[Place], node: &Node) -> Spot {
    let quoted = format!("\"{workflow}\"");
    for place in places {
        for (index, line) in place.text.text.lines().enumerate() {
            let Some(at) = line.find("@approval") else { continue };
            if line[at..].contains(&quoted) {
                let column = line[..at].chars().count() as u32 + 1;
                return place.spot(index as u32 + 1, column);
            }
        }
    }
    node.spot
}
