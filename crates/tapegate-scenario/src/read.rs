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

use tapegate_core::json::Number;

use crate::amount;
use crate::behave;
use crate::expect::Expectation;
use crate::finding::Findings;
use crate::form::{Form, Interpolate};
use crate::generate::Generator;
use crate::load::{self, Limits, Passes};
use crate::model::{Behavior, Scenario, UnknownMethods};
use crate::node::{Key, Node, Value};
use crate::shape::Table;
use crate::shape::language;

/// Reads a scenario; `None` if it is not a map.
pub(crate) fn scenario(
    node: &Node,
    form: load::Form,
    limits: &Limits,
    passes: &[Passes],
    findings: &mut Findings,
) -> Option<Scenario> {
    node.as_map()?;
    let payload_bytes_left = limits.generator.payload_bytes;
    let mut reader = Reader { limits, passes, findings, sequences: 0, payload_bytes_left };
    Some(match form {
        load::Form::Scenario => reader.scenario(node),
        load::Form::Tool => reader.tool_alone(node),
    })
}

/// The state of reading a scenario.
struct Reader<'a> {
    limits: &'a Limits,
    /// The passes over each source.
    passes: &'a [Passes],
    findings: &'a mut Findings,
    /// How many sequences were read.
    sequences: u32,
    /// How many bytes definitions may still generate.
    payload_bytes_left: usize,
}

impl Reader<'_> {
    fn scenario(&mut self, node: &Node) -> Scenario {
        let at = Fields::new(node, &language::SCENARIO);
        let (server, capabilities) = self.server(&at);
        let (baseline, phases) = self.states(&at, capabilities);
        let unknown_methods = match at.text("unknown_methods") {
            Some("error") => UnknownMethods::Error,
            Some("drop") => UnknownMethods::Drop,
            _ => UnknownMethods::Ignore,
        };
        let methods = self.methods(&at);
        let expect = self.within("expect", |reader| {
            let list = at.list("expect");
            let read = |(index, node)| {
                reader.within_number(index, |reader| Expectation::read(node, reader.findings))
            };
            list.iter().enumerate().filter_map(read).collect()
        });
        Scenario {
            about: server::about(&at),
            server,
            baseline,
            phases,
            unknown_methods,
            methods,
            logging: server::logging(&at),
            expect,
        }
    }

    /// Does some work with one more step in the path of findings.
    fn within<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        self.findings.enter(step);
        let done = work(self);
        self.findings.leave();
        done
    }

    /// Does some work with the index of a list element as a step in the path.
    fn within_number<T>(&mut self, index: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        self.within(&format!("[{index}]"), work)
    }

    /// Whether templates are expanded in a node. In nodes from no file, they are.
    fn interpolate(&self, node: &Node) -> Interpolate {
        let passes = self.passes.get(usize::from(node.spot.file));
        match passes {
            Some(Passes { templates: false, .. }) if node.spot.line > 0 => Interpolate::None,
            _ => Interpolate::All,
        }
    }

    /// Parses a node as a JSON template; only texts from files with templates are expanded.
    fn form(&mut self, node: &Node) -> Form {
        let limits = self.limits.generator;
        let mut generate = |node: &Node, findings: &mut Findings| {
            Generator::read(node, &limits, findings).map(Rc::new)
        };
        let mut seen = (false, false);
        self.see_templates(node, &mut seen);
        let (node, interpolate) = match seen {
            (true, true) => (Cow::Owned(self.exact(node)), Interpolate::All),
            (_, true) => (Cow::Borrowed(node), Interpolate::None),
            _ => (Cow::Borrowed(node), Interpolate::All),
        };
        Form::read_with(&node, interpolate, &mut generate, self.findings)
    }

    /// Notes whether there are texts with templates, and texts without.
    fn see_templates(&self, node: &Node, seen: &mut (bool, bool)) {
        match &node.value {
            Value::Text(_) => match self.interpolate(node) {
                Interpolate::All => seen.0 = true,
                Interpolate::None => seen.1 = true,
            },
            Value::List(elements) => {
                elements.iter().for_each(|node| self.see_templates(node, seen))
            }
            Value::Map(entries) => {
                entries.iter().for_each(|(_, node)| self.see_templates(node, seen))
            }
            _ => {}
        }
    }

    /// A tree in which texts without templates are raw JSON.
    fn exact(&self, node: &Node) -> Node {
        let value = match &node.value {
            Value::Text(_) if self.interpolate(node) == Interpolate::None => {
                Value::Raw(String::from_utf8_lossy(&node.to_json()).into_owned())
            }
            Value::List(elements) => {
                Value::List(elements.iter().map(|node| self.exact(node)).collect())
            }
            Value::Map(entries) => {
                let exact = |(key, node): &(Key, Node)| (key.clone(), self.exact(node));
                Value::Map(entries.iter().map(exact).collect())
            }
            other => other.clone(),
        };
        Node { spot: node.spot, value }
    }

    fn behavior(&mut self, at: &Fields<'_>) -> Option<Rc<Behavior>> {
        let node = at.get("behavior").filter(|node| node.as_map().is_some())?;
        let how =
            behave::Reading { limits: self.limits.generator, interpolate: self.interpolate(node) };
        Some(self.within("behavior", |reader| Rc::new(behave::read(node, &how, reader.findings))))
    }
}

/// A map and the table of its keys.
#[derive(Clone, Copy)]
struct Fields<'n> {
    node: &'n Node,
    table: &'static Table,
}

impl<'n> Fields<'n> {
    fn new(node: &'n Node, table: &'static Table) -> Self {
        Self { node, table }
    }

    /// The value of a key, in any of its spellings.
    fn get(&self, name: &str) -> Option<&'n Node> {
        let entry = self.table.entry(name);
        debug_assert!(entry.is_some(), "{} has no {name}", self.table.name);
        let entries = self.node.as_map()?;
        entries
            .iter()
            .find(|(key, _)| entry.is_some_and(|entry| entry.is(&key.name)))
            .map(|(_, n)| n)
    }

    /// The map under a key.
    fn map(&self, name: &str, table: &'static Table) -> Option<Fields<'n>> {
        self.get(name).filter(|node| node.as_map().is_some()).map(|node| Fields::new(node, table))
    }

    /// The elements of the list under a key; empty if there is no list.
    fn list(&self, name: &str) -> &'n [Node] {
        self.get(name).and_then(Node::as_list).unwrap_or_default()
    }

    fn text(&self, name: &str) -> Option<&'n str> {
        self.get(name)?.as_text()
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)?.value {
            Value::Bool(yes) => Some(yes),
            _ => None,
        }
    }

    fn whole(&self, name: &str) -> Option<u64> {
        match &self.get(name)?.value {
            Value::Number(text) => Number::read(text.as_bytes()).whole(),
            _ => None,
        }
    }

    fn duration_ns(&self, name: &str) -> Option<u64> {
        amount::duration_ns(self.get(name)?).ok()
    }
}
