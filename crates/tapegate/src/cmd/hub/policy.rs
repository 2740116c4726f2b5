//! The hub's policy, with every text it was made from, so that shims can load it themselves.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use tapegate_hub::hub_policy::{HubPolicyLoad, PolicyBundle};
use tapegate_policy::model::Profile;
use tapegate_policy::redact::RedactionKey;
use tapegate_shim::reload::PolicyNotice;
use tapegate_shim::shim_policy::ShimPolicyLoad;

use crate::exit::Failure;
use crate::program_name;
use crate::redaction;
use crate::settings::{ProjectArgs, SearchContext};
use crate::trust::{LoadTrigger, PolicyTrust, TrustedPolicy};

/// Finds and loads the hub's policy.
pub(super) struct PolicySource {
    named: Option<PathBuf>,
    /// The file that was found. Once there is one, no other is looked for: a policy that vanishes
    /// is a fault, not a reason to let everything through.
    path: RefCell<Option<PathBuf>>,
    wanted: Option<Profile>,
    key: RedactionKey,
    trust: PolicyTrust,
    files: RefCell<Vec<PathBuf>>,
    /// Whether the absence of a policy has been reported.
    reported: Cell<bool>,
    /// The last notices about the acceptance of the policy, so that each change is reported once.
    told_acceptance: RefCell<Vec<PolicyNotice>>,
    /// Whether a policy is required, and its acceptance must be stored.
    required: bool,
    /// Whether a policy has been in force already.
    started: Cell<bool>,
}

impl PolicySource {
    /// The policy source for a command line.
    pub(super) fn new(
        project: &ProjectArgs,
        required: bool,
        search: &SearchContext<'_>,
        own_files: Vec<PathBuf>,
    ) -> Result<Self, anyhow::Error> {
        let trust = PolicyTrust::of_hub(own_files);
        let path = trust.locate(search, project.config.as_deref())?;
        Ok(Self {
            named: project.config.clone(),
            path: RefCell::new(path),
            wanted: search.profile(project.profile)?,
            key: RedactionKey::for_tape(redaction::random()?),
            trust,
            files: RefCell::default(),
            reported: Cell::new(false),
            told_acceptance: RefCell::default(),
            required,
            started: Cell::new(false),
        })
    }

    /// The profile that was requested.
    pub(super) fn requested_profile(&self) -> Option<Profile> {
        self.wanted
    }

    /// The policy file, if there is one.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.path.borrow().clone()
    }

    /// The files to watch for changes.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.files.borrow().clone()
    }

    pub(super) fn load(&self) -> HubPolicyLoad {
        let path = match self.find() {
            Ok(Some(path)) => path,
            Ok(None) => return self.without_policy(),
            Err(failure) => {
                return HubPolicyLoad { faults: vec![failure.message], ..HubPolicyLoad::default() };
            }
        };
        let moment = if self.started.get() { LoadTrigger::Reload } else { LoadTrigger::Start };
        let governing = self.trust.load(&path, self.wanted, &self.key, moment);
        // Only at the start: a running hub keeps its policy in any case.
        if self.required
            && moment == LoadTrigger::Start
            && let Err(failure) = governing.require_stored()
        {
            return HubPolicyLoad { faults: vec![failure.message], ..HubPolicyLoad::default() };
        }
        let notice = governing.notice(&path);
        let TrustedPolicy { policy_load: found, texts: files_by_path, variables, .. } = governing;
        let ShimPolicyLoad { active_policy, faults, mut warnings, files } = found;
        warnings.extend(self.unreported_notice(notice));
        // Until a policy was in force, each attempt counts as a start, which has none to fall back
        // on.
        self.started.set(self.started.get() || active_policy.is_some());
        let main = path.to_string_lossy().into_owned();
        let mut texts =
            PolicyBundle { files: files_by_path, env: variables, ..PolicyBundle::default() };
        texts.config = texts.files.remove(&main);
        texts.config_path = Some(main);
        self.files.replace(files.clone());
        let profile = active_policy.as_ref().map(|active_policy| active_policy.profile);
        let policy = active_policy.and_then(|active_policy| active_policy.policy);
        HubPolicyLoad { policy, profile, faults, warnings, texts, files }
    }

    /// The notice about the acceptance of the policy, if it has not been reported yet.
    fn unreported_notice(&self, notice: Option<PolicyNotice>) -> Option<String> {
        let reported = self.told_acceptance.replace(notice.clone().into_iter().collect());
        let notice = notice.filter(|notice| notice.is_warning && !reported.contains(notice))?;
        Some(notice.message)
    }

    /// The policy file, which may have been created since the last call.
    fn find(&self) -> Result<Option<PathBuf>, Failure> {
        let mut path = self.path.borrow_mut();
        if path.is_none()
            && let Ok(search) = SearchContext::current()
        {
            *path = self.trust.locate(&search, self.named.as_deref())?;
        }
        Ok(path.clone())
    }

    fn without_policy(&self) -> HubPolicyLoad {
        let message = format!(
            "no tapegate.yaml: observing only, everything is forwarded and logged; `{}` writes one",
            program_name::command("init")
        );
        let warnings = if self.reported.replace(true) { Vec::new() } else { vec![message] };
        let here = std::env::current_dir().unwrap_or_default();
        self.files.replace(vec![here.join("tapegate.yaml"), here.join("thoughtgate.yaml")]);
        HubPolicyLoad { warnings, files: self.files(), ..HubPolicyLoad::default() }
    }
}
