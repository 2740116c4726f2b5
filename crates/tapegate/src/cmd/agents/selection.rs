//! Which agents, configs and servers a command line means.

use std::path::PathBuf;

use tapegate_agents::client_table::{CLIENTS, CUSTOM, McpClient};
use tapegate_agents::detection;
use tapegate_agents::discovery::{self, ConfiguredServer, DiscoveryContext, ServerScan};

use crate::exit::{Exit, Failure};
use crate::settings::SearchContext;

/// The agents, configs and servers to install or uninstall.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SelectionArgs {
    /// The agents, as `tapegate agents` names them, such as `cursor`; `custom` for any other, with
    /// --config-path
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,
    /// Every agent
    #[arg(long)]
    all: bool,
    /// The agent's config, in place of those that are found; repeatable
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    config_path: Vec<PathBuf>,
    /// Only this server, by its name or id; repeatable
    #[arg(long, value_name = "NAME")]
    server: Vec<String>,
    /// Write nothing; print the changes as a unified diff
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl SelectionArgs {
    /// The agents that are meant.
    pub(super) fn clients(&self) -> Result<Vec<&'static McpClient>, Failure> {
        if self.all {
            return Ok(CLIENTS.iter().collect());
        }
        let mut clients: Vec<&'static McpClient> = Vec::new();
        for name in &self.names {
            let client = client_named(name)?;
            if !clients.contains(&client) {
                clients.push(client);
            }
        }
        if clients.contains(&&CUSTOM) && self.config_path.is_empty() {
            return Err(Failure::new(Exit::Usage, "`custom` has no config that could be found")
                .hint("name it with --config-path FILE"));
        }
        if clients.len() > 1 && !self.config_path.is_empty() {
            let message = "--config-path is for one agent";
            return Err(Failure::new(Exit::Usage, message).hint("run this once for each agent"));
        }
        Ok(clients)
    }

    /// The configs named on the command line, as absolute paths.
    pub(super) fn named_configs(
        &self,
        search: &SearchContext<'_>,
    ) -> Result<Vec<PathBuf>, Failure> {
        let paths = self.config_path.iter().map(|path| search.folder.join(path));
        let missing = |path: &PathBuf| {
            Failure::new(Exit::Io, format!("there is no config `{}`", path.display()))
        };
        paths.map(|path| if path.exists() { Ok(path) } else { Err(missing(&path)) }).collect()
    }

    /// The servers of an agent, in the configs that are meant.
    pub(super) fn scan(
        &self,
        search: &SearchContext<'_>,
        client: &'static McpClient,
    ) -> Result<ServerScan, Failure> {
        let context = DiscoveryContext { folder: &search.folder, variable: search.variable };
        let named = self.named_configs(search)?;
        Ok(match named.is_empty() {
            true => discovery::find_of_client(&context, client),
            false => discovery::find_in_configs(&context, client, &named),
        })
    }

    /// Whether every agent is meant.
    pub(super) fn is_all(&self) -> bool {
        self.all
    }

    /// The agents as they were named.
    pub(super) fn names_text(&self) -> String {
        self.names.join(", ")
    }

    /// Whether the config is named.
    pub(super) fn names_config(&self) -> bool {
        !self.config_path.is_empty()
    }

    /// Whether only some servers are meant.
    pub(super) fn has_servers(&self) -> bool {
        !self.server.is_empty()
    }

    /// Whether a server is meant, by its name and id.
    pub(super) fn is_picked(&self, names: &[&str]) -> bool {
        self.server.is_empty() || self.server.iter().any(|wanted| names.contains(&wanted.as_str()))
    }

    /// Fails if a server was named that none of these is.
    pub(super) fn check_servers<'s>(
        &self,
        there: impl Iterator<Item = &'s ConfiguredServer>,
    ) -> Result<(), Failure> {
        let there: Vec<[&str; 2]> = there.map(|one| [one.name.as_str(), one.id.as_str()]).collect();
        let is_there = |wanted: &&String| there.iter().flatten().any(|name| name == wanted);
        let Some(unknown) = self.server.iter().find(|wanted| !is_there(wanted)) else {
            return Ok(());
        };
        let mut names: Vec<&str> = there.iter().map(|names| names[0]).collect();
        names.dedup();
        let failure = Failure::new(Exit::Usage, format!("there is no server `{unknown}`"));
        Err(failure.hint(match names.is_empty() {
            true => "no config of this agent names a server".to_owned(),
            false => format!("there are: {}", names.join(", ")),
        }))
    }
}

/// The agent with this id, or that this program starts.
fn client_named(name: &str) -> Result<&'static McpClient, Failure> {
    if name == CUSTOM.id {
        return Ok(&CUSTOM);
    }
    let by_command = || CLIENTS.iter().find(|client| client.commands.contains(&name));
    detection::by_id(name).or_else(by_command).ok_or_else(|| {
        let ids: Vec<&str> = CLIENTS.iter().map(|client| client.id).collect();
        // A distance of two, since the names of agents are short.
        let near = tapegate_yaml::shape::nearest_name_within(2, name, ids.iter().copied());
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Failure::new(Exit::Usage, format!("`{name}` is not the name of an agent"))
            .hint(format!("{near}the names are: {}, custom", ids.join(", ")))
    })
}
