//! `tapegate wrap`: runs an agent with its MCP servers behind shims.

pub(crate) mod agent_choice;
mod args;
pub(crate) mod config_locks;
mod dry_run;
mod entry_table;
mod overlay;
pub(crate) mod overlay_folder;
mod policy_in_force;
mod session;
mod session_hub;
pub(crate) mod session_notes;
mod shim_options;
pub(crate) mod stored_entries;
mod tape_folder;

use std::io::Write;

pub(crate) use args::{Args, agent_types};

use crate::exit::Exit;
use crate::settings::SearchContext;

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let search = SearchContext::current()?;
    let agent = agent_choice::choose(args, &search)?;
    agent_choice::warn_of_exact_rules(agent.client, &search);
    match args.dry_run {
        true => dry_run::run(args, &search, &agent, out),
        false => session::run(args, &search, &agent),
    }
}
