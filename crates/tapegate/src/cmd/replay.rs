//! `tapegate replay`: plays a tape as an MCP server.

mod args;
mod plan;
mod reporter;
mod session;
mod tape_copy;

pub(crate) use args::Args;

use crate::exit::Exit;

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    args.tape.entries.apply();
    session::run(plan::ReplayPlan::new(args)?)
}
