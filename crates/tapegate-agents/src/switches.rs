//! Switches for servers that a client keeps outside of their entries: lists of names in its settings.
//!
//! They can be changed while the client runs, without touching the entry. So a server that is
//! switched off is put behind a shim all the same, and they are read only to say so.

use std::path::{Path, PathBuf};

use crate::client_table::{McpClient, PathRoot, SwitchStyle};
use crate::discovery::{ConfigScope, ConfiguredServer, DiscoveryContext, places, read_tree};
use crate::tree::{ConfigFormat, ConfigNode, ConfigValue};

/// The lists of a client.
#[derive(Debug, Default)]
pub(crate) struct ServerSwitches {
    /// Servers that are off, whatever config they are in.
    off: Vec<String>,
    /// Servers of `.mcp.json` that were rejected.
    rejected: Vec<String>,
    /// If there is such a list, servers that are not on it are off.
    allowed: Option<Vec<String>>,
}

impl ServerSwitches {
    /// Reads the lists.
    pub(crate) fn read(context: &DiscoveryContext<'_>, client: &McpClient) -> Self {
        match client.switches {
            SwitchStyle::None => Self::default(),
            SwitchStyle::ClaudeLists => Self::of_claude(context),
            SwitchStyle::GeminiLists => Self::of_gemini(context),
        }
    }

    /// Whether a server is switched off.
    pub(crate) fn is_off(&self, server: &ConfiguredServer) -> bool {
        let is_listed = |list: &[String]| list.contains(&server.name);
        // The lists of rejected servers are about the project's own config alone.
        let is_rejected = server.scope == ConfigScope::Project && is_listed(&self.rejected);
        let is_allowed = self.allowed.as_deref().is_none_or(is_listed);
        is_listed(&self.off) || is_rejected || !is_allowed
    }

    fn of_claude(context: &DiscoveryContext<'_>) -> Self {
        let mut found = Self::default();
        let user = (PathRoot::Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json");
        for tree in trees(context, &[user]) {
            let projects = tree.get("projects");
            let folders = context.project_folders();
            // It keeps them under the folder in which it was started, or the root of the repository.
            let of = |folder: &Path| projects?.get(folder.to_str()?);
            for project in folders.filter_map(of) {
                found.off.extend(names(project.get("disabledMcpServers")));
                found.rejected.extend(names(project.get("disabledMcpjsonServers")));
            }
        }
        let settings = [
            (PathRoot::Variable("CLAUDE_CONFIG_DIR", ".claude"), "settings.json"),
            (PathRoot::Project, ".claude/settings.json"),
            (PathRoot::Project, ".claude/settings.local.json"),
            (PathRoot::System, "/etc/claude-code/managed-settings.json"),
        ];
        for tree in trees(context, &settings) {
            found.rejected.extend(names(tree.get("disabledMcpjsonServers")));
        }
        found
    }

    fn of_gemini(context: &DiscoveryContext<'_>) -> Self {
        let mut found = Self::default();
        let settings = [
            (PathRoot::File("GEMINI_CLI_SYSTEM_SETTINGS_PATH"), ""),
            (PathRoot::System, "/etc/gemini-cli/settings.json"),
            (PathRoot::Project, ".gemini/settings.json"),
            (PathRoot::Variable("GEMINI_CLI_HOME", ""), ".gemini/settings.json"),
        ];
        for tree in trees(context, &settings) {
            let Some(lists) = tree.get("mcp") else { continue };
            found.off.extend(names(lists.get("excluded")));
            let allowed = lists.get("allowed").filter(|list| !list.elements().is_empty());
            // The list of the earlier file replaces that of a later one.
            found.allowed =
                found.allowed.or_else(|| allowed.map(|list| names(Some(list)).collect()));
        }
        found
    }
}

/// A file with rules that match servers by their exact command, and the key of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactRule {
    pub path: PathBuf,
    pub key: &'static str,
}

/// The rules of a client that match servers by their exact command. They do not match a server that
/// is behind a shim.
pub fn exact_rules(context: &DiscoveryContext<'_>, client: &McpClient) -> Vec<ExactRule> {
    let claude = [
        (PathRoot::System, "/etc/claude-code/managed-settings.json"),
        (PathRoot::System, "/etc/claude-code/managed-settings.d/*.json"),
        (PathRoot::System, "/Library/Application Support/ClaudeCode/managed-settings.json"),
        (PathRoot::Variable("CLAUDE_CONFIG_DIR", ".claude"), "settings.json"),
        (PathRoot::Project, ".claude/settings.json"),
        (PathRoot::Project, ".claude/settings.local.json"),
    ];
    let codex = [
        (PathRoot::System, "/etc/codex/requirements.toml"),
        (PathRoot::Variable("CODEX_HOME", ".codex"), "requirements.toml"),
    ];
    let (files, format): (&[(PathRoot, &str)], _) = match client.id {
        "claude-code" => (&claude, ConfigFormat::Json),
        "codex" => (&codex, ConfigFormat::Toml),
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for path in files.iter().flat_map(|(root, path)| places(context, *root, path)) {
        let Some(tree) = read_tree(&path, format) else { continue };
        for key in ["allowedMcpServers", "deniedMcpServers", "mcp_servers"] {
            let Some(rules) = tree.get(key) else { continue };
            if has_exact_rule(rules) {
                found.push(ExactRule { path: path.clone(), key });
            }
        }
    }
    found
}

/// Whether one of these rules is about a command or a URL, not a name.
fn has_exact_rule(rules: &ConfigNode) -> bool {
    let is_exact = |rule: &ConfigNode| {
        ["serverCommand", "serverUrl", "identity"].iter().any(|key| rule.get(key).is_some())
    };
    rules.elements().iter().any(is_exact)
        || rules.members().iter().any(|member| is_exact(&member.node))
}

/// The files that exist, parsed.
fn trees(context: &DiscoveryContext<'_>, files: &[(PathRoot, &str)]) -> Vec<ConfigNode> {
    let paths = files.iter().flat_map(|(root, path)| places(context, *root, path));
    // Others report a file that cannot be parsed.
    paths.filter_map(|path| read_tree(&path, ConfigFormat::Json)).collect()
}

fn names(list: Option<&ConfigNode>) -> impl Iterator<Item = String> + use<'_> {
    let elements = list.map(ConfigNode::elements).unwrap_or_default();
    elements.iter().filter_map(|one| match &one.value {
        ConfigValue::Text(name) => Some(name.clone()),
        _ => None,
    })
}
