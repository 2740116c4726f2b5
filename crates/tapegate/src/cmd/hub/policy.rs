//! The hub's policy, with every text it was made from, so that shims can load it themselves.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use tapegate_hub::governed::{Loading, Texts};
use tapegate_policy::model::Profile;
use tapegate_policy::redact::Key;

use crate::called;
use crate::cmd::shim::rulebook::Found;
use crate::exit::Failure;
use crate::redaction;
use crate::settings::{ProjectArgs, Surroundings};
use crate::trust::{Governing, Moment, PolicyNotice, Trust};

/// Finds and loads the hub's policy.
pub(super) struct Shelf {
    named: Option<PathBuf>,
    /// The file that was found. Once there is one, no other is looked for: a policy that vanishes
    /// is a fault, not a reason to let everything through.
    path: RefCell<Option<PathBuf>>,
    wanted: Option<Profile>,
    key: Key,
    trust: Trust,
    files: RefCell<Vec<PathBuf>>,
    /// Whether the absence of a policy has been reported.
    told: Cell<bool>,
    /// The last notices about the acceptance of the policy, so that each change is reported once.
    told_acceptance: RefCell<Vec<PolicyNotice>>,
    /// Whether a policy is required, and its acceptance must be stored.
    required: bool,
    /// Whether a policy has been in force already.
    started: Cell<bool>,
}

impl Shelf {
    /// The policy source for a command line.
    pub(super) fn new(
        project: &ProjectArgs,
        required: bool,
        around: &Surroundings<'_>,
        own_files: Vec<PathBuf>,
    ) -> Result<Self, anyhow::Error> {
        let trust = Trust::of_hub(own_files);
        let path = trust.locate(around, project.config.as_deref())?;
        Ok(Self {
            named: project.config.clone(),
            path: RefCell::new(path),
            wanted: around.profile(project.profile)?,
            key: Key::on_tape(redaction::random()?),
            trust,
            files: RefCell::default(),
            told: Cell::new(false),
            told_acceptance: RefCell::default(),
            required,
            started: Cell::new(false),
        })
    }

    /// The profile that was requested.
    pub(super) fn wanted(&self) -> Option<Profile> {
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

    /// Loads the policy.
    pub(super) fn load(&self) -> Loading {
        let path = match self.find() {
            Ok(Some(path)) => path,
            Ok(None) => return self.nothing(),
            Err(failure) => return Loading { faults: vec![failure.words], ..Loading::default() },
        };
        let moment = if self.started.get() { Moment::Reload } else { Moment::Start };
        let governing = self.trust.load(&path, self.wanted, &self.key, moment);
        if self.required
            && moment == Moment::Start
            && let Err(failure) = governing.require_kept()
        {
            return Loading { faults: vec![failure.words], ..Loading::default() };
        }
        let notice = PolicyNotice::of(&path, &governing);
        let Governing { found, texts: files_by_path, variables, .. } = governing;
        let Found { rule, faults, mut warnings, files } = found;
        warnings.extend(self.untold(notice));
        self.started.set(self.started.get() || rule.is_some());
        let main = path.to_string_lossy().into_owned();
        let mut texts = Texts { files: files_by_path, env: variables, ..Texts::default() };
        texts.config = texts.files.remove(&main);
        texts.config_path = Some(main);
        self.files.replace(files.clone());
        let profile = rule.as_ref().map(|rule| rule.regime.profile);
        let policy = rule.and_then(|rule| rule.regime.policy);
        Loading { policy, profile, faults, warnings, texts, files }
    }

    /// The notice about the acceptance of the policy, if it has not been reported yet.
    fn untold(&self, notice: Option<PolicyNotice>) -> Option<String> {
        let told = self.told_acceptance.replace(notice.clone().into_iter().collect());
        let notice = notice.filter(|notice| notice.is_warning() && !told.contains(notice))?;
        Some(notice.message())
    }

    /// The policy file, which may have been created since the last call.
    fn find(&self) -> Result<Option<PathBuf>, Failure> {
        let mut path = self.path.borrow_mut();
        if path.is_none()
            && let Ok(around) = Surroundings::ours()
        {
            *path = self.trust.locate(&around, self.named.as_deref())?;
        }
        Ok(path.clone())
    }

    fn nothing(&self) -> Loading {
        let words = format!(
            "no tapegate.yaml: observing only, everything is forwarded and logged; `{}` writes one",
            called::command("init")
        );
        let warnings = if self.told.replace(true) { Vec::new() } else { vec![words] };
        let here = std::env::current_dir().unwrap_or_default();
        self.files.replace(vec![here.join("tapegate.yaml"), here.join("thoughtgate.yaml")]);
        Loading { warnings, files: self.files(), ..Loading::default() }
    }
}
