//! Phase transitions: which events fire a trigger, and what follows.

use std::rc::Rc;

use tapegate_core::actor::ActorAction;

use super::EngineNote;
use super::answer_origin::{AnswerOrigin, ReplyChoice};
use super::engine_turn::EngineTurn;
use super::request::EngineRequest;
use crate::model::{EffectTrigger, EventKind, OnTimeout};

impl EngineTurn<'_, '_> {
    /// Whether an event that was just counted ends the phase.
    pub(super) fn ends_phase(
        &self,
        kind: EventKind,
        key: Option<&str>,
        request: &EngineRequest<'_>,
    ) -> bool {
        let phase = self.script.scenario.phases.get(self.progress.phase);
        let Some(advance) = phase.and_then(|phase| phase.advance.as_ref()) else { return false };
        let Some(on) = advance.on.as_ref().filter(|on| on.kind == kind) else { return false };
        let keyed = on.key.is_none() || on.key.as_deref() == key;
        keyed
            && self.progress.count_of(on) >= advance.count
            && advance.matching.as_ref().is_none_or(|when| when.matches(&self.context(request)))
    }

    /// Handles `notifications/initialized`.
    pub(super) fn handle_initialized(&mut self) {
        self.enter_first_phase();
        let request = self.placeholder_request();
        self.progress.count(EventKind::Initialized, None, true);
        let fires = self.ends_phase(EventKind::Initialized, None, &request);
        // A notification has no answer to wait for, so the phase changes at once.
        if fires && self.progress.leaving.is_none() {
            self.enter_next(EventKind::Initialized.name());
        }
    }

    /// Runs the entry actions of the first phase, once.
    pub(super) fn enter_first_phase(&mut self) {
        if !std::mem::replace(&mut self.progress.begun, true) {
            self.run_entry_actions();
        }
    }

    /// Handles an answer that was delivered, or that never will be.
    pub(super) fn settle(&mut self, delivery_id: u64) {
        if self.engine_session.starting == Some(delivery_id) {
            self.engine_session.starting = None;
            // Only now, because notifications must not overtake the answer to the client's first
            // request.
            self.handle_connected();
            self.enter_first_phase();
        }
        let leaving = self.progress.leaving.as_ref();
        if leaving.is_some_and(|leaving| {
            leaving.session == self.session && leaving.delivery_id == delivery_id
        }) && let Some(leaving) = self.progress.leaving.take()
        {
            self.enter_next(leaving.reason);
        }
    }

    /// Handles a client that is gone: the answer that others wait for will not be delivered.
    pub(super) fn handle_abandoned(&mut self) {
        // Without this, clients that share the phase would wait forever.
        if self.progress.leaving.as_ref().is_some_and(|leaving| leaving.session == self.session)
            && let Some(leaving) = self.progress.leaving.take()
        {
            self.enter_next(leaving.reason);
        }
    }

    /// Starts the side effects of a new client, once.
    pub(super) fn handle_connected(&mut self) {
        if !std::mem::replace(&mut self.engine_session.is_connected, true) {
            let request = EngineRequest {
                behavior: self.scene().behavior.as_ref(),
                ..self.placeholder_request()
            };
            self.start_effects(&request, EffectTrigger::OnConnect);
            self.start_effects(&request, EffectTrigger::Continuous);
        }
    }

    /// Leaves the phase if its time is up.
    pub(super) fn check_phase_timer(&mut self) {
        let script = self.script;
        // A phase that is about to end by an answer does not end by its timer as well.
        let (Some(entered), None) = (self.progress.entered_ns, &self.progress.leaving) else {
            return;
        };
        let phase = script.scenario.phases.get(self.progress.phase);
        let Some(advance) = phase.and_then(|phase| phase.advance.as_ref()) else { return };
        let passed = self.at.mono_ns.saturating_sub(entered);
        if advance.after_ns.is_some_and(|after| passed >= after) {
            return self.enter_next("after");
        }
        if advance.timeout_ns.is_none_or(|timeout| passed < timeout) {
            return;
        }
        match advance.on_timeout {
            OnTimeout::Advance => self.enter_next("timeout"),
            OnTimeout::Abort => {
                let name = script.phase_name(self.progress.phase);
                let message = format!("the phase `{name}` timed out");
                *self.failure = Some(message);
                (self.act)(ActorAction::Stop);
            }
        }
    }

    fn enter_next(&mut self, reason: &str) {
        let script = self.script;
        let old = self.scene().behavior.as_ref();
        let from = script.phase_name(self.progress.phase);
        // One past the last phase is the baseline, which has no successor.
        self.progress.phase = (self.progress.phase + 1).min(script.scenario.phases.len());
        self.progress.entered_ns = Some(self.at.mono_ns);
        self.progress.begun = true;
        let to = script.phase_name(self.progress.phase);
        self.note(EngineNote::Phase { from, to, reason });
        self.run_entry_actions();
        let new = self.scene().behavior.as_ref();
        // A phase that inherits its behavior must not start its floods a second time.
        let same = match (old, new) {
            (Some(old), Some(new)) => Rc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        if self.engine_session.is_connected && !same {
            let request = EngineRequest { behavior: new, ..self.placeholder_request() };
            self.start_effects(&request, EffectTrigger::Continuous);
        }
    }

    /// Runs the entry actions of the current phase.
    fn run_entry_actions(&mut self) {
        let phase = self.progress.phase;
        let on_enter = self.script.scenario.phases.get(phase).map(|phase| &phase.on_enter);
        if on_enter.is_some_and(|actions| !actions.is_empty()) {
            let source = AnswerOrigin::Phase(Rc::clone(self.script), phase);
            self.start_actions(&self.placeholder_request(), source, ReplyChoice::default());
        }
    }

    /// A placeholder for actions that do not belong to a request.
    pub(super) fn placeholder_request(&self) -> EngineRequest<'static> {
        EngineRequest {
            id: b"",
            method: "",
            params: b"{}",
            modern: false,
            token: None,
            batch: None,
            delivery_id: 0,
            phase: self.progress.phase,
            item: None,
            called: None,
            uri: &[],
            call_count: 0,
            replies: &[],
            behavior: None,
        }
    }
}
