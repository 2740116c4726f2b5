//! Any text loads or is refused, in bounded time: the first line picks how, the rest are the files.
#![no_main]

use std::cell::Cell;

use libfuzzer_sys::fuzz_target;
use tapegate_scenario::files::{FileError, Files, Opened};
use tapegate_scenario::load::{Form, Limits, Loading, load_strict_001};

/// Files `0`, `1`, …, which any path leads to by its length.
struct Folder<'a> {
    files: Vec<&'a [u8]>,
    /// A loader that never stops asking would never come back.
    asked: Cell<usize>,
}

impl Files for Folder<'_> {
    fn open(&self, path: &str, bytes_max: usize) -> Result<Opened, FileError> {
        self.asked.set(self.asked.get() + 1);
        let number = path.len() % self.files.len();
        let bytes = self.files[number];
        if bytes.len() > bytes_max || self.asked.get() > 1_000 {
            return Err(FileError::TooLarge { bytes_max });
        }
        let end = ["yaml", "json", "png", "txt"][path.len() / 7 % 4];
        Ok(Opened { path: format!("{number}.{end}"), bytes: bytes.to_vec() })
    }

    fn open_within(&self, _: &str, path: &str, bytes_max: usize) -> Result<Opened, FileError> {
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
    let [how, rest @ ..] = bytes else { return };
    let files: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    let folder = Folder { files, asked: Cell::new(0) };
    let form = if how % 2 == 0 { Form::Scenario } else { Form::Tool };
    let library = (how % 3 == 0).then(|| "lib".to_owned());
    let loading = Loading { files: &folder, library, limits: Limits::default(), form };
    let loaded = load_strict_001("", &loading);
    let refused = loaded.findings.iter().any(|finding| {
        assert!(usize::from(finding.spot.file) < loaded.sources.len());
        finding.severity == tapegate_scenario::finding::Severity::Error
    });
    assert_eq!(loaded.scenario.is_none(), refused);
});
