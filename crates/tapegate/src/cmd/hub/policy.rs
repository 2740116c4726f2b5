//! The policy of a hub, and every text it was made from, so that shims can make it once more.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use tapegate_hub::governed::{Loading, Texts};
use tapegate_policy::model::Profile;
use tapegate_policy::redact::Key;
use tapegate_yaml::files::{FileError, Files, Opened};

use crate::cmd::shim::rulebook::{self, Found};
use crate::disk::Disk;
use crate::exit::Failure;
use crate::redaction;
use crate::settings::{ProjectArgs, Surroundings};

/// Where the policy lies.
pub(super) struct Shelf {
    named: Option<PathBuf>,
    /// The file that was found. Once there is one, nothing else is looked for: a policy that
    /// vanishes is a fault, and no reason to let everything through.
    path: RefCell<Option<PathBuf>>,
    wanted: Option<Profile>,
    key: Key,
    files: RefCell<Vec<PathBuf>>,
    /// Whether it was said that there is none.
    told: Cell<bool>,
}

/// The disk and the environment, and everything that was read from them.
#[derive(Default)]
struct Noted {
    disk: Disk,
    texts: RefCell<Texts>,
}

impl Shelf {
    /// The shelf that a command line names.
    pub(super) fn new(
        project: &ProjectArgs,
        around: &Surroundings<'_>,
    ) -> Result<Self, anyhow::Error> {
        Ok(Self {
            named: project.config.clone(),
            path: RefCell::new(around.config(project.config.as_deref())?),
            wanted: around.profile(project.profile)?,
            key: Key::on_tape(redaction::random()?),
            files: RefCell::default(),
            told: Cell::new(false),
        })
    }

    /// The profile that was asked for.
    pub(super) fn wanted(&self) -> Option<Profile> {
        self.wanted
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
        let main = path.to_string_lossy().into_owned();
        let noted = Noted::default();
        let Found { rule, faults, warnings, .. } =
            rulebook::load(&main, &noted, self.wanted, &self.key);
        let Noted { disk, texts } = noted;
        let mut texts = texts.into_inner();
        texts.config = texts.files.remove(&main);
        texts.config_path = Some(main);
        let files = disk.asked();
        self.files.replace(files.clone());
        let profile = rule.as_ref().map(|rule| rule.regime.profile);
        let policy = rule.and_then(|rule| rule.regime.policy);
        Loading { policy, profile, faults, warnings, texts, files }
    }

    /// The policy's file; one that was not there before may have come since.
    fn find(&self) -> Result<Option<PathBuf>, Failure> {
        let mut path = self.path.borrow_mut();
        if path.is_none() {
            let around = Surroundings::ours();
            let found = around.ok().map(|around| around.config(self.named.as_deref()));
            *path = found.transpose()?.flatten();
        }
        Ok(path.clone())
    }

    fn nothing(&self) -> Loading {
        let words = "no tapegate.yaml: observing only, everything is let through and logged; \
                     `tapegate init` writes one";
        let warnings = if self.told.replace(true) { Vec::new() } else { vec![words.to_owned()] };
        let here = std::env::current_dir().unwrap_or_default();
        self.files.replace(vec![here.join("tapegate.yaml"), here.join("thoughtgate.yaml")]);
        Loading { warnings, files: self.files(), ..Loading::default() }
    }
}

impl Noted {
    fn note(&self, path: &str, opened: Result<Opened, FileError>) -> Result<Opened, FileError> {
        let opened = opened?;
        if let Ok(text) = std::str::from_utf8(&opened.bytes) {
            self.texts.borrow_mut().files.insert(path.to_owned(), text.to_owned());
        }
        Ok(opened)
    }
}

impl Files for Noted {
    fn open(&self, path: &str, bytes_max: usize) -> Result<Opened, FileError> {
        self.note(path, self.disk.open(path, bytes_max))
    }

    fn open_within(&self, folder: &str, path: &str, bytes_max: usize) -> Result<Opened, FileError> {
        self.note(&format!("{folder}/{path}"), self.disk.open_within(folder, path, bytes_max))
    }

    fn folder_of(&self, path: &str) -> String {
        self.disk.folder_of(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.disk.variable(name)?;
        self.texts.borrow_mut().env.insert(name.to_owned(), value.clone());
        Some(value)
    }
}
