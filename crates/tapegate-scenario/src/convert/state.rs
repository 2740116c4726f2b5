//! The state or states of the scenario: one, or a benign phase and the attack that follows.

use std::io;

use super::gather::{Calls, Gathered, Of};
use super::items::Item;
use super::listing::ItemKind;
use super::phases::{ATTACK, Phase, Trigger};
use super::{Work, tree};
use crate::emit::{Element, Entry, Part};
use crate::node::Node;

const KINDS: [ItemKind; 4] =
    [ItemKind::Tool, ItemKind::Resource, ItemKind::Template, ItemKind::Prompt];

/// The note where the user is to continue; split, so that searches for it do not find this file.
const EDIT_HERE: &str = concat!("TO", "DO: Replace with malicious responses");

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
        let phases = gathered.phases(self.options);
        let until = phases.first().map_or(u64::MAX, |phase| phase.calls.after);
        let state = self.state(gathered, &kinds, Calls { after: 0, until })?;
        if phases.is_empty() && greeting.is_empty() {
            return Ok(state);
        }
        let state =
            state.into_iter().map(|entry| Entry { apart: false, ..entry }).collect::<Vec<_>>();
        let elements = match phases.is_empty() {
            true => vec![self.session(greeting)],
            false => self.phases(gathered, &phases, &kinds, greeting)?,
        };
        Ok(vec![Entry::new("baseline", state).apart(), Entry::new("phases", elements).apart()])
    }

    /// The only phase of a scenario that never changes.
    fn session(&mut self, greeting: Vec<Node>) -> Element {
        self.summary.phases.push("session".to_owned());
        let words = "What the server sent when the client was ready.";
        Element::new(vec![
            Entry::new("name", Part::text("session")),
            Entry::new("on_enter", super::hello::list(greeting)).about(words),
        ])
    }

    /// The state that answers these calls.
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

    /// The benign phase and those that follow it.
    fn phases(
        &mut self,
        gathered: &Gathered,
        phases: &[Phase<'_>],
        kinds: &[(ItemKind, Vec<Item>)],
        greeting: Vec<Node>,
    ) -> io::Result<Vec<Element>> {
        self.summary.attack_after = gathered.attack_after(self.options);
        if let Some(after) = self.summary.attack_after.filter(|after| gathered.calls < *after) {
            let calls = gathered.calls;
            let s = if calls == 1 { "" } else { "s" };
            self.summary.warnings.push(format!(
                "the tape has {calls} call{s}, fewer than the {after} after which the attack begins \
                 (--phase-after); the attack repeats earlier answers"
            ));
        }
        let mut benign = vec![Entry::new("name", Part::text("benign"))];
        if !greeting.is_empty() {
            benign.push(Entry::new("on_enter", super::hello::list(greeting)));
        }
        benign.extend(phases.first().map(|next| advance(next.trigger)));
        let mut elements = vec![Element::new(benign)];
        self.summary.phases = vec!["benign".to_owned()];
        for (place, phase) in phases.iter().enumerate() {
            self.summary.phases.push(phase.name.clone());
            elements.push(self.phase(gathered, phase, phases.get(place + 1), kinds)?);
        }
        Ok(elements)
    }

    /// A phase in which the tools change.
    fn phase(
        &mut self,
        gathered: &Gathered,
        phase: &Phase<'_>,
        next: Option<&Phase<'_>>,
        kinds: &[(ItemKind, Vec<Item>)],
    ) -> io::Result<Element> {
        let tell = |what: &str| tree::map(vec![tree::entry("send_notification", Node::text(what))]);
        let mut told = vec![tell("notifications/tools/list_changed")];
        let mut changes = Vec::new();
        for (kind, items) in kinds {
            let changed = self.changes(gathered, phase, *kind, items)?;
            if !changed.is_empty() && *kind != ItemKind::Tool {
                let list = if *kind == ItemKind::Prompt { "prompts" } else { "resources" };
                let notice = tell(&format!("notifications/{list}/list_changed"));
                if !told.contains(&notice) {
                    told.push(notice);
                }
            }
            changes.extend(changed);
        }
        let words = "Sent once, when the phase begins.";
        let mut entries = vec![
            Entry::new("name", Part::text(&phase.name)),
            Entry::new("on_enter", super::hello::list(told)).about(words),
        ];
        entries.extend(next.map(|next| advance(next.trigger)));
        if let (ATTACK, Some(first)) = (phase.name.as_str(), changes.first_mut()) {
            first.comments.push(EDIT_HERE.to_owned());
        }
        entries.extend(changes);
        Ok(Element { apart: true, ..Element::new(entries) })
    }

    /// The changes of one kind of items in a phase.
    fn changes(
        &mut self,
        gathered: &Gathered,
        phase: &Phase<'_>,
        kind: ItemKind,
        items: &[Item],
    ) -> io::Result<Vec<Entry>> {
        let is_tool = kind == ItemKind::Tool;
        let listing = match (is_tool, phase.name.as_str()) {
            (true, _) => phase.tools,
            (false, ATTACK) => gathered.listings.later(kind),
            (false, _) => None,
        };
        let mut changes = Vec::new();
        let victims = match is_tool && phase.to_edit {
            true => self.victims(gathered, items, phase.calls.after),
            false => Vec::new(),
        };
        let Some(later) = listing.map(|it| self.listed(it, kind)) else {
            if !victims.is_empty() {
                let replaced = self.replaced(&victims, kind, (gathered, phase))?;
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
        let (old, mut new): (Vec<Item>, Vec<Item>) =
            later.into_iter().partition(|item| has(items, &item.name));
        let old: Vec<&Item> = old.iter().filter(|it| is_tool || differs(items, it)).collect();
        if !old.is_empty() {
            let replaced = self.replaced(&old, kind, (gathered, phase))?;
            changes.push(Entry::new(format!("replace_{}", kind.words()), replaced));
        }
        if is_tool && phase.name == ATTACK {
            new.extend(self.listed_meanwhile(gathered, items, &new));
        }
        if !new.is_empty() {
            let new = self.patterns(&new, kind, (gathered, phase.calls))?;
            changes.push(Entry::new(format!("add_{}", kind.words()), new));
        }
        Ok(changes)
    }

    /// Tools that were called, but listed only between the lists that the phases use.
    fn listed_meanwhile(&self, gathered: &Gathered, items: &[Item], new: &[Item]) -> Vec<Item> {
        let phases = gathered.phases(self.options);
        let is_known = |key: &str| {
            has(items, key)
                || has(new, key)
                || phases.iter().any(|it| it.tools.is_some_and(|tools| tools.get(key).is_some()))
        };
        let keys = gathered.keys(Of::Item(ItemKind::Tool)).into_iter();
        keys.filter(|key| !is_known(key))
            .filter_map(|key| self.item_of_later(gathered, ItemKind::Tool, &key))
            .collect()
    }

    /// The tools whose answers change: those called later, or else the one called last.
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
        (gathered, phase): (&Gathered, &Phase<'_>),
    ) -> io::Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        for item in items.iter().rev() {
            // If a name occurs more than once, calls go to the last one.
            if entries.iter().any(|entry| entry.key == item.name) {
                continue;
            }
            let uses = gathered.uses_among(Of::Item(kind), &item.name, phase.calls);
            self.to_edit = kind == ItemKind::Tool && phase.to_edit;
            let pattern = self.pattern(item, kind, &uses);
            self.to_edit = false;
            entries.push(Entry::new(&item.name, pattern?));
        }
        entries.reverse();
        Ok(entries)
    }
}

/// The trigger that ends a phase.
fn advance(trigger: Trigger) -> Entry {
    let (on, count) = match trigger {
        Trigger::Calls(count) => ("tools/call", count),
        Trigger::Lists(count) => ("tools/list", count),
    };
    let on = tree::entry("on", Node::text(on));
    let advance = tree::map(vec![on, tree::entry("count", tree::number(count))]);
    Entry::new("advance", advance).about("The condition that ends this phase.")
}

fn has(items: &[Item], name: &str) -> bool {
    items.iter().any(|item| item.name == name)
}

/// Whether the definition of an item is new or changed.
fn differs(items: &[Item], item: &Item) -> bool {
    items.iter().all(|old| old.name != item.name || old.definition != item.definition)
}
