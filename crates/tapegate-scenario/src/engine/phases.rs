//! Phase transitions: which events fire a trigger, and what follows.

use std::rc::Rc;

use tapegate_core::actor::Act;

use super::Note;
use super::request::Asked;
use super::source::{Pick, Source};
use super::turn::Turn;
use crate::model::{EffectTrigger, EventKind, OnTimeout};

impl Turn<'_, '_> {
    /// Whether an event that was just counted ends the phase.
    pub(super) fn fires(&self, kind: EventKind, key: Option<&str>, asked: &Asked<'_>) -> bool {
        let phase = self.script.scenario.phases.get(self.progress.phase);
        let Some(advance) = phase.and_then(|phase| phase.advance.as_ref()) else { return false };
        let Some(on) = advance.on.as_ref().filter(|on| on.kind == kind) else { return false };
        let keyed = on.key.is_none() || on.key.as_deref() == key;
        keyed
            && self.progress.counted(on) >= advance.count
            && advance.matching.as_ref().is_none_or(|when| when.fits(&self.context(asked)))
    }

    /// Handles `notifications/initialized`.
    pub(super) fn initialized(&mut self) {
        self.begin();
        let asked = self.unasked();
        self.progress.count(EventKind::Initialized, None, true);
        let fires = self.fires(EventKind::Initialized, None, &asked);
        if fires && self.progress.leaving.is_none() {
            self.enter_next(EventKind::Initialized.name());
        }
    }

    /// Runs the entry actions of the first phase, once.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.progress.begun, true) {
            self.enter();
        }
    }

    /// Handles an answer that was delivered, or that never will be.
    pub(super) fn settle(&mut self, ticket: u64) {
        if self.visit.starting == Some(ticket) {
            self.visit.starting = None;
            self.connected();
            self.begin();
        }
        let leaving = self.progress.leaving.as_ref();
        if leaving.is_some_and(|leaving| leaving.seat == self.seat && leaving.ticket == ticket)
            && let Some(leaving) = self.progress.leaving.take()
        {
            self.enter_next(leaving.why);
        }
    }

    /// Handles a client that is gone: the answer that others wait for will not be delivered.
    pub(super) fn abandoned(&mut self) {
        if self.progress.leaving.as_ref().is_some_and(|leaving| leaving.seat == self.seat)
            && let Some(leaving) = self.progress.leaving.take()
        {
            self.enter_next(leaving.why);
        }
    }

    /// Starts the side effects of a new client, once.
    pub(super) fn connected(&mut self) {
        if !std::mem::replace(&mut self.visit.is_connected, true) {
            let asked = Asked { behavior: self.scene().behavior.as_ref(), ..self.unasked() };
            self.start_effects(&asked, EffectTrigger::OnConnect);
            self.start_effects(&asked, EffectTrigger::Continuous);
        }
    }

    /// Leaves the phase if its time is up.
    pub(super) fn timers(&mut self) {
        let script = self.script;
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
                let words = format!("the phase `{name}` timed out");
                *self.failure = Some(words);
                (self.act)(Act::Stop);
            }
        }
    }

    fn enter_next(&mut self, why: &str) {
        let script = self.script;
        let old = self.scene().behavior.as_ref();
        let from = script.phase_name(self.progress.phase);
        self.progress.phase = (self.progress.phase + 1).min(script.scenario.phases.len());
        self.progress.entered_ns = Some(self.at.mono_ns);
        self.progress.begun = true;
        let to = script.phase_name(self.progress.phase);
        self.note(Note::Phase { from, to, why });
        self.enter();
        let new = self.scene().behavior.as_ref();
        let same = match (old, new) {
            (Some(old), Some(new)) => Rc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        if self.visit.is_connected && !same {
            let asked = Asked { behavior: new, ..self.unasked() };
            self.start_effects(&asked, EffectTrigger::Continuous);
        }
    }

    /// Runs the entry actions of the current phase.
    fn enter(&mut self) {
        let phase = self.progress.phase;
        let on_enter = self.script.scenario.phases.get(phase).map(|phase| &phase.on_enter);
        if on_enter.is_some_and(|actions| !actions.is_empty()) {
            let source = Source::Phase(Rc::clone(self.script), phase);
            self.begin_play(&self.unasked(), source, Pick::default());
        }
    }

    /// A placeholder for actions that do not belong to a request.
    pub(super) fn unasked(&self) -> Asked<'static> {
        Asked {
            id: b"",
            method: "",
            params: b"{}",
            modern: false,
            token: None,
            batch: None,
            ticket: 0,
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
