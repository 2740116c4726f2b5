//! Parses the command line and dispatches to a command.
//!
//! `record`, `tape` and `shim` run between an agent and its server, often a dozen at a time, so
//! they are parsed on their own, before the full command line is built.

mod cuff;
mod flag_rules;

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Instant;

use clap::error::{ContextKind, ErrorKind};
use clap::{Args as _, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cmd::{
    agents, approvals, bash, check, completions, convert, demo, hub, init, log, man, policy,
    record, redact, replay, serve, sessions, shim, show, stats, unwrap, verify, wrap,
};
use crate::environment;
use crate::exit::{self, Exit};
use crate::program_name;
use crate::terminal_output;
use crate::verbosity::{self, VerbosityArgs};
use crate::views::visible_text;

/// Records, replays and gates the traffic between an AI agent and its MCP servers.
///
/// Tapegate sits between an agent and an MCP server. `record` forwards every message unchanged and
/// keeps a tape of it; `shim` also checks every call against a policy. Put `tapegate record -o
/// /tmp/tapes/ --` or `tapegate shim --` in front of a server's command line in any client's
/// config, and use the client as before.
#[derive(Debug, Parser)]
#[command(name = "tapegate", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = AFTER_HELP, after_long_help = format!("{AFTER_HELP}\n\n{}", environment::HELP))]
pub(crate) struct Cli {
    #[command(flatten)]
    verbosity: VerbosityArgs,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  tapegate demo                                    see it work, nothing to install
  tapegate record -o s.jsonl -- npx -y @modelcontextprotocol/server-everything
  tapegate init                                    write a starter policy
  tapegate agents                                  list agents, their servers and which are governed
  tapegate agents install cursor                   keep an agent's servers governed
  tapegate shim --server-id files -- CMD ARGS      forward only what the policy permits
  tapegate approvals list                          list calls that wait for approval
  tapegate replay -r s.jsonl                       play the tape as the server
  tapegate verify -r s.jsonl -- node server.js     report what has changed since
  tapegate serve --scenario rug-pull --expect      test an agent with an attack
  tapegate bash                                    serve a bash tool that records every command
  tapegate sessions stats                          count recorded bash commands
  tapegate show s.jsonl                            show a tape as a timeline
  tapegate check s.jsonl
  tapegate convert -r s.jsonl -o s.yaml            make a scenario to edit

Exit codes: 0 ok, 1 findings, 2 invalid input, 3 I/O, 4 transport, 5 a scenario timed out, 6 a
request is not on the tape or an agent is not safe, 64 usage, 130/143 signals. record, tape and shim
exit with the server's code.";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Init(init::Args),
    Wrap(wrap::Args),
    Unwrap(unwrap::Args),
    Record(record::RecordArgs),
    Tape(record::TapeArgs),
    Shim(shim::Args),
    Hub(hub::Args),
    Replay(replay::Args),
    Serve(serve::Args),
    Bash(bash::Args),
    Sessions(sessions::Args),
    Verify(verify::Args),
    Check(check::Args),
    Show(show::Args),
    Stats(stats::Args),
    Convert(convert::Args),
    Policy(policy::Args),
    Redact(redact::Args),
    Agents(agents::Args),
    Approvals(approvals::Args),
    Log(log::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs the command that `argv` names.
pub(crate) fn run(argv: Vec<OsString>) -> Exit {
    let started = Instant::now();
    program_name::set_name(&argv);
    let argv = match program_name::is_cuff() {
        true => argv,
        false => as_serve(as_help(move_command_first(insert_link_command(argv)))),
    };
    let argv = match argv.get(1).is_some_and(|word| word == "shim") && !program_name::is_cuff() {
        true => shim::with_stored_entry(argv),
        false => argv,
    };
    let done = match argv.get(1).and_then(|word| word.to_str()) {
        _ if program_name::is_cuff() => cuff::run(&argv),
        Some("record") => run_single_command::<record::RecordArgs>("record", &argv, record::record),
        Some("tape") => run_single_command::<record::TapeArgs>("tape", &argv, record::tape),
        Some("shim") => run_single_command::<shim::Args>("shim", &argv, shim::run),
        word => run_parsed(word.unwrap_or_default(), &argv),
    };
    let exit = match done {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => exit::explain(&error),
        Err(mut error) => {
            // Behind `--` is the server's command line, so this would not pass the value.
            let suggested = error.get(ContextKind::Suggested).map(ToString::to_string);
            if suggested.is_some_and(|text| text.contains(" as a value, use ")) {
                error.remove(ContextKind::Suggested);
            }
            let exit = usage(&error, &argv);
            if argv.get(1).is_some_and(|word| word == "shim") && !program_name::is_cuff() {
                // A client that has this command line in its config would show no reason otherwise.
                shim::answer_usage_error(&error, &argv);
            }
            exit
        }
    };
    let millis = started.elapsed().as_millis();
    terminal_output::detail(&format!("ended with exit code {} after {millis} ms", exit.code()));
    exit
}

/// Parses the full command line and runs the command it names.
fn run_parsed(word: &str, argv: &[OsString]) -> clap::error::Result<anyhow::Result<Exit>> {
    let matches = command().try_get_matches_from(argv)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let chosen = verbosity::choose(cli.verbosity, word);
    let chosen = chosen.and_then(|()| flag_rules::check(&matches));
    Ok(chosen.map_err(anyhow::Error::from).and_then(|()| {
        warn_of_variables(word);
        dispatch(cli.command)
    }))
}

fn dispatch(command: Command) -> anyhow::Result<Exit> {
    let out = &mut StandardOutput(std::io::stdout().lock());
    match command {
        Command::Demo(args) => demo::run(&args, out),
        Command::Init(args) => init::run(&args, out),
        Command::Wrap(args) => wrap::run(&args, out),
        Command::Unwrap(args) => unwrap::run(&args, out),
        Command::Record(args) => record::record(args),
        Command::Tape(args) => record::tape(args),
        Command::Shim(args) => shim::run(args),
        Command::Hub(args) => hub::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Serve(args) => serve::run(args, out),
        Command::Bash(args) => bash::run(&args),
        Command::Sessions(args) => sessions::run(&args, out),
        Command::Verify(args) => verify::run(args, out),
        Command::Check(args) => check::run(&args, out),
        Command::Show(args) => show::run(&args, out),
        Command::Stats(args) => stats::run(&args, out),
        Command::Convert(args) => convert::run(&args, out),
        Command::Policy(args) => policy::run(args, out),
        Command::Redact(args) => redact::run(&args, out),
        Command::Agents(args) => agents::run(&args, out),
        Command::Approvals(args) => approvals::run(&args, out),
        Command::Log(args) => log::run(&args, out),
        Command::Completions(args) => completions::run(&args, out),
        Command::Man(args) => man::run(&args, out),
    }
}

/// Standard output, whose errors say where it was that something could not be written.
struct StandardOutput<W>(W);

fn name_output(error: io::Error) -> io::Error {
    match error.kind() {
        // The reader has closed it, which is not an error.
        io::ErrorKind::BrokenPipe => error,
        kind => io::Error::new(kind, format!("cannot write to standard output: {error}")),
    }
}

impl<W: Write> Write for StandardOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(name_output)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(name_output)
    }
}

/// Builds the full command line, from which help, completions and man pages are generated.
pub(crate) fn command() -> clap::Command {
    program_name::rename_command(Cli::command().name(program_name::name()))
}

/// Parses and runs a single command without building the full command line.
fn run_single_command<A: clap::Args + FromArgMatches>(
    name: &'static str,
    argv: &[OsString],
    run: fn(A) -> anyhow::Result<Exit>,
) -> clap::error::Result<anyhow::Result<Exit>> {
    // Agents start these often, and parsing with all the other commands takes longer.
    let command = clap::Command::new(name)
        .bin_name(program_name::command(name))
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100);
    let command =
        program_name::rename_command(A::augment_args(VerbosityArgs::augment_args(command)));
    let matches = command.try_get_matches_from(&argv[1..])?;
    let (args, verbosity) =
        (A::from_arg_matches(&matches)?, VerbosityArgs::from_arg_matches(&matches)?);
    let chosen = verbosity::choose(verbosity, name);
    Ok(chosen.map_err(anyhow::Error::from).and_then(|()| {
        warn_of_variables(name);
        run(args)
    }))
}

/// Warns of misspelt variables. `shim` and `hub` do so themselves, because they also log the
/// warning.
fn warn_of_variables(command: &str) {
    if !["shim", "hub", "completions", "man"].contains(&command) {
        environment::warn_of_unknown();
    }
}

/// Inserts `tape` when the binary was started through the link of that name.
fn insert_link_command(mut argv: Vec<OsString>) -> Vec<OsString> {
    if program_name::is_tape() {
        argv.insert(1, OsString::from("tape"));
    }
    argv
}

/// Moves the command's name in front of any global flags that precede it.
fn move_command_first(mut argv: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(word) = argv.get(at).and_then(|word| word.to_str()) {
        at += match word {
            "--quiet" | "--verbose" => 1,
            "--log-format" | "--log-level" => 2,
            _ if word.starts_with("--log-format=") || word.starts_with("--log-level=") => 1,
            _ if is_short_flags(word) => 1,
            _ => break,
        };
    }
    match argv.get(at).and_then(|word| word.to_str()) {
        // The word after `help` is itself the name of a command.
        Some("help") => drop(argv.drain(1..at)),
        Some(word) if !word.starts_with('-') => argv[1..=at].rotate_right(1),
        _ => {}
    }
    argv
}

/// Whether a word consists only of short global flags, such as `-q`.
fn is_short_flags(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|flags| !flags.is_empty() && flags.bytes().all(|flag| b"qv".contains(&flag)))
}

/// Rewrites `approvals help`: its verbs are values and not subcommands, but look like these.
fn as_help(mut argv: Vec<OsString>) -> Vec<OsString> {
    let is_word = |at: usize, word: &str| argv.get(at).is_some_and(|given| given == word);
    if is_word(1, "approvals") && is_word(2, "help") {
        argv.splice(2.., [OsString::from("--help")]);
    }
    argv
}

/// Rewrites the seed's `server run`, `server validate`, `server list` and `scenarios list`,
/// whichever name the binary was started by.
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
    if error.kind() == ErrorKind::DisplayVersion {
        let shown = writeln!(std::io::stdout(), "{}", version());
        return exit_of_output(shown);
    }
    if !error.use_stderr() {
        return exit_of_output(error.print());
    }
    let words: Vec<&str> = argv.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    verbosity::choose_unparsed(&words);
    let hint = usage_hint(error, argv);
    match find_lookalike_characters(argv) {
        Some(display_text) => {
            terminal_output::usage_error(&display_text.render().to_string(), hint.as_deref())
        }
        None if verbosity::is_json() => {
            terminal_output::usage_error(&error.render().to_string(), hint.as_deref());
        }
        None => {
            error.print().unwrap_or_default();
            hint.iter().for_each(|hint| terminal_output::hint(hint));
        }
    }
    Exit::Usage
}

/// The exit code after printing help or a version.
fn exit_of_output(shown: io::Result<()>) -> Exit {
    match shown {
        // The reader has closed it, which is not an error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Io,
        _ => Exit::Ok,
    }
}

/// The version line, with the name the binary was started by.
fn version() -> String {
    let (name, version) = (program_name::name(), env!("CARGO_PKG_VERSION"));
    match name == program_name::PRODUCT {
        true => format!("{name} {version}"),
        false => format!("{name} {version} ({})", program_name::PRODUCT),
    }
}

/// A hint on how to correct a wrong command line.
fn usage_hint(error: &clap::Error, argv: &[OsString]) -> Option<String> {
    if program_name::is_cuff() {
        return None;
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(name) = dashed_file_name(argv)
    {
        return Some(format!("write a name that begins with `-` as `./{name}`"));
    }
    let stray = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    let stray =
        stray.filter(|word| error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-'));
    let hint = match (argv.get(1).and_then(|word| word.to_str()), stray) {
        (Some("record" | "tape" | "shim"), Some(_)) => {
            "the server's command line goes after `--`".to_owned()
        }
        (Some("replay" | "verify" | "convert"), Some(_)) if !names_a_tape(argv) => {
            "the tape goes after `-r`".to_owned()
        }
        (Some("replay" | "verify"), Some(_)) => {
            "a server's command line goes after `--`".to_owned()
        }
        (Some("policy"), None) if argv[2..].iter().any(|word| word == "check") => {
            format!("policies are checked by `{}`", program_name::command("check tapegate.yaml"))
        }
        _ => return None,
    };
    Some(hint)
}

/// A word of ours that is a file name rather than flags: `-x.jsonl`.
fn dashed_file_name(argv: &[OsString]) -> Option<&str> {
    let words = argv.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    let mut dashed = words.filter(|word| word.starts_with('-') && !word.starts_with("--"));
    dashed.find(|word| word.contains('.') && !word.contains('='))
}

/// Parses a command line that contains terminal control characters again with those escaped,
/// because clap quotes the misspelt word in its error.
fn find_lookalike_characters(argv: &[OsString]) -> Option<clap::Error> {
    let display_text =
        |word: &OsString| OsString::from(visible_text::inline(&word.to_string_lossy(), usize::MAX));
    let shown: Vec<OsString> = argv.iter().map(display_text).collect();
    if shown == argv { None } else { command().try_get_matches_from(shown).err() }
}

/// Whether the command line names a tape to play.
fn names_a_tape(argv: &[OsString]) -> bool {
    let mut words = argv.iter().filter_map(|word| word.to_str());
    words.any(|word| word.starts_with("-r") || word.starts_with("--recording"))
}
