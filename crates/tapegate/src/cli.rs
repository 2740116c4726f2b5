//! From a command line to a command.
//!
//! `record`, `tape` and `shim` stand between an agent and its server, often a dozen at a time, so they
//! are parsed by themselves, before the full command line is built.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cmd::{
    approvals, check, completions, convert, demo, hub, init, log, man, policy, record, redact,
    replay, serve, shim, show, stats, verify,
};
use crate::exit::{self, Exit};
use crate::talk;
use crate::views::visible;

/// Records, replays and gates what an AI agent and its MCP servers say to each other.
///
/// Tapegate sits on the wire between an agent and an MCP server. `record` changes nothing and keeps a
/// tape of every message; `shim` also decides about every call, by a policy. Put `tapegate record -o
/// /tmp/tapes/ --` or `tapegate shim --` in front of a server's command line in any client's config,
/// and use the client as before.
#[derive(Debug, Parser)]
#[command(name = "tapegate", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  tapegate demo                                    see it work, nothing to install
  tapegate record -o s.jsonl -- npx -y @modelcontextprotocol/server-everything
  tapegate init                                    write a policy to start with
  tapegate shim --server-id files -- CMD ARGS      let through what the policy permits
  tapegate approvals list                          which calls wait for a person?
  tapegate replay -r s.jsonl                       the tape in the server's place
  tapegate verify -r s.jsonl -- node server.js     what has changed since
  tapegate serve --scenario rug-pull --expect      an attack: does the agent fall for it?
  tapegate show s.jsonl                            a tape as a timeline
  tapegate check s.jsonl
  tapegate convert -r s.jsonl -o s.yaml            a scenario to edit

Exit codes: 0 ok, 1 findings, 2 invalid input, 3 I/O, 4 transport, 5 a scenario gave
up, 6 not on the tape or not safe, 64 usage, 130/143 signals; record, tape and shim hand on the server's code.";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Init(init::Args),
    Record(record::RecordArgs),
    Tape(record::TapeArgs),
    Shim(shim::Args),
    Hub(hub::Args),
    Replay(replay::Args),
    Serve(serve::Args),
    Verify(verify::Args),
    Check(check::Args),
    Show(show::Args),
    Stats(stats::Args),
    Convert(convert::Args),
    Policy(policy::Args),
    Redact(redact::Args),
    Approvals(approvals::Args),
    Log(log::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs the command that `argv` names.
pub(crate) fn run(argv: Vec<OsString>) -> Exit {
    let argv = by_link(argv);
    let done = match argv.get(1).and_then(|word| word.to_str()) {
        Some("record") => alone::<record::RecordArgs>("record", &argv).map(record::record),
        Some("tape") => alone::<record::TapeArgs>("tape", &argv).map(record::tape),
        Some("shim") => alone::<shim::Args>("shim", &argv).map(shim::run),
        _ => Cli::try_parse_from(&argv).map(|cli| dispatch(cli.command)),
    };
    match done {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => exit::explain(&error),
        Err(error) => {
            let exit = usage(&error, &argv);
            if argv.get(1).is_some_and(|word| word == "shim") {
                shim::answer_misuse(&error, &argv);
            }
            exit
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<Exit> {
    let out = &mut std::io::stdout().lock();
    match command {
        Command::Demo(args) => demo::run(&args, out),
        Command::Init(args) => init::run(&args, out),
        Command::Record(args) => record::record(args),
        Command::Tape(args) => record::tape(args),
        Command::Shim(args) => shim::run(args),
        Command::Hub(args) => hub::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Serve(args) => serve::run(args, out),
        Command::Verify(args) => verify::run(args, out),
        Command::Check(args) => check::run(&args, out),
        Command::Show(args) => show::run(&args, out),
        Command::Stats(args) => stats::run(&args, out),
        Command::Convert(args) => convert::run(&args, out),
        Command::Policy(args) => policy::run(args, out),
        Command::Redact(args) => redact::run(&args, out),
        Command::Approvals(args) => approvals::run(&args, out),
        Command::Log(args) => log::run(&args, out),
        Command::Completions(args) => completions::run(&args, out),
        Command::Man(args) => man::run(&args, out),
    }
}

/// The whole command line, for everything that is generated from it.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Parses one command by itself.
fn alone<A: clap::Args + FromArgMatches>(
    name: &'static str,
    argv: &[OsString],
) -> clap::error::Result<A> {
    let command = clap::Command::new(name).bin_name(format!("tapegate {name}")).max_term_width(100);
    let matches = A::augment_args(command).try_get_matches_from(&argv[1..])?;
    A::from_arg_matches(&matches)
}

/// Rewrites the command line of a seed's name, by which we may be called through a link.
fn by_link(argv: Vec<OsString>) -> Vec<OsString> {
    let name = argv.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
    match name {
        Some("overwatch-mcp-tape") => {
            let tape = [OsString::from("tapegate"), OsString::from("tape")];
            tape.into_iter().chain(argv.into_iter().skip(1)).collect()
        }
        _ => as_serve(argv),
    }
}

/// Rewrites what the seed calls `server run`, `server validate`, `server list` and `scenarios list`,
/// by whatever name we are called.
fn as_serve(mut argv: Vec<OsString>) -> Vec<OsString> {
    let word = |at: usize| argv.get(at).and_then(|word| word.to_str());
    let (taken, ours): (usize, &[&str]) = match (word(1), word(2)) {
        (Some("server"), Some("run")) => (2, &["serve"]),
        (Some("server"), Some("validate")) => (2, &["check"]),
        (Some("server" | "scenarios"), Some("list")) => (2, &["serve", "--list"]),
        (Some("server"), _) => (1, &["serve"]),
        _ => return argv,
    };
    argv.splice(1..=taken, ours.iter().map(OsString::from));
    argv
}

fn usage(error: &clap::Error, argv: &[OsString]) -> Exit {
    // Help and version go to standard output and are not an error.
    match misread(argv).filter(|_| error.use_stderr()) {
        Some(shown) => talk::plain(&shown.render().to_string()),
        None => error.print().unwrap_or_default(),
    }
    let stray = error.get(clap::error::ContextKind::InvalidArg).map(ToString::to_string);
    let stray =
        stray.filter(|word| error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-'));
    match (argv.get(1).and_then(|word| word.to_str()), stray) {
        (Some("record" | "tape" | "shim"), Some(_)) => {
            talk::hint("the server's command line goes after `--`");
        }
        (Some("replay" | "verify" | "convert"), Some(_)) if !names_a_tape(argv) => {
            talk::hint("the tape goes after `-r`");
        }
        (Some("replay" | "verify"), Some(_)) => {
            talk::hint("a server's command line goes after `--`");
        }
        (Some("policy"), None) if argv.get(2).is_some_and(|word| word == "check") => {
            talk::hint("policies are checked by `tapegate check tapegate.yaml`");
        }
        _ => {}
    }
    if error.use_stderr() { Exit::Usage } else { Exit::Ok }
}

/// What is wrong with a command line that has letters in it which a terminal would obey: the same, with the letters
/// escaped, since what was misspelt is quoted.
fn misread(argv: &[OsString]) -> Option<clap::Error> {
    let shown =
        |word: &OsString| OsString::from(visible::inline(&word.to_string_lossy(), usize::MAX));
    let shown: Vec<OsString> = argv.iter().map(shown).collect();
    if shown == argv { None } else { Cli::try_parse_from(shown).err() }
}

/// Whether a tape to be played is named on the command line.
fn names_a_tape(argv: &[OsString]) -> bool {
    let mut words = argv.iter().filter_map(|word| word.to_str());
    words.any(|word| word.starts_with("-r") || word.starts_with("--recording"))
}
