//! What the judge remembers about a session.

use super::callers::CallerRegistry;
use crate::decide::PolicyPrincipal;
use crate::pins::DefinitionWatch;

/// What earlier messages of a session have shown: the callers, and the server's definitions.
#[derive(Debug, Default)]
pub struct SessionState {
    pub(crate) callers: CallerRegistry,
    pub(crate) watch: DefinitionWatch,
    /// How the definition of what is called differs from the accepted one, if the user of the judge
    /// has set it.
    pub(super) drift: Option<String>,
}

impl SessionState {
    /// A new session with this principal.
    pub fn new(principal: PolicyPrincipal) -> Self {
        Self { callers: CallerRegistry::new(principal), ..Self::default() }
    }

    /// The same session, with `drift` as the difference of what is called from what was accepted.
    pub fn with_drift(self, drift: Option<&str>) -> Self {
        Self { drift: drift.map(str::to_owned), ..self }
    }

    /// Sets how what is called differs from what was accepted; `None` to rely on the lists alone.
    pub(crate) fn set_drift(&mut self, drift: Option<String>) {
        self.drift = drift;
    }

    /// Whether [`SessionState::set_drift`] has set a difference.
    pub(crate) fn has_drift(&self) -> bool {
        self.drift.is_some()
    }
}
