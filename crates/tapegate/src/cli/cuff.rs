//! The command line of the name `cuff`: `cuff record` is `sessions`, and `cuff bash` is `bash`.
//!
//! Under our own name, `record` records tapes, so this is a command line of its own.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use super::StandardOutput;
use crate::cmd::{bash, sessions};
use crate::exit::Exit;
use crate::program_name;
use crate::verbosity::{self, VerbosityArgs};

/// Records the shell commands of AI agents, and shows the recordings.
#[derive(Debug, Parser)]
#[command(name = "cuff", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Examples:
  tapegate bash
  tapegate sessions list --since 7d
  tapegate sessions show 143052 --entries

This is tapegate by another name; `tapegate --help` lists its other commands.")]
struct CuffCli {
    #[command(flatten)]
    verbosity: VerbosityArgs,
    #[command(subcommand)]
    command: CuffCommand,
}

#[derive(Debug, Subcommand)]
enum CuffCommand {
    Record(sessions::Args),
    Bash(bash::Args),
}

/// Parses and runs a command line.
pub(super) fn run(argv: &[OsString]) -> clap::error::Result<anyhow::Result<Exit>> {
    let command = program_name::rename_command(CuffCli::command());
    let cli = CuffCli::from_arg_matches(&command.try_get_matches_from(argv)?)?;
    let component = match cli.command {
        CuffCommand::Record(_) => "sessions",
        CuffCommand::Bash(_) => "bash",
    };
    if let Err(failure) = verbosity::choose(cli.verbosity, component) {
        return Ok(Err(failure.into()));
    }
    super::warn_of_variables(component);
    let out = &mut StandardOutput(std::io::stdout().lock());
    Ok(match cli.command {
        CuffCommand::Record(args) => sessions::run(&args, out),
        CuffCommand::Bash(args) => bash::run(&args),
    })
}
