//! Finds the servers named in client configs: of this project, of the user, of the machine.
//!
//! Nothing is written, and the values of environment variables and headers never reach the output.

mod entry;
mod jsonc;
mod table;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use crate::cmd::policy::backtest::shelf::Tape;
use crate::settings::{Surroundings, id_from};
use crate::upstream::Upstream;
pub(super) use entry::{Entry, Target};
use table::{CLIENTS, ConfigFile, Keys, Root};
pub(super) use table::{Client, Style};
use tree::Tree;

/// The largest config that is read.
const BYTES_MAX: u64 = 32 << 20;

/// A server named in a config.
#[derive(Debug)]
pub(super) struct Server {
    /// Its id in the policy.
    pub(super) id: String,
    /// Its name in the config.
    pub(super) name: String,
    pub(super) client: &'static Client,
    pub(super) scope: Scope,
    pub(super) config: PathBuf,
    pub(super) entry: Entry,
}

/// Whom a config applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// This project, for all who work on it.
    Project,
    /// This project, for this user.
    Local,
    /// Every project of this user.
    User,
    /// Every user of this machine.
    Machine,
}

impl Scope {
    pub(super) fn word(self) -> &'static str {
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
pub(super) struct Found {
    /// The servers, ordered by client and config.
    pub(super) servers: Vec<Server>,
    /// Configs and config entries that are not used, with the reason.
    pub(super) skipped: Vec<(PathBuf, String)>,
}

/// Finds the servers named in the configs of all clients.
pub(super) fn find(around: &Surroundings<'_>) -> Found {
    let mut found = Found::default();
    for client in CLIENTS {
        for file in client.files {
            for path in candidates(around, file) {
                read(around, client, file, &path, &mut found);
            }
        }
    }
    found
}

/// The policy's id for the server of a tape: a configured id that is on the tape, or that of the
/// entry with the same command line or URL. The shim will be started with this id.
pub(super) fn server_of(tape: &Tape, servers: &[Server]) -> Option<String> {
    let is_same = |server: &&Server| match (&server.entry.target, &tape.upstream) {
        (Target::Command(own), Some(Upstream::Command(taped))) => own == taped,
        (Target::Url(own, _), Some(Upstream::Http(taped))) => own == taped,
        _ => false,
    };
    let named = servers.iter().find(|server| tape.may_be(&server.id));
    named.or_else(|| servers.iter().find(is_same)).map(|server| server.id.clone())
}

fn read(
    around: &Surroundings<'_>,
    client: &'static Client,
    file: &ConfigFile,
    path: &Path,
    found: &mut Found,
) {
    let tree = match load(path)
        .and_then(|text| text.map(|text| Tree::read(&text, file.format)).transpose())
    {
        Ok(Some(tree)) => tree,
        Ok(None) => return,
        Err(why) => return found.skip(path, why),
    };
    let scope = match (file.root, file.keys) {
        (Root::Project, _) => Scope::Project,
        (_, Keys::ClaudeProject) => Scope::Local,
        (Root::System, _) => Scope::Machine,
        _ => Scope::User,
    };
    let entries = match entries(around, &tree, file.keys) {
        Ok(entries) => entries,
        Err(why) => return found.skip(path, why),
    };
    for (name, entry) in entries {
        let known = |one: &Server| one.config == path && one.scope == scope && one.name == name;
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
                found.servers.push(Server { id, name, client, scope, config, entry });
            }
            Err(why) => found.skip(path, format!("entry {name:?}: {why}")),
        }
    }
}

impl Found {
    /// Records that a config or an entry in it is not used. A file may hold servers in several
    /// places; the same problem is recorded once.
    fn skip(&mut self, path: &Path, why: String) {
        if !self.skipped.iter().any(|(known, told)| known == path && *told == why) {
            self.skipped.push((path.to_owned(), why));
        }
    }
}

/// Reads a config; `None` if the file does not exist.
fn load(path: &Path) -> Result<Option<String>, String> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let is_link = path.symlink_metadata().is_ok();
            return if is_link { Err("a link to nothing".to_owned()) } else { Ok(None) };
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
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
type Entries = Vec<(String, Result<Entry, String>)>;

fn entries(around: &Surroundings<'_>, tree: &Tree, keys: Keys) -> Result<Entries, String> {
    if !matches!(tree, Tree::Map(_) | Tree::Other) {
        return Err("not a map of settings".to_owned());
    }
    let mut place = Some(tree);
    let key = match keys {
        Keys::Path(path) => {
            for key in path {
                place = place.and_then(|tree| tree.get(key));
            }
            path.last().copied().unwrap_or_default()
        }
        Keys::ClaudeProject => {
            let projects = tree.get("projects");
            let of = |folder: &Path| projects?.get(folder.to_str()?)?.get("mcpServers");
            place = ancestors(around).find_map(of);
            "mcpServers"
        }
    };
    let named = |(name, tree): &(String, Tree)| (name.clone(), Entry::read(tree));
    let listed = |tree: &Tree| {
        let name = tree.get("name").and_then(Tree::as_text).unwrap_or_default();
        (name.to_owned(), Entry::read(tree))
    };
    match place {
        None | Some(Tree::Other) => Ok(Vec::new()),
        Some(Tree::Map(entries)) => Ok(entries.iter().map(named).collect()),
        Some(Tree::List(list)) if list.is_empty() => Err(format!("`{key}` is an empty list")),
        Some(Tree::List(list)) => Ok(list.iter().map(listed).collect()),
        Some(_) => Err(format!("`{key}` is not a map of servers")),
    }
}

/// The current folder and its parents, up to the root of the repository.
fn ancestors<'a>(around: &'a Surroundings<'_>) -> impl Iterator<Item = &'a Path> {
    let top = around.folder.ancestors().find(|folder| folder.join(".git").exists());
    let top = top.unwrap_or(&around.folder).to_owned();
    around.folder.ancestors().take_while(move |folder| folder.starts_with(&top))
}

/// The paths at which a config may be.
fn candidates(around: &Surroundings<'_>, file: &ConfigFile) -> Vec<PathBuf> {
    let home = || around.first(&["HOME"]).map(PathBuf::from);
    let roots: Vec<PathBuf> = match file.root {
        Root::Project => ancestors(around).map(Path::to_owned).collect(),
        Root::Home => home().into_iter().collect(),
        Root::Config => {
            let named = around.first(&["XDG_CONFIG_HOME"]).map(PathBuf::from);
            let named = named.filter(|path| path.is_absolute());
            named.or_else(|| Some(home()?.join(".config"))).into_iter().collect()
        }
        Root::Variable(name, otherwise) => {
            let named = around.first(&[name]).map(PathBuf::from);
            named.or_else(|| Some(home()?.join(otherwise))).into_iter().collect()
        }
        Root::File(name) => return around.first(&[name]).map(PathBuf::from).into_iter().collect(),
        Root::System => vec![PathBuf::from("/")],
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
