//! Tools, resources, templates and prompts, each with its recorded answers.

use std::io;

use tapegate_core::frame::Frame;
use tapegate_core::json;
use tapegate_core::tape::index::NONE;

use super::gather::{Calls, Gathered, Of, Use};
use super::listing::{ItemKind, Listing};
use super::reply::mark;
use super::{Style, Work, fit, strict, tree};
use crate::emit::{Element, Entry, Part};
use crate::node::{Node, Value};

/// An item of a scenario, before it is written.
pub(super) struct Item {
    pub(super) name: String,
    /// The definition as it is listed.
    pub(super) definition: Node,
    /// The comments above it.
    pub(super) comments: Vec<String>,
    /// Whether it was on no list of the tape.
    pub(super) inferred: bool,
    /// Whether the scenario lists it.
    pub(super) listed: bool,
}

impl Work<'_, '_> {
    /// The items of a kind: those of the first list, and others that were used.
    pub(super) fn items(&mut self, gathered: &Gathered, kind: ItemKind) -> io::Result<Vec<Item>> {
        let listing = gathered.listings.first(kind);
        let mut items: Vec<Item> = match listing {
            Some(listing) => self.listed(listing, kind),
            None => Vec::new(),
        };
        if kind == ItemKind::Template {
            return Ok(items);
        }
        for key in gathered.keys(Of::Item(kind)) {
            if items.iter().any(|item| *item.name == *key) {
                continue;
            }
            if self.comes_later(gathered, kind, &key) {
                continue;
            }
            let uses = gathered.uses_of(Of::Item(kind), &key);
            if let Some(text) = gathered.listings.anywhere(kind, &key) {
                let mut item = self.item(&key, text, kind);
                if fit::fits(&item.definition, fit::definition(kind)) {
                    item.comments.push("Listed later than others.".to_owned());
                    items.push(item);
                    continue;
                }
            }
            let strict = self.options.strict;
            // The old schema has no unlisted items, so there it is listed.
            let may_list = listing.is_none() || strict && kind == ItemKind::Resource;
            let listed = may_list && self.succeeded(&uses)?;
            let item = Item { listed, ..self.inferred(&key, kind, &uses)? };
            if (listed || !strict) && fit::fits(&item.definition, fit::definition(kind)) {
                items.push(item);
            } else {
                let (word, count) = (kind.word(), uses.len());
                self.summary.warnings.push(format!(
                    "the {word} `{key}` is not in any list on the tape; uses left out: {count}"
                ));
            }
        }
        if listing.is_none() && items.iter().any(|item| item.listed) && kind == ItemKind::Tool {
            self.summary.warnings.push(
                "the tape has no tools/list: tools are inferred from calls, and their schemas \
                 accept anything"
                    .to_owned(),
            );
        }
        Ok(items)
    }

    /// Whether a later phase adds an item that the first list lacks, so that the baseline must not
    /// have it.
    fn comes_later(&self, gathered: &Gathered, kind: ItemKind, key: &str) -> bool {
        let listings = &gathered.listings;
        match (self.options.style, kind) {
            (Style::Simple, _) => false,
            (Style::Phased, ItemKind::Tool) => listings.anywhere(kind, key).is_some(),
            (Style::Phased, _) => {
                listings.later(kind).is_some_and(|later| later.get(key).is_some())
            }
        }
    }

    /// An item of any later list, for a phase.
    pub(super) fn item_of_later(
        &self,
        gathered: &Gathered,
        kind: ItemKind,
        key: &str,
    ) -> Option<Item> {
        let item = self.item(key, gathered.listings.anywhere(kind, key)?, kind);
        fit::fits(&item.definition, fit::definition(kind)).then_some(item)
    }

    /// The items of a list.
    pub(super) fn listed(&mut self, listing: &Listing, kind: ItemKind) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        for (name, text) in &listing.items {
            let item = self.item(name, text, kind);
            let known = items.iter().position(|known| known.name == item.name);
            let word = kind.word();
            if !fit::fits(&item.definition, fit::definition(kind)) {
                let words = format!("the {word} `{name}` has an invalid definition; left out");
                self.summary.warnings.push(words);
            } else if let (Some(known), false) = (known, kind == ItemKind::Tool) {
                let words = format!("the {word} `{name}` is listed twice; the last one is used");
                self.summary.warnings.push(words);
                items[known] = item;
            } else {
                items.push(item);
            }
        }
        items
    }

    fn item(&self, name: &str, text: &[u8], kind: ItemKind) -> Item {
        let definition = match self.options.strict {
            true => strict::definition(kind, tree::read(text)),
            false => tree::read(text),
        };
        Item {
            name: name.to_owned(),
            definition,
            comments: Vec::new(),
            inferred: false,
            listed: true,
        }
    }

    /// An item that is on no list, inferred from its uses.
    fn inferred(&mut self, key: &str, kind: ItemKind, uses: &[&Use]) -> io::Result<Item> {
        let text = |name: &str, text: &str| tree::entry(name, Node::text(text));
        let definition = match kind {
            ItemKind::Tool => vec![
                text("name", key),
                text("description", "Inferred from calls; the tape does not describe it."),
                tree::entry("inputSchema", tree::map(vec![text("type", "object")])),
            ],
            ItemKind::Prompt => {
                vec![text("name", key), tree::entry("arguments", self.arguments(uses)?)]
            }
            _ => {
                let last = key.trim_end_matches('/').rsplit('/').next().unwrap_or(key);
                vec![text("uri", key), text("name", if last.is_empty() { key } else { last })]
            }
        };
        let comments = vec!["Inferred from requests; no list on the tape includes it.".to_owned()];
        let (name, definition) = (key.to_owned(), tree::map(definition));
        Ok(Item { name, definition, comments, inferred: true, listed: true })
    }

    /// The arguments that a prompt was requested with.
    fn arguments(&mut self, uses: &[&Use]) -> io::Result<Node> {
        let mut names: Vec<String> = Vec::new();
        for ask in uses.iter().filter_map(|used| used.asks.first()) {
            let slot = self.tape.index.slot(*ask);
            let frame = Frame::read(self.tape.text(&slot)?);
            let params = frame.envelope().and_then(|said| said.params).unwrap_or(b"{}");
            for (name, _) in tree::members(json::member(params, "arguments").unwrap_or(b"{}")) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let argument = |name: &String| tree::map(vec![tree::entry("name", Node::text(name))]);
        Ok(Node::new(Value::List(names.iter().map(argument).collect())))
    }

    /// Whether an unlisted item exists, because some use of it succeeded.
    fn succeeded(&mut self, uses: &[&Use]) -> io::Result<bool> {
        for used in uses {
            let pair = self.tape.index.slot(used.asks[0]).pair;
            if pair == NONE {
                continue;
            }
            let slot = self.tape.index.slot(pair);
            let frame = Frame::read(self.tape.text(&slot)?);
            if frame.envelope().is_some_and(|said| said.result.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// An item with its recorded answers.
    pub(super) fn pattern(
        &mut self,
        item: &Item,
        kind: ItemKind,
        uses: &[&Use],
    ) -> io::Result<Vec<Entry>> {
        let response = match (uses.is_empty(), kind) {
            (false, ItemKind::Tool) if self.options.match_arguments => self.matched(uses)?,
            (false, _) => self.response(uses)?,
            (true, _) => {
                let mut unused = vec![unused(kind, &item.name)];
                if self.to_edit {
                    mark(&mut unused);
                }
                unused
            }
        };
        let mut entries = vec![Entry::new(kind.word(), Part::Node(item.definition.clone()))];
        if !item.listed {
            entries.push(Entry::new("listed", Node::new(Value::Bool(false))));
        }
        entries.push(Entry::new("response", response));
        Ok(entries)
    }

    /// The items as a list.
    pub(super) fn patterns(
        &mut self,
        items: &[Item],
        kind: ItemKind,
        (gathered, calls): (&Gathered, Calls),
    ) -> io::Result<Vec<Element>> {
        let mut elements = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let twin = items[place + 1..].iter().any(|other| other.name == item.name);
            let uses = match twin {
                true => Vec::new(),
                false => gathered.uses_among(Of::Item(kind), &item.name, calls),
            };
            let value = Part::Map(self.pattern(item, kind, &uses)?);
            let comments = item.comments.clone();
            elements.push(Element { comments, apart: place > 0, value });
        }
        Ok(elements)
    }
}

/// The answer of an item that was never used on the tape.
fn unused(kind: ItemKind, name: &str) -> Entry {
    let text = |name: &str, text: &str| tree::entry(name, Node::text(text));
    let list = |node| Node::new(Value::List(vec![node]));
    let words = "(not on the tape)";
    let (key, node) = match kind {
        ItemKind::Tool => {
            ("content", list(tree::map(vec![text("type", "text"), text("text", words)])))
        }
        ItemKind::Prompt => {
            let content = tree::map(vec![text("type", "text"), text("text", words)]);
            let message = vec![text("role", "user"), tree::entry("content", content)];
            ("messages", list(tree::map(message)))
        }
        ItemKind::Resource | ItemKind::Template => {
            let mut entries = vec![text("text", words)];
            if kind == ItemKind::Resource {
                entries.insert(0, text("uri", name));
            }
            ("contents", list(tree::map(entries)))
        }
    };
    Entry::new(key, node).about("Never used on the tape; this answer is a placeholder.")
}
