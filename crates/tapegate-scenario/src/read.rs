//! Builds a [`Scenario`] from a tree that was checked against the tables.
//!
//! Wrong keys and kinds were reported by that check and are ignored here; this module reports what
//! the tables cannot express.

mod actions;
mod body;
mod capabilities;
mod items;
mod phases;
mod response;
mod server;

use std::borrow::Cow;
use std::rc::Rc;

use crate::behavior;
use crate::expect::Expectation;
use crate::finding::Findings;
use crate::generate::Generator;
use crate::load::{self, FilePasses, ScenarioLimits};
use crate::model::{Behavior, Scenario};
use crate::node::{Node, NodeKey, NodeValue};
use crate::shape::{TableFields, language};
use crate::template::{InterpolationMode, JsonTemplate};

/// Reads a scenario; `None` if it is not a map.
pub(crate) fn scenario(
    node: &Node,
    form: load::ScenarioFileKind,
    limits: &ScenarioLimits,
    passes: &[FilePasses],
    findings: &mut Findings,
) -> Option<Scenario> {
    node.as_map()?;
    let payload_bytes_left = limits.generator.payload_bytes;
    let mut reader = ScenarioReader { limits, passes, findings, sequences: 0, payload_bytes_left };
    Some(match form {
        load::ScenarioFileKind::Scenario => reader.scenario(node),
        load::ScenarioFileKind::Tool => reader.wrap_single_tool(node),
    })
}

/// The state of reading a scenario.
struct ScenarioReader<'a> {
    limits: &'a ScenarioLimits,
    /// The passes over each source.
    passes: &'a [FilePasses],
    findings: &'a mut Findings,
    /// How many sequences were read.
    sequences: u32,
    /// How many bytes definitions may still generate.
    payload_bytes_left: usize,
}

impl ScenarioReader<'_> {
    fn scenario(&mut self, node: &Node) -> Scenario {
        let at = TableFields::new(node, &language::SCENARIO);
        let (server, capabilities) = self.server(&at);
        let (baseline, phases) = self.states(&at, capabilities);
        let methods = self.methods(&at);
        let expect = self.with_step("expect", |reader| {
            let list = at.list("expect");
            let read = |(index, node)| {
                reader.with_index(index, |reader| Expectation::read(node, reader.findings))
            };
            list.iter().enumerate().filter_map(read).collect()
        });
        Scenario {
            about: server::read_metadata(&at),
            server,
            baseline,
            phases,
            unknown_methods: at.choice("unknown_methods").unwrap_or_default(),
            methods,
            logging: server::read_logging(&at),
            expect,
        }
    }

    /// Does some work with one more step in the path of findings.
    fn with_step<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        self.findings.push_step(step);
        let done = work(self);
        self.findings.pop_step();
        done
    }

    /// Does some work with the index of a list element as a step in the path.
    fn with_index<T>(&mut self, index: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        self.with_step(&format!("[{index}]"), work)
    }

    /// Whether templates are expanded in a node. In nodes from no file, they are.
    fn interpolate(&self, node: &Node) -> InterpolationMode {
        let passes = self.passes.get(usize::from(node.spot.file));
        match passes {
            Some(FilePasses { templates: false, .. }) if node.spot.line > 0 => {
                InterpolationMode::None
            }
            _ => InterpolationMode::All,
        }
    }

    /// Parses a node as a JSON template; only texts from files with templates are expanded.
    fn form(&mut self, node: &Node) -> JsonTemplate {
        let limits = self.limits.generator;
        let mut generate = |node: &Node, findings: &mut Findings| {
            Generator::read(node, &limits, findings).map(Rc::new)
        };
        let mut seen = (false, false);
        self.find_templates(node, &mut seen);
        let (node, interpolate) = match seen {
            // A tree may combine files with and without templates. Its literal texts become raw
            // JSON, which is never expanded.
            (true, true) => (Cow::Owned(self.exact_tree(node)), InterpolationMode::All),
            (_, true) => (Cow::Borrowed(node), InterpolationMode::None),
            _ => (Cow::Borrowed(node), InterpolationMode::All),
        };
        JsonTemplate::read_with(&node, interpolate, &mut generate, self.findings)
    }

    /// Notes whether there are texts with templates, and texts without.
    fn find_templates(&self, node: &Node, seen: &mut (bool, bool)) {
        match &node.value {
            NodeValue::Text(_) => match self.interpolate(node) {
                InterpolationMode::All => seen.0 = true,
                InterpolationMode::None => seen.1 = true,
            },
            NodeValue::List(elements) => {
                elements.iter().for_each(|node| self.find_templates(node, seen))
            }
            NodeValue::Map(entries) => {
                entries.iter().for_each(|(_, node)| self.find_templates(node, seen))
            }
            _ => {}
        }
    }

    /// A tree in which texts without templates are raw JSON.
    fn exact_tree(&self, node: &Node) -> Node {
        let value = match &node.value {
            NodeValue::Text(_) if self.interpolate(node) == InterpolationMode::None => {
                NodeValue::Raw(String::from_utf8_lossy(&node.to_json()).into_owned())
            }
            NodeValue::List(elements) => {
                NodeValue::List(elements.iter().map(|node| self.exact_tree(node)).collect())
            }
            NodeValue::Map(entries) => {
                let exact = |(key, node): &(NodeKey, Node)| (key.clone(), self.exact_tree(node));
                NodeValue::Map(entries.iter().map(exact).collect())
            }
            other => other.clone(),
        };
        Node { spot: node.spot, value }
    }

    fn behavior(&mut self, at: &TableFields<'_>) -> Option<Rc<Behavior>> {
        let node = at.get("behavior").filter(|node| node.as_map().is_some())?;
        let how = behavior::BehaviorContext {
            limits: self.limits.generator,
            interpolate: self.interpolate(node),
        };
        Some(
            self.with_step("behavior", |reader| {
                Rc::new(behavior::read(node, &how, reader.findings))
            }),
        )
    }
}
