//! Observed traffic: successful calls without duplicates, and the definitions of tools.
//!
//! A call that the server refused does not show what an agent needs, and a policy must not be
//! derived from failed attempts. So a call counts only once its response is known not to be an
//! error, or when the tape ends without a response.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tapegate_cedar::Tool;
use tapegate_core::frame::{Body, Envelope, Frame, array_items, elements};
use tapegate_core::json::{compact, member, string};
use tapegate_core::side::Side;

use crate::gated::Gated;
use crate::inspect::{Target, targets};

/// The target of a call: server, method, name.
type Thing = (String, String, String);

/// A call that waits for its response: its target and arguments.
type Waiting = (Thing, Option<Vec<u8>>);

/// The calls to servers, and the tools that they define.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    /// The arguments of all calls by target, with the number of calls.
    things: BTreeMap<Thing, BTreeMap<Option<Vec<u8>>, usize>>,
    /// The last `inputSchema` of each tool, by server and name.
    tools: BTreeMap<(String, String), String>,
    /// Calls without a response so far, by session and id.
    waiting: BTreeMap<(Vec<u8>, Vec<u8>), Vec<Waiting>>,
    /// The number of calls that the server refused.
    refused: usize,
}

impl Traffic {
    /// Adds a message of a session.
    pub fn hear(&mut self, server: &str, session: &[u8], from: Side, message: &[u8]) {
        let frame = Frame::read(message);
        match frame.body() {
            Body::Message(envelope) => self.take(server, session, from, envelope),
            Body::Batch { .. } => {
                for element in elements(frame.text()) {
                    if let Some(envelope) = element.envelope() {
                        self.take(server, session, from, envelope);
                    }
                }
            }
            _ => {}
        }
    }

    /// Ends a tape: calls still without a response count as successful.
    pub fn end_tape(&mut self) {
        for (thing, arguments) in std::mem::take(&mut self.waiting).into_values().flatten() {
            self.count_call(thing, arguments);
        }
    }

    fn take(&mut self, server: &str, session: &[u8], from: Side, said: &Envelope<'_>) {
        if from == Side::Server {
            self.answered(session, said);
            return self.defined(server, said);
        }
        let method = said.method.map(|method| method.decode());
        let Some(gated) = method.as_deref().and_then(Gated::of) else { return };
        let Ok(target) = targets(said, gated) else { return };
        let names = match target {
            Target::One(name) => vec![name],
            Target::Each(names) => names,
            Target::Nothing => Vec::new(),
        };
        let called = names.into_iter().map(Cow::into_owned).map(|name| {
            let thing = (server.to_owned(), gated.method().to_owned(), name);
            (thing, said.arguments.map(|arguments| compact(arguments).into_owned()))
        });
        let called: Vec<Waiting> = called.collect();
        match said.id {
            Some(id) => {
                let key = (session.to_owned(), id.to_owned());
                // The id is reused before it was answered, so the earlier call has no response.
                let earlier = self.waiting.insert(key, called);
                earlier
                    .into_iter()
                    .flatten()
                    .for_each(|(thing, with)| self.count_call(thing, with));
            }
            None => called.into_iter().for_each(|(thing, with)| self.count_call(thing, with)),
        }
    }

    fn answered(&mut self, session: &[u8], said: &Envelope<'_>) {
        let Some(id) = said.id.filter(|_| said.method.is_none()) else { return };
        let Some(calls) = self.waiting.remove(&(session.to_owned(), id.to_owned())) else { return };
        let is_error = said.result.and_then(|result| member(result, "isError"));
        if said.result.is_none() || is_error == Some(b"true") {
            self.refused += calls.len();
            return;
        }
        calls.into_iter().for_each(|(thing, arguments)| self.count_call(thing, arguments));
    }

    fn count_call(&mut self, thing: Thing, arguments: Option<Vec<u8>>) {
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

    /// The number of calls.
    pub fn count(&self) -> usize {
        self.things.values().flat_map(BTreeMap::values).sum()
    }

    /// The number of calls left out because the server responded with an error.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// The servers that were called.
    pub fn servers(&self) -> Vec<&str> {
        let mut servers: Vec<&str> = self.things.keys().map(|(server, ..)| &**server).collect();
        servers.dedup();
        servers
    }

    /// Every distinct call: server, method, name, arguments.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str, &str, Option<&[u8]>)> {
        self.things.iter().flat_map(|((server, method, name), all)| {
            all.keys().map(move |arguments| {
                (server.as_str(), method.as_str(), name.as_str(), arguments.as_deref())
            })
        })
    }

    /// All targets, with the arguments and the number of calls.
    pub(super) fn things(
        &self,
    ) -> impl Iterator<Item = (&Thing, &BTreeMap<Option<Vec<u8>>, usize>)> {
        self.things.iter()
    }

    /// The input schema of a tool.
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
