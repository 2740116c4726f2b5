//! `tapegate replay`: plays a tape as an MCP server.

mod args;
mod copy;
mod plan;
mod session;
mod telling;

pub(crate) use args::Args;

use crate::exit::Exit;

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    args.entries.apply();
    session::run(plan::Plan::new(args)?)
}
