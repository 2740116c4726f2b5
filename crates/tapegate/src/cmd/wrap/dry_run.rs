//! `wrap --dry-run`: the changes to each config, as a diff.

use std::fs;
use std::io::{IsTerminal, Write};

use tapegate_agents::discovery::ServerScan;
use tapegate_agents::rewrite::rewrite;

use super::agent_choice::AgentChoice;
use super::args::Args;
use super::config_locks::{ConfigRewrite, has_backup, plan};
use super::entry_table;
use super::overlay;
use super::policy_in_force;
use super::shim_options::{self, ShimOptions};
use super::tape_folder;
use crate::exit::{Exit, Failure};
use crate::settings::SearchContext;
use crate::terminal_output;
use crate::views::{patch, visible_text};

/// The longest argument that is printed whole.
const ARGUMENT_MAX: usize = 2000;

pub(super) fn run(
    args: &Args,
    search: &SearchContext<'_>,
    agent: &AgentChoice,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let scan = agent.scan(search);
    // Before the check, which would only say that the config is managed.
    if let Some((path, _)) = agent.places(search).iter().find(|(path, _)| has_backup(path)) {
        terminal_output::warn(&format!(
            "`{}` is rewritten by a session that still runs or was killed; what follows is not what \
             a session would change",
            path.display()
        ));
    }
    agent.check(&scan, search)?;
    if let Some(tapes) = args.tapes_folder(search)? {
        tape_folder::check(&tapes)?;
    }
    let policy = policy_in_force::before_start(args, search)?;
    let shim = ShimOptions::before_start(args, search, shim_options::own_path(search)?)?;
    match args.overlay {
        true => print_overlay(args, search, (agent, &scan, &shim), out)?,
        false => print_diffs(&plan(&scan, &shim), out)?,
    }
    if !args.overlay {
        for entry in plan(&scan, &shim).iter().flat_map(|config| &config.stored) {
            terminal_output::info(&entry.meaning());
        }
    }
    let table = entry_table::text(&scan, search);
    terminal_output::info(&format!("{} would be started; {policy}\n{table}", agent.client.name));
    if args.governance_port == 0 {
        terminal_output::info("the port of the hub is chosen at the start; here it is 0");
    }
    Ok(Exit::Ok)
}

/// What the agent would be started with. Not the file and the variable themselves: they have what
/// the entries have, which may be secret.
fn print_overlay(
    args: &Args,
    search: &SearchContext<'_>,
    (agent, scan, shim): (&AgentChoice, &ServerScan, &ShimOptions),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let folder = search.user_state_dir()?.join("overlays/SESSION");
    let overlay = overlay::plan((agent, &args.command), scan, shim, search, &folder)?;
    for word in overlay::command_line(&args.command, &overlay) {
        writeln!(out, "argument {}", visible_text::inline(&word.to_string_lossy(), ARGUMENT_MAX))?;
    }
    for (name, _) in &overlay.environment {
        writeln!(out, "variable {name}")?;
    }
    if let Some((name, _)) = &overlay.file {
        writeln!(out, "file     {}", visible_text::path(&folder.join(name)))?;
    }
    Ok(out.flush()?)
}

fn print_diffs(configs: &[ConfigRewrite], out: &mut dyn Write) -> anyhow::Result<()> {
    let palette = terminal_output::palette_of_output();
    let is_terminal = std::io::stdout().is_terminal();
    for config in configs {
        let name = config.path.display().to_string();
        let original = fs::read_to_string(&config.path)
            .map_err(|error| Failure::new(Exit::Io, format!("cannot read `{name}`: {error}")))?;
        let edited = rewrite(&original, config.format, &config.rewrites)
            .map_err(|error| Failure::new(Exit::Invalid, format!("`{name}`: {error}")))?;
        let diff = patch::patch(&name, &original, &edited, palette, is_terminal);
        out.write_all(diff.as_bytes())?;
    }
    Ok(out.flush()?)
}
