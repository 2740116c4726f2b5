//! `tapegate serve`: runs a scenario as an MCP server.

mod args;
mod dangerous_features;
mod library;
mod library_list;
mod observer;
mod plan;
mod session;

pub(crate) use args::Args;

use std::io::Write;

use crate::exit::Exit;

pub(crate) fn run(args: Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    // Before the plan, which needs a scenario.
    if args.list {
        return library_list::print(args.format.unwrap_or(args::ServeFormat::Text), out);
    }
    session::run(plan::ServePlan::new(args)?)
}
