//! Finds the servers named in client configs: of this project, of the user, of the machine.
//!
//! Nothing is written, and the values of environment variables and headers never reach the output.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::client_table::{CLIENTS, ConfigFile, McpClient, PathRoot, ServerKeys};
use crate::entry::ServerEntry;
use crate::tree::{ConfigNode, ConfigValue};

/// The largest config that is read.
const BYTES_MAX: u64 = 32 << 20;

/// The context in which configs are looked for.
#[derive(Clone, Copy)]
pub struct DiscoveryContext<'a> {
    /// The current folder.
    pub folder: &'a Path,
    /// Looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// A server named in a config.
#[derive(Debug)]
pub struct ConfiguredServer {
    /// Its id in the policy.
    pub id: String,
    /// Its name in the config.
    pub name: String,
    /// The client whose config it is.
    pub client: &'static McpClient,
    /// Whom the config applies to.
    pub scope: ConfigScope,
    /// The config.
    pub config: PathBuf,
    /// Where its entry is in the config.
    pub place: Vec<PlaceStep>,
    /// How it is reached.
    pub entry: ServerEntry,
}

/// A step from a value to one inside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceStep {
    /// To the value of a key.
    Key(String),
    /// To the element of a list whose `name` is this.
    Named(String),
}

/// Whom a config applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigScope {
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
    /// The word for it.
    pub fn as_str(self) -> &'static str {
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
pub struct ServerScan {
    /// The servers, ordered by client and config.
    pub servers: Vec<ConfiguredServer>,
    /// Configs and config entries that are not used, with the reason.
    pub skipped: Vec<(PathBuf, String)>,
}

/// Finds the servers named in the configs of all clients.
pub fn find(context: &DiscoveryContext<'_>) -> ServerScan {
    let mut found = ServerScan::default();
    for client in CLIENTS {
        for file in client.files {
            for path in candidates(context, file) {
                read(context, client, file, &path, &mut found);
            }
        }
    }
    found
}

/// Turns a word into an id for a policy; `None` if nothing is left of it.
pub fn id_from(word: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let id: String = word.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
    let id = id.trim_matches(['.', '_', '-']);
    (!id.is_empty()).then(|| id.to_owned())
}

fn read(
    context: &DiscoveryContext<'_>,
    client: &'static McpClient,
    file: &ConfigFile,
    path: &Path,
    found: &mut ServerScan,
) {
    let tree = match load(path)
        .and_then(|text| text.map(|text| ConfigNode::read(&text, file.format)).transpose())
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
    let entries = match entries(context, &tree, file.keys) {
        Ok(entries) => entries,
        Err(reason) => return found.skip(path, reason),
    };
    for FoundEntry { name, place, entry } in entries {
        // One file can be reached through two entries of the table.
        if found.servers.iter().any(|one| one.config == path && one.place == place) {
            continue;
        }
        let Some(id) = id_from(&name) else {
            let reason = match name.is_empty() {
                true => "an entry has no name".to_owned(),
                false => format!("entry {name:?}: its name has no letter or digit"),
            };
            found.skip(path, reason);
            continue;
        };
        match entry {
            Ok(entry) => {
                let config = path.to_owned();
                found.servers.push(ConfiguredServer {
                    id,
                    name,
                    client,
                    scope,
                    config,
                    place,
                    entry,
                });
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

/// An entry of a config, or the reason why it cannot be used.
struct FoundEntry {
    name: String,
    place: Vec<PlaceStep>,
    entry: Result<ServerEntry, String>,
}

fn entries(
    context: &DiscoveryContext<'_>,
    tree: &ConfigNode,
    keys: ServerKeys,
) -> Result<Vec<FoundEntry>, String> {
    if !matches!(tree.value, ConfigValue::Map(_) | ConfigValue::Null) {
        return Err("not a map of settings".to_owned());
    }
    let path = match keys {
        ServerKeys::Path(path) => path.iter().map(|key| (*key).to_owned()).collect(),
        ServerKeys::ClaudeProject => {
            let projects = tree.get("projects");
            let of = |folder: &Path| {
                let folder = folder.to_str()?;
                projects?.get(folder)?.get("mcpServers")?;
                Some(vec!["projects".to_owned(), folder.to_owned(), "mcpServers".to_owned()])
            };
            match ancestors(context).find_map(of) {
                Some(path) => path,
                None => return Ok(Vec::new()),
            }
        }
    };
    let place = path.iter().try_fold(tree, |tree, key| tree.get(key));
    let key = path.last().map(String::as_str).unwrap_or_default();
    let above: Vec<PlaceStep> = path.iter().cloned().map(PlaceStep::Key).collect();
    let found = |name: &str, step: PlaceStep, tree: &ConfigNode| FoundEntry {
        name: name.to_owned(),
        place: [&above[..], &[step]].concat(),
        entry: ServerEntry::read(tree),
    };
    match place.map(|node| (&node.value, node)) {
        None | Some((ConfigValue::Null | ConfigValue::Other(_), _)) => Ok(Vec::new()),
        Some((ConfigValue::Map(members), _)) => Ok(members
            .iter()
            .map(|one| found(&one.key, PlaceStep::Key(one.key.clone()), &one.node))
            .collect()),
        Some((ConfigValue::List(list), _)) if list.is_empty() => {
            Err(format!("`{key}` is an empty list"))
        }
        Some((ConfigValue::List(list), _)) => Ok(list
            .iter()
            .map(|tree| {
                let name = tree.get("name").and_then(ConfigNode::as_text).unwrap_or_default();
                found(name, PlaceStep::Named(name.to_owned()), tree)
            })
            .collect()),
        Some(_) => Err(format!("`{key}` is not a map of servers")),
    }
}

/// The current folder and its parents, up to the root of the repository.
fn ancestors<'a>(context: &DiscoveryContext<'a>) -> impl Iterator<Item = &'a Path> + use<'a> {
    let folder = context.folder;
    let top = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder);
    folder.ancestors().take_while(move |folder| folder.starts_with(top))
}

/// The paths at which a config may be.
fn candidates(context: &DiscoveryContext<'_>, file: &ConfigFile) -> Vec<PathBuf> {
    let variable =
        |name: &str| (context.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variable("HOME");
    let roots: Vec<PathBuf> = match file.root {
        PathRoot::Project => ancestors(context).map(Path::to_owned).collect(),
        PathRoot::Home => home().into_iter().collect(),
        PathRoot::Config => {
            let named = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
            named.or_else(|| Some(home()?.join(".config"))).into_iter().collect()
        }
        PathRoot::Variable(name, otherwise) => {
            variable(name).or_else(|| Some(home()?.join(otherwise))).into_iter().collect()
        }
        PathRoot::File(name) => return variable(name).into_iter().collect(),
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
