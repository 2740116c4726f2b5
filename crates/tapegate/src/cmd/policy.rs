//! `tapegate policy`: explains, tests, generates and accepts policies.

mod accept;
pub(crate) mod backtest;
mod explain;
pub(crate) mod generate;
mod pin;
mod test;

/// Finds and loads the policy of a command.
pub(crate) mod policy_loader;

use std::io::Write;

pub(crate) use accept::accept_written;

use crate::exit::Exit;

/// Explain, test, backtest, generate and accept policies, and pin what servers offer
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  tapegate policy explain delete_file --arguments '{\"path\":\"/etc/passwd\"}'
  tapegate policy test
  tapegate policy backtest tapes/ --against strict.yaml
  tapegate policy pin --check -- node server.js
  tapegate policy generate session.jsonl -o tapegate.yaml
  tapegate policy accept"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PolicyCommand {
    Explain(explain::Args),
    Test(test::Args),
    Backtest(backtest::Args),
    Pin(pin::Args),
    Generate(generate::Args),
    Accept(accept::Args),
}

pub(crate) fn run(args: Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match args.command {
        PolicyCommand::Explain(args) => explain::run(&args, out),
        PolicyCommand::Test(args) => test::run(&args, out),
        PolicyCommand::Backtest(args) => backtest::run(&args, out),
        PolicyCommand::Pin(args) => pin::run(&args, out),
        PolicyCommand::Generate(args) => generate::run(&args, out),
        PolicyCommand::Accept(args) => accept::run(&args, out),
    }
}
