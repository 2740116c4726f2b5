//! Puts loaded policies in force while a session runs, and logs which one is.

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_policy::policy_gate::{ActivePolicy, PolicyHandle};
use tapegate_store::activity;
use tapegate_wire::memory;
use tapegate_yaml::shape::nearest_name;

use crate::journal::ShimJournal;
use crate::plan::ShimPlan;
use crate::reload::NO_POLICY;
use crate::shim_policy::ShimPolicyLoad;

/// Puts loaded policies in force.
pub(crate) struct PolicyUpdater<'a> {
    pub(crate) plan: &'a ShimPlan,
    pub(crate) policy_handle: PolicyHandle,
    pub(crate) journal: ShimJournal,
}

impl<'a> PolicyUpdater<'a> {
    pub(crate) fn new(
        plan: &'a ShimPlan,
        policy_handle: &PolicyHandle,
        journal: &ShimJournal,
    ) -> Self {
        Self { plan, policy_handle: policy_handle.clone(), journal: journal.clone() }
    }
}

impl PolicyUpdater<'_> {
    /// The version of the policy in force, if there is one.
    pub(crate) fn version(&self) -> Option<String> {
        self.policy_handle.get().policy.map(|policy| policy.version.clone())
    }

    /// Puts a policy in force, if it has loaded.
    pub(crate) fn apply(&self, policy_load: ShimPolicyLoad) {
        policy_load
            .warnings
            .iter()
            .for_each(|message| self.journal.print_message(EventLevel::Warn, message));
        let Some(active_policy) = policy_load.active_policy else {
            policy_load
                .faults
                .iter()
                .for_each(|message| self.journal.print_message(EventLevel::Error, message));
            return self.note_refused(&policy_load.faults);
        };
        // Nothing awaits between these two lines: no call may be decided by one policy and masked
        // in the log by another.
        self.policy_handle.set(active_policy.clone());
        self.journal.mask(active_policy.masking.clone(), active_policy.profile);
        self.note_policy(&active_policy, "reloaded");
        // Cedar's parser and validator are megabytes of code that only loading needs.
        if active_policy.uses_cedar() {
            memory::release_code();
        }
    }

    /// Logs that a policy is in force.
    pub(crate) fn note_policy(&self, active_policy: &ActivePolicy, word: &str) {
        let version =
            Some(active_policy.version().to_owned()).filter(|version| !version.is_empty());
        let (what, word) = match &version {
            Some(version) => (format!("policy {version} {word}"), word),
            None => (
                format!(
                    "no policy: observing only, calls are recorded and forwarded; `{}` writes a \
                     policy, --require-policy refuses to start without one",
                    (self.plan.program.command)("init")
                ),
                NO_POLICY,
            ),
        };
        self.journal.log_event(ActivityEvent {
            wall_us: self.plan.clock.now().wall_us,
            level: if word == "loaded" { EventLevel::Info } else { EventLevel::Warn },
            kind: ActivityKind::Policy,
            policy_reason: Some(
                format!("{what}; profile {}", active_policy.profile.as_str()).into(),
            ),
            policy_version: version.map(Into::into),
            extra: activity::extra(&json!({ "event": word })),
            ..ActivityEvent::default()
        });
        self.warn_of_unknown_source(active_policy);
    }

    /// Warns of a server that the policy does not name: everything it offers is hidden and refused,
    /// which looks like a server without tools.
    fn warn_of_unknown_source(&self, active_policy: &ActivePolicy) {
        let Some(policy) = &active_policy.policy else { return };
        let id = &self.plan.server_id;
        if policy.source(id).is_some() {
            return;
        }
        let meant = nearest_name(id, policy.sources.iter().map(|source| source.id.as_str()));
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let message = format!(
            "server `{id}` is not in the `sources` of the policy, so all it offers is hidden and \
             refused{meant} (--server-id names the server; a source `*` stands for all others)"
        );
        self.journal.log_event(ActivityEvent {
            wall_us: self.plan.clock.now().wall_us,
            level: EventLevel::Warn,
            kind: ActivityKind::Policy,
            policy_reason: Some(message.into()),
            policy_version: Some(active_policy.version().to_owned().into()),
            extra: activity::extra(&json!({ "event": "unknown_source" })),
            ..ActivityEvent::default()
        });
    }

    /// Logs that a policy was rejected.
    fn note_refused(&self, faults: &[String]) {
        let held = self.version();
        let message = match &held {
            Some(version) => format!("the new policy does not load; {version} stays in force"),
            None => "the new policy does not load; everything is still observed".to_owned(),
        };
        let faults = &faults[..faults.len().min(20)];
        self.journal.log_event(ActivityEvent {
            wall_us: self.plan.clock.now().wall_us,
            level: EventLevel::Error,
            kind: ActivityKind::Policy,
            policy_reason: Some(message.into()),
            policy_version: held.map(Into::into),
            extra: activity::extra(&json!({ "event": "refused", "faults": faults })),
            ..ActivityEvent::default()
        });
    }
}
