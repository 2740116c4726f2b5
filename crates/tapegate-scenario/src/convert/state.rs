//! What the server has to offer: one state, or a benign one and the attack that follows it.

use std::io;

use super::gather::{Calls, Gathered, Of};
use super::items::Item;
use super::listing::ItemKind;
use super::{Style, Work, tree};
use crate::emit::{Element, Entry, Part};
use crate::node::Node;

const KINDS: [ItemKind; 4] =
    [ItemKind::Tool, ItemKind::Resource, ItemKind::Template, ItemKind::Prompt];

/// What stands where a person is to go on.
const EDIT_HERE: &str = ">>> Edit this answer: put in what the client is to fall for. <<<";

impl Work<'_, '_> {
    /// The states of the scenario.
    pub(super) fn states(&mut self, gathered: &Gathered) -> io::Result<Vec<Entry>> {
        let mut kinds = Vec::new();
        for kind in
            KINDS.into_iter().filter(|kind| !self.options.strict || *kind != ItemKind::Template)
        {
            kinds.push((kind, self.items(gathered, kind)?));
        }
        let count = |wanted: ItemKind| {
            let items = kinds.iter().find(|(kind, _)| *kind == wanted);
            items.map_or(0, |(_, items)| items.len())
        };
        self.summary.tools = count(ItemKind::Tool);
        self.summary.resources = count(ItemKind::Resource);
        self.summary.templates = count(ItemKind::Template);
        self.summary.prompts = count(ItemKind::Prompt);
        let used = |kind| gathered.uses.iter().filter(|used| used.of == Of::Item(kind)).count();
        self.summary.reads = used(ItemKind::Resource) as u64;
        self.summary.gets = used(ItemKind::Prompt) as u64;
        let greeting = match (gathered.ready, self.options.strict) {
            (Some(ready), false) => self.actions(ready)?,
            _ => Vec::new(),
        };
        let phased = self.options.style == Style::Phased;
        let last = if phased { gathered.attack_after(self.options).unwrap_or(0) } else { u64::MAX };
        let state = self.state(gathered, &kinds, Calls::Until(last))?;
        if !phased && greeting.is_empty() {
            return Ok(state);
        }
        let state =
            state.into_iter().map(|entry| Entry { apart: false, ..entry }).collect::<Vec<_>>();
        let mut phases = Vec::new();
        if phased {
            phases.push(self.benign(gathered, greeting));
            phases.push(self.attack(gathered, &kinds, last)?);
        } else {
            let words = "What the server did when the client was ready.";
            phases.push(Element::new(vec![
                Entry::new("name", Part::text("session")),
                Entry::new("on_enter", super::hello::list(greeting)).about(words),
            ]));
            self.summary.phases.push("session".to_owned());
        }
        Ok(vec![Entry::new("baseline", state).apart(), Entry::new("phases", phases).apart()])
    }

    /// What there is for these calls.
    fn state(
        &mut self,
        gathered: &Gathered,
        kinds: &[(ItemKind, Vec<Item>)],
        calls: Calls,
    ) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for (kind, items) in kinds.iter().filter(|(_, items)| !items.is_empty()) {
            let elements = self.patterns(items, *kind, (gathered, calls))?;
            entries.push(Entry::new(kind.words(), elements).apart());
        }
        Ok(entries)
    }

    fn benign(&mut self, gathered: &Gathered, greeting: Vec<Node>) -> Element {
        let text = |name: &str, text: &str| tree::entry(name, Node::text(text));
        let (on, count) = match gathered.attack_after(self.options) {
            Some(after) => ("tools/call", after),
            // The tools changed before anything was called: once they had been listed.
            None => {
                let later = gathered.listings.later(ItemKind::Tool);
                ("tools/list", later.map_or(1, |later| later.asked_before.max(1)))
            }
        };
        self.summary.phases = vec!["benign".to_owned(), "attack".to_owned()];
        self.summary.attack_after = gathered.attack_after(self.options);
        if gathered.calls < count && on == "tools/call" {
            self.summary.warnings.push(format!(
                "the tape has {} calls, so nothing on it was answered after call {count}",
                gathered.calls
            ));
        }
        let advance = tree::map(vec![text("on", on), tree::entry("count", tree::number(count))]);
        let mut entries = vec![Entry::new("name", Part::text("benign"))];
        if !greeting.is_empty() {
            entries.push(Entry::new("on_enter", super::hello::list(greeting)));
        }
        entries.push(Entry::new("advance", advance).about("What leads out of this phase."));
        Element::new(entries)
    }

    /// The phase in which the tools change.
    fn attack(
        &mut self,
        gathered: &Gathered,
        kinds: &[(ItemKind, Vec<Item>)],
        last: u64,
    ) -> io::Result<Element> {
        let tell = |what: &str| tree::map(vec![tree::entry("send_notification", Node::text(what))]);
        let mut told = vec![tell("notifications/tools/list_changed")];
        let mut changes = Vec::new();
        for (kind, items) in kinds {
            let changed = self.changes(gathered, *kind, items, last)?;
            if !changed.is_empty() && *kind != ItemKind::Tool {
                let list = if *kind == ItemKind::Prompt { "prompts" } else { "resources" };
                let notice = tell(&format!("notifications/{list}/list_changed"));
                if !told.contains(&notice) {
                    told.push(notice);
                }
            }
            changes.extend(changed);
        }
        let words = "Told once, when the phase begins.";
        let mut entries = vec![
            Entry::new("name", Part::text("attack")),
            Entry::new("on_enter", super::hello::list(told)).about(words),
        ];
        entries.extend(changes);
        Ok(Element { apart: true, ..Element::new(entries) })
    }

    /// What becomes of the items of a kind in the attack.
    fn changes(
        &mut self,
        gathered: &Gathered,
        kind: ItemKind,
        items: &[Item],
        last: u64,
    ) -> io::Result<Vec<Entry>> {
        let among = (gathered, Calls::After(last));
        let mut changes = Vec::new();
        let Some(later) = gathered.listings.later(kind).map(|it| self.listed(it, kind)) else {
            let victims = match kind {
                ItemKind::Tool => self.victims(gathered, items, last),
                _ => Vec::new(),
            };
            if !victims.is_empty() {
                let replaced = self.replaced(&victims, kind, among)?;
                changes.push(Entry::new(format!("replace_{}", kind.words()), replaced));
            }
            return Ok(changes);
        };
        let gone = items.iter().filter(|item| !has(&later, &item.name) && !item.inferred);
        let gone: Vec<Node> = gone.map(|item| Node::text(&item.name)).collect();
        if !gone.is_empty() {
            let key = format!("remove_{}", kind.words());
            changes.push(Entry::new(key, super::hello::list(gone)));
        }
        let (old, new): (Vec<Item>, Vec<Item>) =
            later.into_iter().partition(|item| has(items, &item.name));
        let old: Vec<&Item> =
            old.iter().filter(|it| kind == ItemKind::Tool || differs(items, it)).collect();
        if !old.is_empty() {
            let replaced = self.replaced(&old, kind, among)?;
            changes.push(Entry::new(format!("replace_{}", kind.words()), replaced));
        }
        if !new.is_empty() {
            let new = self.patterns(&new, kind, among)?;
            changes.push(Entry::new(format!("add_{}", kind.words()), new));
        }
        Ok(changes)
    }

    /// The tools whose answers change: those that were called later, or the one called last.
    fn victims<'i>(&self, gathered: &Gathered, items: &'i [Item], last: u64) -> Vec<&'i Item> {
        let called_late = |item: &&Item| {
            let uses = gathered.uses_of(Of::Item(ItemKind::Tool), &item.name);
            uses.iter().any(|used| used.ordinal > last)
        };
        let late: Vec<&Item> = items.iter().filter(called_late).collect();
        if !late.is_empty() {
            return late;
        }
        let mut calls = gathered.uses.iter().rev();
        let last = calls.find_map(|used| {
            let is_call = used.of == Of::Item(ItemKind::Tool);
            items.iter().find(|item| is_call && *item.name == *used.key)
        });
        last.or(items.first()).into_iter().collect()
    }

    fn replaced(
        &mut self,
        items: &[&Item],
        kind: ItemKind,
        (gathered, calls): (&Gathered, Calls),
    ) -> io::Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        for item in items.iter().rev() {
            // Of several with one name the last is the one that is called.
            if entries.iter().any(|entry| entry.key == item.name) {
                continue;
            }
            let uses = gathered.uses_among(Of::Item(kind), &item.name, calls);
            let mut pattern = self.pattern(item, kind, &uses)?;
            if let (Some(response), ItemKind::Tool) = (pattern.last_mut(), kind) {
                response.comments.push(EDIT_HERE.to_owned());
            }
            entries.push(Entry::new(&item.name, pattern));
        }
        entries.reverse();
        Ok(entries)
    }
}

fn has(items: &[Item], name: &str) -> bool {
    items.iter().any(|item| item.name == name)
}

/// Whether an item is defined in another way than before.
fn differs(items: &[Item], item: &Item) -> bool {
    items.iter().all(|old| old.name != item.name || old.definition != item.definition)
}
