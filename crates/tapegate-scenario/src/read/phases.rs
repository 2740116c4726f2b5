//! Reads the baseline, and the phases with their complete states.
//!
//! A phase changes only the baseline: changes of an earlier phase are undone when it ends.

use std::collections::HashSet;
use std::rc::Rc;

use super::{ScenarioReader, capabilities};
use crate::model::{ItemKind, Phase, PhaseAdvance, PhaseEvent, PhaseState, ScenarioItem};
use crate::node::{Node, Spot};
use crate::request_matcher::RequestMatcher;
use crate::shape::{TableFields, language, nearest_name};

/// Identifiers of items.
type ItemNames = HashSet<(ItemKind, String)>;

impl ScenarioReader<'_> {
    /// The baseline and the phases of a scenario in either form.
    pub(super) fn states(
        &mut self,
        at: &TableFields<'_>,
        server: Option<Node>,
    ) -> (PhaseState, Vec<Phase>) {
        self.check_forms(at);
        let (mut baseline, own) = match at.map("baseline", &language::BASELINE) {
            Some(inner) => self.with_step("baseline", |reader| {
                (reader.state(&inner), inner.get("capabilities").and_then(capabilities::read))
            }),
            None => (self.state(at), None),
        };
        baseline.capabilities = capabilities::overlay(server, own);
        if baseline.behavior.is_none() && at.get("baseline").is_some() {
            baseline.behavior = self.behavior(at);
        }
        let list = at.list("phases");
        let most = self.limits.phases;
        if let (true, Some(node)) = (list.len() > most, at.get("phases")) {
            let message = format!(
                "there are {} phases; the limit is {most} (TAPEGATE_MAX_PHASES)",
                list.len()
            );
            self.with_step("phases", |reader| reader.findings.error(node.spot, message));
        }
        let mut earlier = ItemNames::default();
        let phases = self.with_step("phases", |reader| {
            let list = &list[..list.len().min(most)];
            reader.each(list, |reader, node| reader.phase(node, &baseline, &mut earlier))
        });
        self.check_order(list, &phases);
        (baseline, phases)
    }

    fn check_forms(&mut self, at: &TableFields<'_>) {
        let phased = ["baseline", "phases"].into_iter().find(|name| at.get(name).is_some());
        let Some(phased) = phased else { return };
        for kind in ItemKind::ALL {
            let list = kind.info().list;
            if let Some(node) = at.get(list) {
                let message =
                    format!("in a scenario with `{phased}`, `{list}` belongs under `baseline`");
                self.with_step(list, |reader| reader.findings.error(node.spot, message));
            }
        }
        if let (Some(phases), None) = (at.get("phases"), at.get("baseline"))
            && !at.list("phases").is_empty()
        {
            let message = "there is no `baseline`, so phases start from an empty server";
            self.with_step("phases", |reader| reader.findings.warning(phases.spot, message));
        }
    }

    /// Reads the lists of all kinds, and the behaviour next to them.
    fn state(&mut self, at: &TableFields<'_>) -> PhaseState {
        let mut state = PhaseState::default();
        for kind in ItemKind::ALL {
            let mut known = HashSet::new();
            let key = kind.info().list;
            self.with_step(key, |reader| {
                reader.each(at.list(key), |reader, node| {
                    let Some(item) = reader.item(kind, node) else { return };
                    if !known.insert(item.name.clone()) {
                        reader.report_duplicate(kind, &item.name, node.spot);
                    }
                    state.items_mut(kind).push(item);
                });
                if let Some(node) = at.get(key) {
                    reader.check_count(kind, &state, node.spot);
                }
            });
        }
        state.behavior = self.behavior(at);
        state
    }

    fn check_count(&mut self, kind: ItemKind, state: &PhaseState, spot: Spot) {
        let (most, variable) = match kind {
            ItemKind::Tool => (self.limits.tools, "TAPEGATE_MAX_TOOLS"),
            ItemKind::Prompt => (self.limits.prompts, "TAPEGATE_MAX_PROMPTS"),
            ItemKind::Resource | ItemKind::Template => {
                (self.limits.resources, "TAPEGATE_MAX_RESOURCES")
            }
        };
        let count = state.items(kind).len();
        if count > most {
            let noun = kind.info().noun;
            let message = format!("there are {count} {noun}s; the limit is {most} ({variable})");
            self.findings.error(spot, message);
        }
    }

    /// Reports a duplicate name. For tools it is only a warning, because it is a useful attack.
    fn report_duplicate(&mut self, kind: ItemKind, name: &str, spot: Spot) {
        if kind == ItemKind::Tool {
            let message = format!("duplicate tool `{name}`; both are listed, calls go to the last");
            self.findings.warning(spot, message);
        } else {
            self.findings.error(spot, format!("there is already a {} `{name}`", kind.info().noun));
        }
    }

    fn phase(&mut self, node: &Node, baseline: &PhaseState, earlier: &mut ItemNames) -> Phase {
        let at = TableFields::new(node, &language::PHASE);
        // From the baseline, not from the phase before, whose changes end with it.
        let mut state = baseline.clone();
        let mut named = ItemNames::default();
        for kind in ItemKind::ALL {
            // In this order, a phase can remove an item and add another one of the same name.
            self.remove(kind, &at, &mut state, earlier);
            self.replace(kind, &at, &mut state, earlier, &mut named);
            self.add(kind, &at, &mut state, &mut named);
            self.check_count(kind, &state, node.spot);
        }
        earlier.extend(named);
        if let Some(over) = at.get("replace_capabilities").and_then(capabilities::read) {
            // Without given capabilities there is nothing to overlay, so the inferred ones become
            // explicit.
            let base = state.capabilities.take().unwrap_or_else(|| capabilities::infer(&state));
            state.capabilities = capabilities::overlay(Some(base), Some(over));
        }
        if let Some(behavior) = self.behavior(&at) {
            state.behavior = Some(behavior);
        }
        let on_enter = match at.get("on_enter") {
            Some(actions) => self.with_step("on_enter", |reader| reader.actions(actions)),
            None => Vec::new(),
        };
        let advance = at.map("advance", &language::ADVANCE);
        let advance = advance.map(|at| self.with_step("advance", |reader| reader.advance(&at)));
        let name = at.text("name").unwrap_or_default().to_owned();
        Phase { name, state, on_enter, advance }
    }

    fn remove(
        &mut self,
        kind: ItemKind,
        at: &TableFields<'_>,
        state: &mut PhaseState,
        earlier: &ItemNames,
    ) {
        let key = format!("remove_{}", kind.info().list);
        self.with_step(&key, |reader| {
            reader.each(at.list(&key), |reader, node| {
                let Some(name) = node.as_text() else { return };
                let before = state.items(kind).len();
                state.items_mut(kind).retain(|item| item.name != name);
                if state.items(kind).len() == before {
                    reader.report_unknown((kind, name), node.spot, state, earlier, true);
                }
            });
        });
    }

    fn replace(
        &mut self,
        kind: ItemKind,
        at: &TableFields<'_>,
        state: &mut PhaseState,
        earlier: &ItemNames,
        named: &mut ItemNames,
    ) {
        let key = format!("replace_{}", kind.info().list);
        let entries = at.get(&key).and_then(Node::as_map).unwrap_or_default();
        self.with_step(&key, |reader| {
            for (key, node) in entries {
                reader.with_step(&key.name, |reader| {
                    let item = reader.item(kind, node);
                    // Of equal names, calls go to the last one.
                    let place = last(state.items(kind), &key.name);
                    if place.is_none() {
                        reader.report_unknown((kind, &key.name), key.spot, state, earlier, false);
                    }
                    if let Some(item) = item {
                        named.insert((kind, item.name.clone()));
                        put(state.items_mut(kind), place, item);
                    }
                });
            }
        });
    }

    fn add(
        &mut self,
        kind: ItemKind,
        at: &TableFields<'_>,
        state: &mut PhaseState,
        named: &mut ItemNames,
    ) {
        let key = format!("add_{}", kind.info().list);
        self.with_step(&key, |reader| {
            reader.each(at.list(&key), |reader, node| {
                let Some(item) = reader.item(kind, node) else { return };
                named.insert((kind, item.name.clone()));
                let place = last(state.items(kind), &item.name);
                if place.is_some() {
                    let message = format!(
                        "there is already a {} `{}`; this one replaces it",
                        kind.info().noun,
                        item.name
                    );
                    reader.findings.warning(node.spot, message);
                }
                put(state.items_mut(kind), place, item);
            });
        });
    }

    /// Reports a change of an unknown item; if an earlier phase had it, with a warning at most.
    fn report_unknown(
        &mut self,
        (kind, name): (ItemKind, &str),
        spot: Spot,
        state: &PhaseState,
        earlier: &ItemNames,
        removed: bool,
    ) {
        let noun = kind.info().noun;
        if earlier.contains(&(kind, name.to_owned())) {
            if removed {
                let message = format!(
                    "only an earlier phase has a {noun} `{name}`, and its changes have ended"
                );
                self.findings.warning(spot, message);
            }
            return;
        }
        let known = state.items(kind).iter().map(|item| item.name.as_str());
        let hint = nearest_name(name, known)
            .map_or(String::new(), |name| format!("; did you mean `{name}`?"));
        self.findings.error(spot, format!("the baseline has no {noun} `{name}`{hint}"));
    }

    fn advance(&mut self, at: &TableFields<'_>) -> PhaseAdvance {
        let spot = at.node.spot;
        let on = at.text("on").and_then(|text| PhaseEvent::parse(text).ok());
        if at.get("on").is_none() {
            if at.get("after").is_none() {
                self.findings.error(spot, "`advance` needs `on` or `after`");
            }
            for name in ["timeout", "on_timeout", "count", "match"] {
                if let Some(node) = at.get(name) {
                    let message = format!("`{name}` has no effect without `on`");
                    self.with_step(name, |reader| reader.findings.error(node.spot, message));
                }
            }
        } else if let (Some(node), None) = (at.get("on_timeout"), at.get("timeout")) {
            let message = "`on_timeout` has no effect without `timeout`";
            self.with_step("on_timeout", |reader| reader.findings.warning(node.spot, message));
        }
        let matching = at.get("match").map(|node| {
            self.with_step("match", |reader| RequestMatcher::read(node, reader.findings))
        });
        PhaseAdvance {
            on,
            count: at.whole_number("count").unwrap_or(1),
            matching,
            after_ns: at.duration_ns("after"),
            timeout_ns: at.duration_ns("timeout"),
            on_timeout: at.choice("on_timeout").unwrap_or_default(),
        }
    }

    /// Checks the phases as a whole.
    fn check_order(&mut self, list: &[Node], phases: &[Phase]) {
        let mut names = HashSet::new();
        for (index, (node, phase)) in list.iter().zip(phases).enumerate() {
            let step = format!("phases[{index}]");
            let is_last = index + 1 == phases.len();
            self.with_step(&step, |reader| {
                if !phase.name.is_empty() && !names.insert(phase.name.as_str()) {
                    let spot = node.get("name").map_or(node.spot, |name| name.spot);
                    let message = format!("duplicate phase name `{}`", phase.name);
                    reader.with_step("name", |reader| reader.findings.error(spot, message));
                }
                if !is_last && node.get("advance").is_none() {
                    let message = format!(
                        "the phases after `{}` are never reached, because it has no `advance`",
                        phase.name
                    );
                    reader.findings.warning(node.spot, message);
                }
                if let (true, Some(advance)) = (is_last, node.get("advance")) {
                    let message = if has_changes(&list[0]) {
                        "`advance` ends a phase: the changes of the first phase apply from the \
                         start, and after this one only the baseline is left"
                    } else {
                        "`advance` ends a phase: after the last one, only the baseline is left"
                    };
                    reader.with_step("advance", |r| r.findings.warning(advance.spot, message));
                }
            });
        }
    }
}

/// Whether a phase changes anything.
fn has_changes(phase: &Node) -> bool {
    let entries = phase.as_map().unwrap_or_default();
    entries.iter().any(|(key, _)| {
        ["remove_", "replace_", "add_"].iter().any(|start| key.name.starts_with(start))
    })
}

/// The index of the item with a name; of several, the last.
fn last(items: &[Rc<ScenarioItem>], name: &str) -> Option<usize> {
    items.iter().rposition(|item| item.name == name)
}

/// Puts an item in the place of another, or at the end.
fn put(items: &mut Vec<Rc<ScenarioItem>>, place: Option<usize>, item: Rc<ScenarioItem>) {
    match place {
        Some(place) => items[place] = item,
        None => items.push(item),
    }
}
