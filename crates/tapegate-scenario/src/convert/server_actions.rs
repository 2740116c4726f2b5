//! Converts messages that the server sent while it answered to actions.

use std::io;

use tapegate_core::frame::{Envelope, Frame, MessageKind};
use tapegate_core::json;

use super::{ConversionState, ScenarioStyle, is_action, schema_fit, tree};
use crate::node::{Node, NodeValue};
use crate::shape::language;

/// The member of `_meta` that names a notification's subscription; the engine adds its own.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl ConversionState<'_, '_> {
    /// The messages sent during a request: those before its answer, and notifications after it.
    pub(super) fn actions(&mut self, ask: u32) -> io::Result<Vec<Node>> {
        let answer = self.tape.index.entry(ask).pair;
        let mut actions = Vec::new();
        let mut answered = false;
        for (number, slot) in self.tape.related(ask) {
            answered |= number == answer;
            if !is_action(&slot) {
                continue;
            }
            let text = self.tape.text(&slot)?.to_vec();
            let frame = Frame::read(&text);
            // An action comes before its answer, and a request there would delay the answer until
            // the client replies.
            let asks_late = answered && slot.kind == MessageKind::Request;
            let action = frame.envelope().filter(|_| !asks_late);
            match action.and_then(|envelope| self.action(envelope, answered)) {
                Some(action) if schema_fit::is_valid(&action, &language::ACTION) => {
                    actions.push(action)
                }
                _ => self.summary.left_out += 1,
            }
        }
        Ok(actions)
    }

    /// Counts the messages sent during a request whose scenario entry cannot hold them.
    pub(super) fn count_skipped(&mut self, ask: u32) {
        let skipped = self.tape.related(ask).filter(|(_, slot)| is_action(slot));
        self.summary.left_out += skipped.count() as u64;
    }

    fn action(&self, envelope: &Envelope<'_>, answered: bool) -> Option<Node> {
        let method = envelope.method?.decode().into_owned();
        let params = envelope.params.unwrap_or(b"{}");
        match method.as_str() {
            // The engine announces a change of tools itself when the phase changes them.
            "notifications/tools/list_changed" if self.options.style == ScenarioStyle::Phased => {
                None
            }
            // It names a request of the recorded session.
            "notifications/cancelled" => None,
            // Progress after the answer would come before it in the scenario, where it means
            // something else.
            "notifications/progress" if answered => None,
            "notifications/progress" => {
                Some(action("progress", without_members(params, &["progressToken"])))
            }
            "notifications/message" if json::member(params, "level").is_some() => {
                Some(action("log_message", without_members(params, &[])))
            }
            _ if envelope.kind() == MessageKind::Request => {
                Some(action("send_request", message(&method, envelope.params)))
            }
            _ => {
                let params = envelope.params.map(|params| without_members(params, &[]));
                let empty = |node: &Node| node.as_map().is_some_and(<[_]>::is_empty);
                Some(match params.filter(|params| !empty(params)) {
                    None => action("send_notification", Node::text(method)),
                    Some(params) => {
                        let method = Node::entry("method", Node::text(method));
                        let params = Node::entry("params", params);
                        action("send_notification", Node::map(vec![method, params]))
                    }
                })
            }
        }
    }
}

/// Appends the server's next round of input requests. Adjacent requests are sent together, so a
/// wait separates the rounds; a repeated name is made unique.
pub(super) fn add_questions(actions: &mut Vec<Node>, result: &[u8]) {
    let known: Vec<String> = actions.iter().filter_map(name_of).map(str::to_owned).collect();
    let mut questions = questions(result);
    if known.is_empty() {
        return actions.append(&mut questions);
    }
    actions.push(Node::map(vec![Node::entry("wait", Node::text("0ms"))]));
    for question in &mut questions {
        let name = name_of(question).unwrap_or_default().to_owned();
        let again = known.iter().filter(|known| **known == name).count();
        if again > 0
            && let NodeValue::Map(entries) = &mut question.value
            && let Some((_, Node { value: NodeValue::Map(members), .. })) = entries.first_mut()
        {
            members.retain(|(key, _)| key.name != "as");
            members.push(Node::entry("as", Node::text(format!("{name}-{}", again + 1))));
        }
    }
    actions.append(&mut questions);
}

/// The name of the reply to a request.
fn name_of(action: &Node) -> Option<&str> {
    action.get("send_request")?.get("as")?.as_text()
}

/// The input requests of a sessionless server.
pub(super) fn questions(result: &[u8]) -> Vec<Node> {
    let asked = json::member(result, "inputRequests").unwrap_or(b"{}");
    let asked = tree::members(asked);
    let read = |(name, request): &(String, &[u8])| {
        let method = json::member(request, "method").and_then(json::string)?;
        let mut node = message(&method, json::member(request, "params"));
        if let NodeValue::Map(entries) = &mut node.value {
            entries.push(Node::entry("as", Node::text(name.as_str())));
        }
        Some(action("send_request", node))
            .filter(|action| schema_fit::is_valid(action, &language::ACTION))
    };
    asked.iter().filter_map(read).collect()
}

fn action(name: &str, node: Node) -> Node {
    Node::map(vec![Node::entry(name, node)])
}

fn message(method: &str, params: Option<&[u8]>) -> Node {
    let mut entries = vec![Node::entry("method", Node::text(method))];
    if let Some(params) = params {
        entries.push(Node::entry("params", tree::read(params)));
    }
    Node::map(entries)
}

/// Params without the members that are specific to the session.
fn without_members(params: &[u8], names: &[&str]) -> Node {
    let mut entries = Vec::new();
    for (name, value) in tree::members(params) {
        if names.contains(&name.as_str()) {
            continue;
        }
        if name == "_meta" && json::member(value, SUBSCRIPTION).is_some() {
            let kept = tree::members(value).into_iter().filter(|(name, _)| name != SUBSCRIPTION);
            let kept: Vec<_> =
                kept.map(|(name, value)| Node::entry(&name, tree::read(value))).collect();
            if !kept.is_empty() {
                entries.push(Node::entry(&name, Node::map(kept)));
            }
            continue;
        }
        entries.push(Node::entry(&name, tree::read(value)));
    }
    Node::map(entries)
}
