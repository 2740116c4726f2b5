//! Loading scenarios from a folder in memory.

mod files;
mod language;
mod rules;

use super::*;
use crate::finding::{Finding, Severity};

/// Files and variables for tests.
#[derive(Default)]
pub(crate) struct TestFiles {
    files: Vec<(String, Vec<u8>)>,
    variables: Vec<(String, String)>,
}

impl TestFiles {
    pub(crate) fn with(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.to_owned(), content.into()));
        self
    }

    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Loads `main.yaml` with the library `lib`.
    pub(crate) fn load(&self) -> ScenarioLoadResult {
        self.load_with(ScenarioLimits::default(), ScenarioFileKind::Scenario)
    }

    pub(crate) fn load_with(
        &self,
        limits: ScenarioLimits,
        form: ScenarioFileKind,
    ) -> ScenarioLoadResult {
        let library = Some("lib".to_owned());
        load("main.yaml", &LoadOptions { files: self, library, limits, form })
    }
}

impl Files for TestFiles {
    fn open(&self, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        let file = self.files.iter().find(|(name, _)| name == path).ok_or(FileError::Missing)?;
        if file.1.len() > bytes_max {
            return Err(FileError::TooLarge { bytes_max });
        }
        Ok(OpenedFile { path: path.to_owned(), bytes: file.1.clone() })
    }

    fn open_within(
        &self,
        folder: &str,
        path: &str,
        bytes_max: usize,
    ) -> Result<OpenedFile, FileError> {
        if path.starts_with('/') || path.contains("..") {
            return Err(FileError::Outside);
        }
        let path = path.trim_start_matches("./");
        let path = if folder == "." { path.to_owned() } else { format!("{folder}/{path}") };
        self.open(&path, bytes_max)
    }

    fn folder_of(&self, path: &str) -> String {
        path.rsplit_once('/').map_or(".", |(folder, _)| folder).to_owned()
    }

    fn variable(&self, name: &str) -> Option<String> {
        let variable = self.variables.iter().find(|(known, _)| known == name);
        variable.map(|(_, value)| value.clone())
    }
}

/// The findings of a scenario, one per line: position, severity, path, message.
pub(crate) fn told(loaded: &ScenarioLoadResult) -> Vec<String> {
    loaded.findings.iter().map(|finding| finding_line(finding, &loaded.sources)).collect()
}

/// A finding on one line: position, severity, path, message. The first file is not named.
fn finding_line(finding: &Finding, sources: &[String]) -> String {
    let Finding { severity, spot, path, message } = finding;
    let severity = if *severity == Severity::Error { "error" } else { "warning" };
    let file = match spot.file {
        0 => String::new(),
        file => format!("{}:", sources[usize::from(file)]),
    };
    let path = if path.is_empty() { String::new() } else { format!(" {path}:") };
    format!("{file}{}:{} {severity}:{path} {message}", spot.line, spot.column)
}

/// Loads a text and asserts its findings.
#[track_caller]
pub(crate) fn finds(text: &str, expected: &[&str]) -> ScenarioLoadResult {
    let loaded = TestFiles::default().with("main.yaml", text).load();
    assert_eq!(told(&loaded), expected, "{text}");
    let has_errors = expected.iter().any(|line| line.contains(" error:"));
    assert_eq!(loaded.scenario.is_none(), has_errors);
    loaded
}

const SIMPLE: &str = r#"
server:
  name: "replay-session"
  version: "1.0.0"
tools:
  - tool:
      name: read_file
      description: "Read complete contents of a file"
      inputSchema:
        type: object
        properties:
          path:
            type: string
        required: ["path"]
    response:
      sequence:
        - content:
            - type: text
              text: "127.0.0.1 localhost\n::1 localhost\n"
        - content:
            - type: text
              text: "root:x:0:0:root:/root:/bin/bash\n..."
      on_exhausted: last
  - tool:
      name: list_directory
      description: "List directory contents"
      inputSchema:
        type: object
    response:
      content:
        - type: text
          text: "file1.txt\nfile2.txt\nsubdir/"
"#;

#[test]
fn a_simple_scenario_is_read() {
    let scenario = finds(SIMPLE, &[]).scenario.unwrap();
    assert_eq!(scenario.server.info.to_json(), br#"{"name":"replay-session","version":"1.0.0"}"#);
    let [read, list] = &scenario.baseline.tools[..] else { panic!() };
    assert_eq!((read.name.as_str(), list.name.as_str()), ("read_file", "list_directory"));
    assert_eq!(
        read.definition.to_json(),
        br#"{"name":"read_file","description":"Read complete contents of a file","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}"#
    );
    let crate::model::AnswerSource::Sequence(sequence) = &read.response.otherwise else { panic!() };
    assert_eq!(sequence.replies.len(), 2);
    let crate::model::AnswerSource::Reply(reply) = &list.response.otherwise else { panic!() };
    let crate::model::ReplyOutcome::Result(form) = &reply.outcome else { panic!() };
    assert_eq!(
        form.as_plain().unwrap(),
        br#"{"content":[{"type":"text","text":"file1.txt\nfile2.txt\nsubdir/"}]}"#
    );
}

#[test]
fn the_scenarios_of_the_library_load() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            #[expect(clippy::disallowed_methods, reason = "a test reads the library")]
            let text = std::fs::read(&path).unwrap();
            let loaded = TestFiles::default().with("main.yaml", text).load();
            assert!(loaded.scenario.is_some(), "{}: {:#?}", path.display(), told(&loaded));
            count += 1;
        }
    }
    assert!(count > 10);
}
