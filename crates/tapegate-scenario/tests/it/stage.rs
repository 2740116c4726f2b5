//! Runs scenarios in memory.

use std::collections::HashMap;
use std::rc::Rc;

use tapegate_scenario::files::{FileError, Files, Opened};
use tapegate_scenario::load::{Form, Limits, Loading, load};
use tapegate_scenario::model::Scenario;

/// Files in memory.
#[derive(Default)]
pub(crate) struct Shelf(pub(crate) HashMap<String, String>);

impl Files for Shelf {
    fn open(&self, path: &str, _: usize) -> Result<Opened, FileError> {
        let text = self.0.get(path).ok_or(FileError::Missing)?;
        Ok(Opened { path: path.to_owned(), bytes: text.clone().into_bytes() })
    }

    fn open_within(&self, _: &str, path: &str, bytes_max: usize) -> Result<Opened, FileError> {
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
    let shelf = Shelf(HashMap::from([("main.yaml".to_owned(), text.to_owned())]));
    let how =
        Loading { files: &shelf, library: None, limits: Limits::default(), form: Form::Scenario };
    let loaded = load("main.yaml", &how);
    let findings = &loaded.findings;
    Rc::new(loaded.scenario.unwrap_or_else(|| panic!("{findings:#?}")))
}
