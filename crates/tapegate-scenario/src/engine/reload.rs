//! Replacing the scenario while clients are connected.

use std::rc::Rc;

use super::Engine;
use super::capabilities::same_list;
use super::phase_progress::PhaseProgress;
use super::prepared_scenario::PreparedScenario;
use crate::model::{PhaseState, Scenario};

impl Engine {
    /// Switches to another scenario. Each client stays in the phase of the same name and is
    /// notified of the lists that changed. Operations already started finish as they began.
    pub fn reload(&mut self, scenario: Rc<Scenario>) {
        let new = Rc::new(PreparedScenario::new(scenario, self.setup.reloads));
        let old = std::mem::replace(&mut self.script, new);
        let was_global = self.is_global();
        let from = self.global.phase;
        relocate_phase(&mut self.global, &old, &self.script);
        for table in self.clients.values_mut() {
            let from = if was_global { from } else { table.progress.phase };
            relocate_phase(&mut table.progress, &old, &self.script);
            let to = if was_global { self.global.phase } else { table.progress.phase };
            let changed = changed_lists(old.state(from), self.script.state(to));
            table.engine_session.changed.extend(changed);
        }
    }
}

/// Finds the phase of the same name; if it is gone, falls back to the first.
fn relocate_phase(progress: &mut PhaseProgress, old: &PreparedScenario, new: &PreparedScenario) {
    progress.restart_sequences();
    let phases = &new.scenario.phases;
    progress.phase = match old.scenario.phases.get(progress.phase) {
        Some(phase) => phases.iter().position(|one| one.name == phase.name).unwrap_or(0),
        None if old.scenario.phases.is_empty() => 0,
        None => phases.len(),
    };
}

/// The notifications for the lists that differ.
fn changed_lists(old: &PhaseState, new: &PhaseState) -> impl Iterator<Item = &'static str> {
    let kinds = [
        ("notifications/tools/list_changed", same_list(&old.tools, &new.tools)),
        (
            "notifications/resources/list_changed",
            same_list(&old.resources, &new.resources) && same_list(&old.templates, &new.templates),
        ),
        ("notifications/prompts/list_changed", same_list(&old.prompts, &new.prompts)),
    ];
    kinds.into_iter().filter(|(_, same)| !same).map(|(method, _)| method)
}
