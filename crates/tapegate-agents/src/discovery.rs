//! Finds the servers named in client configs: of this project, of the user, of the machine.
//!
//! Nothing is written, and the values of environment variables and headers never reach the output.

mod places;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::client_table::{
    CLIENTS, CUSTOM_KEYS, ConfigFile, McpClient, PathRoot, ReferenceSyntax, ServerKeys,
    ServerMerging,
};
use crate::entry::ServerEntry;
use crate::references::{check_replaced, undefined_variables};
use crate::rewrite::find as find_entry;
use crate::server_id::server_id;
use crate::switches::ServerSwitches;
use crate::tree::{ConfigFormat, ConfigMember, ConfigNode, ConfigValue};
use places::{ancestors, candidates, load};
pub(crate) use places::{places, read_tree};

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
    pub config: PathBuf,
    pub format: ConfigFormat,
    /// Where its entry is in the config.
    pub place: Vec<PlaceStep>,
    /// How it is reached.
    pub entry: ServerEntry,
    /// Environment variables that its entry refers to and that have no value.
    pub undefined: Vec<String>,
    /// The config whose server of the same name the client starts instead.
    pub overridden_by: Option<PathBuf>,
    /// Whether the client's settings switch it off, although its entry does not.
    pub is_switched_off: bool,
    /// The place of its config among those of the client; the first one counts. `None` if it is not
    /// merged with others.
    pub rank: Option<usize>,
}

impl ConfiguredServer {
    /// Whether the client does not start it now, by its entry or by its own settings.
    pub fn is_off(&self) -> bool {
        self.entry.is_disabled || self.is_switched_off
    }

    /// The same server as another text of its config has it; `None` if it does not.
    pub fn in_text(&self, text: &str) -> Option<Self> {
        let tree = ConfigNode::read(text, self.format).ok()?;
        let mut entry = ServerEntry::read(find_entry(&tree, &self.place)?).ok()?;
        // Clients without the switch start the server whatever the key says.
        entry.is_disabled &= self.client.reads_switch;
        Some(Self {
            id: self.id.clone(),
            name: self.name.clone(),
            config: self.config.clone(),
            place: self.place.clone(),
            entry,
            undefined: self.undefined.clone(),
            overridden_by: self.overridden_by.clone(),
            ..*self
        })
    }
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
    /// The configs that exist.
    pub configs: Vec<ScannedConfig>,
}

/// A config that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannedConfig {
    pub path: PathBuf,
    pub format: ConfigFormat,
    /// Why none of it can be read, if so. For a client, an empty file is not a config either.
    pub fault: Option<String>,
}

/// Finds the servers named in the configs of all clients.
pub fn find(context: &DiscoveryContext<'_>) -> ServerScan {
    let mut found = ServerScan::default();
    CLIENTS.iter().for_each(|client| find_in(context, client, &mut found));
    found
}

/// Finds the servers named in the configs of one client.
pub fn find_of_client(context: &DiscoveryContext<'_>, client: &'static McpClient) -> ServerScan {
    let mut found = ServerScan::default();
    find_in(context, client, &mut found);
    found
}

fn find_in(context: &DiscoveryContext<'_>, client: &'static McpClient, found: &mut ServerScan) {
    let first = found.servers.len();
    for (at, file) in client.files.iter().enumerate() {
        let before = found.servers.len();
        for path in candidates(context, file) {
            read(context, client, file, &path, found);
        }
        let rank = rank(client, file, at);
        found.servers[before..].iter_mut().for_each(|server| server.rank = rank);
    }
    let switches = ServerSwitches::read(context, client);
    let own = &mut found.servers[first..];
    for at in 0..own.len() {
        own[at].is_switched_off = switches.is_off(&own[at]);
        own[at].overridden_by = winner(&own[at], own);
    }
}

/// The place of a config among those of a client.
fn rank(client: &McpClient, file: &ConfigFile, at: usize) -> Option<usize> {
    // Of a profile or an agent it is not known whether it is in use.
    let is_one_of_several = file.path.contains('*');
    match (client.merging, file.root) {
        (ServerMerging::Separate, _) => None,
        _ if is_one_of_several => None,
        (ServerMerging::MachineFirst, PathRoot::System) => Some(0),
        _ => Some(at + 1),
    }
}

/// The config whose server of the same name counts instead of this one.
fn winner(server: &ConfiguredServer, all: &[ConfiguredServer]) -> Option<PathBuf> {
    let is_same = |one: &&ConfiguredServer| one.name == server.name && one.rank.is_some();
    server.rank?;
    // Of several files with one rank, the nearest is the first.
    let first = all.iter().filter(is_same).min_by_key(|one| one.rank)?;
    let is_itself = first.config == server.config && first.place == server.place;
    (!is_itself).then(|| first.config.clone())
}

/// Finds the servers named in these configs, which are written as the client does it.
pub fn find_in_configs(
    context: &DiscoveryContext<'_>,
    client: &'static McpClient,
    paths: &[PathBuf],
) -> ServerScan {
    let mut found = ServerScan::default();
    for path in paths {
        let format = format_of(path, client);
        let own = client.files.iter().filter(|file| file.format == format).map(|file| file.keys);
        // Several files of a client often have the same keys, and each would be read again.
        let mut keys: Vec<ServerKeys> = Vec::new();
        own.for_each(|one| {
            if !keys.contains(&one) {
                keys.push(one);
            }
        });
        match keys.is_empty() {
            true => read_custom(context, client, (path, format), &mut found),
            false => keys.into_iter().for_each(|keys| {
                let file = ConfigFile { root: PathRoot::Home, path: "", format, keys };
                read(context, client, &file, path, &mut found);
            }),
        }
    }
    found
}

/// Reads a config of which only the format is known: under the first known keys that hold servers.
fn read_custom(
    context: &DiscoveryContext<'_>,
    client: &'static McpClient,
    (path, format): (&Path, ConfigFormat),
    found: &mut ServerScan,
) {
    let scan_under = |keys: ServerKeys| {
        let mut scan = ServerScan::default();
        let file = ConfigFile { root: PathRoot::Home, path: "", format, keys };
        read(context, client, &file, path, &mut scan);
        scan
    };
    let scans: Vec<ServerScan> = CUSTOM_KEYS.into_iter().map(scan_under).collect();
    // Without servers, the first scan has the reason why there are none.
    let at = scans.iter().position(|scan| !scan.servers.is_empty()).unwrap_or(0);
    let Some(scan) = scans.into_iter().nth(at) else { return };
    found.servers.extend(scan.servers);
    found.skipped.extend(scan.skipped);
    found.configs.extend(scan.configs);
}

/// The format of a config that was named: by its extension, else that of the client.
pub fn format_of(path: &Path, client: &McpClient) -> ConfigFormat {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json" | "jsonc" | "json5") => ConfigFormat::Json,
        Some("toml") => ConfigFormat::Toml,
        Some("yaml" | "yml") => ConfigFormat::Yaml,
        _ => client.files.first().map_or(ConfigFormat::Json, |file| file.format),
    }
}

/// Where the configs of a client may be, whether they exist or not, with their formats.
pub fn config_places(
    context: &DiscoveryContext<'_>,
    client: &McpClient,
) -> Vec<(PathBuf, ConfigFormat)> {
    let mut places: Vec<(PathBuf, ConfigFormat)> = Vec::new();
    for file in client.files {
        for path in candidates(context, file) {
            if !places.iter().any(|(known, _)| *known == path) {
                places.push((path, file.format));
            }
        }
    }
    places
}

fn read(
    context: &DiscoveryContext<'_>,
    client: &'static McpClient,
    file: &ConfigFile,
    path: &Path,
    found: &mut ServerScan,
) {
    let value_of = |name: &str| (context.variable)(name)?.into_string().ok();
    let parse_text = |text: String| {
        if client.variable_syntax == ReferenceSyntax::Brace {
            check_replaced(&text, file.format, &value_of)?;
        }
        parse(&text, file.format)
    };
    let tree = match load(path).and_then(|text| text.map(parse_text).transpose()) {
        Ok(Some((tree, fault))) => {
            found.note_config(path, file.format, fault);
            tree
        }
        Ok(None) => return,
        Err(reason) => {
            // Noted as existing: a config that cannot be read may still have servers for its
            // client.
            found.note_config(path, file.format, Some(reason.clone()));
            return found.skip(path, reason);
        }
    };
    let scope = match (file.root, file.keys) {
        (PathRoot::Project, _) => ConfigScope::Project,
        (_, ServerKeys::ClaudeProject) => ConfigScope::Local,
        (PathRoot::System, _) => ConfigScope::Machine,
        _ => ConfigScope::User,
    };
    let entries = match entries(context, &tree, file.keys) {
        Ok(entries) => entries,
        Err(reason) => {
            found.note_config(path, file.format, Some(reason.clone()));
            return found.skip(path, reason);
        }
    };
    for FoundEntry { name, place, entry, node } in entries {
        // One file can be reached through two entries of the table.
        let is_known = found.servers.iter().any(|one| one.config == path && one.place == place);
        if is_known && entry.is_ok() {
            continue;
        }
        if name.is_empty() && matches!(place.last(), Some(PlaceStep::Named(_))) {
            found.skip(path, "an entry has no name".to_owned());
            continue;
        }
        let id = server_id(&name);
        match entry {
            Ok(mut entry) => {
                entry.is_disabled &= client.reads_switch;
                let config = path.to_owned();
                let is_set = |name: &str| (context.variable)(name).is_some();
                let syntax = client.variable_syntax;
                found.servers.push(ConfiguredServer {
                    id,
                    name,
                    client,
                    scope,
                    config,
                    format: file.format,
                    place,
                    entry,
                    undefined: undefined_variables(node, syntax, &is_set),
                    overridden_by: None,
                    is_switched_off: false,
                    rank: None,
                });
            }
            Err(reason) => found.skip(path, format!("entry {name:?}: {reason}")),
        }
    }
}

/// Parses a config; an empty one has no servers, and a fault.
fn parse(text: &str, format: ConfigFormat) -> Result<(ConfigNode, Option<String>), String> {
    let tree = ConfigNode::read(text, format)?;
    // TOML and YAML allow an empty file.
    let is_empty = format == ConfigFormat::Json && text.trim().is_empty();
    Ok((tree, is_empty.then(|| "it is empty".to_owned())))
}

impl ServerScan {
    /// Adds what another scan has found in other configs.
    pub fn add(&mut self, other: Self) {
        let is_known = |path: &Path| self.configs.iter().any(|known| known.path == path);
        let new: Vec<ScannedConfig> =
            other.configs.into_iter().filter(|config| !is_known(&config.path)).collect();
        let is_new = |path: &Path| new.iter().any(|config| config.path == path);
        self.servers.extend(other.servers.into_iter().filter(|server| is_new(&server.config)));
        self.skipped.extend(other.skipped.into_iter().filter(|(path, _)| is_new(path)));
        self.configs.extend(new);
    }

    /// Leaves out these configs and their servers.
    pub fn leave_out(&mut self, mut is_left_out: impl FnMut(&Path) -> bool) {
        self.configs.retain(|config| !is_left_out(&config.path));
        self.servers.retain(|server| !is_left_out(&server.config));
        self.skipped.retain(|(path, _)| !is_left_out(path));
    }

    fn note_config(&mut self, path: &Path, format: ConfigFormat, fault: Option<String>) {
        match self.configs.iter_mut().find(|known| known.path == path) {
            // The first fault is the cause; later reads of the same file fail alike.
            Some(known) => known.fault = known.fault.take().or(fault),
            None => self.configs.push(ScannedConfig { path: path.to_owned(), format, fault }),
        }
    }

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

/// An entry of a config, or the reason why it cannot be used.
struct FoundEntry<'t> {
    name: String,
    place: Vec<PlaceStep>,
    entry: Result<ServerEntry, String>,
    node: &'t ConfigNode,
}

fn entries<'t>(
    context: &DiscoveryContext<'_>,
    tree: &'t ConfigNode,
    keys: ServerKeys,
) -> Result<Vec<FoundEntry<'t>>, String> {
    if !matches!(tree.value, ConfigValue::Map(_) | ConfigValue::Null) {
        return Err("not a map of settings".to_owned());
    }
    // Claude Code keeps the servers of a project in the user's file, under the project's path.
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
    let found = |name: &str, step: PlaceStep, node: &'t ConfigNode| FoundEntry {
        name: name.to_owned(),
        place: [&above[..], &[step]].concat(),
        entry: ServerEntry::read(node),
        node,
    };
    match place.map(|node| (&node.value, node)) {
        None | Some((ConfigValue::Null | ConfigValue::Other(_), _)) => Ok(Vec::new()),
        Some((ConfigValue::Map(members), _)) => {
            // Of a key that occurs twice, clients take the last one.
            let is_last = |(at, one): &(usize, &ConfigMember)| {
                members[at + 1..].iter().all(|later| later.key != one.key)
            };
            let members = members.iter().enumerate().filter(is_last);
            let entry = |(_, one): (usize, &'t ConfigMember)| {
                found(&one.key, PlaceStep::Key(one.key.clone()), &one.node)
            };
            Ok(members.map(entry).collect())
        }
        Some((ConfigValue::List(list), _)) if list.is_empty() => {
            Err(format!("`{key}` is an empty list"))
        }
        Some((ConfigValue::List(list), _)) => Ok(list
            .iter()
            .enumerate()
            .map(|(at, tree)| {
                let name_of = |tree: &ConfigNode| {
                    tree.get("name").and_then(ConfigNode::as_text).unwrap_or_default().to_owned()
                };
                let name = name_of(tree);
                let mut entry = found(&name, PlaceStep::Named(name.clone()), tree);
                // The client may start both, but only one of them could be found again.
                if !name.is_empty() && list[..at].iter().any(|before| name_of(before) == name) {
                    entry.entry = Err("an entry before it has the same name".to_owned());
                }
                entry
            })
            .collect()),
        Some(_) => Err(format!("`{key}` is not a map of servers")),
    }
}

#[cfg(test)]
mod tests;
