//! What the judge remembers of a session.

use std::sync::Arc;

use super::callers::Callers;
use crate::decide::{Decision, Principal};
use crate::gated::Gated;
use crate::pins::Watch;

/// What earlier messages of a session have told: who calls, and what the server has defined.
#[derive(Debug, Default)]
pub struct SessionState {
    pub(crate) callers: Callers,
    pub(crate) watch: Watch,
    /// How what is called differs from what was accepted, if whoever asks has found that out.
    pub(super) drift: Option<String>,
    /// The last decision that holds for every call alike.
    pub(super) last: Option<LastDecision>,
}

/// A decision that holds for every call of this method and name, while the policy stays the same.
#[derive(Debug)]
pub(super) struct LastDecision {
    pub(super) gated: Gated,
    pub(super) name: String,
    pub(super) decision: Arc<Decision>,
}

impl SessionState {
    /// A session of which nothing is known yet, besides who calls.
    pub fn new(principal: Principal) -> Self {
        Self { callers: Callers::new(principal), ..Self::default() }
    }

    /// The same, in which what is called differs from what was accepted as `drift` says.
    pub fn with_drift(self, drift: Option<&str>) -> Self {
        Self { drift: drift.map(str::to_owned), ..self }
    }

    /// Has what is called differ from what was accepted as `drift` says, or only as lists have shown.
    pub(crate) fn set_drift(&mut self, drift: Option<String>) {
        self.drift = drift;
    }

    /// Whether [`SessionState::set_drift`] says that what is called differs.
    pub(crate) fn has_drift(&self) -> bool {
        self.drift.is_some()
    }

    /// Forgets decisions: another policy is in force.
    pub(crate) fn forget_decisions(&mut self) {
        self.last = None;
    }
}
