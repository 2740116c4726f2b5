//! What a scenario may do only with `--allow-external-handlers`: get answers from programs and
//! other servers, fill a pipe until nothing moves, cut a connection, or log to a file outside the
//! current folder. Everything else stays inside the session: it may be slow, noisy or odd, but it
//! ends.

use std::path::{Component, Path};

use tapegate_scenario::model::{
    AnswerSource, Behavior, ItemKind, ItemResponse, LogOutput, PhaseState, Scenario, ScenarioItem,
    ServerEffect,
};
use tapegate_scenario::node::Spot;

/// Something that needs permission, and where it is.
pub(super) struct DangerousFeature {
    /// The item it belongs to; the default if it belongs to a phase or to the server.
    pub(super) spot: Spot,
    /// A description of it.
    pub(super) message: String,
}

/// Everything in a scenario that needs permission, each once.
pub(super) fn find(scenario: &Scenario) -> Vec<DangerousFeature> {
    let mut found = Vec::new();
    found.extend(log(&scenario.logging.output));
    // Phases inherit from it, so the same item turns up again; duplicates are removed below.
    state(&scenario.baseline, "the server", &mut found);
    for phase in &scenario.phases {
        state(&phase.state, &format!("phase `{}`", phase.name), &mut found);
    }
    for (method, answer) in &scenario.methods {
        response(answer, Spot::default(), &format!("method `{method}`"), &mut found);
    }
    let mut seen: Vec<(Spot, String)> = Vec::new();
    found.retain(|danger| {
        let key = (danger.spot, danger.message.clone());
        let new = !seen.contains(&key);
        seen.push(key);
        new
    });
    found
}

/// A log outside the current folder.
fn log(output: &LogOutput) -> Option<DangerousFeature> {
    let LogOutput::File(path) = output else { return None };
    // Not `..` and not `/`; links were made by the user.
    let inside = |step: Component<'_>| matches!(step, Component::Normal(_) | Component::CurDir);
    let message = format!("`logging.output` is outside of this folder: `{path}`");
    (!Path::new(path).components().all(inside))
        .then(|| DangerousFeature { spot: Spot::default(), message })
}

fn state(state: &PhaseState, whose: &str, found: &mut Vec<DangerousFeature>) {
    let PhaseState { tools, resources, templates, prompts, .. } = state;
    for item in [tools, resources, templates, prompts].into_iter().flatten() {
        let whose = format!("{} `{}`", kind(item), item.name);
        response(&item.response, item.definition.spot, &whose, found);
        check_behavior(item.behavior.as_deref(), item.definition.spot, &whose, found);
    }
    check_behavior(state.behavior.as_deref(), Spot::default(), whose, found);
}

fn response(response: &ItemResponse, spot: Spot, whose: &str, found: &mut Vec<DangerousFeature>) {
    let answers = response.branches.iter().map(|branch| &branch.answer);
    // In any branch: which one is used is decided by the client.
    if answers.chain([&response.otherwise]).any(|answer| matches!(answer, AnswerSource::Handler(_)))
    {
        let message = format!("{whose} has a handler that runs outside of tapegate");
        found.push(DangerousFeature { spot, message });
    }
}

fn check_behavior(
    behavior: Option<&Behavior>,
    spot: Spot,
    whose: &str,
    found: &mut Vec<DangerousFeature>,
) {
    for side_effect in behavior.iter().flat_map(|behavior| &behavior.side_effects) {
        let what = match &side_effect.effect {
            ServerEffect::PipeDeadlock { .. } => "`pipe_deadlock`, which may hang a client forever",
            ServerEffect::CloseConnection { graceful: false, .. } => {
                "`close_connection` without `graceful`, which loses messages"
            }
            _ => continue,
        };
        found.push(DangerousFeature { spot, message: format!("{whose} has {what}") });
    }
}

fn kind(item: &ScenarioItem) -> &'static str {
    match item.kind {
        ItemKind::Tool => "tool",
        ItemKind::Resource => "resource",
        ItemKind::Template => "resource template",
        ItemKind::Prompt => "prompt",
    }
}
