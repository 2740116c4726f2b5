//! What was observed: calls, each once, and how tools were defined.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tapegate_cedar::Tool;
use tapegate_core::frame::{Body, Envelope, Frame, array_items, elements};
use tapegate_core::json::{compact, member, string};
use tapegate_core::side::Side;

use crate::gated::Gated;
use crate::inspect::{Target, targets};

/// What was called: server, method, name.
type Thing = (String, String, String);

/// What servers were asked, and what they said of their tools.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    /// The arguments that each thing was called with, and how often.
    things: BTreeMap<Thing, BTreeMap<Option<Vec<u8>>, usize>>,
    /// The `inputSchema` of each tool by server and name, as it was said last.
    tools: BTreeMap<(String, String), String>,
}

impl Traffic {
    /// Takes a message into account.
    pub fn hear(&mut self, server: &str, from: Side, message: &[u8]) {
        let frame = Frame::read(message);
        match frame.body() {
            Body::Message(said) => self.said(server, from, said),
            Body::Batch { .. } => {
                for element in elements(frame.text()) {
                    if let Some(said) = element.envelope() {
                        self.said(server, from, said);
                    }
                }
            }
            _ => {}
        }
    }

    fn said(&mut self, server: &str, from: Side, said: &Envelope<'_>) {
        if from == Side::Server {
            return self.defined(server, said);
        }
        let method = said.method.map(|method| method.decode());
        let Some(gated) = method.as_deref().and_then(Gated::of) else { return };
        let Ok(target) = targets(said, gated) else { return };
        let names = match target {
            Target::One(name) => vec![name],
            Target::Each(names) => names,
        };
        for name in names {
            self.called(server, gated.method(), name, said.arguments);
        }
    }

    fn called(&mut self, server: &str, method: &str, name: Cow<'_, str>, arguments: Option<&[u8]>) {
        let thing = (server.to_owned(), method.to_owned(), name.into_owned());
        let arguments = arguments.map(|arguments| compact(arguments).into_owned());
        *self.things.entry(thing).or_default().entry(arguments).or_default() += 1;
    }

    fn defined(&mut self, server: &str, said: &Envelope<'_>) {
        let tools = said.result.and_then(|result| member(result, "tools"));
        for tool in tools.map(array_items).unwrap_or_default() {
            let name = member(tool, "name").and_then(string);
            let schema = member(tool, "inputSchema");
            if let (Some(name), Some(schema)) = (name, schema) {
                let schema = String::from_utf8_lossy(schema).into_owned();
                self.tools.insert((server.to_owned(), name.into_owned()), schema);
            }
        }
    }

    /// Whether nothing was called.
    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// How many calls there were.
    pub fn count(&self) -> usize {
        self.things.values().flat_map(BTreeMap::values).sum()
    }

    /// The servers that something was called of.
    pub fn servers(&self) -> Vec<&str> {
        let mut servers: Vec<&str> = self.things.keys().map(|(server, ..)| &**server).collect();
        servers.dedup();
        servers
    }

    /// Every call that differs from the others: server, method, name, arguments.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str, &str, Option<&[u8]>)> {
        self.things.iter().flat_map(|((server, method, name), all)| {
            all.keys().map(move |arguments| {
                (server.as_str(), method.as_str(), name.as_str(), arguments.as_deref())
            })
        })
    }

    /// What was called, and with what, how often.
    pub(super) fn things(
        &self,
    ) -> impl Iterator<Item = (&Thing, &BTreeMap<Option<Vec<u8>>, usize>)> {
        self.things.iter()
    }

    /// How a tool was defined.
    pub(super) fn schema(&self, server: &str, name: &str) -> Option<&str> {
        self.tools.get(&(server.to_owned(), name.to_owned())).map(String::as_str)
    }

    /// The tools as they were defined.
    pub fn tools(&self) -> Vec<Tool> {
        let tools = self.tools.iter().map(|((server, name), schema)| Tool {
            server: server.clone(),
            name: name.clone(),
            input_schema: schema.clone(),
        });
        tools.collect()
    }
}
