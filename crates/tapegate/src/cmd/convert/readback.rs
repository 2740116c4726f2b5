//! Reads a generated scenario back before it is written, to check that it is valid and complete.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use tapegate_scenario::emit::{self, YamlDocument};
use tapegate_scenario::files::{FileError, Files, OpenedFile};
use tapegate_scenario::finding::Severity;
use tapegate_scenario::load::{self, LoadOptions, ScenarioFileKind, ScenarioLimits};

use super::assets::AssetFolder;
use crate::exit::{Exit, Failure};
use crate::local_files::LocalFiles;

/// Checks the text of a scenario that is to be written to `output`.
pub(super) fn check(
    output: &Path,
    document: &YamlDocument,
    text: &str,
    (folder, strict): (&AssetFolder, bool),
) -> Result<(), Failure> {
    let refused = |message: &str| {
        let full_message = format!("the generated scenario is invalid: {message}");
        Failure::new(Exit::Invalid, full_message)
            .hint("nothing was written; this is a bug in tapegate, please report it")
    };
    // Readers of the old schema read a doubled `$` as one.
    let read = if strict { text.replace("$$", "$") } else { text.to_owned() };
    emit::check_roundtrip(document, &read).map_err(|message| refused(&message))?;
    let fresh = ReadbackFiles {
        name: output.to_string_lossy().into_owned(),
        text,
        folder,
        disk: LocalFiles::default(),
    };
    let how = LoadOptions {
        files: &fresh,
        library: None,
        limits: generous_limits(),
        form: ScenarioFileKind::Scenario,
    };
    let loaded = match strict {
        true => load::load_strict_001(&fresh.name, &how),
        false => load::load(&fresh.name, &how),
    };
    let error = loaded.findings.iter().find(|finding| finding.severity == Severity::Error);
    match error {
        None => Ok(()),
        Some(finding) => {
            let (line, path, message) = (finding.spot.line, &finding.path, &finding.message);
            Err(refused(&format!("line {line}: {path}: {message}")))
        }
    }
}

/// A tape may hold more than the default limits for scenarios allow.
fn generous_limits() -> ScenarioLimits {
    let most = 100_000;
    ScenarioLimits {
        tools: most,
        resources: most,
        prompts: most,
        config_bytes: usize::MAX / 2,
        ..ScenarioLimits::default()
    }
}

/// The file system plus one file that is not written yet.
struct ReadbackFiles<'a> {
    name: String,
    text: &'a str,
    folder: &'a AssetFolder,
    disk: LocalFiles,
}

impl ReadbackFiles<'_> {
    /// Reads a file with one answer per line as a list of only its first answer.
    fn first_answer(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let other = |error: std::io::Error| FileError::Other(error.to_string());
        let path = Path::new(&self.name).with_file_name("").join(path);
        let mut lines = BufReader::new(File::open(path).map_err(other)?).split(b'\n').skip(1);
        let first = lines.next().unwrap_or(Ok(Vec::new())).map_err(other)?;
        let first = first.strip_suffix(b",").unwrap_or(&first);
        Ok([b"[", first, b"]"].concat())
    }
}

impl Files for ReadbackFiles<'_> {
    fn open(&self, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        match path == self.name {
            true => {
                Ok(OpenedFile { path: self.name.clone(), bytes: self.text.as_bytes().to_vec() })
            }
            false => self.disk.open(path, bytes_max),
        }
    }

    fn open_within(
        &self,
        folder: &str,
        path: &str,
        bytes_max: usize,
    ) -> Result<OpenedFile, FileError> {
        if !self.folder.has_file(path) {
            return self.disk.open_within(folder, path, bytes_max);
        }
        // Files written a moment ago are known to be valid and may not fit into memory: read only
        // the first answer of a list, and nothing of a text.
        let bytes = match path.ends_with(".json") {
            true => self.first_answer(path)?,
            false => Vec::new(),
        };
        Ok(OpenedFile { path: path.to_owned(), bytes })
    }

    fn folder_of(&self, path: &str) -> String {
        self.disk.folder_of(path)
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}
