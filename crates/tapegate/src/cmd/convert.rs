//! `tapegate convert`: converts a tape to a scenario or to the other dialect.

mod assets;
mod readback;
mod scenario;
mod tape;

use std::io::Write;
use std::path::PathBuf;

use crate::entries::EntryArgs;
use crate::exit::{Exit, Failure};
use crate::loading::is_same_file;

/// Make a scenario of a tape, or a tape of the other dialect
///
/// A scenario is YAML that says how a server behaves, for people to edit and for `tapegate serve` to
/// run. It has the tools, resources and prompts of the tape, and gives the n-th call of each what
/// the n-th call got on the tape. With --style phased it changes after some calls, into whatever
/// you make of the phase `attack`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The tape, of any dialect, compressed or not, or a recorded bash session
    #[arg(short, long, value_name = "TAPE")]
    recording: PathBuf,
    /// The file to write; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How the scenario is laid out
    #[arg(long, value_enum, default_value = "simple")]
    style: StyleWord,
    /// With phased, after how many calls the attack begins; where the tape has the server change
    /// its tools, or after 3, unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    phase_after: Option<u64>,
    /// Use the keys of TJ-SPEC-001 alone; what it has none for becomes text
    #[arg(long = "strict-001")]
    strict_001: bool,
    /// Let answers of tools go by the arguments of a call instead of by its turn
    #[arg(long, conflicts_with = "strict_001")]
    match_arguments: bool,
    /// Convert one session of a tape that has several, counted from 1; else calls are counted over
    /// all of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    session: Option<u32>,
    /// The name of the server, instead of the one on the tape
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Put texts that are longer into files beside the scenario, in FILE.assets/
    #[arg(long, value_name = "BYTES", default_value = "16KB", value_parser = crate::sizes::bytes)]
    max_inline_bytes: usize,
    /// Write a tape of this dialect instead of a scenario
    #[arg(long, value_enum, value_name = "DIALECT", conflicts_with_all = [
        "style", "phase_after", "strict_001", "match_arguments", "session", "name", "max_inline_bytes",
    ])]
    to: Option<DialectWord>,
    #[command(flatten)]
    entries: EntryArgs,
    /// Overwrite what exists already
    #[arg(long)]
    force: bool,
    /// How the summary is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
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
enum StyleWord {
    /// One state that does not change
    Simple,
    /// A benign phase, and one to be made an attack
    Phased,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DialectWord {
    /// Header, numbered messages, footer
    Thoughtjack,
    /// One object a frame
    Overwatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    if is_same_file(&args.recording, &args.output) {
        let failure = Failure::new(Exit::Usage, "-o names the tape that is read");
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
