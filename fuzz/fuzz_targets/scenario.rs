//! Any text loads or is refused, in bounded time. The first byte selects the options; the rest is the files.
#![no_main]

use std::cell::Cell;

use libfuzzer_sys::fuzz_target;
use tapegate_scenario::files::{FileError, Files, OpenedFile};
use tapegate_scenario::finding::Severity;
use tapegate_scenario::load::{LoadOptions, ScenarioFileKind, ScenarioLimits, load_strict_001};

/// Files `0`, `1`, …. Any path selects one by its length.
struct InputFiles<'a> {
    files: Vec<&'a [u8]>,
    /// Counts requests, to stop a loader that never stops asking.
    open_count: Cell<usize>,
}

impl Files for InputFiles<'_> {
    fn open(&self, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        self.open_count.set(self.open_count.get() + 1);
        let number = path.len() % self.files.len();
        let bytes = self.files[number];
        if bytes.len() > bytes_max || self.open_count.get() > 1_000 {
            return Err(FileError::TooLarge { bytes_max });
        }
        let end = ["yaml", "json", "png", "txt"][path.len() / 7 % 4];
        Ok(OpenedFile { path: format!("{number}.{end}"), bytes: bytes.to_vec() })
    }

    fn open_within(&self, _: &str, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        if path.contains("..") { Err(FileError::Missing) } else { self.open(path, bytes_max) }
    }

    fn folder_of(&self, _: &str) -> String {
        ".".to_owned()
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name.len() % 2 == 0).then(|| name.to_lowercase())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [selector, rest @ ..] = bytes else { return };
    let files: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    let input_files = InputFiles { files, open_count: Cell::new(0) };
    let form = if selector % 2 == 0 { ScenarioFileKind::Scenario } else { ScenarioFileKind::Tool };
    let library = (selector % 3 == 0).then(|| "lib".to_owned());
    let options =
        LoadOptions { files: &input_files, library, limits: ScenarioLimits::default(), form };
    let loaded = load_strict_001("", &options);
    let refused = loaded.findings.iter().any(|finding| {
        assert!(usize::from(finding.spot.file) < loaded.sources.len());
        finding.severity == Severity::Error
    });
    assert_eq!(loaded.scenario.is_none(), refused);
});
