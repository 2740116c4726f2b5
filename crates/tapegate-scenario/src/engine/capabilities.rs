//! The server's capabilities: those the scenario gives, or those inferred from its contents.

use std::rc::Rc;

use tapegate_core::json::JsonObject;

use crate::model::{
    AnswerSource, EffectTrigger, EventKind, ItemResponse, PhaseState, Scenario, ScenarioAction,
    ScenarioItem, ScenarioReply,
};

/// The capabilities of a state, as JSON. If the scenario may be reloaded, any list may change.
pub(super) fn state_capabilities(
    scenario: &Scenario,
    state: &PhaseState,
    reloads: bool,
) -> Vec<u8> {
    match &state.capabilities {
        Some(given) => given.to_json(),
        None => infer(scenario, reloads),
    }
}

/// Infers capabilities from all phases, because a client learns them only once.
fn infer(scenario: &Scenario, reloads: bool) -> Vec<u8> {
    let actions = ScenarioActions::of(scenario);
    let kind = |name: &str, items: StateItems, subscribes: bool| {
        let has = states(scenario).any(|state| !items(state).is_empty());
        let changed = format!("notifications/{name}/list_changed");
        let changes = reloads || has_changes(scenario, items) || actions.notify(&changed);
        let subscribe = subscribes.then_some("true");
        let changes = changes.then_some("true");
        let object = JsonObject::new().raw_opt("subscribe", subscribe);
        has.then(|| object.raw_opt("listChanged", changes).finish())
    };
    let resources: StateItems = |state| &state.resources;
    let templates: StateItems = |state| &state.templates;
    let has_resources = states(scenario).any(|state| !resources(state).is_empty());
    // Both are the capability `resources`; a scenario may have only templates.
    let items = if has_resources { resources } else { templates };
    let completes = scenario.methods.iter().any(|(name, _)| name == "completion/complete");
    JsonObject::new()
        .raw_opt("tools", kind("tools", |state| &state.tools, false))
        .raw_opt("resources", kind("resources", items, subscribes(scenario, &actions)))
        .raw_opt("prompts", kind("prompts", |state| &state.prompts, false))
        .raw_opt("logging", actions.logs().then_some("{}"))
        .raw_opt("completions", completes.then_some("{}"))
        .finish()
}

type StateItems = fn(&PhaseState) -> &Vec<Rc<ScenarioItem>>;

fn states(scenario: &Scenario) -> impl Iterator<Item = &PhaseState> {
    std::iter::once(&scenario.baseline).chain(scenario.phases.iter().map(|phase| &phase.state))
}

/// Whether a client that lists the items sees no difference between the two.
pub(super) fn same_list(one: &[Rc<ScenarioItem>], two: &[Rc<ScenarioItem>]) -> bool {
    let same = |(one, two): (&Rc<ScenarioItem>, &Rc<ScenarioItem>)| {
        Rc::ptr_eq(one, two) || one.definition.to_json() == two.definition.to_json()
    };
    let listed = |items: &[Rc<ScenarioItem>]| -> Vec<Rc<ScenarioItem>> {
        items.iter().filter(|item| item.listed).cloned().collect()
    };
    let (one, two) = (listed(one), listed(two));
    one.len() == two.len() && one.iter().zip(&two).all(same)
}

fn has_changes(scenario: &Scenario, items: StateItems) -> bool {
    let phases = &scenario.phases;
    let differ = |one: &PhaseState, two: &PhaseState| !same_list(items(one), items(two));
    // Leaving the last phase leads back to the baseline.
    let last = phases.last().filter(|last| last.advance.is_some());
    phases.windows(2).any(|two| differ(&two[0].state, &two[1].state))
        || last.is_some_and(|last| differ(&last.state, &scenario.baseline))
}

fn subscribes(scenario: &Scenario, actions: &ScenarioActions<'_>) -> bool {
    let waits = scenario.phases.iter().any(|phase| {
        let on = phase.advance.as_ref().and_then(|advance| advance.on.as_ref());
        on.is_some_and(|on| {
            matches!(on.kind, EventKind::ResourcesSubscribe | EventKind::ResourcesUnsubscribe)
        })
    });
    let acts = states(scenario).any(|state| {
        let items = state.resources.iter().filter_map(|item| item.behavior.as_ref());
        let mut effects = items.chain(&state.behavior).flat_map(|behavior| &behavior.side_effects);
        effects.any(|effect| {
            matches!(effect.trigger, EffectTrigger::OnSubscribe | EffectTrigger::OnUnsubscribe)
        })
    });
    waits || acts || actions.notify("notifications/resources/updated")
}

/// All actions that the server takes on its own.
struct ScenarioActions<'a> {
    all: Vec<&'a ScenarioAction>,
}

impl<'a> ScenarioActions<'a> {
    fn of(scenario: &'a Scenario) -> Self {
        let mut actions = Self { all: Vec::new() };
        let mut seen = std::collections::HashSet::new();
        for state in states(scenario) {
            let kinds = [&state.tools, &state.resources, &state.templates, &state.prompts];
            for item in kinds.into_iter().flatten().filter(|item| seen.insert(Rc::as_ptr(item))) {
                actions.add(&item.response);
            }
        }
        scenario.phases.iter().for_each(|phase| actions.all.extend(&phase.on_enter));
        scenario.methods.iter().for_each(|(_, response)| actions.add(response));
        actions
    }

    fn add(&mut self, response: &'a ItemResponse) {
        let branches = response.branches.iter().map(|branch| &branch.answer);
        for answer in branches.chain([&response.otherwise]) {
            let replies: &[ScenarioReply] = match answer {
                AnswerSource::Reply(reply) => std::slice::from_ref(reply),
                AnswerSource::Sequence(sequence) => &sequence.replies,
                AnswerSource::Empty | AnswerSource::Handler(_) => &[],
            };
            replies.iter().for_each(|reply| self.all.extend(&reply.before));
        }
    }

    fn notify(&self, wanted: &str) -> bool {
        self.all.iter().any(
            |action| matches!(action, ScenarioAction::Notify { method, .. } if method == wanted),
        )
    }

    fn logs(&self) -> bool {
        let says = |action: &&ScenarioAction| matches!(action, ScenarioAction::Message { .. });
        self.all.iter().any(says) || self.notify("notifications/message")
    }
}
