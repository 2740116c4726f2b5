//! Which agent a command line starts, and which servers its configs name.

use std::path::PathBuf;

use tapegate_agents::client_table::{CLIENTS, CUSTOM, McpClient};
use tapegate_agents::command_line::{self, CommandServers};
use tapegate_agents::config_guard;
use tapegate_agents::detection;
use tapegate_agents::discovery::{
    self, ConfigScope, ConfiguredServer, DiscoveryContext, ServerScan,
};
use tapegate_agents::governance::{self, ServerTreatment};
use tapegate_agents::installation::{is_governed_before_session, place_texts};
use tapegate_agents::overlay::other_sources;
use tapegate_agents::switches;
use tapegate_agents::tree::ConfigFormat;
use tapegate_store::installed_configs::InstalledConfigs;

use super::args::Args;
use super::config_locks::resolved;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;
use crate::terminal_output;
use crate::views::visible_text;

/// An agent and where its configs are looked for.
pub(crate) struct AgentChoice {
    pub(crate) client: &'static McpClient,
    /// The configs that were named.
    named: Vec<PathBuf>,
    /// What the command line of the agent adds.
    added: CommandServers,
    /// Files with servers that no session can govern, and why not.
    other_sources: Vec<(PathBuf, &'static str)>,
}

/// The agent of a command line.
pub(super) fn choose(args: &Args, search: &SearchContext<'_>) -> Result<AgentChoice, Failure> {
    let words: Vec<String> =
        args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let client = match args.agent_type.as_deref() {
        Some(id) => by_type(id),
        None => detection::by_command(&words),
    };
    let client = client.ok_or_else(|| unknown_agent_failure(&words))?;
    let choice = AgentChoice::new(client, &args.config_path, search)?;
    let added = command_line::find(&context(search), client, &words);
    let other_sources = other_sources::named(&context(search), client);
    Ok(AgentChoice { added, other_sources, ..choice })
}

/// The client of a type.
pub(crate) fn by_type(id: &str) -> Option<&'static McpClient> {
    if id == CUSTOM.id { Some(&CUSTOM) } else { detection::by_id(id) }
}

fn unknown_agent_failure(words: &[String]) -> Failure {
    let command = visible_text::inline(words.first().map_or("", String::as_str), 100);
    let message = format!("agent type could not be detected from command: `{command}`");
    Failure::new(Exit::Usage, message).hint(format!(
        "name it with --agent-type TYPE: {}; for any other agent, pass --agent-type custom \
         --config-path FILE",
        governance::client_ids(CLIENTS)
    ))
}

impl AgentChoice {
    /// The configs of a client: those that are named, or those in the usual places.
    pub(crate) fn new(
        client: &'static McpClient,
        named: &[PathBuf],
        search: &SearchContext<'_>,
    ) -> Result<Self, Failure> {
        if client.files.is_empty() && named.is_empty() {
            return Err(Failure::new(Exit::Usage, "a custom agent needs --config-path")
                .hint("name the file in which it has its MCP servers"));
        }
        let named = named.iter().map(|path| search.folder.join(path)).collect();
        let (added, other_sources) = (CommandServers::default(), Vec::new());
        Ok(Self { client, named, added, other_sources })
    }

    /// Reads the configs.
    pub(crate) fn scan(&self, search: &SearchContext<'_>) -> ServerScan {
        let context = context(search);
        let mut scan = match self.named.is_empty() {
            true => discovery::find_of_client(&context, self.client),
            false => discovery::find_in_configs(&context, self.client, &self.named),
        };
        scan.add(discovery::find_in_configs(&context, self.client, &self.added.configs));
        for folder in self.folders() {
            scan.add(discovery::find_of_client(
                &DiscoveryContext { folder, ..context },
                self.client,
            ));
        }
        let others = self.other_sources.iter();
        scan.skipped.extend(others.map(|(path, note)| (path.clone(), (*note).to_owned())));
        scan
    }

    /// The other folders in which the agent may work. Named configs are all there is.
    fn folders(&self) -> &[PathBuf] {
        if self.named.is_empty() { &self.added.folders } else { &[] }
    }

    /// Where its configs may be, whether they exist or not.
    pub(crate) fn places(&self, search: &SearchContext<'_>) -> Vec<(PathBuf, ConfigFormat)> {
        let context = context(search);
        let format = |path: &PathBuf| (path.clone(), discovery::format_of(path, self.client));
        let mut places: Vec<(PathBuf, ConfigFormat)> = match self.named.is_empty() {
            true => discovery::config_places(&context, self.client),
            false => self.named.iter().map(format).collect(),
        };
        places.extend(self.added.configs.iter().map(format));
        for folder in self.folders() {
            let context = DiscoveryContext { folder, ..context };
            places.extend(discovery::config_places(&context, self.client));
        }
        places
    }

    /// Checks that the command line gives the agent no server that would run around the gate.
    fn check_command(&self, scan: &ServerScan) -> Result<(), Failure> {
        if let Some(name) = self.added.assigned.first() {
            let message = format!(
                "the command sets `{name}`, with which {} reads other configs; their servers would \
                 run around the gate",
                self.client.name
            );
            return Err(Failure::new(Exit::Invalid, message).hint(format!(
                "set it for `wrap` as well: `env {name}=… {} …`",
                program_name::command("wrap")
            )));
        }
        if let Some(option) = self.added.others.first() {
            let message = format!(
                "`{option}` gives {} servers that are in none of its configs; they would run around the gate",
                self.client.name
            );
            return Err(Failure::new(Exit::Invalid, message)
                .hint("add the servers to a config of the agent, and leave the option out"));
        }
        let is_copied = |one: &ConfiguredServer| one.scope == ConfigScope::Project;
        match &self.added.project_copy {
            Some(option) if scan.servers.iter().any(is_copied) => {
                let message = format!(
                    "with `{option}`, {} reads a copy of the project's config, whose servers would \
                     run around the gate",
                    self.client.name
                );
                Err(Failure::new(Exit::Invalid, message)
                    .hint("create the worktree first, and run `wrap` in it without the option"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that there is something to govern, and nothing that would escape unnoticed.
    pub(crate) fn check(
        &self,
        scan: &ServerScan,
        search: &SearchContext<'_>,
    ) -> Result<(), Failure> {
        self.check_command(scan)?;
        // A config in a usual place may be missing; one that was named is a mistake.
        if let Some(missing) = self.named.iter().find(|path| !path.exists()) {
            let message = format!("config file not found at `{}`", missing.display());
            return Err(Failure::new(Exit::Io, message).hint("check --config-path"));
        }
        if scan.configs.is_empty() {
            return Err(self.missing_failure(search));
        }
        // One that cannot be read may have servers that the agent starts past the gate.
        let faults = scan.configs.iter().filter_map(|config| {
            Some(format!("`{}`: {}", config.path.display(), config.fault.as_ref()?))
        });
        let faults: Vec<String> = faults.collect();
        if !faults.is_empty() {
            let message = format!("failed to parse config: {}", faults.join("\n"));
            return Err(Failure::new(Exit::Invalid, message)
                .hint("correct or remove the file, or name another with --config-path"));
        }
        // A shim in front of a shim would ask for every approval twice.
        if let Some(server) = scan.servers.iter().find(|server| is_managed(server)) {
            return Err(managed_failure(server, search));
        }
        self.check_servers(scan)
    }

    fn check_servers(&self, scan: &ServerScan) -> Result<(), Failure> {
        let treatments: Vec<ServerTreatment> =
            scan.servers.iter().map(governance::treatment).collect();
        // A session without a server to govern would look protected and do nothing.
        let is_disabled = scan.servers.iter().all(ConfiguredServer::is_off);
        if treatments.contains(&ServerTreatment::Governed) && !is_disabled {
            return check_variables(scan);
        }
        let configs = scan.configs.iter().map(|config| format!("`{}`", config.path.display()));
        let configs = configs.collect::<Vec<_>>().join(", ");
        if treatments.is_empty() {
            let skipped = scan.skipped.iter().map(|(path, reason)| {
                format!("; {} has an entry that cannot be used: {reason}", path.display())
            });
            let skipped: String = skipped.collect();
            let message = format!("No MCP servers found in config {configs}{skipped}");
            return Err(Failure::new(Exit::Invalid, message)
                .hint("add a server to the agent first, or run the agent directly"));
        }
        if is_disabled {
            let message = format!("All MCP servers are disabled in config {configs}");
            return Err(Failure::new(Exit::Invalid, message)
                .hint("enable one in the agent first, or run the agent directly"));
        }
        let reasons = scan.servers.iter().zip(&treatments).filter_map(|(server, treatment)| {
            let ServerTreatment::Ungoverned(reason) = treatment else { return None };
            Some(format!("{}: {}", server.id, reason.as_str()))
        });
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        let message = format!("no MCP server of {} can be governed: {reasons}", self.client.name);
        Err(Failure::new(Exit::Invalid, message))
    }

    fn missing_failure(&self, search: &SearchContext<'_>) -> Failure {
        let places = self.places(search);
        // Those of macOS are searched on every system, but nobody would put a config there.
        let is_foreign = |path: &PathBuf| {
            let path = path.to_string_lossy();
            !cfg!(target_os = "macos") && path.contains("/Library/Application Support/")
        };
        let places = places.iter().filter(|(path, _)| !is_foreign(path));
        let places = places.map(|(path, _)| format!("  {}", path.display()));
        let places = places.collect::<Vec<_>>().join("\n");
        let message = format!("config file not found: {} has none at\n{places}", self.client.name);
        Failure::new(Exit::Io, message)
            .hint("add an MCP server to the agent first, or name its config with --config-path")
    }
}

/// Warns of rules that match servers by their exact command: they do not match a shim.
pub(crate) fn warn_of_exact_rules(client: &McpClient, search: &SearchContext<'_>) {
    for rule in switches::exact_rules(&context(search), client) {
        terminal_output::warn(&format!(
            "`{}`: `{}` has rules for exact commands or URLs, which do not match a server behind a \
             shim: one that they allow may not start, and one that they deny may",
            rule.path.display(),
            rule.key
        ));
    }
}

/// Checks that every variable in a governed entry has a value. The agent would start the server
/// with the reference itself as the value.
fn check_variables(scan: &ServerScan) -> Result<(), Failure> {
    let governed = scan.servers.iter().filter(|server| {
        governance::treatment(server) == ServerTreatment::Governed && !server.is_off()
    });
    let faults = governed.flat_map(|server| {
        let place = server.config.display();
        let text = move |name: &String| {
            format!("`{place}`: server `{}`: the variable `{name}` is not set", server.id)
        };
        server.undefined.iter().map(text)
    });
    let faults: Vec<String> = faults.collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Exit::Invalid, faults.join("\n"))
            .hint("set it, or give it a default or a value in the config")),
    }
}

/// Whether a server that the client starts is behind a shim already.
fn is_managed(server: &ConfiguredServer) -> bool {
    server.entry.is_governed && !server.entry.is_disabled
}

fn managed_failure(server: &ConfiguredServer, search: &SearchContext<'_>) -> Failure {
    let path = server.config.display();
    let governed =
        format!("config already managed by Tapegate: the server `{}` in `{path}`", server.id);
    let config = resolved(&server.config);
    let is_of_session = config_guard::has_backup(&config)
        && !is_governed_before_session(&config, server.format, &server.place);
    let place = place_texts(&server.place);
    let record = || {
        let records = InstalledConfigs::new(&search.user_state_dir().ok()?);
        records.get(&config).ok()?.filter(|record| record.entries.contains(&place))
    };
    let (message, hint) = if is_of_session {
        let unwrap = program_name::command("unwrap");
        let message = format!("{governed} is behind the shim of a session");
        (message, format!("restore the original config with `{unwrap}`"))
    } else if let Some(record) = record() {
        let of_custom = if record.client == CUSTOM.id {
            format!(" --config-path {path}")
        } else {
            String::new()
        };
        let command = |verb: &str| {
            program_name::command(format!("agents {verb} {}{of_custom}", record.client))
        };
        let (install, uninstall) = (command("install"), command("uninstall"));
        let message = format!("{governed} was put behind a shim by `agents install`");
        let hint = format!(
            "run the agent without `wrap`, because its servers are governed; `{install}` takes in \
             those that were added since. For a session of `wrap`, run `{uninstall}` first"
        );
        (message, hint)
    } else {
        let hint = "run the agent without `wrap`; or take the shim off this entry by hand first";
        (format!("{governed} is behind a shim"), hint.to_owned())
    };
    Failure::new(Exit::Findings, message).hint(hint)
}

pub(super) fn context<'a>(search: &'a SearchContext<'_>) -> DiscoveryContext<'a> {
    DiscoveryContext { folder: &search.folder, variable: search.variable }
}
