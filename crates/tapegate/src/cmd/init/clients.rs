//! Finds the servers named in client configs: of this project, of the user, of the machine.
//!
//! Nothing is written, and the values of environment variables and headers never reach the output.

mod entry;
mod jsonc;
mod table;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use crate::cmd::policy::backtest::backtest_tape::BacktestTape;
use crate::settings::{SearchContext, id_from};
use crate::upstream::UpstreamTarget;
pub(super) use entry::{ServerEntry, ServerTarget};
use table::{CLIENTS, ConfigFile, PathRoot, ServerKeys};
pub(super) use table::{EntryStyle, McpClient};
use tree::ConfigValue;

/// The largest config that is read.
const BYTES_MAX: u64 = 32 << 20;

/// A server named in a config.
#[derive(Debug)]
pub(super) struct ConfiguredServer {
    /// Its id in the policy.
    pub(super) id: String,
    /// Its name in the config.
    pub(super) name: String,
    pub(super) client: &'static McpClient,
    pub(super) scope: ConfigScope,
    pub(super) config: PathBuf,
    pub(super) entry: ServerEntry,
}

/// Whom a config applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigScope {
    /// This project, for all who work on it.
    Project,
    /// This project, for this user.
    Local,
    /// Every project of this user.
    User,
    /// Every user of this machine.
    Machine,
}

impl ConfigScope {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Local => "local",
            Self::User => "user",
            Self::Machine => "machine",
        }
    }
}

/// The servers found, and what was skipped.
#[derive(Debug, Default)]
pub(super) struct ServerScan {
    /// The servers, ordered by client and config.
    pub(super) servers: Vec<ConfiguredServer>,
    /// Configs and config entries that are not used, with the reason.
    pub(super) skipped: Vec<(PathBuf, String)>,
}

/// Finds the servers named in the configs of all clients.
pub(super) fn find(search: &SearchContext<'_>) -> ServerScan {
    let mut found = ServerScan::default();
    for client in CLIENTS {
        for file in client.files {
            for path in candidates(search, file) {
                read(search, client, file, &path, &mut found);
            }
        }
    }
    found
}

/// The policy's id for the server of a tape: a configured id that is on the tape, or that of the
/// entry with the same command line or URL. The shim will be started with this id.
pub(super) fn server_of(tape: &BacktestTape, servers: &[ConfiguredServer]) -> Option<String> {
    let is_same = |server: &&ConfiguredServer| match (&server.entry.target, &tape.upstream) {
        (ServerTarget::Command(own), Some(UpstreamTarget::Command(taped))) => own == taped,
        (ServerTarget::Url(own, _), Some(UpstreamTarget::Http(taped))) => own == taped,
        _ => false,
    };
    let named = servers.iter().find(|server| tape.may_be_server(&server.id));
    named.or_else(|| servers.iter().find(is_same)).map(|server| server.id.clone())
}

fn read(
    search: &SearchContext<'_>,
    client: &'static McpClient,
    file: &ConfigFile,
    path: &Path,
    found: &mut ServerScan,
) {
    let tree = match load(path)
        .and_then(|text| text.map(|text| ConfigValue::read(&text, file.format)).transpose())
    {
        Ok(Some(tree)) => tree,
        Ok(None) => return,
        Err(reason) => return found.skip(path, reason),
    };
    let scope = match (file.root, file.keys) {
        (PathRoot::Project, _) => ConfigScope::Project,
        (_, ServerKeys::ClaudeProject) => ConfigScope::Local,
        (PathRoot::System, _) => ConfigScope::Machine,
        _ => ConfigScope::User,
    };
    let entries = match entries(search, &tree, file.keys) {
        Ok(entries) => entries,
        Err(reason) => return found.skip(path, reason),
    };
    for (name, entry) in entries {
        let known =
            |one: &ConfiguredServer| one.config == path && one.scope == scope && one.name == name;
        // One file can be reached through two entries of the table.
        if found.servers.iter().any(known) {
            continue;
        }
        let Some(id) = id_from(&name) else {
            if name.is_empty() {
                found.skip(path, "an entry has no name".to_owned());
                continue;
            }
            found.skip(path, format!("entry {name:?}: its name has no letter or digit"));
            continue;
        };
        match entry {
            Ok(entry) => {
                let config = path.to_owned();
                found.servers.push(ConfiguredServer { id, name, client, scope, config, entry });
            }
            Err(reason) => found.skip(path, format!("entry {name:?}: {reason}")),
        }
    }
}

impl ServerScan {
    /// Records that a config or an entry in it is not used. A file may hold servers in several
    /// places; the same problem is recorded once.
    fn skip(&mut self, path: &Path, reason: String) {
        if !self
            .skipped
            .iter()
            .any(|(known, known_reason)| known == path && *known_reason == reason)
        {
            self.skipped.push((path.to_owned(), reason));
        }
    }
}

/// Reads a config; `None` if the file does not exist.
fn load(path: &Path) -> Result<Option<String>, String> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // A broken link means that a config is missing, which its user wants to know.
            let is_link = path.symlink_metadata().is_ok();
            return if is_link { Err("a link to nothing".to_owned()) } else { Ok(None) };
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    // Reading a pipe or device could block or have side effects.
    if !about.is_file() {
        return Err("not a regular file".to_owned());
    }
    if about.len() > BYTES_MAX {
        return Err(format!("larger than {} MB", BYTES_MAX >> 20));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map(Some).map_err(|_| "not UTF-8".to_owned())
}

/// The servers in a config by name, each with its entry or the reason why it cannot be used.
type ServerEntries = Vec<(String, Result<ServerEntry, String>)>;

fn entries(
    search: &SearchContext<'_>,
    tree: &ConfigValue,
    keys: ServerKeys,
) -> Result<ServerEntries, String> {
    if !matches!(tree, ConfigValue::Map(_) | ConfigValue::Other) {
        return Err("not a map of settings".to_owned());
    }
    let mut place = Some(tree);
    let key = match keys {
        ServerKeys::Path(path) => {
            for key in path {
                place = place.and_then(|tree| tree.get(key));
            }
            path.last().copied().unwrap_or_default()
        }
        ServerKeys::ClaudeProject => {
            let projects = tree.get("projects");
            let of = |folder: &Path| projects?.get(folder.to_str()?)?.get("mcpServers");
            place = ancestors(search).find_map(of);
            "mcpServers"
        }
    };
    let named = |(name, tree): &(String, ConfigValue)| (name.clone(), ServerEntry::read(tree));
    let listed = |tree: &ConfigValue| {
        let name = tree.get("name").and_then(ConfigValue::as_text).unwrap_or_default();
        (name.to_owned(), ServerEntry::read(tree))
    };
    match place {
        None | Some(ConfigValue::Other) => Ok(Vec::new()),
        Some(ConfigValue::Map(entries)) => Ok(entries.iter().map(named).collect()),
        Some(ConfigValue::List(list)) if list.is_empty() => {
            Err(format!("`{key}` is an empty list"))
        }
        Some(ConfigValue::List(list)) => Ok(list.iter().map(listed).collect()),
        Some(_) => Err(format!("`{key}` is not a map of servers")),
    }
}

/// The current folder and its parents, up to the root of the repository.
fn ancestors<'a>(search: &'a SearchContext<'_>) -> impl Iterator<Item = &'a Path> {
    let top = search.folder.ancestors().find(|folder| folder.join(".git").exists());
    let top = top.unwrap_or(&search.folder).to_owned();
    search.folder.ancestors().take_while(move |folder| folder.starts_with(&top))
}

/// The paths at which a config may be.
fn candidates(search: &SearchContext<'_>, file: &ConfigFile) -> Vec<PathBuf> {
    let home = || search.first(&["HOME"]).map(PathBuf::from);
    let roots: Vec<PathBuf> = match file.root {
        PathRoot::Project => ancestors(search).map(Path::to_owned).collect(),
        PathRoot::Home => home().into_iter().collect(),
        PathRoot::Config => {
            let named = search.first(&["XDG_CONFIG_HOME"]).map(PathBuf::from);
            let named = named.filter(|path| path.is_absolute());
            named.or_else(|| Some(home()?.join(".config"))).into_iter().collect()
        }
        PathRoot::Variable(name, otherwise) => {
            let named = search.first(&[name]).map(PathBuf::from);
            named.or_else(|| Some(home()?.join(otherwise))).into_iter().collect()
        }
        PathRoot::File(name) => {
            return search.first(&[name]).map(PathBuf::from).into_iter().collect();
        }
        PathRoot::System => vec![PathBuf::from("/")],
    };
    roots.iter().flat_map(|root| matching(root, file.path)).collect()
}

/// The path, or every path that matches if a component contains a `*`.
fn matching(root: &Path, path: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let Some((start, end)) = part.split_once('*') else {
            found.iter_mut().for_each(|folder| folder.push(part));
            continue;
        };
        let mut deeper = Vec::new();
        for folder in found {
            // A folder that does not exist or cannot be read holds no configs.
            let Ok(inside) = fs::read_dir(&folder) else { continue };
            let names = inside.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let fits = |name: &String| {
                name.len() >= start.len() + end.len()
                    && name.starts_with(start)
                    && name.ends_with(end)
            };
            deeper.extend(names.filter(fits).map(|name| folder.join(name)));
        }
        deeper.sort();
        found = deeper;
    }
    found
}

#[cfg(test)]
mod tests;
