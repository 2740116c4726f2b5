//! Reads a scenario back before it is written: it must say what was meant, and be a scenario.

use std::path::Path;

use tapegate_scenario::emit::{self, Document};
use tapegate_scenario::files::{FileError, Files, Opened};
use tapegate_scenario::finding::Severity;
use tapegate_scenario::load::{self, Form, Limits, Loading};

use crate::disk::Disk;
use crate::exit::{Exit, Failure};

/// Checks the text of a scenario that will stand at `output`.
pub(super) fn check(
    output: &Path,
    document: &Document,
    text: &str,
    strict: bool,
) -> Result<(), Failure> {
    let refused = |words: &str| {
        let words = format!("the scenario that was made is not right: {words}");
        Failure::new(Exit::Invalid, words)
            .hint("nothing was written; this is a fault of tapegate, please report it")
    };
    // The old schema's readers take a doubled `$` for one.
    let read = if strict { text.replace("$$", "$") } else { text.to_owned() };
    emit::reads_back(document, &read).map_err(|words| refused(&words))?;
    let fresh = Fresh { name: output.to_string_lossy().into_owned(), text, disk: Disk::default() };
    let how = Loading { files: &fresh, library: None, limits: generous(), form: Form::Scenario };
    let loaded = match strict {
        true => load::load_strict_001(&fresh.name, &how),
        false => load::load(&fresh.name, &how),
    };
    let error = loaded.findings.iter().find(|finding| finding.severity == Severity::Error);
    match error {
        None => Ok(()),
        Some(finding) => {
            let (line, path, words) = (finding.spot.line, &finding.path, &finding.words);
            Err(refused(&format!("line {line}: {path}: {words}")))
        }
    }
}

/// What a tape has may be more than what is read unless somebody asks for it.
fn generous() -> Limits {
    let most = 100_000;
    Limits {
        tools: most,
        resources: most,
        prompts: most,
        config_bytes: usize::MAX / 2,
        ..Limits::default()
    }
}

/// The disk with a file on it that is not written yet.
struct Fresh<'a> {
    name: String,
    text: &'a str,
    disk: Disk,
}

impl Files for Fresh<'_> {
    fn open(&self, path: &str, bytes_max: usize) -> Result<Opened, FileError> {
        match path == self.name {
            true => Ok(Opened { path: self.name.clone(), bytes: self.text.as_bytes().to_vec() }),
            false => self.disk.open(path, bytes_max),
        }
    }

    fn open_within(&self, folder: &str, path: &str, bytes_max: usize) -> Result<Opened, FileError> {
        self.disk.open_within(folder, path, bytes_max)
    }

    fn folder_of(&self, path: &str) -> String {
        self.disk.folder_of(path)
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}
