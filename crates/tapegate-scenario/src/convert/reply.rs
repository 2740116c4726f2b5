//! Converts one recorded answer to an answer of a scenario.

use std::io;

use tapegate_core::frame::{Frame, MessageKind};
use tapegate_core::json;
use tapegate_core::tape::index::NONE;

use super::tape_contents::{ClientOperation, OperationKind};
use super::{ConversionState, schema_fit, server_actions, server_hello, strict, tree};
use crate::emit::{DocumentPart, MapEntry};
use crate::model::ItemKind;
use crate::node::{Node, NodeKey, NodeValue};

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct ReplyDraft {
    /// Comments that show the request.
    pub(super) comments: Vec<String>,
    pub(super) entries: Vec<MapEntry>,
}

/// How many characters of the arguments a comment shows.
const SHOWN_CHARS_MAX: usize = 100;

/// Members that the engine itself adds to results for sessionless clients.
const OWN_MEMBERS: [(&str, &[u8]); 3] =
    [("resultType", b"\"complete\""), ("ttlMs", b"0"), ("cacheScope", b"\"private\"")];
/// Members of results that hold the content.
const BODIES: [&str; 3] = ["content", "contents", "messages"];
/// The member of `_meta` in which a sessionless server identifies itself.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The answer to a request whose recorded answer is probably on a line that is too long to be read.
const TOO_LONG_ERROR: &[u8] = br#"{"code":-32603,"message":"[the recorded answer was left out: its entry is longer than --max-entry-bytes]"}"#;

impl OperationKind {
    /// The members of a result that have keys of their own in an answer.
    fn members(self) -> &'static [&'static str] {
        match self {
            Self::Item(ItemKind::Tool) => &["content", "structuredContent", "isError", "_meta"],
            Self::Item(ItemKind::Prompt) => &["description", "messages", "_meta"],
            Self::Item(_) => &["contents", "_meta"],
            Self::Method => &[],
        }
    }
}

impl ConversionState<'_, '_> {
    /// The answer to one use.
    pub(super) fn reply(&mut self, used: &ClientOperation) -> io::Result<ReplyDraft> {
        let mut actions = Vec::new();
        for ask in &used.asks {
            actions.extend(self.actions(*ask)?);
            // All requests but the last were answered with a request for input. A scenario asks for
            // it before its answer.
            if ask != used.asks.last().unwrap_or(ask)
                && let Some(frame) = self.tape.answer(*ask)?
            {
                let result = frame.envelope().and_then(|envelope| envelope.result);
                server_actions::add_questions(&mut actions, result.unwrap_or(b"{}"));
            }
        }
        // JSON files cannot hold comments.
        let comments = match self.options.sequences_in_files {
            true => Vec::new(),
            false => self.call_text(used)?,
        };
        let request_number = used.asks.last().copied().unwrap_or(NONE);
        let mut outcome = match self.tape.index.entry(request_number).pair {
            // Silence would make a client wait for an answer that the recorded one got.
            NONE if self.tape.index.may_be_answered_too_long(request_number) => {
                OutcomeDraft::Error(tree::read(TOO_LONG_ERROR))
            }
            NONE => OutcomeDraft::Silence,
            pair => {
                let slot = self.tape.index.entry(pair);
                let frame = Frame::read(self.tape.text(&slot)?);
                frame.envelope().map_or(OutcomeDraft::Silence, |envelope| {
                    OutcomeDraft::read(used.of, envelope.kind(), envelope.result, envelope.error)
                })
            }
        };
        if let OutcomeDraft::Wants(questions) = &mut outcome {
            // The client never retried with the input.
            actions.append(questions);
            outcome = OutcomeDraft::Silence;
        }
        let mut entries = match self.options.strict {
            true => strict::entries(used.of, outcome, !actions.is_empty()),
            false => entries(used.of, outcome, actions),
        };
        if self.to_edit {
            mark_insertion_point(&mut entries);
        }
        Ok(ReplyDraft { comments, entries })
    }

    /// The arguments of a call, as a comment.
    fn call_text(&mut self, used: &ClientOperation) -> io::Result<Vec<String>> {
        let Some(ask) = used.asks.first() else { return Ok(Vec::new()) };
        let params = self.tape.params(*ask)?;
        let arguments = match used.of {
            OperationKind::Item(ItemKind::Tool | ItemKind::Prompt) => {
                json::member(params, "arguments")
            }
            OperationKind::Item(_) => None,
            OperationKind::Method => Some(params),
        };
        let Some(arguments) = arguments.filter(|it| *it != b"{}") else { return Ok(Vec::new()) };
        let text = String::from_utf8_lossy(&json::compact(arguments)).into_owned();
        // Masked before it is shortened: a truncated secret no longer matches.
        let masked = (self.options.mask)(&text);
        let mut display_text: String = masked.chars().take(SHOWN_CHARS_MAX).collect();
        if display_text.len() < masked.len() {
            display_text.push('…');
        }
        Ok(vec![format!("for {display_text}")])
    }
}

/// The marker in the text of an answer that the user is to replace.
const INJECT: &str = "[INJECT YOUR PAYLOAD HERE]";

/// Adds the marker to the content of a tool's answer, if it has content.
pub(super) fn mark_insertion_point(entries: &mut [MapEntry]) {
    let content = entries.iter_mut().find(|entry| entry.key == "content");
    let Some(DocumentPart::Node(Node { value: NodeValue::List(items), .. })) =
        content.map(|entry| &mut entry.value)
    else {
        return;
    };
    let text = items.iter_mut().rev().find_map(text_of);
    match text {
        Some(text) => {
            text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
            text.push_str(INJECT);
        }
        None => items.push(Node::map(vec![
            Node::entry("type", Node::text("text")),
            Node::entry("text", Node::text(INJECT)),
        ])),
    }
}

/// The text of a content item, if it is a text item.
fn text_of(item: &mut Node) -> Option<&mut String> {
    let NodeValue::Map(entries) = &mut item.value else { return None };
    let is_text =
        |(key, node): &(NodeKey, Node)| key.name == "type" && node.as_text() == Some("text");
    if !entries.iter().any(is_text) {
        return None;
    }
    entries.iter_mut().find_map(|(key, node)| match &mut node.value {
        NodeValue::Text(text) if key.name == "text" => Some(text),
        _ => None,
    })
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum OutcomeDraft {
    /// A result whose members all have keys in an answer.
    Members(Vec<(String, Node)>),
    /// Any other result.
    Result(Node),
    Error(Node),
    /// The server asks for input first.
    Wants(Vec<Node>),
    Silence,
}

impl OutcomeDraft {
    fn read(
        of: OperationKind,
        kind: MessageKind,
        result: Option<&[u8]>,
        error: Option<&[u8]>,
    ) -> Self {
        match (kind, result, error) {
            (MessageKind::Error, _, Some(error)) => Self::Error(tree::read(error)),
            (_, Some(result), _) => Self::of_result(of, result),
            _ => Self::Silence,
        }
    }

    fn of_result(of: OperationKind, result: &[u8]) -> Self {
        if json::member(result, "resultType") == Some(b"\"input_required\"") {
            return Self::Wants(server_actions::questions(result));
        }
        // The engine adds these members for sessionless clients itself. With them in the scenario,
        // clients with a session would get them too.
        let stateless = json::member(result, "resultType").is_some();
        if stateless || !result.starts_with(b"{") {
            let members = tree::members(result);
            let is_own = |name: &str, value: &[u8]| OWN_MEMBERS.contains(&(name, value));
            let kept = members.into_iter().filter(|(name, value)| !is_own(name, value));
            let kept = kept.filter_map(|(name, value)| Some((own_meta(&name, value)?, name)));
            let kept = kept.map(|(node, name)| Node::entry(&name, node)).collect();
            return match result.starts_with(b"{") {
                true => Self::from_members(of, Node::map(kept)),
                false => Self::Result(tree::read(result)),
            };
        }
        Self::from_members(of, tree::read(result))
    }

    /// Splits a result into members if there are keys for all of them.
    fn from_members(of: OperationKind, result: Node) -> Self {
        let known = of.members();
        let by_members = result.as_map().is_some_and(|entries| {
            entries.iter().any(|(key, _)| BODIES.contains(&key.name.as_str()))
                && entries.iter().all(|(key, _)| known.contains(&key.name.as_str()))
        });
        if !by_members || !schema_fit::is_valid(&result, schema_fit::answer(of)) {
            return Self::Result(result);
        }
        let NodeValue::Map(entries) = result.value else { return Self::Silence };
        Self::Members(entries.into_iter().map(|(key, node)| (key.name, node)).collect())
    }
}

/// A member of a sessionless server's result; `_meta` without what the engine adds itself.
fn own_meta(name: &str, value: &[u8]) -> Option<Node> {
    if name != "_meta" || json::member(value, SERVER_INFO).is_none() {
        return Some(tree::read(value));
    }
    let kept = tree::members(value).into_iter().filter(|(name, _)| name != SERVER_INFO);
    let kept: Vec<_> = kept.map(|(name, value)| Node::entry(&name, tree::read(value))).collect();
    (!kept.is_empty()).then(|| Node::map(kept))
}

/// An answer in the current schema.
fn entries(of: OperationKind, outcome: OutcomeDraft, actions: Vec<Node>) -> Vec<MapEntry> {
    let mut entries = Vec::new();
    if !actions.is_empty() {
        entries.push(MapEntry::new("before", server_hello::list(actions)));
    }
    match outcome {
        OutcomeDraft::Members(members) => {
            let order = of.members();
            let index = |name: &str| order.iter().position(|known| *known == name);
            let mut members = members;
            members.sort_by_key(|(name, _)| index(name));
            entries.extend(members.into_iter().map(|(name, node)| MapEntry::new(name, node)));
        }
        OutcomeDraft::Result(node)
            if schema_fit::fits_key("result", &node, schema_fit::answer(of)) =>
        {
            entries.push(MapEntry::new("result", node));
        }
        OutcomeDraft::Result(node) => {
            let comment = format!("The recorded result was not an object: {}", value_text(&node));
            let empty = Node::map(Vec::new());
            entries.push(MapEntry::new("result", empty).with_comment(comment));
        }
        OutcomeDraft::Error(node)
            if schema_fit::fits_key("error", &node, schema_fit::answer(of)) =>
        {
            entries.push(MapEntry::new("error", node));
        }
        OutcomeDraft::Error(node) => {
            let comment = format!("The recorded error was malformed: {}", value_text(&node));
            let code = Node::entry("code", Node::new(NodeValue::Number("-32603".to_owned())));
            let error = vec![code, Node::entry("message", Node::text("Internal error"))];
            entries.push(MapEntry::new("error", Node::map(error)).with_comment(comment));
        }
        OutcomeDraft::Wants(_) | OutcomeDraft::Silence => {
            let message = "The tape has no answer.";
            entries.push(MapEntry::new("silent", Node::flag(true)).with_comment(message));
        }
    }
    entries
}

/// A value for a comment.
fn value_text(node: &Node) -> String {
    let text = String::from_utf8_lossy(&node.to_json()).into_owned();
    text.chars().take(SHOWN_CHARS_MAX).collect()
}
