//! What was observed: calls that were answered, each once, and how tools were defined.
//!
//! A call that the server refused is no example of what an agent needs, and a policy must not be
//! made from somebody's attempts. So a call counts only once its answer is known to be no error, or
//! when the tape ends without one.

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

/// A call that waits for its answer: what it was, and with which arguments.
type Waiting = (Thing, Option<Vec<u8>>);

/// What servers were asked, and what they said of their tools.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    /// The arguments that each thing was called with, and how often.
    things: BTreeMap<Thing, BTreeMap<Option<Vec<u8>>, usize>>,
    /// The `inputSchema` of each tool by server and name, as it was said last.
    tools: BTreeMap<(String, String), String>,
    /// Calls without an answer yet, by session and id.
    waiting: BTreeMap<(Vec<u8>, Vec<u8>), Vec<Waiting>>,
    /// How many calls the server refused.
    refused: usize,
}

impl Traffic {
    /// Takes a message of a session into account.
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

    /// Ends a tape: what has no answer by now gets none.
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
                // An id that is used again before it is answered: the earlier call got no answer.
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

    /// How many calls there were.
    pub fn count(&self) -> usize {
        self.things.values().flat_map(BTreeMap::values).sum()
    }

    /// How many calls were left out because the server answered them with an error.
    pub fn refused(&self) -> usize {
        self.refused
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
