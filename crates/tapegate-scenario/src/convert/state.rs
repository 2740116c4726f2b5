//! The state or states of the scenario: one, or a benign phase and the attack that follows.

use std::io;

use super::ConversionState;
use super::items::DraftItem;
use super::phases::{ATTACK, PhaseDraft, PhaseTrigger};
use super::tape_contents::{CallRange, OperationKind, TapeContents};
use crate::emit::{DocumentPart, ListElement, MapEntry};
use crate::model::ItemKind;
use crate::node::Node;

/// The note where the user is to continue; split, so that searches for it do not find this file.
const EDIT_HERE: &str = concat!("TO", "DO: Replace with malicious responses");

impl ConversionState<'_, '_> {
    /// The states of the scenario.
    pub(super) fn states(&mut self, gathered: &TapeContents) -> io::Result<Vec<MapEntry>> {
        let mut kinds = Vec::new();
        for kind in ItemKind::ALL
            .into_iter()
            .filter(|kind| !self.options.strict || *kind != ItemKind::Template)
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
        let used =
            |kind| gathered.uses.iter().filter(|used| used.of == OperationKind::Item(kind)).count();
        self.summary.reads = used(ItemKind::Resource) as u64;
        self.summary.gets = used(ItemKind::Prompt) as u64;
        let greeting = match (gathered.ready, self.options.strict) {
            (Some(ready), false) => self.actions(ready)?,
            _ => Vec::new(),
        };
        let phases = gathered.phases(self.options);
        // The baseline answers the calls before the first change; without one, it answers all.
        let until = phases.first().map_or(u64::MAX, |phase| phase.calls.after);
        let state = self.state(gathered, &kinds, CallRange { after: 0, until })?;
        if phases.is_empty() && greeting.is_empty() {
            return Ok(state);
        }
        let state =
            state.into_iter().map(|entry| MapEntry { apart: false, ..entry }).collect::<Vec<_>>();
        let elements = match phases.is_empty() {
            true => vec![self.session(greeting)],
            false => self.phases(gathered, &phases, &kinds, greeting)?,
        };
        Ok(vec![
            MapEntry::new("baseline", state).with_blank_line(),
            MapEntry::new("phases", elements).with_blank_line(),
        ])
    }

    /// The only phase of a scenario that never changes.
    fn session(&mut self, greeting: Vec<Node>) -> ListElement {
        self.summary.phases.push("session".to_owned());
        let comment = "What the server sent when the client was ready.";
        ListElement::new(vec![
            MapEntry::new("name", DocumentPart::text("session")),
            MapEntry::new("on_enter", super::server_hello::list(greeting)).with_comment(comment),
        ])
    }

    /// The state that answers these calls.
    fn state(
        &mut self,
        gathered: &TapeContents,
        kinds: &[(ItemKind, Vec<DraftItem>)],
        calls: CallRange,
    ) -> io::Result<Vec<MapEntry>> {
        let mut entries = Vec::new();
        for (kind, items) in kinds.iter().filter(|(_, items)| !items.is_empty()) {
            let elements = self.patterns(items, *kind, (gathered, calls))?;
            entries.push(MapEntry::new(kind.info().list, elements).with_blank_line());
        }
        Ok(entries)
    }

    /// The benign phase and those that follow it.
    fn phases(
        &mut self,
        gathered: &TapeContents,
        phases: &[PhaseDraft<'_>],
        kinds: &[(ItemKind, Vec<DraftItem>)],
        greeting: Vec<Node>,
    ) -> io::Result<Vec<ListElement>> {
        self.summary.attack_after = gathered.attack_after(self.options);
        if let Some(after) = self.summary.attack_after.filter(|after| gathered.calls < *after) {
            let calls = gathered.calls;
            let s = if calls == 1 { "" } else { "s" };
            self.summary.warnings.push(format!(
                "the tape has {calls} call{s}, fewer than the {after} after which the attack begins \
                 (--phase-after); the attack repeats earlier answers"
            ));
        }
        let mut benign = vec![MapEntry::new("name", DocumentPart::text("benign"))];
        if !greeting.is_empty() {
            benign.push(MapEntry::new("on_enter", super::server_hello::list(greeting)));
        }
        benign.extend(phases.first().map(|next| advance(next.trigger)));
        let mut elements = vec![ListElement::new(benign)];
        self.summary.phases = vec!["benign".to_owned()];
        for (index, phase) in phases.iter().enumerate() {
            self.summary.phases.push(phase.name.clone());
            elements.push(self.phase(gathered, phase, phases.get(index + 1), kinds)?);
        }
        Ok(elements)
    }

    /// A phase in which the tools change.
    fn phase(
        &mut self,
        gathered: &TapeContents,
        phase: &PhaseDraft<'_>,
        next: Option<&PhaseDraft<'_>>,
        kinds: &[(ItemKind, Vec<DraftItem>)],
    ) -> io::Result<ListElement> {
        let tell = |what: &str| Node::map(vec![Node::entry("send_notification", Node::text(what))]);
        let mut notifications = vec![tell("notifications/tools/list_changed")];
        let mut changes = Vec::new();
        for (kind, items) in kinds {
            let changed = self.phase_changes(gathered, phase, *kind, items)?;
            if !changed.is_empty() && *kind != ItemKind::Tool {
                let list = if *kind == ItemKind::Prompt { "prompts" } else { "resources" };
                let notice = tell(&format!("notifications/{list}/list_changed"));
                if !notifications.contains(&notice) {
                    notifications.push(notice);
                }
            }
            changes.extend(changed);
        }
        let comment = "Sent once, when the phase begins.";
        let mut entries = vec![
            MapEntry::new("name", DocumentPart::text(&phase.name)),
            MapEntry::new("on_enter", super::server_hello::list(notifications))
                .with_comment(comment),
        ];
        entries.extend(next.map(|next| advance(next.trigger)));
        if let (ATTACK, Some(first)) = (phase.name.as_str(), changes.first_mut()) {
            first.comments.push(EDIT_HERE.to_owned());
        }
        entries.extend(changes);
        Ok(ListElement { apart: true, ..ListElement::new(entries) })
    }

    /// The changes of one kind of items in a phase.
    fn phase_changes(
        &mut self,
        gathered: &TapeContents,
        phase: &PhaseDraft<'_>,
        kind: ItemKind,
        items: &[DraftItem],
    ) -> io::Result<Vec<MapEntry>> {
        let is_tool = kind == ItemKind::Tool;
        let listing = match (is_tool, phase.name.as_str()) {
            (true, _) => phase.tools,
            (false, ATTACK) => gathered.listings.latest_list(kind),
            (false, _) => None,
        };
        let mut changes = Vec::new();
        let victims = match is_tool && phase.to_edit {
            true => self.changed_tools(gathered, items, phase.calls.after),
            false => Vec::new(),
        };
        let Some(later) = listing.map(|it| self.listed_items(it, kind)) else {
            if !victims.is_empty() {
                let replaced = self.replaced_items(&victims, kind, (gathered, phase))?;
                changes.push(MapEntry::new(format!("replace_{}", kind.info().list), replaced));
            }
            return Ok(changes);
        };
        // An inferred item was never listed, so its absence from a later list says nothing.
        let gone = items.iter().filter(|item| !has_item(&later, &item.name) && !item.inferred);
        let gone: Vec<Node> = gone.map(|item| Node::text(&item.name)).collect();
        if !gone.is_empty() {
            let key = format!("remove_{}", kind.info().list);
            changes.push(MapEntry::new(key, super::server_hello::list(gone)));
        }
        let (old, mut new): (Vec<DraftItem>, Vec<DraftItem>) =
            later.into_iter().partition(|item| has_item(items, &item.name));
        // Tools are always written again, because their answers depend on the phase.
        let old: Vec<&DraftItem> = old.iter().filter(|it| is_tool || differs(items, it)).collect();
        if !old.is_empty() {
            let replaced = self.replaced_items(&old, kind, (gathered, phase))?;
            changes.push(MapEntry::new(format!("replace_{}", kind.info().list), replaced));
        }
        if is_tool && phase.name == ATTACK {
            new.extend(self.tools_listed_between(gathered, items, &new));
        }
        if !new.is_empty() {
            let new = self.patterns(&new, kind, (gathered, phase.calls))?;
            changes.push(MapEntry::new(format!("add_{}", kind.info().list), new));
        }
        Ok(changes)
    }

    /// Tools that were called, but listed only between the lists that the phases use.
    fn tools_listed_between(
        &self,
        gathered: &TapeContents,
        items: &[DraftItem],
        new: &[DraftItem],
    ) -> Vec<DraftItem> {
        let phases = gathered.phases(self.options);
        let is_known = |key: &str| {
            has_item(items, key)
                || has_item(new, key)
                || phases.iter().any(|it| it.tools.is_some_and(|tools| tools.get(key).is_some()))
        };
        let keys = gathered.keys(OperationKind::Item(ItemKind::Tool)).into_iter();
        keys.filter(|key| !is_known(key))
            .filter_map(|key| self.item_of_later_list(gathered, ItemKind::Tool, &key))
            .collect()
    }

    /// The tools whose answers change: those called later, or else the one called last.
    fn changed_tools<'i>(
        &self,
        gathered: &TapeContents,
        items: &'i [DraftItem],
        last: u64,
    ) -> Vec<&'i DraftItem> {
        let called_late = |item: &&DraftItem| {
            let uses = gathered.uses_of(OperationKind::Item(ItemKind::Tool), &item.name);
            uses.iter().any(|used| used.ordinal > last)
        };
        let late: Vec<&DraftItem> = items.iter().filter(called_late).collect();
        if !late.is_empty() {
            return late;
        }
        let mut calls = gathered.uses.iter().rev();
        let last = calls.find_map(|used| {
            let is_call = used.of == OperationKind::Item(ItemKind::Tool);
            items.iter().find(|item| is_call && *item.name == *used.key)
        });
        last.or(items.first()).into_iter().collect()
    }

    fn replaced_items(
        &mut self,
        items: &[&DraftItem],
        kind: ItemKind,
        (gathered, phase): (&TapeContents, &PhaseDraft<'_>),
    ) -> io::Result<Vec<MapEntry>> {
        let mut entries: Vec<MapEntry> = Vec::new();
        for item in items.iter().rev() {
            // If a name occurs more than once, calls go to the last one.
            if entries.iter().any(|entry| entry.key == item.name) {
                continue;
            }
            let uses = gathered.uses_among(OperationKind::Item(kind), &item.name, phase.calls);
            self.to_edit = kind == ItemKind::Tool && phase.to_edit;
            let pattern = self.pattern(item, kind, &uses);
            self.to_edit = false;
            entries.push(MapEntry::new(&item.name, pattern?));
        }
        // Walked backwards to find the last of equal names; the output keeps the recorded order.
        entries.reverse();
        Ok(entries)
    }
}

/// The trigger that ends a phase.
fn advance(trigger: PhaseTrigger) -> MapEntry {
    let (on, count) = match trigger {
        PhaseTrigger::Calls(count) => ("tools/call", count),
        PhaseTrigger::Lists(count) => ("tools/list", count),
    };
    let on = Node::entry("on", Node::text(on));
    let advance = Node::map(vec![on, Node::entry("count", Node::number(count))]);
    MapEntry::new("advance", advance).with_comment("The condition that ends this phase.")
}

fn has_item(items: &[DraftItem], name: &str) -> bool {
    items.iter().any(|item| item.name == name)
}

/// Whether the definition of an item is new or changed.
fn differs(items: &[DraftItem], item: &DraftItem) -> bool {
    items.iter().all(|old| old.name != item.name || old.definition != item.definition)
}
