//! A scenario, prepared to be played: each state with its lists and indices, once it is needed.

use std::cell::OnceCell;
use std::rc::Rc;

use super::Map;
use super::capabilities;
use super::listing::Listing;
use super::uri::UriTemplate;
use crate::form::Named;
use crate::model::{Behavior, Item, ItemKind, Response, Scenario, State};

/// The revision without sessions.
pub(super) const MODERN: &str = "2026-07-28";
/// The revisions with a handshake, newest first.
const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A scenario, prepared to be played.
pub(super) struct Script {
    pub(super) scenario: Rc<Scenario>,
    /// `serverInfo`.
    pub(super) info: Box<[u8]>,
    /// The answers to methods by their names.
    methods: Map<Box<str>, usize>,
    /// Whether another one may take its place.
    reloads: bool,
    /// One for each phase, and one for the baseline.
    scenes: Vec<OnceCell<Scene>>,
}

/// A state, prepared to be played.
pub(super) struct Scene {
    pub(super) tools: Listing,
    pub(super) resources: Listing,
    pub(super) templates: Listing,
    pub(super) prompts: Listing,
    /// The resource templates, as patterns.
    uris: Vec<UriTemplate>,
    pub(super) capabilities: Box<[u8]>,
    pub(super) behavior: Option<Rc<Behavior>>,
}

impl Script {
    /// Prepares a scenario.
    pub(super) fn new(scenario: Rc<Scenario>, reloads: bool) -> Self {
        let info = scenario.server.info.to_json().into();
        let methods = scenario.methods.iter().enumerate();
        let methods = methods.map(|(index, (name, _))| (name.as_str().into(), index)).collect();
        let scenes = (0..=scenario.phases.len()).map(|_| OnceCell::new()).collect();
        Self { info, methods, scenes, reloads, scenario }
    }

    /// The state of a phase; behind the last one, the baseline.
    pub(super) fn state(&self, phase: usize) -> &State {
        self.scenario.phases.get(phase).map_or(&self.scenario.baseline, |phase| &phase.state)
    }

    /// The same, prepared.
    pub(super) fn scene(&self, phase: usize) -> &Scene {
        let phase = phase.min(self.scenario.phases.len());
        self.scenes[phase].get_or_init(|| Scene::new(self, self.state(phase)))
    }

    /// The name of a phase.
    pub(super) fn phase_name(&self, phase: usize) -> &str {
        self.scenario.phases.get(phase).map_or("baseline", |phase| &phase.name)
    }

    /// The number of a phase, as templates see it.
    pub(super) fn phase_index(&self, phase: usize) -> i64 {
        if phase < self.scenario.phases.len() { phase as i64 } else { -1 }
    }

    /// The answer to a method that the scenario has one for.
    pub(super) fn method(&self, name: &str) -> Option<(usize, &Response)> {
        if self.methods.is_empty() {
            return None;
        }
        let index = *self.methods.get(name)?;
        Some((index, &self.scenario.methods[index].1))
    }

    /// Whether the server speaks the revision without sessions.
    pub(super) fn is_modern(&self) -> bool {
        let versions = &self.scenario.server.protocol_versions;
        versions.is_empty() || versions.iter().any(|version| version == MODERN)
    }

    /// The revision that a handshake leads to; `None` if the server has no handshake.
    pub(super) fn negotiate(&self, wanted: &str) -> Option<&str> {
        let versions = &self.scenario.server.protocol_versions;
        if versions.is_empty() {
            let known = HANDSHAKE.iter().find(|version| **version == wanted);
            return known.or(HANDSHAKE.first()).copied();
        }
        let mut handshakes = versions.iter().filter(|version| *version != MODERN);
        let exact = handshakes.clone().find(|version| *version == wanted);
        exact.or_else(|| handshakes.next()).map(String::as_str)
    }
}

impl Scene {
    fn new(script: &Script, state: &State) -> Self {
        let listing =
            |kind, items: &[Rc<Item>]| Listing::new(kind, items, script.scenario.server.page_size);
        let uris = state.templates.iter().map(|item| UriTemplate::new(&item.name)).collect();
        Self {
            tools: listing(ItemKind::Tool, &state.tools),
            resources: listing(ItemKind::Resource, &state.resources),
            templates: listing(ItemKind::Template, &state.templates),
            prompts: listing(ItemKind::Prompt, &state.prompts),
            uris,
            capabilities: capabilities::of(&script.scenario, state, script.reloads).into(),
            behavior: state.behavior.clone(),
        }
    }

    /// What there is of a kind.
    pub(super) fn listing(&self, kind: ItemKind) -> &Listing {
        match kind {
            ItemKind::Tool => &self.tools,
            ItemKind::Resource => &self.resources,
            ItemKind::Template => &self.templates,
            ItemKind::Prompt => &self.prompts,
        }
    }

    /// The resource with this URI, or the template that it fits, with the template's variables.
    pub(super) fn resource(&self, uri: &str) -> Option<(&Rc<Item>, Vec<Named<String>>)> {
        if let Some(item) = self.resources.get(uri) {
            return Some((item, Vec::new()));
        }
        let mut templates = self.uris.iter().zip(self.templates.items());
        templates.find_map(|(template, item)| Some((item, template.read(uri)?)))
    }
}
