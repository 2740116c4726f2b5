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

use std::rc::Rc;

use crate::behavior;
use crate::expect::Expectation;
use crate::finding::Findings;
use crate::load::{self, FilePasses, ScenarioLimits};
use crate::model::{Behavior, Scenario};
use crate::node::Node;
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
            reader.each(at.list("expect"), |reader, node| Expectation::read(node, reader.findings))
        });
        Scenario {
            about: server::read_metadata(&at),
            server,
            baseline,
            phases,
            unknown_methods: at.choice("unknown_methods").unwrap_or_default(),
            methods,
            logging: server::read_logging(&at),
            expect: expect.into_iter().flatten().collect(),
        }
    }

    /// Does some work with one more step in the path of findings.
    fn with_step<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        self.findings.push_step(step);
        let done = work(self);
        self.findings.pop_step();
        done
    }

    /// Reads the elements of a list, each with its index as a step in the path.
    fn each<'n, T>(
        &mut self,
        list: &'n [Node],
        mut read: impl FnMut(&mut Self, &'n Node) -> T,
    ) -> Vec<T> {
        let read =
            |(index, node)| self.with_step(&format!("[{index}]"), |reader| read(reader, node));
        list.iter().enumerate().map(read).collect()
    }

    /// Whether templates are expanded in a node. In nodes from no file, they are.
    fn interpolate(&self, node: &Node) -> InterpolationMode {
        interpolation_of(node, self.passes)
    }

    /// Parses a node as a JSON template; only texts from files with templates are expanded.
    fn form(&mut self, node: &Node) -> JsonTemplate {
        let passes = self.passes;
        let interpolate = |node: &Node| interpolation_of(node, passes);
        JsonTemplate::read(node, &interpolate, &self.limits.generator, self.findings)
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

fn interpolation_of(node: &Node, passes: &[FilePasses]) -> InterpolationMode {
    match passes.get(usize::from(node.spot.file)) {
        Some(FilePasses { templates: false, .. }) if node.spot.line > 0 => InterpolationMode::None,
        _ => InterpolationMode::All,
    }
}
