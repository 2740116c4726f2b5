//! Observed traffic: successful calls without duplicates, and the definitions of tools.
//!
//! A call that the server refused does not show what an agent needs, and a policy must not be
//! derived from failed attempts. So a call counts only once its response is known not to be an
//! error, or when the tape ends without a response.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tapegate_cedar::ToolDefinition;
use tapegate_core::frame::{Envelope, Frame, FrameBody, array_items, elements};
use tapegate_core::json::{compact, member, string};
use tapegate_core::side::Side;

use crate::gated_requests::GatedMethod;
use crate::inspect::{CallTarget, find_targets};

/// The target of a call: server, method, name.
type CallIdentity = (String, String, String);

/// A call that waits for its response: its target and arguments.
type AwaitedCall = (CallIdentity, Option<Vec<u8>>);

/// The calls to servers, and the tools that they define.
#[derive(Debug, Clone, Default)]
pub struct RecordedTraffic {
    /// The arguments of all calls by target, with the number of calls.
    things: BTreeMap<CallIdentity, BTreeMap<Option<Vec<u8>>, usize>>,
    /// The last `inputSchema` of each tool, by server and name.
    tools: BTreeMap<(String, String), String>,
    /// Calls without a response so far, by session and id.
    waiting: BTreeMap<(Vec<u8>, Vec<u8>), Vec<AwaitedCall>>,
    /// The number of calls that the server refused.
    refused: usize,
}

impl RecordedTraffic {
    /// Adds a message of a session.
    pub fn observe(&mut self, server: &str, session: &[u8], from: Side, message: &[u8]) {
        let frame = Frame::read(message);
        match frame.body() {
            FrameBody::Message(envelope) => self.observe_message(server, session, from, envelope),
            FrameBody::Batch { .. } => {
                for element in elements(frame.text()) {
                    if let Some(envelope) = element.envelope() {
                        self.observe_message(server, session, from, envelope);
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

    fn observe_message(&mut self, server: &str, session: &[u8], from: Side, msg: &Envelope<'_>) {
        if from == Side::Server {
            self.observe_answer(session, msg);
            return self.observe_definitions(server, msg);
        }
        let method = msg.method.map(|method| method.decode());
        let Some(gated) = method.as_deref().and_then(GatedMethod::of) else { return };
        // The gate refuses such a call, so the policy need not permit it.
        let Ok(target) = find_targets(msg, gated) else { return };
        let names = match target {
            CallTarget::One(name) => vec![name],
            CallTarget::Each(names) => names,
            CallTarget::Nothing => Vec::new(),
        };
        let called = names.into_iter().map(Cow::into_owned).map(|name| {
            let thing = (server.to_owned(), gated.method().to_owned(), name);
            (thing, msg.arguments.map(|arguments| compact(arguments).into_owned()))
        });
        let called: Vec<AwaitedCall> = called.collect();
        match msg.id {
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

    fn observe_answer(&mut self, session: &[u8], msg: &Envelope<'_>) {
        let Some(id) = msg.id.filter(|_| msg.method.is_none()) else { return };
        let Some(calls) = self.waiting.remove(&(session.to_owned(), id.to_owned())) else { return };
        let is_error = msg.result.and_then(|result| member(result, "isError"));
        // Tools report their own failures as results with `isError`, not as errors of the protocol.
        if msg.result.is_none() || is_error == Some(b"true") {
            self.refused += calls.len();
            return;
        }
        calls.into_iter().for_each(|(thing, arguments)| self.count_call(thing, arguments));
    }

    fn count_call(&mut self, thing: CallIdentity, arguments: Option<Vec<u8>>) {
        *self.things.entry(thing).or_default().entry(arguments).or_default() += 1;
    }

    fn observe_definitions(&mut self, server: &str, msg: &Envelope<'_>) {
        let tools = msg.result.and_then(|result| member(result, "tools"));
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
    pub fn refused_count(&self) -> usize {
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
    ) -> impl Iterator<Item = (&CallIdentity, &BTreeMap<Option<Vec<u8>>, usize>)> {
        self.things.iter()
    }

    /// The input schema of a tool.
    pub(super) fn schema(&self, server: &str, name: &str) -> Option<&str> {
        self.tools.get(&(server.to_owned(), name.to_owned())).map(String::as_str)
    }

    /// The tools as they were defined.
    pub fn tools(&self) -> Vec<ToolDefinition> {
        let tools = self.tools.iter().map(|((server, name), schema)| ToolDefinition {
            server: server.clone(),
            name: name.clone(),
            input_schema: schema.clone(),
        });
        tools.collect()
    }
}
