//! `tapegate demo`

use std::io::Write;

use crate::exit::Exit;

/// See it work: a built-in agent and server, recorded
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, _out: &mut dyn Write) -> anyhow::Result<Exit> {
    Ok(Exit::Ok)
}
