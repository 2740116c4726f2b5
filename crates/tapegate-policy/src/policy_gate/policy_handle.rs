//! The active policy of a gate, and the handle to change it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::{Policy, Profile};
use crate::redact::Redactor;

#[derive(Debug, Clone, Default)]
pub struct ActivePolicy {
    /// The policy; without one, everything is sent on.
    pub policy: Option<Arc<Policy>>,
    /// How strictly it is applied.
    pub profile: Profile,
    /// Masks results on the wire, if they are to be masked.
    pub redactor: Option<Arc<Redactor>>,
    /// Masks what is written: tapes, logs and approval requests.
    pub masking: Option<Arc<Redactor>>,
}

impl ActivePolicy {
    /// For sessions without a policy: everything is only observed.
    pub fn observe_only(profile: Option<Profile>) -> Self {
        Self { profile: profile.unwrap_or_default(), ..Self::default() }
    }

    /// Whether there are Cedar policies.
    pub fn uses_cedar(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.cedar.is_some())
    }

    /// The policy's version; empty if there is none.
    pub fn version(&self) -> &str {
        self.policy.as_ref().map_or("", |policy| &policy.version)
    }
}

/// A shared handle to the active policy. Clones refer to the same one.
#[derive(Debug, Clone, Default)]
pub struct PolicyHandle(Arc<PolicyState>);

#[derive(Debug, Default)]
struct PolicyState {
    /// Counts changes, so that readers can see without locking that there was none.
    generation: AtomicU64,
    active_policy: Mutex<ActivePolicy>,
}

impl PolicyHandle {
    /// A handle with this policy.
    pub fn new(active_policy: ActivePolicy) -> Self {
        let policy_handle = Self::default();
        policy_handle.set(active_policy);
        policy_handle
    }

    /// Replaces the active policy and all that goes with it.
    pub fn set(&self, active_policy: ActivePolicy) {
        let mut held = self.0.active_policy.lock().unwrap_or_else(PoisonError::into_inner);
        *held = active_policy;
        // Still under the lock: a reader that sees the new number then finds the new policy.
        self.0.generation.fetch_add(1, Ordering::Release);
    }

    /// Replaces the policy; the profile and the redactor stay.
    pub fn set_policy(&self, policy: Option<Arc<Policy>>) {
        self.set(ActivePolicy { policy, ..self.get() });
    }

    /// The active policy.
    pub fn get(&self) -> ActivePolicy {
        self.0.active_policy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The active policy and its generation, if it is newer than `known`.
    pub(super) fn newer_than(&self, known: u64) -> Option<(u64, ActivePolicy)> {
        if self.0.generation.load(Ordering::Acquire) == known {
            return None;
        }
        let held = self.0.active_policy.lock().unwrap_or_else(PoisonError::into_inner);
        // Loaded again under the lock, so that number and policy belong together.
        Some((self.0.generation.load(Ordering::Acquire), held.clone()))
    }
}
