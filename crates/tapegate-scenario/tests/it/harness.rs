//! Runs scenarios in memory.

use std::collections::HashMap;
use std::rc::Rc;

use tapegate_scenario::files::{FileError, Files, OpenedFile};
use tapegate_scenario::load::{LoadOptions, ScenarioFileKind, ScenarioLimits, load};
use tapegate_scenario::model::Scenario;

/// Files in memory.
#[derive(Default)]
pub(crate) struct FileMap(pub(crate) HashMap<String, String>);

impl Files for FileMap {
    fn open(&self, path: &str, _: usize) -> Result<OpenedFile, FileError> {
        let text = self.0.get(path).ok_or(FileError::Missing)?;
        Ok(OpenedFile { path: path.to_owned(), bytes: text.clone().into_bytes() })
    }

    fn open_within(&self, _: &str, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        self.open(path, bytes_max)
    }

    fn folder_of(&self, _: &str) -> String {
        String::new()
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// The scenario that a text describes.
pub(crate) fn scenario(text: &str) -> Rc<Scenario> {
    let files = FileMap(HashMap::from([("main.yaml".to_owned(), text.to_owned())]));
    let how = LoadOptions {
        files: &files,
        library: None,
        limits: ScenarioLimits::default(),
        form: ScenarioFileKind::Scenario,
    };
    let loaded = load("main.yaml", &how);
    let findings = &loaded.findings;
    Rc::new(loaded.scenario.unwrap_or_else(|| panic!("{findings:#?}")))
}
