//! Profiles, and the settings that each overrides.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{OnDrift, Policy, Profile, Workflow};

/// Settings that a profile overrides. `None` keeps the policy's value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileOverrides {
    /// How long an approver may take, in every workflow.
    pub timeout: Option<Duration>,
    /// How long a call over HTTP is held, in every workflow.
    pub blocking_timeout: Option<Duration>,
    /// Whether calls are sent on if no approver answers in time, in every workflow.
    pub forward_on_timeout: Option<bool>,
    /// Whether results are redacted on the wire.
    pub redact_on_wire: Option<bool>,
    /// The action on drift.
    pub on_drift: Option<OnDrift>,
    /// Whether sessions are recorded.
    pub recording: Option<bool>,
    /// Whether telemetry is exported.
    pub telemetry: Option<bool>,
}

/// The settings that apply under one profile.
pub(crate) struct ProfileSettings {
    pub(crate) workflows: BTreeMap<String, Workflow>,
    pub(crate) redact_on_wire: bool,
    pub(crate) on_drift: OnDrift,
    pub(crate) recording: bool,
    pub(crate) telemetry: bool,
}

impl Policy {
    /// Applies the overrides of this profile. Call it once the profile is known, before the policy
    /// is used.
    pub fn settle(&mut self, profile: Profile) {
        let settled = self.settings_for(profile);
        self.workflows = settled.workflows;
        self.redaction.on_wire = settled.redact_on_wire;
        self.pins.on_drift = settled.on_drift;
        self.recording.enabled = settled.recording;
        self.telemetry.enabled = settled.telemetry;
    }

    /// The settings that apply under this profile, of those that profiles may override.
    pub(crate) fn settings_for(&self, profile: Profile) -> ProfileSettings {
        let ProfileOverrides {
            timeout,
            blocking_timeout,
            forward_on_timeout,
            redact_on_wire,
            on_drift,
            recording,
            telemetry,
        } = self.profiles.get(&profile).cloned().unwrap_or_default();
        let mut workflows = self.workflows.clone();
        for workflow in workflows.values_mut() {
            workflow.timeout = timeout.unwrap_or(workflow.timeout);
            workflow.blocking_timeout = blocking_timeout.unwrap_or(workflow.blocking_timeout);
            workflow.forward_on_timeout = forward_on_timeout.unwrap_or(workflow.forward_on_timeout);
        }
        ProfileSettings {
            workflows,
            redact_on_wire: redact_on_wire.unwrap_or(self.redaction.on_wire),
            on_drift: on_drift.unwrap_or(self.pins.on_drift),
            recording: recording.unwrap_or(self.recording.enabled),
            telemetry: telemetry.unwrap_or(self.telemetry.enabled),
        }
    }
}
