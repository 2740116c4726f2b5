//! `tapegate agents`: which agents and servers are on this machine, and keeping them governed.

mod edit;
mod install;
mod list;
mod selection;
pub(crate) mod survey;
mod uninstall;

use std::io::Write;

use crate::exit::Exit;

/// List agents and their MCP servers, and keep them governed without `wrap`
///
/// Reads the configs of MCP clients, of this project and of the user. `install` edits them so that
/// each server starts behind a shim; `uninstall` puts back what was there. Every byte that is not
/// part of such an edit stays as it is: comments, order, line ends. Originals are kept in the
/// user's state folder.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tapegate agents                            which servers there are, and which are governed
  tapegate agents --format json | jq '.[] | select(.status == \"bypassed\")'
  tapegate agents install --all --dry-run    show what would be changed
  tapegate agents install cursor claude-desktop
  tapegate agents install cursor             again, to take in servers that were added since
  tapegate agents uninstall cursor

Exit codes: 0 done, 1 nothing to install or uninstall, 2 a config is not valid, 3 a config is in use
or could not be written, 64 wrong usage."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<AgentsAction>,
    #[command(flatten)]
    list: list::ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum AgentsAction {
    List(list::ListArgs),
    Install(install::Args),
    Uninstall(uninstall::Args),
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.action {
        None => list::run(&args.list, out),
        Some(AgentsAction::List(args)) => list::run(args, out),
        Some(AgentsAction::Install(args)) => install::run(args, out),
        Some(AgentsAction::Uninstall(args)) => uninstall::run(args, out),
    }
}
