//! Loads a scenario from its text.
//!
//! The steps: substitute environment variables in the raw text, parse the YAML, resolve `$include`,
//! `$file` and `$json`, check the tree against the language's tables, and read it into a
//! [`Scenario`]. Every step reports all problems it finds; none stops at the first one if it can go
//! on.

pub(crate) mod assembly;
pub(crate) mod json;
mod limits;
mod variables;

use std::collections::HashMap;

use foldhash::fast::RandomState;

pub use limits::ScenarioLimits;

use crate::files::{FileError, Files, OpenedFile};
use crate::finding::{Finding, Findings};
use crate::model::Scenario;
use crate::node::{Node, NodeValue, Spot};
use crate::read;
use crate::shape::{self, language};
use crate::yaml;

/// The settings for loading a scenario.
pub struct LoadOptions<'a> {
    /// The source of files and variables.
    pub files: &'a dyn Files,
    /// The folder that `$include` searches first, and `$file` last.
    pub library: Option<String>,
    pub limits: ScenarioLimits,
    /// The kind of file.
    pub form: ScenarioFileKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScenarioFileKind {
    #[default]
    Scenario,
    /// A single tool, served by a minimal server.
    Tool,
}

/// The result of loading a scenario.
#[derive(Debug)]
pub struct ScenarioLoadResult {
    /// The scenario, unless there are errors.
    pub scenario: Option<Scenario>,
    /// The findings, in the order of the text.
    pub findings: Vec<Finding>,
    /// The files that were read, media files excepted; a [`Spot::file`] is an index into it.
    pub sources: Vec<String>,
}

/// Loads the scenario in the file `main`.
pub fn load(main: &str, how: &LoadOptions<'_>) -> ScenarioLoadResult {
    run(main, how, false)
}

/// Loads a scenario, and reports everything that TJ-SPEC-001 does not have as an error.
pub fn load_strict_001(main: &str, how: &LoadOptions<'_>) -> ScenarioLoadResult {
    run(main, how, true)
}

fn run(main: &str, how: &LoadOptions<'_>, strict_001: bool) -> ScenarioLoadResult {
    let mut loader = ScenarioLoader {
        how,
        findings: Findings::default(),
        sources: Vec::new(),
        passes: Vec::new(),
        included: HashMap::default(),
        chain: Vec::new(),
        bytes_left: COPIED_BYTES_MAX,
        file_bytes_left: FILES_BYTES_MAX,
    };
    let scenario = loader.load_main(main, strict_001);
    let ScenarioLoader { findings, mut sources, .. } = loader;
    if sources.is_empty() {
        // Findings without a place still need a file.
        sources.push(main.to_owned());
    }
    // A scenario with an error could run and test something else than was meant.
    let scenario = scenario.filter(|_| !findings.has_errors());
    ScenarioLoadResult { scenario, findings: findings.into_list(), sources }
}

/// The size limit of all copies of included files together.
const COPIED_BYTES_MAX: usize = 256 << 20;
/// The size limit of all files that `$file` names together.
const FILES_BYTES_MAX: usize = 4 << 30;

/// The passes over a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePasses {
    /// Environment variables, before the YAML is parsed.
    pub(crate) env: bool,
    /// Templates, when a message is sent.
    pub(crate) templates: bool,
}

struct ScenarioLoader<'a> {
    how: &'a LoadOptions<'a>,
    findings: Findings,
    sources: Vec<String>,
    /// The passes over each source.
    passes: Vec<FilePasses>,
    /// The included files by canonical path; `None` if one could not be read.
    included: HashMap<String, Option<Node>, RandomState>,
    /// The files being assembled, each included by the previous one.
    chain: Vec<String>,
    bytes_left: usize,
    file_bytes_left: usize,
}

impl ScenarioLoader<'_> {
    fn load_main(&mut self, main: &str, strict_001: bool) -> Option<Scenario> {
        let opened = match self.how.files.open(main, self.how.limits.config_bytes) {
            Ok(opened) => opened,
            Err(error) => {
                let message = match error {
                    FileError::TooLarge { .. } => {
                        format!("the file cannot be read: {error}; {RAISE}")
                    }
                    _ => format!("the file cannot be read: {error}"),
                };
                self.findings.error(Spot::default(), message);
                return None;
            }
        };
        // The main file too, so that including it again is found to be a cycle.
        self.chain.push(opened.path.clone());
        let folder = self.how.files.folder_of(&opened.path);
        let node = self.document(main.to_owned(), &opened)?;
        if node.value == NodeValue::Null {
            self.findings.error(node.spot, "the file has no content");
            return None;
        }
        let mut node = self.assemble(node, &folder);
        self.read_item_paths(&mut node, &folder);
        let table = match self.how.form {
            ScenarioFileKind::Scenario => &language::SCENARIO,
            ScenarioFileKind::Tool => &language::TOOL_ITEM,
        };
        shape::check(&node, &shape::Shape::Table(table), &mut self.findings);
        if strict_001 {
            shape::report_own_keys(&node, &shape::Shape::Table(table), &mut self.findings);
        }
        read::scenario(&node, self.how.form, &self.how.limits, &self.passes, &mut self.findings)
    }

    /// Parses a file into a tree, after substituting its variables.
    fn document(&mut self, name: String, opened: &OpenedFile) -> Option<Node> {
        let file = self.source(name, FilePasses { env: true, templates: true })?;
        let bytes = opened.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&opened.bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let line = 1 + memchr::memchr_iter(b'\n', good).count() as u32;
                let spot = Spot { file, line, column: 1 };
                self.findings.error(spot, "this line is not UTF-8");
                return None;
            }
        };
        let found = interpolate_line(text);
        let passes =
            found.and_then(parse_passes).unwrap_or(FilePasses { env: true, templates: true });
        // The setting decides whether variables are substituted, which happens before parsing. So
        // it is read from the raw text.
        self.passes[usize::from(file)] = passes;
        let (text, origin) = match passes.env {
            true => variables::substitute(text, file, self.how.files, &mut self.findings),
            false => (text.into(), yaml::SourceMap::default()),
        };
        let node = match opened.path.ends_with(".json") {
            // The JSON reader keeps duplicate keys and lone surrogates, which YAML cannot express.
            true => json::read(&text, file, &mut self.findings),
            false => yaml::parse_from(&text, file, &origin, &mut self.findings),
        }?;
        self.check_interpolate(&node, found.is_some());
        Some(node)
    }

    /// Adds a source and returns its number.
    fn source(&mut self, name: String, passes: FilePasses) -> Option<u16> {
        let Ok(file) = u16::try_from(self.sources.len()) else {
            self.findings.error(Spot::default(), "too many files");
            return None;
        };
        self.sources.push(name);
        self.passes.push(passes);
        Some(file)
    }

    /// `interpolate` is searched for before the YAML is parsed, so it must start a line.
    fn check_interpolate(&mut self, node: &Node, found: bool) {
        let Some(setting) = node.get("interpolate") else { return };
        if !found && setting.as_text() != Some("all") {
            let message = "`interpolate` must be on a line of its own, without leading spaces";
            self.findings.error(setting.spot, message);
        }
    }
}

/// The value of `interpolate:`, if a line starts with it.
fn interpolate_line(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let at = memchr::memmem::find(rest.as_bytes(), b"interpolate:")?;
        let starts_line = at == 0 || rest.as_bytes()[at - 1] == b'\n';
        let first = rest.len() == text.len() || at > 0;
        let (_, after) = rest.split_at(at + "interpolate:".len());
        if starts_line && first {
            let line = after.lines().next().unwrap_or_default();
            let line = line.split(" #").next().unwrap_or_default();
            return Some(line.trim().trim_matches(['"', '\'']));
        }
        rest = after;
    }
}

fn parse_passes(word: &str) -> Option<FilePasses> {
    let (env, templates) = match word {
        "all" => (true, true),
        "env" => (true, false),
        "templates" => (false, true),
        "none" => (false, false),
        _ => return None,
    };
    Some(FilePasses { env, templates })
}

/// The hint for exceeding a size limit.
const RAISE: &str =
    "move large bodies to files of their own with `$file`, or raise TAPEGATE_MAX_CONFIG_BYTES";

#[cfg(test)]
pub(crate) mod tests;
