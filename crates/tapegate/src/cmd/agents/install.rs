//! `tapegate agents install`

use std::io::Write;
use std::path::{Path, PathBuf};

use tapegate_agents::client_table::McpClient;
use tapegate_agents::discovery::{ConfigScope, ConfiguredServer, PlaceStep, ServerScan};
use tapegate_agents::installation::{editable, entry_name, place_texts};
use tapegate_agents::rewrite::{EntryRewrite, ShimCommand};
use tapegate_agents::shim_entry::{UngovernableEntry, shim_command};
use tapegate_agents::stored_entry::entry_reference;
use tapegate_store::installed_configs::InstalledConfigs;

use super::edit::{EditedConfig, display_path, io_failure};
use super::selection::SelectionArgs;
use crate::cmd::wrap::agent_choice;
use crate::cmd::wrap::config_locks::resolved;
use crate::cmd::wrap::stored_entries::{EntryFolder, StoredEntry};
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;
use crate::terminal_output;

/// Keep the servers of agents behind shims, without `wrap`
///
/// Edits the agents' configs, of this project and of the user, so that each server starts behind a
/// shim with --require-policy: without a policy it does not start. Run it again to take in servers
/// that were added since; nothing else changes. Servers that are disabled, or that a shim cannot
/// connect to, are left as they are and named.
///
/// No hub is needed. An agent that is running must be restarted.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate agents install cursor claude-desktop
  tapegate agents install --all --dry-run
  tapegate agents install vscode --config ~/code/tapegate.yaml
  tapegate agents install custom --config-path ~/.config/my-agent/mcp.json --server files")]
pub(super) struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
    /// The policy of all servers [default: that of the project; for agents that do not start
    /// servers in the project's folder, the one that is found here]
    #[arg(long, value_name = "FILE", visible_alias = "thoughtgate-config")]
    config: Option<PathBuf>,
}

/// What the shims are started with.
struct ShimSettings<'a> {
    search: &'a SearchContext<'a>,
    /// Where command lines go that the client would not pass on as they are written.
    entries: EntryFolder,
    binary: PathBuf,
    /// The policy that the user named.
    named_policy: Option<PathBuf>,
    /// The policy that is found from here.
    found_policy: Option<PathBuf>,
}

/// What became of a config.
struct InstalledReport {
    governed: Vec<String>,
    is_changed: bool,
    left: Vec<(String, String)>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let search = SearchContext::current()?;
    let clients = args.selection.clients()?;
    let settings = ShimSettings::new(&search, args.config.as_deref())?;
    let records = InstalledConfigs::new(&search.user_state_dir()?);
    let mut scans: Vec<(&'static McpClient, ServerScan)> = Vec::new();
    for client in clients {
        let mut scan = args.selection.scan(&search, client)?;
        // Some read the configs of another one.
        scan.leave_out(|path| {
            let mut known = scans.iter().flat_map(|(_, scan)| &scan.configs);
            known.any(|config| config.path == path)
        });
        scans.push((client, scan));
    }
    // For all agents at once, since a server need not be in each of them.
    args.selection.check_servers(scans.iter().flat_map(|(_, scan)| &scan.servers))?;
    let (mut exit, mut count) = (Exit::Ok, 0);
    for (client, scan) in &scans {
        agent_choice::warn_of_exact_rules(client, &search);
        for (path, reason) in &scan.skipped {
            let (path, client) = (path.display(), client.name);
            terminal_output::warn(&format!("{client}, {path}: {reason}"));
        }
        for path in configs(scan) {
            match install(args, &settings, &records, (*client, &path, scan), out) {
                Ok(Some(report)) => {
                    count += report.governed.len();
                    show(&report, client, &display_path(&search, &path), args, out)?;
                }
                Ok(None) => {}
                Err(failure) => {
                    terminal_output::error(&failure.message, failure.hint.as_deref());
                    // The configs of other agents are still installed.
                    exit = failure.exit;
                }
            }
        }
    }
    out.flush()?;
    if exit == Exit::Ok && count == 0 {
        return Err(nothing_to_install(args, &scans).into());
    }
    if count > 0 && !args.selection.dry_run {
        settings.suggest_policy();
    }
    Ok(exit)
}

/// The configs with servers, each once. Those of the machine are not the user's to edit.
fn configs(scan: &ServerScan) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for server in &scan.servers {
        let path = resolved(&server.config);
        if server.scope != ConfigScope::Machine && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Installs one config; `None` if none of its servers is meant.
fn install(
    args: &Args,
    settings: &ShimSettings<'_>,
    records: &InstalledConfigs,
    (client, path, scan): (&'static McpClient, &Path, &ServerScan),
    out: &mut dyn Write,
) -> Result<Option<InstalledReport>, Failure> {
    let servers = scan.servers.iter().filter(|one| resolved(&one.config) == path);
    let servers: Vec<&ConfiguredServer> = servers.collect();
    let is_picked = |one: &ConfiguredServer| args.selection.is_picked(&[&one.name, &one.id]);
    if !servers.iter().any(|one| is_picked(one)) {
        return Ok(None);
    }
    let config =
        EditedConfig::open((records, &settings.entries), client, path, args.selection.dry_run)?;
    // From the text without us, so that repeated installations do not nest shims.
    let base = config.without_us()?;
    for name in &base.conflicts {
        terminal_output::warn(&format!("`{name}` was changed by another program; check it"));
    }
    let own = config.own_rewrites();
    // What was installed stays as it is, so that a second run changes nothing else.
    let keeps = |one: &&EntryRewrite| args.config.is_none() && settings.can_start(&one.shim);
    let mut rewrites: Vec<EntryRewrite> = own.iter().filter(keeps).cloned().collect();
    let (mut left, mut left_out, mut stored) = (Vec::new(), Vec::new(), Vec::new());
    for server in servers.iter().filter_map(|server| server.in_text(&base.text)) {
        if rewrites.iter().any(|one| one.place == server.place) {
            continue;
        }
        let is_own = own.iter().any(|one| one.place == server.place);
        match settings.shim(&server) {
            Err(UngovernableEntry::Governed) => {}
            Ok(_) if !is_own && !is_picked(&server) => left_out.push(place_texts(&server.place)),
            Ok(shim) => {
                let (shim, entry) = settings.entries.stored(&server, shim, None);
                let (place, style) = (server.place, config.notation.style);
                stored.extend(entry.map(|entry| (place.clone(), entry)));
                rewrites.push(EntryRewrite { place, style, shim });
            }
            Err(reason) if is_picked(&server) => left.push((server.name, reason.to_string())),
            Err(_) => {}
        }
    }
    // An entry that cannot be edited must not keep the others from being governed.
    let (good, bad) = editable(&base.text, config.notation.format, rewrites);
    left.extend(bad.into_iter().map(|(one, error)| (entry_name(&one.place), error.to_string())));
    let is_used = |place: &[PlaceStep]| good.iter().any(|one| one.place == place);
    let stored = stored.into_iter().filter(|(place, _)| is_used(place));
    let stored: Vec<StoredEntry> = stored.map(|(_, entry)| entry).collect();
    let text = config.with_entries(&base.text, &good)?;
    let is_changed = text != config.text;
    if args.selection.dry_run {
        out.write_all(config.patch(&text).as_bytes()).map_err(io_failure)?;
        stored.iter().for_each(|entry| terminal_output::info(&entry.meaning()));
    } else if !good.is_empty() || config.record.is_some() {
        let places: Vec<Vec<PlaceStep>> = good.iter().map(|one| one.place.clone()).collect();
        // Only a choice is remembered: later servers must count as bypassed.
        let chosen = if args.selection.has_servers() { left_out } else { Vec::new() };
        config.save(&base.text, &text, &places, chosen, &stored)?;
    }
    let governed = good.iter().map(|one| entry_name(&one.place)).collect();
    Ok(Some(InstalledReport { governed, is_changed, left }))
}

fn show(
    report: &InstalledReport,
    client: &McpClient,
    path: &str,
    args: &Args,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    // The diff says it all, and is for `patch`.
    let is_data = args.selection.dry_run;
    let mut line = |text: String| match is_data {
        true => {
            terminal_output::info(&text);
            Ok(())
        }
        false => writeln!(out, "{text}"),
    };
    let names = report.governed.join(", ");
    let head = format!("{} ({})", path, client.name);
    match (report.is_changed, report.governed.is_empty()) {
        (true, _) if is_data => line(format!("{head}: would be governed: {names}"))?,
        (true, _) => line(format!("{head}: governed: {names}"))?,
        (false, false) => line(format!("{head}: nothing to change; governed: {names}"))?,
        (false, true) => line(format!("{head}: no server to govern"))?,
    }
    for (name, reason) in &report.left {
        line(format!("  {name}: left as it is: {reason}"))?;
    }
    Ok(())
}

fn nothing_to_install(args: &Args, scans: &[(&'static McpClient, ServerScan)]) -> Failure {
    let is_empty = scans.iter().all(|(_, scan)| scan.servers.is_empty());
    let agents = match scans {
        [(client, _)] => client.name.to_owned(),
        _ => "agents".to_owned(),
    };
    let message = match is_empty {
        true => format!("no MCP server of {agents} was found, so there is nothing to install"),
        false => format!("no server of {agents} can be governed here"),
    };
    let list = program_name::command("agents");
    Failure::new(Exit::Findings, message).hint(match args.selection.names_config() || !is_empty {
        true => format!("`{list}` shows the servers and why they are not governed"),
        false => format!("add a server to the agent's config, or name it with --config-path FILE; `{list}` shows what there is"),
    })
}

impl<'a> ShimSettings<'a> {
    fn new(search: &'a SearchContext<'a>, named: Option<&Path>) -> Result<Self, Failure> {
        let binary =
            std::env::current_exe().and_then(|path| path.canonicalize()).map_err(|error| {
                io_failure(format!("cannot find the path of this program: {error}"))
            })?;
        let named_policy = named.map(|path| search.folder.join(path));
        if let Some(path) = named_policy.as_ref().filter(|path| !path.is_file()) {
            let message = format!("there is no policy `{}`", path.display());
            let hint = format!("write one with `{}`", program_name::command("init"));
            return Err(Failure::new(Exit::Invalid, message).hint(hint));
        }
        let named_policy = named_policy.map(|path| resolved(&path));
        let found_policy = search.config(None)?;
        let entries = EntryFolder::new(search)?;
        Ok(Self { search, entries, binary, named_policy, found_policy })
    }

    /// The command for the entry of a server, or why it stays as it is.
    fn shim(&self, server: &ConfiguredServer) -> Result<ShimCommand, UngovernableEntry> {
        let mut words = vec![self.binary.display().to_string(), "shim".to_owned()];
        // Always: agents do not show that a server runs without a policy.
        words.push("--require-policy".to_owned());
        if let Some(policy) = self.policy_for(server) {
            words.extend(["--config".to_owned(), policy.display().to_string()]);
        }
        shim_command(server, &words)
    }

    /// The policy that the entry names. An agent that starts servers in the project's folder finds
    /// the project's policy there, in every project.
    fn policy_for(&self, server: &ConfiguredServer) -> Option<&Path> {
        // Every shim finds the user's own policy by itself.
        let user_policy = self.search.user_config();
        let is_needed = |path: &&PathBuf| {
            !server.client.starts_in_project
                || server.scope != ConfigScope::User
                || Some(*path) == user_policy.as_ref()
        };
        let found = self.found_policy.as_ref().filter(is_needed);
        self.named_policy.as_ref().or(found).map(PathBuf::as_path)
    }

    /// Whether the program of an installed shim is still there, and its stored command line.
    fn can_start(&self, shim: &ShimCommand) -> bool {
        let (ShimCommand::Before(words) | ShimCommand::Instead(words)) = shim;
        words.first().is_some_and(|program| Path::new(program).is_file())
            && entry_reference(words).is_none_or(|reference| self.entries.has(reference))
    }

    /// Says what is missing for the servers to start.
    fn suggest_policy(&self) {
        match self.named_policy.as_ref().or(self.found_policy.as_ref()) {
            Some(_) => terminal_output::suggest("restart agents that are running"),
            None => {
                terminal_output::warn(
                    "there is no policy here, and these servers start only with one",
                );
                let init = program_name::command("init ~/.config/tapegate/tapegate.yaml");
                terminal_output::suggest(&format!(
                    "write a policy for all projects with `{init}`, and restart agents that are running"
                ));
            }
        }
    }
}
