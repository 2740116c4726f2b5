//! `tapegate serve`: runs a scenario as an MCP server.

mod args;
mod danger;
mod library;
mod listing;
mod observer;
mod plan;
mod session;

pub(crate) use args::Args;

use std::io::Write;

use crate::exit::Exit;

pub(crate) fn run(args: Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if args.list {
        return listing::print(args.format.unwrap_or(args::Format::Text), out);
    }
    session::run(plan::Plan::new(args)?)
}
