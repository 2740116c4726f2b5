//! `tapegate convert`: converts a tape to a scenario or to the other dialect.

mod assets;
mod readback;
mod scenario;
mod tape;

use std::io::Write;
use std::path::PathBuf;

use crate::argument_values::non_empty;
use crate::entry_limit::EntryArgs;
use crate::exit::{Exit, Failure};
use crate::tape_loader::is_same_file;

/// Convert a tape to a scenario, or to another dialect
///
/// A scenario is a YAML file that describes how a server behaves, for people to edit and for
/// `tapegate serve` to run. It has the tools, resources and prompts of the tape, and gives the n-th
/// call of each the answer that the n-th call got on the tape. With --style phased, the server
/// changes after some calls: edit the phase `attack` to say how.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The tape, of any dialect, compressed or not, or a recorded bash session
    #[arg(short, long, value_name = "TAPE")]
    recording: PathBuf,
    /// The file to write; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The layout of the scenario
    #[arg(long, value_enum, default_value = "simple")]
    style: StyleArg,
    /// With phased, the number of calls before the attack begins [default: where the server changes
    /// its tools on the tape, or 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    phase_after: Option<u64>,
    /// Use only keys of TJ-SPEC-001; content that it has no key for becomes text
    #[arg(long = "strict-001")]
    strict_001: bool,
    /// Select a tool's answer by the arguments of the call instead of by its position
    #[arg(long, conflicts_with = "strict_001")]
    match_arguments: bool,
    /// Convert only this session of the tape, counted from 1; without it, calls are counted over
    /// all sessions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    session: Option<u32>,
    /// The name of the server [default: the one on the tape]
    #[arg(long, value_name = "NAME", value_parser = non_empty)]
    name: Option<String>,
    /// Write longer texts to files beside the scenario, in FILE.assets/
    #[arg(long, value_name = "BYTES", default_value = "16KB", value_parser = crate::units::bytes)]
    max_inline_bytes: usize,
    /// Write a tape of this dialect instead of a scenario
    #[arg(long, value_enum, value_name = "DIALECT", conflicts_with_all = [
        "style", "phase_after", "strict_001", "match_arguments", "session", "name", "max_inline_bytes",
    ])]
    to: Option<ConvertDialectArg>,
    #[command(flatten)]
    entries: EntryArgs,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// The format of the summary
    #[arg(long, value_enum, default_value = "text")]
    format: ConvertFormat,
}

const EXAMPLES: &str = "\
Examples:
  tapegate convert -r session.jsonl -o server.yaml
  tapegate convert -r session.jsonl -o attack.yaml --style phased --phase-after 3
  tapegate serve server.yaml
  tapegate convert -r session.jsonl -o old.yaml --strict-001
  tapegate convert -r session.jsonl -o frames.jsonl --to overwatch

Exit codes: 0 done, 2 the tape cannot be converted, 3 a file could not be read or written, 64 wrong
usage.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StyleArg {
    /// One state that does not change
    Simple,
    /// A benign phase, and a phase to edit into an attack
    Phased,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ConvertDialectArg {
    /// Header, numbered messages, footer
    Thoughtjack,
    /// One object per frame
    Overwatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ConvertFormat {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    if is_same_file(&args.recording, &args.output) {
        let failure = Failure::new(Exit::Usage, "-o names the input tape");
        return Err(failure.hint("choose another file").into());
    }
    match args.to {
        Some(to) => tape::convert(args, to, out),
        None => scenario::convert(args, out),
    }
}

impl Args {
    /// Whether the result goes to standard output.
    fn to_stdout(&self) -> bool {
        self.output.as_os_str() == "-"
    }
}
