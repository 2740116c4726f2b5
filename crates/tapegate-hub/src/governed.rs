//! The policy that holds, and everything it was made from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tapegate_policy::model::{Policy, Profile};

use crate::api::Snapshot;

/// What came of loading a policy.
#[derive(Debug, Default)]
pub struct Loading {
    /// The policy under its profile; `None` if there is none, or if something is wrong with it.
    pub policy: Option<Arc<Policy>>,
    /// The profile that it was settled for.
    pub profile: Option<Profile>,
    /// What is wrong with it. If there is something, nothing of this may hold.
    pub faults: Vec<String>,
    /// What is worth knowing about it.
    pub warnings: Vec<String>,
    /// The texts it was made from.
    pub texts: Texts,
    /// Every file that was asked for, whether or not it is there.
    pub files: Vec<PathBuf>,
}

/// What a policy was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// The text of `tapegate.yaml`.
    pub config: Option<String>,
    /// Where that lies.
    pub config_path: Option<String>,
    /// Every other file that was read, by the name it was asked for by.
    pub files: BTreeMap<String, String>,
    /// Every variable that was asked for and is set.
    pub env: BTreeMap<String, String>,
}

/// The policy that holds.
#[derive(Debug)]
pub struct Governed {
    /// The policy; `None` if everything is only observed.
    pub policy: Option<Arc<Policy>>,
    /// How strictly it holds.
    pub profile: Profile,
    texts: Texts,
}

impl Governed {
    /// What holds from now on; `wanted` is the profile where there is no policy.
    pub fn new(loading: Loading, wanted: Option<Profile>) -> Self {
        let Loading { policy, profile, texts, .. } = loading;
        Self { policy, profile: profile.or(wanted).unwrap_or_default(), texts }
    }

    /// What it goes by; empty if there is none.
    pub fn version(&self) -> &str {
        self.policy.as_ref().map_or("", |policy| &policy.version)
    }

    /// What it goes by, for people.
    pub fn name(&self) -> &str {
        self.policy.as_ref().map_or("none: everything is only observed", |policy| &policy.version)
    }

    /// Whether tapes are kept.
    pub fn recording(&self) -> bool {
        self.policy.as_ref().is_none_or(|policy| policy.recording.enabled)
    }

    /// What a shim needs to make the same of it.
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
            recording: self.recording(),
        }
    }
}
