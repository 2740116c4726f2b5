//! The settings of the bash tool, from a file.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tapegate_bash::config::{self, BashConfig, ConfigLoadResult};

use crate::exit::{Exit, Failure};
use crate::terminal_output;

/// Where settings are looked for.
const NAMES: [&str; 3] = ["settings.yml", "settings.yaml", ".cuff/settings.yml"];
/// The key that says that a file has settings of ours, even if it does not parse.
const KEY: &str = "bash_recorder";

/// The settings in force, and where they come from.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    /// The file; `None` if there is none, and the defaults are in force.
    pub(crate) path: Option<PathBuf>,
    /// The settings, with absolute paths.
    pub(crate) config: BashConfig,
}

impl SettingsFile {
    /// Reads the named file, or the one in the current folder.
    pub(crate) fn find(named: Option<&Path>) -> anyhow::Result<Self> {
        let folder = std::env::current_dir().context("cannot find the current folder")?;
        if let Some(path) = named {
            let config = load(path)?.resolve(&folder);
            return Ok(Self { path: Some(path.to_owned()), config });
        }
        for name in NAMES {
            let path = folder.join(name);
            // Other programs call their settings so too.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.contains(KEY) && (!parses_without_us(&text)) {
                let config = load(&path)?.resolve(&folder);
                return Ok(Self { path: Some(path), config });
            }
        }
        Ok(Self { path: None, config: BashConfig::default().resolve(&folder) })
    }

    /// The settings of a tool that is started: this system can enforce them.
    pub(super) fn find_ready(named: Option<&Path>) -> anyhow::Result<Self> {
        let Self { path, config } = Self::find(named)?;
        Ok(Self { path, config: ready(config)? })
    }

    /// The files that the settings may come from.
    pub(super) fn candidates(named: Option<&Path>) -> Vec<PathBuf> {
        named.map_or_else(|| NAMES.map(PathBuf::from).to_vec(), |named| vec![named.to_owned()])
    }

    /// Reads the settings again, which came from `path` so far.
    pub(super) fn reload(named: Option<&Path>, path: Option<&Path>) -> anyhow::Result<Self> {
        let found = Self::find_ready(named)?;
        match path {
            // Settings end with a change, not with their file. The error says what is missing.
            Some(path) if found.path.is_none() => {
                let folder = std::env::current_dir().context("cannot find the current folder")?;
                let config = ready(load(path)?.resolve(&folder))?;
                Ok(Self { path: Some(path.to_owned()), config })
            }
            _ => Ok(found),
        }
    }
}

/// Checks what only the tool itself needs.
fn ready(mut config: BashConfig) -> anyhow::Result<BashConfig> {
    config.execution.sandbox.prepare().map_err(|reason| {
        Failure::new(Exit::Invalid, format!("the sandbox cannot be set up: {reason}"))
            .hint("commands would run without it; leave `execution.sandbox` out to accept that")
    })?;
    Ok(config)
}

/// Whether a text is well-formed and has no section of ours.
fn parses_without_us(text: &str) -> bool {
    let ConfigLoadResult { is_present, findings, .. } = config::load(text);
    !is_present && findings.is_empty()
}

fn load(path: &Path) -> anyhow::Result<BashConfig> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(Exit::Io, format!("cannot read `{name}`: {error}")))?;
    let ConfigLoadResult { config, is_present, findings } = config::load(&text);
    terminal_output::report_findings(&findings, &[], &name);
    match config {
        Some(config) => Ok(config),
        None if !is_present && findings.is_empty() => {
            let message = format!("`{name}` has no settings of the bash tool");
            Err(Failure::new(Exit::Invalid, message)
                .hint("they are under `plugins.bash_recorder`; docs/bash.md has an example")
                .into())
        }
        None => {
            let message = format!("the settings in `{name}` are not valid");
            Err(Failure::new(Exit::Invalid, message).into())
        }
    }
}
