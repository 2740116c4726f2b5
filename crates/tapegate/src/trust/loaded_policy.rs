//! Loads policy texts, and restricts a policy that no person has accepted.
//!
//! The governed agent may have written such a policy. A telemetry header could send the value of a
//! variable anywhere, so no telemetry is sent for it, and variables in that section are not read.
//! Its faults are reported without the values of variables, since the agent sees them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tapegate_policy::model::Profile;
use tapegate_policy::redact::RedactionKey;
use tapegate_shim::shim_policy::{self, ShimPolicyLoad, ShimPolicyOptions, TelemetryStatus};
use tapegate_store::accepted_policies::AcceptedPolicy;

use super::{PolicyFiles, TrustStatus, TrustedPolicy, hash_of};
use crate::settings::PROGRAM;

/// A loaded set of texts.
pub(super) struct LoadedTexts {
    pub(super) policy_load: ShimPolicyLoad,
    pub(super) by_name: BTreeMap<String, String>,
    by_path: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    pub(super) main_missing: bool,
}

/// The settings for loading texts.
pub(super) struct TrustLoader<'a> {
    pub(super) path: &'a Path,
    pub(super) wanted: Option<Profile>,
    pub(super) key: &'a RedactionKey,
    /// Files of ours that calls must not name, besides those that every policy covers.
    pub(super) own_files: &'a [PathBuf],
    pub(super) command_folder: Option<&'a str>,
    /// Whether the loader is a hub, which sends telemetry.
    pub(super) is_hub: bool,
}

/// Who sees the result of loading.
#[derive(Clone, Copy)]
pub(super) enum Audience<'a> {
    /// The person who runs a command on the policy.
    Person,
    /// A session and its agent, with the accepted copy of the policy.
    Session(Option<&'a AcceptedPolicy>),
}

impl Audience<'_> {
    /// Whether telemetry is sent; only a hub does so.
    fn telemetry(self, is_hub: bool) -> TelemetryStatus {
        match self {
            Self::Person => TelemetryStatus::Sent,
            Self::Session(Some(accepted)) if accepted.by_person => TelemetryStatus::Sent,
            Self::Session(_) if is_hub => TelemetryStatus::NotAccepted,
            Self::Session(_) => TelemetryStatus::Unsent,
        }
    }

    /// Whether a person has accepted these texts or is the one to see the result.
    fn is_trusted(self, files: &PolicyFiles) -> bool {
        match self {
            Self::Person => true,
            Self::Session(Some(accepted)) => accepted.by_person && files.has_texts(&accepted.texts),
            Self::Session(None) => false,
        }
    }
}

impl TrustLoader<'_> {
    pub(super) fn load(&self, files: PolicyFiles, audience: Audience<'_>) -> LoadedTexts {
        let Self { path, wanted, key, own_files, command_folder, is_hub } = *self;
        let (main, telemetry) = (path.to_string_lossy(), audience.telemetry(is_hub));
        let mut loaded = shim_policy::read(&main, &files, telemetry);
        if !audience.is_trusted(&files) {
            let plain = files.without_values();
            shim_policy::hide_values(&mut loaded, &main, &plain, PROGRAM);
        }
        let program = PROGRAM;
        let options =
            ShimPolicyOptions { wanted, key, own_files, command_folder, telemetry, program };
        let mut found = shim_policy::build_policy(&main, loaded, options);
        let main_missing = files.is_main_missing();
        let noted = files.into_noted();
        found.files = noted.requested;
        let (by_name, by_path, variables) = (noted.by_name, noted.by_path, noted.variables);
        LoadedTexts { policy_load: found, by_name, by_path, variables, main_missing }
    }
}

impl LoadedTexts {
    pub(super) fn into_governing(self, standing: TrustStatus) -> TrustedPolicy {
        let hash = hash_of(Path::new(""), &self.by_name);
        let Self { policy_load: found, by_path: texts, variables, .. } = self;
        TrustedPolicy { policy_load: found, standing, hash, texts, variables, unkept: None }
    }

    /// No policy is in force, for a reason besides the faults of the texts.
    pub(super) fn into_refused(mut self, reason: String) -> TrustedPolicy {
        self.policy_load.active_policy = None;
        self.policy_load.faults.push(reason);
        self.into_governing(TrustStatus::Unloadable)
    }

    /// No policy is in force, because these texts were never accepted.
    pub(super) fn into_unaccepted(mut self, reason: String) -> TrustedPolicy {
        self.policy_load.active_policy = None;
        self.policy_load.faults = vec![reason];
        self.into_governing(TrustStatus::NeverAccepted)
    }
}
