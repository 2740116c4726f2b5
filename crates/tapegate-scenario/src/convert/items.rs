//! Tools, resources, templates and prompts, each with its recorded answers.

use std::io;

use tapegate_core::frame::Frame;
use tapegate_core::json;

use super::reply::mark_insertion_point;
use super::tape_contents::{CallRange, ClientOperation, OperationKind, TapeContents};
use super::tape_listings::TapeListing;
use super::{ConversionState, ScenarioStyle, schema_fit, strict, tree};
use crate::emit::{DocumentPart, ListElement, MapEntry};
use crate::model::ItemKind;
use crate::node::Node;

/// An item of a scenario, before it is written.
pub(super) struct DraftItem {
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

impl ConversionState<'_, '_> {
    /// The items of a kind: those of the first list, and others that were used.
    pub(super) fn items(
        &mut self,
        gathered: &TapeContents,
        kind: ItemKind,
    ) -> io::Result<Vec<DraftItem>> {
        let listing = gathered.listings.first(kind);
        let mut items: Vec<DraftItem> = match listing {
            Some(listing) => self.listed_items(listing, kind),
            None => Vec::new(),
        };
        if kind == ItemKind::Template {
            return Ok(items);
        }
        for key in gathered.keys(OperationKind::Item(kind)) {
            if items.iter().any(|item| *item.name == *key) {
                continue;
            }
            // A later phase adds it. In the baseline, it would be there before the recorded server
            // had it.
            if self.is_added_later(gathered, kind, &key) {
                continue;
            }
            let uses = gathered.uses_of(OperationKind::Item(kind), &key);
            if let Some(text) = gathered.listings.find_definition(kind, &key) {
                let mut item = self.item(&key, text, kind);
                if schema_fit::is_valid(&item.definition, kind.info().definition) {
                    item.comments.push("Listed later than others.".to_owned());
                    items.push(item);
                    continue;
                }
            }
            let strict = self.options.strict;
            // The old schema has no unlisted items, so there it is listed.
            let may_list = listing.is_none() || strict && kind == ItemKind::Resource;
            // A name that only ever failed was probably a mistake of the client.
            let listed = may_list && self.has_success(&uses)?;
            let item = DraftItem { listed, ..self.inferred_item(&key, kind, &uses)? };
            if (listed || !strict) && schema_fit::is_valid(&item.definition, kind.info().definition)
            {
                items.push(item);
            } else {
                let (word, count) = (kind.info().key, uses.len());
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
    fn is_added_later(&self, gathered: &TapeContents, kind: ItemKind, key: &str) -> bool {
        let listings = &gathered.listings;
        match (self.options.style, kind) {
            (ScenarioStyle::Simple, _) => false,
            (ScenarioStyle::Phased, ItemKind::Tool) => {
                listings.find_definition(kind, key).is_some()
            }
            (ScenarioStyle::Phased, _) => {
                listings.latest_list(kind).is_some_and(|later| later.get(key).is_some())
            }
        }
    }

    /// An item of any later list, for a phase.
    pub(super) fn item_of_later_list(
        &self,
        gathered: &TapeContents,
        kind: ItemKind,
        key: &str,
    ) -> Option<DraftItem> {
        let item = self.item(key, gathered.listings.find_definition(kind, key)?, kind);
        schema_fit::is_valid(&item.definition, kind.info().definition).then_some(item)
    }

    pub(super) fn listed_items(&mut self, listing: &TapeListing, kind: ItemKind) -> Vec<DraftItem> {
        let mut items: Vec<DraftItem> = Vec::new();
        for (name, text) in &listing.items {
            let item = self.item(name, text, kind);
            let known = items.iter().position(|known| known.name == item.name);
            let word = kind.info().key;
            if !schema_fit::is_valid(&item.definition, kind.info().definition) {
                let warning = format!("the {word} `{name}` has an invalid definition; left out");
                self.summary.warnings.push(warning);
            } else if let (Some(known), false) = (known, kind == ItemKind::Tool) {
                let warning = format!("the {word} `{name}` is listed twice; the last one is used");
                self.summary.warnings.push(warning);
                items[known] = item;
            } else {
                items.push(item);
            }
        }
        items
    }

    fn item(&self, name: &str, text: &[u8], kind: ItemKind) -> DraftItem {
        let definition = match self.options.strict {
            true => strict::definition(kind, tree::read(text)),
            false => tree::read(text),
        };
        DraftItem {
            name: name.to_owned(),
            definition,
            comments: Vec::new(),
            inferred: false,
            listed: true,
        }
    }

    /// An item that is on no list, inferred from its uses.
    fn inferred_item(
        &mut self,
        key: &str,
        kind: ItemKind,
        uses: &[&ClientOperation],
    ) -> io::Result<DraftItem> {
        let text = |name: &str, text: &str| Node::entry(name, Node::text(text));
        let definition = match kind {
            ItemKind::Tool => vec![
                text("name", key),
                text("description", "Inferred from calls; the tape does not describe it."),
                Node::entry("inputSchema", Node::map(vec![text("type", "object")])),
            ],
            ItemKind::Prompt => {
                vec![text("name", key), Node::entry("arguments", self.arguments(uses)?)]
            }
            _ => {
                let last = key.trim_end_matches('/').rsplit('/').next().unwrap_or(key);
                vec![text("uri", key), text("name", if last.is_empty() { key } else { last })]
            }
        };
        let comments = vec!["Inferred from requests; no list on the tape includes it.".to_owned()];
        let (name, definition) = (key.to_owned(), Node::map(definition));
        Ok(DraftItem { name, definition, comments, inferred: true, listed: true })
    }

    /// The arguments that a prompt was requested with.
    fn arguments(&mut self, uses: &[&ClientOperation]) -> io::Result<Node> {
        let mut names: Vec<String> = Vec::new();
        for ask in uses.iter().filter_map(|used| used.asks.first()) {
            let params = self.tape.params(*ask)?;
            for (name, _) in tree::members(json::member(params, "arguments").unwrap_or(b"{}")) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let argument = |name: &String| Node::map(vec![Node::entry("name", Node::text(name))]);
        Ok(Node::list(names.iter().map(argument).collect()))
    }

    /// Whether an unlisted item exists, because some use of it succeeded.
    fn has_success(&mut self, uses: &[&ClientOperation]) -> io::Result<bool> {
        for used in uses {
            let answer = self.tape.answer(used.asks[0])?;
            let envelope = answer.as_ref().and_then(Frame::envelope);
            if envelope.is_some_and(|envelope| envelope.result.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// An item with its recorded answers.
    pub(super) fn pattern(
        &mut self,
        item: &DraftItem,
        kind: ItemKind,
        uses: &[&ClientOperation],
    ) -> io::Result<Vec<MapEntry>> {
        let response = match (uses.is_empty(), kind) {
            (false, ItemKind::Tool) if self.options.match_arguments => {
                self.answers_by_arguments(uses)?
            }
            (false, _) => self.response(uses)?,
            (true, _) => {
                let mut unused = vec![unused_entry(kind, &item.name)];
                if self.to_edit {
                    mark_insertion_point(&mut unused);
                }
                unused
            }
        };
        let mut entries =
            vec![MapEntry::new(kind.info().key, DocumentPart::Node(item.definition.clone()))];
        if !item.listed {
            entries.push(MapEntry::new("listed", Node::flag(false)));
        }
        entries.push(MapEntry::new("response", response));
        Ok(entries)
    }

    /// The items as a list.
    pub(super) fn patterns(
        &mut self,
        items: &[DraftItem],
        kind: ItemKind,
        (gathered, calls): (&TapeContents, CallRange),
    ) -> io::Result<Vec<ListElement>> {
        let mut elements = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let twin = items[index + 1..].iter().any(|other| other.name == item.name);
            let uses = match twin {
                // Of equal names, calls go to the last one, so only that one has answers.
                true => Vec::new(),
                false => gathered.uses_among(OperationKind::Item(kind), &item.name, calls),
            };
            let value = DocumentPart::Map(self.pattern(item, kind, &uses)?);
            let comments = item.comments.clone();
            elements.push(ListElement { comments, apart: index > 0, value });
        }
        Ok(elements)
    }
}

/// The answer of an item that was never used on the tape.
fn unused_entry(kind: ItemKind, name: &str) -> MapEntry {
    let text = |name: &str, text: &str| Node::entry(name, Node::text(text));
    let list = |node| Node::list(vec![node]);
    let message_text = "(not on the tape)";
    let (key, node) = match kind {
        ItemKind::Tool => {
            ("content", list(Node::map(vec![text("type", "text"), text("text", message_text)])))
        }
        ItemKind::Prompt => {
            let content = Node::map(vec![text("type", "text"), text("text", message_text)]);
            let message = vec![text("role", "user"), Node::entry("content", content)];
            ("messages", list(Node::map(message)))
        }
        ItemKind::Resource | ItemKind::Template => {
            let mut entries = vec![text("text", message_text)];
            if kind == ItemKind::Resource {
                entries.insert(0, text("uri", name));
            }
            ("contents", list(Node::map(entries)))
        }
    };
    MapEntry::new(key, node).with_comment("Never used on the tape; this answer is a placeholder.")
}
