//! What a scenario may do only with `--allow-external-handlers`: get answers from programs and
//! other servers, fill a pipe until nothing moves, cut a connection, or log to a file outside the
//! current folder. Everything else stays inside the session: it may be slow, noisy or odd, but it
//! ends.

use std::path::{Component, Path};

use tapegate_scenario::model::{
    Answer, Behavior, Effect, Item, ItemKind, LogOutput, Response, Scenario, State,
};
use tapegate_scenario::node::Spot;

/// Something that needs permission, and where it is.
pub(super) struct Danger {
    /// The item it belongs to; the default if it belongs to a phase or to the server.
    pub(super) spot: Spot,
    /// A description of it.
    pub(super) words: String,
}

/// Everything in a scenario that needs permission, each once.
pub(super) fn find(scenario: &Scenario) -> Vec<Danger> {
    let mut found = Vec::new();
    found.extend(log(&scenario.logging.output));
    state(&scenario.baseline, "the server", &mut found);
    for phase in &scenario.phases {
        state(&phase.state, &format!("phase `{}`", phase.name), &mut found);
    }
    for (method, answer) in &scenario.methods {
        response(answer, Spot::default(), &format!("method `{method}`"), &mut found);
    }
    let mut seen: Vec<(Spot, String)> = Vec::new();
    found.retain(|danger| {
        let key = (danger.spot, danger.words.clone());
        let new = !seen.contains(&key);
        seen.push(key);
        new
    });
    found
}

/// A log outside the current folder.
fn log(output: &LogOutput) -> Option<Danger> {
    let LogOutput::File(path) = output else { return None };
    let inside = |step: Component<'_>| matches!(step, Component::Normal(_) | Component::CurDir);
    let words = format!("`logging.output` is outside of this folder: `{path}`");
    (!Path::new(path).components().all(inside)).then(|| Danger { spot: Spot::default(), words })
}

fn state(state: &State, whose: &str, found: &mut Vec<Danger>) {
    let State { tools, resources, templates, prompts, .. } = state;
    for item in [tools, resources, templates, prompts].into_iter().flatten() {
        let whose = format!("{} `{}`", kind(item), item.name);
        response(&item.response, item.definition.spot, &whose, found);
        behavior(item.behavior.as_deref(), item.definition.spot, &whose, found);
    }
    behavior(state.behavior.as_deref(), Spot::default(), whose, found);
}

fn response(response: &Response, spot: Spot, whose: &str, found: &mut Vec<Danger>) {
    let answers = response.branches.iter().map(|branch| &branch.answer);
    if answers.chain([&response.otherwise]).any(|answer| matches!(answer, Answer::Handler(_))) {
        let words = format!("{whose} has a handler that runs outside of tapegate");
        found.push(Danger { spot, words });
    }
}

fn behavior(behavior: Option<&Behavior>, spot: Spot, whose: &str, found: &mut Vec<Danger>) {
    for side_effect in behavior.iter().flat_map(|behavior| &behavior.side_effects) {
        let what = match &side_effect.effect {
            Effect::PipeDeadlock { .. } => "`pipe_deadlock`, which may hang a client forever",
            Effect::CloseConnection { graceful: false, .. } => {
                "`close_connection` without `graceful`, which loses messages"
            }
            _ => continue,
        };
        found.push(Danger { spot, words: format!("{whose} has {what}") });
    }
}

fn kind(item: &Item) -> &'static str {
    match item.kind {
        ItemKind::Tool => "tool",
        ItemKind::Resource => "resource",
        ItemKind::Template => "resource template",
        ItemKind::Prompt => "prompt",
    }
}
