//! A scenario prepared for running: the lists and indices of each state, built on first use.

use std::cell::OnceCell;
use std::rc::Rc;

use super::EngineMap;
use super::capabilities;
use super::item_listing::ItemListing;
use super::uri::UriTemplate;
use crate::model::{Behavior, ItemKind, ItemResponse, PhaseState, Scenario, ScenarioItem};
use crate::template::NamedValue;

/// The sessionless revision.
pub(super) const MODERN: &str = "2026-07-28";
/// The revisions with a handshake, newest first.
const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A scenario prepared for running.
pub(super) struct PreparedScenario {
    pub(super) scenario: Rc<Scenario>,
    /// `serverInfo`.
    pub(super) info: Box<[u8]>,
    /// Indices into the scenario's method responses, by method name.
    methods: EngineMap<Box<str>, usize>,
    /// Whether a reload may replace it.
    reloads: bool,
    /// One for each phase, and one for the baseline.
    scenes: Vec<OnceCell<PreparedState>>,
}

/// A state prepared for running.
pub(super) struct PreparedState {
    /// The items by kind.
    listings: [ItemListing; 4],
    /// The URI patterns of the resource templates.
    uris: Vec<UriTemplate>,
    pub(super) capabilities: Box<[u8]>,
    pub(super) behavior: Option<Rc<Behavior>>,
}

impl PreparedScenario {
    /// Prepares a scenario.
    pub(super) fn new(scenario: Rc<Scenario>, reloads: bool) -> Self {
        let info = scenario.server.info.to_json().into();
        let methods = scenario.methods.iter().enumerate();
        let methods = methods.map(|(index, (name, _))| (name.as_str().into(), index)).collect();
        let scenes = (0..=scenario.phases.len()).map(|_| OnceCell::new()).collect();
        Self { info, methods, scenes, reloads, scenario }
    }

    /// The state of a phase; past the last phase, the baseline.
    pub(super) fn state(&self, phase: usize) -> &PhaseState {
        self.scenario.phases.get(phase).map_or(&self.scenario.baseline, |phase| &phase.state)
    }

    /// The prepared state of a phase.
    pub(super) fn scene(&self, phase: usize) -> &PreparedState {
        let phase = phase.min(self.scenario.phases.len());
        self.scenes[phase].get_or_init(|| PreparedState::new(self, self.state(phase)))
    }

    pub(super) fn phase_name(&self, phase: usize) -> &str {
        self.scenario.phases.get(phase).map_or("baseline", |phase| &phase.name)
    }

    /// The index of a phase as templates see it; -1 for the baseline.
    pub(super) fn phase_index(&self, phase: usize) -> i64 {
        if phase < self.scenario.phases.len() { phase as i64 } else { -1 }
    }

    /// The scenario's response to a method, if it has one, and its index.
    pub(super) fn method(&self, name: &str) -> Option<(usize, &ItemResponse)> {
        if self.methods.is_empty() {
            return None;
        }
        let index = *self.methods.get(name)?;
        Some((index, &self.scenario.methods[index].1))
    }

    /// Whether the server speaks the sessionless revision.
    pub(super) fn is_modern(&self) -> bool {
        let versions = &self.scenario.server.protocol_versions;
        versions.is_empty() || versions.iter().any(|version| version == MODERN)
    }

    /// The revision agreed on in the handshake; `None` if the server speaks no revision with one.
    pub(super) fn negotiate(&self, wanted: &str) -> Option<&str> {
        let versions = &self.scenario.server.protocol_versions;
        if versions.is_empty() {
            let known = HANDSHAKE.iter().find(|version| **version == wanted);
            return known.or(HANDSHAKE.first()).copied();
        }
        let mut handshakes = versions.iter().filter(|version| *version != MODERN);
        // As the protocol demands, a server that does not know the version offers one that it
        // knows.
        let exact = handshakes.clone().find(|version| *version == wanted);
        exact.or_else(|| handshakes.next()).map(String::as_str)
    }
}

impl PreparedState {
    fn new(script: &PreparedScenario, state: &PhaseState) -> Self {
        let listing = |kind: ItemKind| {
            ItemListing::new(kind, state.items(kind), script.scenario.server.page_size)
        };
        let uris = state.templates.iter().map(|item| UriTemplate::new(&item.name)).collect();
        Self {
            listings: ItemKind::ALL.map(listing),
            uris,
            capabilities: capabilities::state_capabilities(&script.scenario, state, script.reloads)
                .into(),
            behavior: state.behavior.clone(),
        }
    }

    /// The items of a kind.
    pub(super) fn listing(&self, kind: ItemKind) -> &ItemListing {
        &self.listings[kind as usize]
    }

    /// The resource with this URI, or the matching template with its variables.
    pub(super) fn resource(
        &self,
        uri: &str,
    ) -> Option<(&Rc<ScenarioItem>, Vec<NamedValue<String>>)> {
        // A resource by its exact URI has priority over every template that matches.
        if let Some(item) = self.listing(ItemKind::Resource).get(uri) {
            return Some((item, Vec::new()));
        }
        let mut templates = self.uris.iter().zip(self.listing(ItemKind::Template).items());
        templates.find_map(|(template, item)| Some((item, template.read(uri)?)))
    }
}
