//! The settings of the bash tool, from the document that describes the plugin.
//!
//! They are under `plugins.bash_recorder` of a YAML file. Everything outside of that key belongs to
//! other programs and is not checked.

mod changes;
/// The tables of the language.
pub mod language;
mod read;

use std::path::{Path, PathBuf};

use tapegate_yaml::finding::{Finding, Findings};
use tapegate_yaml::node::Node;
use tapegate_yaml::shape::{self, Shape};
use tapegate_yaml::yaml;

use crate::runner::{ResourceLimits, Sandbox};

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BashConfig {
    /// How commands are recorded.
    pub recording: RecordingConfig,
    /// How commands are run.
    pub execution: ExecutionConfig,
    /// How tools are named.
    pub tool_names: ToolNameStyle,
}

/// How commands are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingConfig {
    /// Whether they are.
    pub enabled: bool,
    /// The folder of the recordings.
    pub directory: PathBuf,
    /// Whether environment variables are recorded.
    pub capture_env: bool,
    /// Which ones.
    pub env_allowlist: Vec<String>,
    /// Whether output is recorded.
    pub capture_output: bool,
    /// How much of each stream is recorded, in bytes.
    pub max_output_size: usize,
    /// What a session is.
    pub session_mode: SessionMode,
    /// After how many days recordings are deleted; 0 means never.
    pub retention_days: u64,
}

/// How commands are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionConfig {
    /// How long a command may run, in seconds, if the caller does not say.
    pub default_timeout: u64,
    /// How long it may run at most.
    pub max_timeout: u64,
    /// Where it runs, if the caller does not say; `None` means the server's folder.
    pub working_directory: Option<PathBuf>,
    pub shell: PathBuf,
    /// Whether commands get the environment of the server.
    pub inherit_env: bool,
    /// Variables that are set or replaced.
    pub env_overrides: Vec<(String, String)>,
    /// How much of a stream is part of an answer, in bytes.
    pub inline_output_size: usize,
    /// How many commands may run at once.
    pub max_running: usize,
    /// Limits of the kernel.
    pub limits: ResourceLimits,
    /// What commands may not do.
    pub sandbox: Sandbox,
}

/// What a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionMode {
    /// The commands of one conversation, or of one day if the caller names none.
    #[default]
    PerConversation,
    /// The commands of one day.
    PerDay,
    /// The commands of one run of the server.
    Continuous,
}

/// How tools are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolNameStyle {
    /// `bash_recorder.execute`.
    #[default]
    Dotted,
    /// `bash_recorder_execute`, for clients that refuse a dot.
    Underscore,
}

impl Default for RecordingConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            directory: ".cuff/recordings".into(),
            capture_env: false,
            env_allowlist: ["PATH", "HOME", "USER", "SHELL", "PWD"].map(str::to_owned).to_vec(),
            capture_output: true,
            max_output_size: 1_000_000,
            session_mode: SessionMode::default(),
            retention_days: 30,
        }
    }
}

impl Default for ExecutionConfig {
    fn default() -> Self {
        Self {
            default_timeout: 120,
            max_timeout: 600,
            working_directory: None,
            shell: "/bin/bash".into(),
            inherit_env: true,
            env_overrides: Vec::new(),
            inline_output_size: 30_000,
            max_running: 256,
            limits: ResourceLimits::default(),
            sandbox: Sandbox::default(),
        }
    }
}

/// The result of reading a file.
#[derive(Debug)]
pub struct ConfigLoadResult {
    /// The settings, if there is no error.
    pub config: Option<BashConfig>,
    /// Whether the file has settings of the bash tool at all.
    pub is_present: bool,
    /// All findings, in text order.
    pub findings: Vec<Finding>,
}

/// Reads the settings from the text of a file.
pub fn load(text: &str) -> ConfigLoadResult {
    let mut findings = Findings::default();
    let node = yaml::parse(text, 0, &mut findings);
    let section = node.as_ref().and_then(plugin_section);
    let is_present = section.is_some();
    // A file of other plugins is valid, whatever it contains.
    if let Some(node) = node.as_ref().filter(|_| is_present) {
        shape::check(node, &Shape::Table(&language::SETTINGS), &[], &mut findings);
    }
    let config = section.map(|section| read::config(section, &mut findings));
    // A limit with an error in it must not become the default, which may permit more.
    let config = config.filter(|_| !findings.has_errors());
    ConfigLoadResult { config, is_present, findings: findings.into_list() }
}

fn plugin_section(node: &Node) -> Option<&Node> {
    node.get("plugins")?.get("bash_recorder")
}

impl BashConfig {
    /// Makes paths absolute.
    pub fn resolve(mut self, folder: &Path) -> Self {
        // The folder of the file decides, since clients start servers in folders of their own.
        self.recording.directory = folder.join(&self.recording.directory);
        if let Some(directory) = &mut self.execution.working_directory {
            *directory = folder.join(&*directory);
        }
        for root in self.execution.sandbox.write_roots.iter_mut().flatten() {
            *root = folder.join(&*root);
        }
        self
    }
}

#[cfg(test)]
mod tests;
