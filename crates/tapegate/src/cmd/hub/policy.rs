//! The policy of a hub, and every text it was made from, so that shims can make it once more.

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

/// Where the policy lies.
pub(super) struct Shelf {
    named: Option<PathBuf>,
    /// The file that was found. Once there is one, nothing else is looked for: a policy that
    /// vanishes is a fault, and no reason to let everything through.
    path: RefCell<Option<PathBuf>>,
    wanted: Option<Profile>,
    key: Key,
    trust: Trust,
    files: RefCell<Vec<PathBuf>>,
    /// Whether it was said that there is none.
    told: Cell<bool>,
    /// What was last told about the acceptance of the policy: each change is told once.
    told_acceptance: RefCell<Vec<PolicyNotice>>,
    /// Whether a policy must govern, and be known at the next start.
    required: bool,
    /// Whether a policy has governed already.
    started: Cell<bool>,
}

impl Shelf {
    /// The shelf that a command line names.
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

    /// The profile that was asked for.
    pub(super) fn wanted(&self) -> Option<Profile> {
        self.wanted
    }

    /// The policy's file, if there is one.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.path.borrow().clone()
    }

    /// The files whose change is worth another look.
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

    /// What is to be told about the acceptance of the policy and was not told yet.
    fn untold(&self, notice: Option<PolicyNotice>) -> Option<String> {
        let told = self.told_acceptance.replace(notice.clone().into_iter().collect());
        let notice = notice.filter(|notice| notice.is_warning() && !told.contains(notice))?;
        Some(notice.message())
    }

    /// The policy's file; one that was not there before may have come since.
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
            "no tapegate.yaml: observing only, everything is let through and logged; `{}` writes one",
            called::command("init")
        );
        let warnings = if self.told.replace(true) { Vec::new() } else { vec![words] };
        let here = std::env::current_dir().unwrap_or_default();
        self.files.replace(vec![here.join("tapegate.yaml"), here.join("thoughtgate.yaml")]);
        Loading { warnings, files: self.files(), ..Loading::default() }
    }
}
