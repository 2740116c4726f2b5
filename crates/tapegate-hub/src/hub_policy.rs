//! The policy in force, and the texts it was made from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tapegate_policy::model::{Policy, Profile};

use crate::api::Snapshot;

/// The result of loading a policy.
#[derive(Debug, Default)]
pub struct HubPolicyLoad {
    /// The policy under its profile; `None` if there is none or it has faults.
    pub policy: Option<Arc<Policy>>,
    /// The profile that the policy was resolved for.
    pub profile: Option<Profile>,
    /// What is wrong with the policy. If there is any fault, none of this may be used.
    pub faults: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The texts the policy was made from.
    pub texts: PolicyBundle,
    /// Every file that was looked up, whether or not it exists.
    pub files: Vec<PathBuf>,
}

/// The texts that a policy was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyBundle {
    /// The text of `tapegate.yaml`.
    pub config: Option<String>,
    /// The path of `tapegate.yaml`.
    pub config_path: Option<String>,
    /// Every other file that was read, by the name it was requested under.
    pub files: BTreeMap<String, String>,
    /// Every environment variable that was looked up and is set.
    pub env: BTreeMap<String, String>,
}

/// The policy in force.
#[derive(Debug)]
pub struct HubPolicy {
    /// The policy; `None` if everything is only observed.
    pub policy: Option<Arc<Policy>>,
    /// The profile in force.
    pub profile: Profile,
    texts: PolicyBundle,
}

impl HubPolicy {
    /// Makes the loaded policy the one in force; without one, `wanted` is the profile.
    pub fn new(loading: HubPolicyLoad, wanted: Option<Profile>) -> Self {
        let HubPolicyLoad { policy, profile, texts, .. } = loading;
        Self { policy, profile: profile.or(wanted).unwrap_or_default(), texts }
    }

    /// The version of the policy; empty if there is none.
    pub fn version(&self) -> &str {
        self.policy.as_ref().map_or("", |policy| &policy.version)
    }

    /// The version of the policy, for people.
    pub fn name(&self) -> &str {
        self.policy.as_ref().map_or("none (observing only)", |policy| &policy.version)
    }

    /// The path of the policy's file; empty if there is none.
    pub fn path(&self) -> &str {
        self.texts.config_path.as_deref().unwrap_or_default()
    }

    /// Whether tapes are recorded.
    pub fn is_recording(&self) -> bool {
        self.policy.as_ref().is_none_or(|policy| policy.recording.enabled)
    }

    /// Everything that a shim needs to build the same policy.
    pub fn snapshot(&self, state_folder: String, own_files: &[String]) -> Snapshot {
        Snapshot {
            version: self.version().to_owned(),
            lease_ms: crate::LEASE.as_millis() as u64,
            profile: Some(self.profile.into()),
            config: self.texts.config.clone(),
            config_path: self.texts.config_path.clone(),
            files: self.texts.files.clone(),
            env: self.texts.env.clone(),
            state_folder: Some(state_folder),
            log_id: None,
            own_files: own_files.to_owned(),
            recording: self.is_recording(),
            session: None,
        }
    }
}
