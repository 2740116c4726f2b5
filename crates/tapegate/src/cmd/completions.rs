//! `tapegate completions`: prints a completion script for a shell.

use std::io::Write;

use crate::cli;
use crate::exit::Exit;
use crate::program_name;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tapegate completions bash > ~/.local/share/bash-completion/completions/tapegate"
)]
pub(crate) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), program_name::name(), &mut text);
    out.write_all(&text)?;
    Ok(Exit::Ok)
}
