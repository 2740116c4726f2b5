//! Any text loads as a policy or is refused with a reason, in bounded time, and a loaded policy can be evaluated.
//! The first part of the input is the policy. The others are the files it names; the last is also the arguments.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_policy::load::load;
use tapegate_yaml::files::{FileError, Files, OpenedFile};
use tapegate_yaml::finding::Severity;

/// Parts of the input as files. Any path but that of the policy selects one by its length.
struct InputFiles<'a>(Vec<&'a [u8]>);

impl Files for InputFiles<'_> {
    fn open(&self, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        let number = match path {
            "tapegate.yaml" => 0,
            _ => 1 + path.len() % 3,
        };
        let bytes = *self.0.get(number).ok_or(FileError::Missing)?;
        if bytes.len() > bytes_max {
            return Err(FileError::TooLarge { bytes_max });
        }
        Ok(OpenedFile { path: path.to_owned(), bytes: bytes.to_vec() })
    }

    fn open_within(&self, _: &str, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        self.open(path, bytes_max)
    }

    fn folder_of(&self, _: &str) -> String {
        ".".to_owned()
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name.len() % 2 == 0).then(|| format!("{name}${{A}}\n- 5"))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let input_files = InputFiles(bytes.split(|byte| *byte == 0).collect());
    let loaded = load("tapegate.yaml", &input_files);
    let refused = loaded.findings.iter().any(|finding| {
        assert!(usize::from(finding.spot.file) < loaded.sources.len());
        finding.severity == Severity::Error
    });
    assert_eq!(loaded.policy.is_none(), refused);
    let Some(policy) = loaded.policy else { return };
    let arguments = input_files.0.last().copied().unwrap_or_default();
    for predicate in policy.rules.iter().flat_map(|rule| &rule.arguments) {
        predicate.must_hold(arguments);
        predicate.may_hold(arguments);
    }
});
