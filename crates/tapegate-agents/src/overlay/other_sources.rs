//! Places from which an agent takes servers that an overlay cannot express.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::client_table::{McpClient, OverlayStyle, PathRoot, SourceKind};
use crate::discovery::{DiscoveryContext, places, read_tree};
use crate::tree::ConfigFormat;

/// How deep plugins are nested.
const DEPTH_MAX: usize = 6;
/// The largest description of a plugin.
const BYTES_MAX: u64 = 1 << 20;

/// The files that may have such servers.
pub fn find(context: &DiscoveryContext<'_>, client: &McpClient) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if matches!(client.overlay, OverlayStyle::ClaudeArguments | OverlayStyle::GeminiVariable) {
        let system = client.files.iter().filter(|file| file.root == PathRoot::System);
        found.extend(system.map(|file| PathBuf::from(file.path)).filter(|path| path.exists()));
    }
    if client.overlay == OverlayStyle::ClaudeArguments {
        found.extend(named(context, client).into_iter().map(|(path, _)| path));
    }
    found
}

/// The files with servers that no session can govern, and why not.
pub fn named(context: &DiscoveryContext<'_>, client: &McpClient) -> Vec<(PathBuf, &'static str)> {
    let mut found: Vec<(PathBuf, &'static str)> = Vec::new();
    for source in client.other_sources {
        for path in places(context, source.root, source.path) {
            let mut paths = Vec::new();
            match source.kind {
                SourceKind::Folder => collect(&path, DEPTH_MAX, &mut paths),
                SourceKind::File(keys) if names_servers(&path, keys) => paths.push(path),
                SourceKind::File(_) => {}
            }
            // One folder can be reached in two ways.
            paths.retain(|path| !found.iter().any(|(known, _)| known == path));
            found.extend(paths.into_iter().map(|path| (path, source.note)));
        }
    }
    found
}

/// Whether a file has servers below these keys.
fn names_servers(path: &Path, keys: &[&str]) -> bool {
    // One that cannot be parsed is not read by the client either.
    let Some(tree) = read_tree(path, ConfigFormat::Json) else { return false };
    let place = keys.iter().try_fold(&tree, |tree, key| tree.get(key));
    place.is_some_and(|servers| !servers.members().is_empty())
}

/// The files of a folder that name servers.
fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    // A folder that cannot be read is not read by the agent either.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&path, depth, found);
        } else if name == ".mcp.json" || may_name_servers(&path) && has_servers(&path) {
            found.push(path);
        }
    }
}

/// Whether a file is a description of a plugin, an extension or an agent.
fn may_name_servers(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Other texts, such as a README, only speak of servers.
    let is_of_agents =
        || path.parent().is_some_and(|folder| folder.file_name() == Some("agents".as_ref()));
    matches!(name, "plugin.json" | "gemini-extension.json" | "manifest.json" | "mcp.json")
        || name.ends_with(".md") && is_of_agents()
}

/// Whether a description names servers, as far as a look at its text tells.
fn has_servers(path: &Path) -> bool {
    let is_small = fs::metadata(path).is_ok_and(|about| about.len() <= BYTES_MAX);
    // In doubt it has servers: an overlay that loses one would be worse than none.
    // The second is the key of packed extensions of Claude Desktop.
    let keys = ["mcpServers", "mcp_config"];
    !is_small
        || fs::read_to_string(path).is_ok_and(|text| keys.iter().any(|key| text.contains(key)))
}

/// Whether no other user can replace a file in this folder. Gemini CLI ignores settings for which
/// that is not so, and would start its servers without us.
pub fn is_secure_folder(folder: &Path) -> bool {
    let us = rustix::process::geteuid().as_raw();
    let Ok(folder) = folder.canonicalize() else { return false };
    folder.ancestors().all(|folder| {
        fs::metadata(folder)
            .is_ok_and(|about| about.mode() & 0o022 == 0 && (about.uid() == us || about.uid() == 0))
    })
}
