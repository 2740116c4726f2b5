//! Which agents are on this machine, and what becomes of each of their servers.

use std::path::{Path, PathBuf};

use tapegate_agents::bash_tool::{self, BashToolPolicy};
use tapegate_agents::client_table::{CLIENTS, McpClient};
use tapegate_agents::config_guard;
use tapegate_agents::discovery::{self, ConfigScope, ConfiguredServer, DiscoveryContext};
use tapegate_agents::entry::ServerTarget;
use tapegate_agents::installation::{is_governed_before_session, place_texts};
use tapegate_agents::shim_entry::{UngovernableEntry, shim_command};
use tapegate_agents::stored_entry::entry_reference;
use tapegate_store::installed_configs::{InstalledConfig, InstalledConfigs};

use crate::cmd::wrap::config_locks::resolved;
use crate::cmd::wrap::stored_entries;
use crate::settings::SearchContext;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct AgentSurvey {
    /// The agents with configs, in display order.
    pub(crate) agents: Vec<SurveyedAgent>,
    /// Agents whose program is on the PATH, without a config that names a server.
    pub(crate) without_servers: Vec<&'static McpClient>,
    /// Installed configs that are not among those found, such as those of other projects.
    pub(crate) elsewhere: Vec<InstalledConfig>,
    /// Records that could not be used.
    pub(crate) warnings: Vec<String>,
}

/// An agent with its configs.
#[derive(Debug)]
pub(crate) struct SurveyedAgent {
    pub(crate) client: &'static McpClient,
    pub(crate) configs: Vec<SurveyedConfig>,
}

/// A config and its servers.
#[derive(Debug)]
pub(crate) struct SurveyedConfig {
    pub(crate) path: PathBuf,
    pub(crate) servers: Vec<SurveyedServer>,
    /// What is not used, with the reason.
    pub(crate) skipped: Vec<String>,
}

/// A server and whether it is governed.
#[derive(Debug)]
pub(crate) struct SurveyedServer {
    pub(crate) server: ConfiguredServer,
    pub(crate) status: ServerStatus,
}

/// Whether a server is governed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerStatus {
    /// It starts behind a shim.
    Governed(GovernedBy),
    /// Its agent is governed for good, and this server was added since.
    Bypassed,
    /// It could be governed.
    Ungoverned,
    /// The agent does not start it.
    Disabled,
    /// It cannot be governed, for this reason.
    Ungovernable(String),
}

/// What has put a server behind a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GovernedBy {
    /// A session of `wrap`, or one that was killed.
    Wrap,
    /// `agents install`
    Install,
    /// The user, in the config.
    Hand,
    /// The server itself: it is the bash tool, with a policy.
    Itself,
}

impl SurveyedAgent {
    /// The servers of all its configs.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &SurveyedServer> {
        self.configs.iter().flat_map(|config| &config.servers)
    }
}

/// Looks at the configs of this project and of the user.
pub(crate) fn take(search: &SearchContext<'_>) -> anyhow::Result<AgentSurvey> {
    let mut survey = AgentSurvey::default();
    let user_state = search.user_state_dir()?;
    let records = InstalledConfigs::new(&user_state);
    let mut installed = records.list().unwrap_or_else(|error| {
        survey.warnings.push(format!("{error}; cannot tell which servers are installed"));
        Vec::new()
    });
    let context = DiscoveryContext { folder: &search.folder, variable: search.variable };
    for client in CLIENTS {
        let mut scan = discovery::find_of_client(&context, client);
        // Some read the configs of another one; each is listed once.
        scan.leave_out(|path| {
            let mut known = survey.agents.iter().flat_map(|agent| &agent.configs);
            known.any(|config| config.path == path)
        });
        let is_installed = installed.iter().any(|record| record.client == client.id);
        let mut configs: Vec<SurveyedConfig> = Vec::new();
        let mut config_of = |path: &Path| -> usize {
            configs.iter().position(|config| config.path == path).unwrap_or_else(|| {
                let path = path.to_owned();
                configs.push(SurveyedConfig { path, servers: Vec::new(), skipped: Vec::new() });
                configs.len() - 1
            })
        };
        let places: Vec<usize> =
            scan.servers.iter().map(|server| config_of(&server.config)).collect();
        let skipped: Vec<(usize, String)> =
            scan.skipped.into_iter().map(|(path, reason)| (config_of(&path), reason)).collect();
        for (at, server) in places.into_iter().zip(scan.servers) {
            let config = resolved(&server.config);
            let record = installed.iter().find(|record| record.config == config);
            let status = status(&server, record, is_installed, search);
            let server = with_stored_words(server, &user_state);
            configs[at].servers.push(SurveyedServer { server, status });
        }
        skipped.into_iter().for_each(|(at, reason)| configs[at].skipped.push(reason));
        if !configs.is_empty() {
            survey.agents.push(SurveyedAgent { client, configs });
        } else if is_on_path(search, client) {
            survey.without_servers.push(client);
        }
    }
    let is_found = |record: &InstalledConfig| {
        let mut configs = survey.agents.iter().flat_map(|agent| &agent.configs);
        configs.any(|config| resolved(&config.path) == record.config)
    };
    // Installations of other projects still apply there, so they are listed.
    installed.retain(|record| !is_found(record));
    survey.elsewhere = installed;
    Ok(survey)
}

/// A server whose entry names a stored command line, with that command line.
fn with_stored_words(mut server: ConfiguredServer, user_state: &Path) -> ConfiguredServer {
    if let ServerTarget::Command(argv) = &mut server.entry.target
        && server.entry.is_governed
        && let Some(reference) = entry_reference(argv)
        && let Ok(words) = stored_entries::read(user_state, reference)
    {
        argv.truncate(2);
        argv.extend(words);
    }
    server
}

/// Why a server cannot be governed for good, if so.
pub(super) fn ungovernable(server: &ConfiguredServer) -> Option<String> {
    if server.scope == ConfigScope::Machine {
        return Some("its config applies to every user of this machine".to_owned());
    }
    match shim_command(server, &[]) {
        Ok(_) | Err(UngovernableEntry::Governed | UngovernableEntry::Disabled) => None,
        Err(reason) => Some(reason.to_string()),
    }
}

fn status(
    server: &ConfiguredServer,
    record: Option<&InstalledConfig>,
    is_installed: bool,
    search: &SearchContext<'_>,
) -> ServerStatus {
    let place = place_texts(&server.place);
    let is_own = record.is_some_and(|record| record.entries.contains(&place));
    if server.entry.is_governed {
        let config = resolved(&server.config);
        // Entries that were governed before the session stay so after it.
        let is_of_session = config_guard::has_backup(&config)
            && !is_governed_before_session(&config, server.format, &server.place);
        return ServerStatus::Governed(match () {
            () if is_of_session => GovernedBy::Wrap,
            () if is_own => GovernedBy::Install,
            () => GovernedBy::Hand,
        });
    }
    if server.is_off() {
        return ServerStatus::Disabled;
    }
    if applies_policy(server, search) {
        return ServerStatus::Governed(GovernedBy::Itself);
    }
    // Before bypassed: an installation could not take it in.
    if let Some(reason) = ungovernable(server) {
        return ServerStatus::Ungovernable(reason);
    }
    // The user may have left it out on purpose.
    let is_left_out = record.is_some_and(|record| record.left_out.contains(&place));
    match is_installed && !is_left_out {
        true => ServerStatus::Bypassed,
        false => ServerStatus::Ungoverned,
    }
}

/// Whether a server is the bash tool with a policy, as far as that can be known from here.
fn applies_policy(server: &ConfiguredServer, search: &SearchContext<'_>) -> bool {
    match bash_tool::policy_of(&server.entry) {
        None | Some(BashToolPolicy::Off) => false,
        Some(BashToolPolicy::Required) => true,
        // It looks from the folder in which its agent starts it.
        Some(BashToolPolicy::Found) => {
            let starts_here = server.client.starts_in_project;
            let here = || starts_here && search.config(None).is_ok_and(|path| path.is_some());
            here() || search.user_config().is_some_and(|path| path.is_file())
        }
    }
}

fn is_on_path(search: &SearchContext<'_>, client: &McpClient) -> bool {
    let path = search.first(&["PATH"]).unwrap_or_default();
    // One letter says too little.
    let mut names = client.commands.iter().filter(|name| name.len() > 2);
    names.any(|name| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}
