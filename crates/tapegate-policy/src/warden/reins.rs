//! What holds for a warden, and how it is changed from outside.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::{Policy, Profile};
use crate::redact::Redactor;

/// What holds.
#[derive(Debug, Clone, Default)]
pub struct Regime {
    /// The policy; without one, everything is sent on.
    pub policy: Option<Arc<Policy>>,
    /// How strictly it holds.
    pub profile: Profile,
    /// What masks results on the wire, if they are to be masked.
    pub redactor: Option<Arc<Redactor>>,
}

/// What holds, to be changed from anywhere. Clones are the same reins.
#[derive(Debug, Clone, Default)]
pub struct Reins(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Counts changes; so that nobody has to wait to see that there was none.
    generation: AtomicU64,
    regime: Mutex<Regime>,
}

impl Reins {
    /// Reins under which this holds.
    pub fn new(regime: Regime) -> Self {
        let reins = Self::default();
        reins.set(regime);
        reins
    }

    /// From now on this holds.
    pub fn set(&self, regime: Regime) {
        let mut held = self.0.regime.lock().unwrap_or_else(PoisonError::into_inner);
        *held = regime;
        self.0.generation.fetch_add(1, Ordering::Release);
    }

    /// From now on this policy holds; the rest stays.
    pub fn set_policy(&self, policy: Option<Arc<Policy>>) {
        self.set(Regime { policy, ..self.get() });
    }

    /// What holds.
    pub fn get(&self) -> Regime {
        self.0.regime.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What holds and since which change, if it is newer than the change with this number.
    pub(super) fn newer_than(&self, known: u64) -> Option<(u64, Regime)> {
        if self.0.generation.load(Ordering::Acquire) == known {
            return None;
        }
        let held = self.0.regime.lock().unwrap_or_else(PoisonError::into_inner);
        Some((self.0.generation.load(Ordering::Acquire), held.clone()))
    }
}
