//! Loads a policy from its text.
//!
//! YAML is parsed into nodes that know their position, variables are substituted, the tree is
//! checked against the tables of the language, and the result is converted to a [`Policy`]; files
//! that it names are read and checked along the way. Every step reports all that it finds and goes
//! on after a fault where it can. If there is an error, there is no policy, and nothing is used in
//! its place.

mod cedar;
mod duration;
mod env;
mod expression;
/// The tables of the language.
pub mod language;
mod lock;
mod read;
mod telemetry;
mod unbuilt_features;
mod url;

use std::collections::BTreeSet;

use tapegate_yaml::files::{FileError, Files};
use tapegate_yaml::finding::{Finding, Findings};
use tapegate_yaml::node::{Node, NodeValue, Spot};
use tapegate_yaml::shape::schema::SchemaInfo;
use tapegate_yaml::shape::{self, Shape, reference as page};
use tapegate_yaml::yaml;

use crate::model::Policy;
pub(crate) use env::MARK;
use env::VariableHandling;
use telemetry::{TelemetrySection, TelemetryUse};

/// The maximum size of a policy.
const POLICY_BYTES_MAX: usize = 4 << 20;
/// The maximum size of a file that a policy names.
const FILE_BYTES_MAX: usize = 16 << 20;

/// The beginning of the reference page.
const HEAD: &str = "\
# Policies: every key

<!-- Written from the tables of the language (crates/tapegate-policy/src/load/language.rs) by a test:
     UPDATE_GOLDEN=1 cargo test -p tapegate-policy reference -->

A key in **bold** is required. A key with ⁺ is an extension that ThoughtGate does not have. Every value may contain
`${VAR}` and `${VAR:-default}`, which are replaced by environment variables; `$${` is a literal `${`.
";

/// The result of loading a policy.
#[derive(Debug)]
pub struct PolicyLoadResult {
    /// The policy, if there are no errors.
    pub policy: Option<Policy>,
    /// All findings, in text order.
    pub findings: Vec<Finding>,
    /// The files that were read; [`Spot::file`] is an index into this list.
    pub sources: Vec<String>,
    /// The environment variables it uses, as written: `${VAR:-default}`.
    pub variables: BTreeSet<String>,
}

/// Loads the policy in the file `main`.
///
/// Files that it names are opened with [`Files::open`]: absolute paths as they are, others relative
/// to the folder of `main`.
pub fn load(main: &str, files: &dyn Files) -> PolicyLoadResult {
    load_with(main, files, true, VariableHandling::Filled, TelemetryUse::Sent)
}

/// Like [`load`], where no telemetry is sent: variables in the section `telemetry` are not read,
/// and of a section with variables only `enabled` is checked.
pub fn load_without_telemetry(main: &str, files: &dyn Files) -> PolicyLoadResult {
    load_with(main, files, true, VariableHandling::Filled, TelemetryUse::Withheld)
}

/// Like [`load`], without the lock file and the Cedar policies, which may not load before there are
/// pins: for commands that write the pins.
pub fn load_unpinned(main: &str, files: &dyn Files) -> PolicyLoadResult {
    load_with(main, files, false, VariableHandling::Filled, TelemetryUse::Sent)
}

/// Like [`load`], for [`crate::tighten`]: every variable is replaced by a mark of how it was
/// written. Such a policy cannot decide, and does not load where only some texts are valid, such as
/// durations.
pub fn load_marked(main: &str, files: &dyn Files) -> PolicyLoadResult {
    load_with(main, files, true, VariableHandling::Marked, TelemetryUse::Sent)
}

fn load_with(
    main: &str,
    files: &dyn Files,
    pinned: bool,
    put_in: VariableHandling,
    telemetry: TelemetryUse,
) -> PolicyLoadResult {
    let mut loader = PolicyLoader {
        files,
        pinned,
        put_in,
        telemetry,
        variables: BTreeSet::new(),
        folder: String::new(),
        findings: Findings::default(),
        sources: vec![main.to_owned()],
        hasher: blake3::Hasher::new(),
    };
    let policy = loader.load_main(main);
    let PolicyLoader { findings, sources, hasher, variables, .. } = loader;
    let version = hasher.finalize().to_hex()[..16].to_owned();
    // One error is enough: a policy without the faulty part would permit what that part stops.
    let policy = policy.filter(|_| !findings.has_errors());
    let policy = policy.map(|mut policy| {
        let folder = main.rsplit_once('/').map_or("", |(folder, _)| folder);
        for path in &sources {
            // Every file that took part in loading is ours: an agent that edits one edits its own
            // policy.
            policy.own_files.add(path);
            let beside = match folder {
                "" => Some(path.as_str()),
                folder => path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
            };
            beside.iter().for_each(|path| policy.own_files.add_relative(path));
        }
        policy.own_files.add_bash_settings(folder);
        Policy { version, ..policy }
    });
    PolicyLoadResult { policy, findings: findings.into_list(), sources, variables }
}

/// The published JSON Schema of a policy.
pub fn schema() -> String {
    let about = "A policy that `tapegate shim` and `tapegate hub` enforce and `tapegate check` validates. Written from the tables of the language.";
    let top = &language::POLICY;
    SchemaInfo { title: "Tapegate policy", about, top, elsewhere: false }.write()
}

/// The reference of the language, in Markdown.
pub fn reference() -> String {
    page::write(HEAD, &language::POLICY)
}

/// The inputs and results of loading.
struct PolicyLoader<'a> {
    files: &'a dyn Files,
    /// Whether the lock file is used.
    pinned: bool,
    put_in: VariableHandling,
    telemetry: TelemetryUse,
    variables: BTreeSet<String>,
    folder: String,
    findings: Findings,
    sources: Vec<String>,
    /// Hashes everything that the policy is loaded from.
    hasher: blake3::Hasher,
}

impl PolicyLoader<'_> {
    fn load_main(&mut self, main: &str) -> Option<Policy> {
        let opened = match self.files.open(main, POLICY_BYTES_MAX) {
            Ok(opened) => opened,
            Err(error) => {
                self.findings.error(Spot::default(), format!("the file cannot be read: {error}"));
                return None;
            }
        };
        self.folder = self.files.folder_of(main);
        let text = self.text(0, &opened.bytes)?;
        self.add_to_version("policy", &text);
        let mut node = self.document(&text)?;
        let top = Shape::Table(&language::POLICY);
        let mut env = env::EnvExpander {
            files: self.files,
            put_in: self.put_in,
            used_variables: env::AskedVariables::new(),
            written: BTreeSet::new(),
            findings: &mut self.findings,
        };
        // Taken out before variables are filled: the version must not depend on a collector's
        // token.
        let section = TelemetrySection::take(&mut node);
        env.fill(&mut node, &top);
        // Before the section is put back, so that only variables that affect decisions count.
        let used_variables = std::mem::take(&mut env.used_variables);
        let withheld = section.and_then(|section| match self.telemetry {
            TelemetryUse::Withheld if section.has_variables() => Some(section.is_enabled()),
            _ => {
                section.restore(&mut node, &mut env, &top);
                None
            }
        });
        self.variables = env.written;
        for (name, value) in used_variables {
            let value = value.map_or_else(|| "unset".to_owned(), |value| format!("set {value}"));
            self.add_to_version(&name, &value);
        }
        // Before the tables, which would report these keys as misspelt.
        unbuilt_features::remove_unsupported(&mut node, &mut self.findings);
        shape::check(&node, &top, language::STRAYS, &mut self.findings);
        let mut policy = self.policy(&node, &text)?;
        // The section was not read, but the shim reports that it wants telemetry and gets none.
        policy.telemetry.enabled |= withheld == Some(true);
        Some(policy)
    }

    /// Parses the text of the policy into a tree.
    fn document(&mut self, text: &str) -> Option<Node> {
        let before = self.findings.has_errors();
        let node = yaml::parse_strict(text, 0, &mut self.findings);
        if node.is_none() && !before && text.contains("${") {
            let message = "inside `[…]` and `{…}` a variable must be in quotes: `[\"${VAR}\"]`";
            self.findings.warning(Spot::default(), message);
        }
        let node = node?;
        if node.value == NodeValue::Null {
            self.findings.error(node.spot, "there is nothing in this file");
            return None;
        }
        Some(node)
    }

    /// The bytes of a file as text, without a byte order mark.
    fn text(&mut self, file: u16, bytes: &[u8]) -> Option<String> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => Some(text.to_owned()),
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let line = 1 + memchr::memchr_iter(b'\n', good).count() as u32;
                let spot = Spot { file, line, column: 1 };
                self.findings.error(spot, "this line is not UTF-8");
                None
            }
        }
    }

    /// Reads a file that the policy names: its text, and its index among the sources.
    fn read_named_file(&mut self, path: &str) -> Result<Option<(String, u16)>, FileError> {
        let joined = match path.starts_with('/') {
            false if !matches!(self.folder.as_str(), "" | ".") => format!("{}/{path}", self.folder),
            _ => path.to_owned(),
        };
        let opened = self.files.open(&joined, FILE_BYTES_MAX)?;
        let too_many = |_| FileError::Other("there are too many files".to_owned());
        let file = u16::try_from(self.sources.len()).map_err(too_many)?;
        self.sources.push(joined);
        let text = self.text(file, &opened.bytes);
        if let Some(text) = &text {
            self.add_to_version(path, text);
        }
        Ok(text.map(|text| (text, file)))
    }

    /// Adds something to the hash that is the policy's version.
    fn add_to_version(&mut self, name: &str, text: &str) {
        for part in [name, text] {
            // Lengths keep the parts apart: moving a byte from one text to the next changes the
            // hash.
            self.hasher.update(&(part.len() as u64).to_le_bytes());
            self.hasher.update(part.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
