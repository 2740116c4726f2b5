//! `tapegate man`: prints manual pages.

use std::io::Write;

use clap_mangen::Man;

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::program_name;

/// Print the manual page
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tapegate man | man -l -\n  tapegate man record | man -l -")]
pub(crate) struct Args {
    /// The command to describe [default: tapegate itself]
    command: Option<String>,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut whole = cli::command();
    // This sets the full names of subcommands (`tapegate …`).
    whole.build();
    let man = match &args.command {
        None => Man::new(whole),
        Some(name) => {
            let found = whole.get_subcommands().find(|command| command.get_name() == name).cloned();
            let unknown = || {
                Failure::new(Exit::Usage, format!("there is no command `{name}`"))
                    .hint(format!("`{}` lists them", program_name::command("--help")))
            };
            Man::new(found.ok_or_else(unknown)?)
        }
    };
    man.render(out)?;
    Ok(Exit::Ok)
}
