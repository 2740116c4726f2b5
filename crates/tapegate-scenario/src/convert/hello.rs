//! The server's identity, as it was reported to clients of either protocol era.

use std::io;

use tapegate_core::frame::{Envelope, Kind};
use tapegate_core::json;

use super::gather::Gathered;
use super::listing::ItemKind;
use super::{Style, Work, fit, strict, tree};
use crate::emit::{Element, Entry, Part};
use crate::node::{Node, Value};
use crate::shape::language;

/// What the server reported about itself.
#[derive(Debug, Default)]
pub(super) struct Hello {
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

/// Keys of `capabilities` that the old schema has.
const OLD_CAPABILITIES: [&str; 4] = ["tools", "resources", "prompts", "logging"];

impl Hello {
    /// Processes the answer to `initialize`.
    pub(super) fn initialize(&mut self, wants: Option<&str>, answer: &Envelope<'_>) {
        let Some(result) = answer.result else { return };
        self.learn(result);
        let version = json::member(result, "protocolVersion").and_then(json::string);
        if let Some(version) = version {
            // A server that answers with another version does not speak the one asked for.
            self.only |= wants.is_some_and(|wants| wants != version);
            self.knows(&version);
        }
    }

    /// Processes the answer to `server/discover`.
    pub(super) fn discover(&mut self, answer: &Envelope<'_>) {
        match (answer.kind(), answer.result, answer.error) {
            (Kind::Response, Some(result), _) => {
                self.discovered = true;
                self.learn(result);
                for version in
                    tree::items(json::member(result, "supportedVersions").unwrap_or(b"[]"))
                {
                    self.knows(&json::string(version).unwrap_or_default());
                }
            }
            (Kind::Error, _, Some(error)) => self.refused = Some(error.to_vec()),
            _ => {}
        }
    }

    /// Processes any result: a sessionless server identifies itself in each of them.
    pub(super) fn meet(&mut self, result: &[u8]) {
        if self.info.is_none() {
            let meta = json::member(result, "_meta");
            let info =
                meta.and_then(|meta| json::member(meta, "io.modelcontextprotocol/serverInfo"));
            self.info = info.map(<[u8]>::to_vec);
        }
    }

    fn learn(&mut self, result: &[u8]) {
        let member = |name: &str| json::member(result, name).map(<[u8]>::to_vec);
        let Self { info, capabilities, instructions, .. } = self;
        *info = member("serverInfo").or_else(|| info.take());
        *capabilities = capabilities.take().or_else(|| member("capabilities"));
        *instructions = instructions.take().or_else(|| member("instructions"));
        self.meet(result);
    }

    fn knows(&mut self, version: &str) {
        if !version.is_empty() && self.versions.iter().all(|known| known != version) {
            self.versions.push(version.to_owned());
        }
    }

    /// The versions to list, newest first; empty if the tape does not rule out others.
    fn spoken(&self) -> Vec<String> {
        let mut versions = self.versions.clone();
        versions.sort_unstable_by(|one, two| two.cmp(one));
        let modern = versions.iter().any(|version| version.as_str() >= STATELESS);
        // A server seen only through `initialize` may not support the sessionless mode.
        if self.only || self.discovered || !modern { versions } else { Vec::new() }
    }
}

impl Work<'_, '_> {
    /// The `server` block.
    pub(super) fn server(&mut self, gathered: &Gathered) -> io::Result<Vec<Entry>> {
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
        let mut entries = vec![Entry::new("name", Part::text(name))];
        for (key, value) in info.iter().filter(|(key, _)| key != "name") {
            let node = tree::read(value);
            if !fit::fits_key(key, &node, &language::SERVER) {
                let words = format!("`serverInfo.{key}` does not fit a scenario; it is left out");
                self.summary.warnings.push(words);
            } else if !strict || key == "version" {
                entries.push(Entry::new(key, node));
            }
        }
        if let (Some(text), false) = (&hello.instructions, strict) {
            let node = tree::read(text);
            if fit::fits_key("instructions", &node, &language::SERVER) {
                entries.push(Entry::new("instructions", node));
            }
        }
        if gathered.sessions > 1 {
            let words = "The tape has several sessions; calls are counted over all of them.";
            entries.push(Entry::new("state_scope", Part::text("global")).about(words));
        }
        let versions = hello.spoken();
        if !versions.is_empty() && !strict {
            let versions = versions.into_iter().map(Node::text).collect();
            entries.push(Entry::new("protocol_versions", Node::new(Value::List(versions))));
        }
        let pages = [ItemKind::Tool, ItemKind::Resource, ItemKind::Template, ItemKind::Prompt];
        let page = pages.iter().find_map(|kind| gathered.listings.first(*kind)?.page_items);
        if let (Some(items), false) = (page.filter(|items| *items > 0), strict) {
            entries.push(Entry::new("page_size", tree::number(items as u64)));
        }
        if let Some(capabilities) = self.capabilities(hello) {
            entries.push(Entry::new("capabilities", capabilities));
        }
        Ok(entries)
    }

    fn capabilities(&self, hello: &Hello) -> Option<Node> {
        let phased = self.options.style == Style::Phased;
        let recorded = hello.capabilities.as_deref().map(tree::read);
        let recorded = recorded.filter(|node| fit::fits(node, &language::CAPABILITIES));
        let Some(Value::Map(mut entries)) = recorded.map(|node| node.value) else {
            let announced =
                tree::map(vec![tree::entry("listChanged", Node::new(Value::Bool(true)))]);
            return phased.then(|| tree::map(vec![tree::entry("tools", announced)]));
        };
        if self.options.strict {
            entries.retain(|(key, _)| OLD_CAPABILITIES.contains(&key.name.as_str()));
            for (_, node) in &mut entries {
                strict::keep(node, &["listChanged", "subscribe"]);
            }
        }
        if phased {
            announce(&mut entries);
        }
        Some(tree::map(entries))
    }
}

/// Makes sure that changes of the tool list are announced.
fn announce(entries: &mut Vec<(crate::node::Key, Node)>) {
    let yes = || tree::entry("listChanged", Node::new(Value::Bool(true)));
    match entries.iter_mut().find(|(key, _)| key.name == "tools") {
        Some((_, Node { value: Value::Map(tools), .. })) => {
            tools.retain(|(key, _)| key.name != "listChanged");
            tools.push(yes());
        }
        Some((_, other)) => *other = tree::map(vec![yes()]),
        None => entries.push(tree::entry("tools", tree::map(vec![yes()]))),
    }
}

/// The name of a tape without its directory and extensions.
fn stem(tape: &str) -> &str {
    let name = tape.rsplit('/').next().unwrap_or(tape);
    name.split('.').find(|part| !part.is_empty()).unwrap_or("tape")
}

/// A list of values without comments.
pub(super) fn list(nodes: impl IntoIterator<Item = Node>) -> Part {
    Part::List(nodes.into_iter().map(Element::new).collect())
}
