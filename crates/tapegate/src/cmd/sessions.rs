//! `tapegate sessions`: shows the recordings of the bash tool. `cuff record` is the same.

mod clean;
mod export;
mod failure;
mod generate;
mod list;
mod recordings;
mod show;
mod stats;

use std::io::Write;

use clap::Subcommand;

use crate::exit::Exit;

/// Show recorded bash sessions, and generate policies from them
///
/// `tapegate bash` records every command in a session below `.cuff/recordings`, or where its
/// settings say.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate sessions list --since 7d
  tapegate sessions show 143052 --entries --output
  tapegate sessions stats --since 30d
  tapegate sessions generate --since 7d --output policies.yml
  tapegate sessions clean --older-than 90d --dry-run
  tapegate sessions export all --format sqlite --output recordings.db

Exit codes: 0 done, 1 no such session or a file could not be read or written, 2 wrong option, 64
wrong usage.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    List(list::Args),
    Show(show::Args),
    Stats(stats::Args),
    Generate(generate::Args),
    Clean(clean::Args),
    Export(export::Args),
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let done = match &args.command {
        SessionsCommand::List(args) => list::run(args, out),
        SessionsCommand::Show(args) => show::run(args, out),
        SessionsCommand::Stats(args) => stats::run(args, out),
        SessionsCommand::Generate(args) => generate::run(args, out),
        SessionsCommand::Clean(args) => clean::run(args, out),
        SessionsCommand::Export(args) => export::run(args, out),
    };
    failure::explain(done)
}
