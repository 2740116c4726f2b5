//! The server's identity, as it was reported to clients of either protocol era.

use std::io;

use tapegate_core::frame::{Envelope, MessageKind};
use tapegate_core::json;

use super::tape_contents::TapeContents;
use super::{ConversionState, ScenarioStyle, schema_fit, strict, tree};
use crate::emit::{DocumentPart, ListElement, MapEntry};
use crate::model::ItemKind;
use crate::node::{Node, NodeValue};
use crate::shape::language;

/// What the server reported about itself.
#[derive(Debug, Default)]
pub(super) struct ServerHello {
    info: Option<Vec<u8>>,
    capabilities: Option<Vec<u8>>,
    instructions: Option<Vec<u8>>,
    /// The versions it agreed on or offered, in order.
    versions: Vec<String>,
    /// Whether it is known to speak no other versions.
    only: bool,
    /// The error with which it answered `server/discover`, if it did.
    pub(super) refused: Option<Vec<u8>>,
    discovered: bool,
}

/// The first version without sessions.
const STATELESS: &str = "2026-07-28";

impl ServerHello {
    /// Processes the answer to `initialize`.
    pub(super) fn add_initialize(&mut self, wants: Option<&str>, answer: &Envelope<'_>) {
        let Some(result) = answer.result else { return };
        self.add_server_info(result);
        let version = json::member(result, "protocolVersion").and_then(json::string);
        if let Some(version) = version {
            // A server that answers with another version does not speak the one asked for.
            self.only |= wants.is_some_and(|wants| wants != version);
            self.add_version(&version);
        }
    }

    /// Processes the answer to `server/discover`.
    pub(super) fn add_discover(&mut self, answer: &Envelope<'_>) {
        match (answer.kind(), answer.result, answer.error) {
            (MessageKind::Response, Some(result), _) => {
                self.discovered = true;
                self.add_server_info(result);
                for version in
                    tree::items(json::member(result, "supportedVersions").unwrap_or(b"[]"))
                {
                    self.add_version(&json::string(version).unwrap_or_default());
                }
            }
            (MessageKind::Error, _, Some(error)) => self.refused = Some(error.to_vec()),
            _ => {}
        }
    }

    /// Processes any result: a sessionless server identifies itself in each of them.
    pub(super) fn add_result(&mut self, result: &[u8]) {
        if self.info.is_none() {
            let meta = json::member(result, "_meta");
            let info =
                meta.and_then(|meta| json::member(meta, "io.modelcontextprotocol/serverInfo"));
            self.info = info.map(<[u8]>::to_vec);
        }
    }

    fn add_server_info(&mut self, result: &[u8]) {
        let member = |name: &str| json::member(result, name).map(<[u8]>::to_vec);
        let Self { info, capabilities, instructions, .. } = self;
        *info = member("serverInfo").or_else(|| info.take());
        *capabilities = capabilities.take().or_else(|| member("capabilities"));
        *instructions = instructions.take().or_else(|| member("instructions"));
        self.add_result(result);
    }

    fn add_version(&mut self, version: &str) {
        if !version.is_empty() && self.versions.iter().all(|known| known != version) {
            self.versions.push(version.to_owned());
        }
    }

    /// The versions to list, newest first; empty if the tape does not rule out others.
    fn spoken_versions(&self) -> Vec<String> {
        let mut versions = self.versions.clone();
        versions.sort_unstable_by(|one, two| two.cmp(one));
        let modern = versions.iter().any(|version| version.as_str() >= STATELESS);
        // A server seen only through `initialize` may not support the sessionless mode.
        if self.only || self.discovered || !modern { versions } else { Vec::new() }
    }
}

impl ConversionState<'_, '_> {
    /// The `server` block.
    pub(super) fn server(&mut self, gathered: &TapeContents) -> io::Result<Vec<MapEntry>> {
        let hello = &gathered.hello;
        let strict = self.options.strict;
        let info = tree::members(hello.info.as_deref().unwrap_or(b"{}"));
        let recorded = info.iter().find(|(key, _)| key == "name");
        let recorded =
            recorded.and_then(|(_, name)| json::string(name)).filter(|it| !it.is_empty());
        let name = match (self.options.name, recorded) {
            (Some(name), _) => name.to_owned(),
            (None, Some(name)) => name.into_owned(),
            (None, None) => format!("replay-{}", stem(self.options.tape)),
        };
        let mut entries = vec![MapEntry::new("name", DocumentPart::text(name))];
        for (key, value) in info.iter().filter(|(key, _)| key != "name") {
            let node = tree::read(value);
            if !schema_fit::fits_key(key, &node, &language::SERVER) {
                let warning = format!("`serverInfo.{key}` does not fit a scenario; it is left out");
                self.summary.warnings.push(warning);
            } else if !strict || key == "version" {
                entries.push(MapEntry::new(key, node));
            }
        }
        if let (Some(text), false) = (&hello.instructions, strict) {
            let node = tree::read(text);
            if schema_fit::fits_key("instructions", &node, &language::SERVER) {
                entries.push(MapEntry::new("instructions", node));
            }
        }
        if gathered.sessions > 1 {
            let message = "The tape has several sessions; calls are counted over all of them.";
            entries.push(
                MapEntry::new("state_scope", DocumentPart::text("global")).with_comment(message),
            );
        }
        let versions = hello.spoken_versions();
        if !versions.is_empty() && !strict {
            let versions = versions.into_iter().map(Node::text).collect();
            entries.push(MapEntry::new("protocol_versions", Node::list(versions)));
        }
        let mut kinds = ItemKind::ALL.into_iter();
        let page = kinds.find_map(|kind| gathered.listings.first(kind)?.page_items);
        if let (Some(items), false) = (page.filter(|items| *items > 0), strict) {
            entries.push(MapEntry::new("page_size", Node::number(items as u64)));
        }
        if let Some(capabilities) = self.capabilities(hello) {
            entries.push(MapEntry::new("capabilities", capabilities));
        }
        Ok(entries)
    }

    fn capabilities(&self, hello: &ServerHello) -> Option<Node> {
        let phased = self.options.style == ScenarioStyle::Phased;
        let recorded = hello.capabilities.as_deref().map(tree::read);
        let recorded = recorded.filter(|node| schema_fit::is_valid(node, &language::CAPABILITIES));
        let Some(NodeValue::Map(mut entries)) = recorded.map(|node| node.value) else {
            let announced = Node::map(vec![Node::entry("listChanged", Node::flag(true))]);
            return phased.then(|| Node::map(vec![Node::entry("tools", announced)]));
        };
        if self.options.strict {
            entries.retain(|(key, _)| language::CAPABILITIES.entry(&key.name).is_some());
            for (_, node) in &mut entries {
                strict::retain_old_keys(node, &language::CAPABILITY);
            }
        }
        if phased {
            // Clients may ignore announcements of a capability that the server does not claim.
            add_list_changed(&mut entries);
        }
        Some(Node::map(entries))
    }
}

/// Makes sure that changes of the tool list are announced.
fn add_list_changed(entries: &mut Vec<(crate::node::NodeKey, Node)>) {
    let yes = || Node::entry("listChanged", Node::flag(true));
    match entries.iter_mut().find(|(key, _)| key.name == "tools") {
        Some((_, Node { value: NodeValue::Map(tools), .. })) => {
            tools.retain(|(key, _)| key.name != "listChanged");
            tools.push(yes());
        }
        Some((_, other)) => *other = Node::map(vec![yes()]),
        None => entries.push(Node::entry("tools", Node::map(vec![yes()]))),
    }
}

/// The name of a tape without its directory and extensions.
fn stem(tape: &str) -> &str {
    let name = tape.rsplit('/').next().unwrap_or(tape);
    name.split('.').find(|part| !part.is_empty()).unwrap_or("tape")
}

/// A list of values without comments.
pub(super) fn list(nodes: impl IntoIterator<Item = Node>) -> DocumentPart {
    DocumentPart::List(nodes.into_iter().map(ListElement::new).collect())
}
