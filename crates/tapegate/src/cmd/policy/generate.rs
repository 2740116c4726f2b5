//! `tapegate policy generate`: makes a policy from the calls on tapes.

use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use tapegate_agents::server_id::id_from;
use tapegate_core::json;
use tapegate_core::side::Side;
use tapegate_core::tape::{LineFault, LineProblem, TapeLine};
use tapegate_policy::generate::{self, GenerateOptions, GeneratedPolicy, RecordedTraffic};
use tapegate_store::atomic_file;
use tapegate_store::tape_source::TapeSource;

use super::accept::accept_written;
use super::backtest::backtest_tape::{self, BacktestTape};
use crate::entry_limit::EntryArgs;
use crate::exit::{Exit, Failure};
use crate::file_type::seems_a_tape;
use crate::output_file::file_only_parser;
use crate::program_name;
use crate::terminal_output;
use crate::views::plural;

/// Why the Cedar policies are not printed.
const NAMED_IN_POLICY: &str = "the policy names the file that holds them; name a file";

/// Generate a policy from tapes: the tools that were used pass, and nothing else
///
/// Each tool, prompt and resource that was used gets one rule. The rule allows a single path
/// exactly, several paths by their common folder, URLs by their hosts and choices by the values
/// that were used; switches such as `force` stay off. Free text, ids and counts may have any value;
/// arguments that were never used are refused. Secrets are not written to the policy. Calls that
/// the server or a policy refused do not count. The policy is loaded and tried on every other call
/// of the tapes before it is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate policy generate session.jsonl -o tapegate.yaml
  tapegate policy generate .tapegate/tapes/ -o tapegate.yaml --cedar tapegate.cedar
  tapegate policy generate --server-id files old.jsonl

Exit codes: 0 done, 2 a tape is invalid or has no calls, 3 a file could not be read or written, 64
wrong usage.")]
pub(crate) struct Args {
    /// Tapes of any dialect, plain or gzip; a folder stands for all tapes in it
    #[arg(required = true, value_name = "TAPE")]
    tapes: Vec<PathBuf>,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Use Cedar policies instead of rules, and write them to this file
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(NAMED_IN_POLICY))]
    cedar: Option<PathBuf>,
    /// The name of the server in the policy [default: taken from each tape]
    #[arg(long, value_name = "NAME")]
    server_id: Option<String>,
    #[command(flatten)]
    entries: EntryArgs,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    let output = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    for path in [output, args.cedar.as_deref()].into_iter().flatten() {
        refuse_tape(path)?;
        check_overwrite(path, args.force)?;
    }
    let traffic = observe_tapes(&args.tapes, args.server_id.as_deref(), &|_| None)?;
    let cedar = args.cedar.as_deref().map(|cedar| relative_name(cedar, output));
    let home = std::env::var("HOME").ok();
    let wish = GenerateOptions { head: head(&traffic, "tapegate policy generate"), cedar, home };
    let made = generate_policy(&traffic, &wish)?;
    made.warnings.iter().for_each(|warning| terminal_output::warn(warning));
    if let (Some(path), Some(text)) = (&args.cedar, &made.cedar) {
        write(path, text)?;
    }
    match output {
        Some(path) => {
            write(path, &made.policy)?;
            accept_written(path)?;
            let name = path.display();
            writeln!(out, "{name}: written from {}", traffic_summary(&traffic))?;
            let line = program_name::command(format!("check {name}"));
            terminal_output::suggest(&format!("read it, then try it: {line}"));
        }
        None => out.write_all(made.policy.as_bytes())?,
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// The calls on tapes by server id: the given id, the one that `known` has for a tape, or the one
/// on the tape.
pub(crate) fn observe_tapes(
    tapes: &[PathBuf],
    server_id: Option<&str>,
    known: &dyn Fn(&BacktestTape) -> Option<String>,
) -> Result<RecordedTraffic, Failure> {
    let (mut traffic, mut stopped) = (RecordedTraffic::default(), 0);
    for tape in backtest_tape::find(tapes)? {
        let named = server_id.map(str::to_owned).or_else(|| known(&tape));
        let server = match (named, tape.server_name(None)) {
            (Some(named), _) => named,
            (None, Some(own)) => id_from(&own).unwrap_or_else(|| "server".to_owned()),
            (None, None) => {
                let name = tape.path.display();
                terminal_output::warn(&format!(
                    "`{name}` does not name its server, so the rules apply to all servers; name \
                     one with --server-id"
                ));
                "*".to_owned()
            }
        };
        stopped += observe_tape(&tape, &server, &mut traffic)?;
    }
    stopped += traffic.refused_count();
    if traffic.is_empty() && stopped > 0 {
        let message_text = "every call on these tapes failed or was refused, so none is an example";
        let hint = "a call that waited for approval and was not approved counts as refused; record \
                    a session that does the work";
        return Err(Failure::new(Exit::Invalid, message_text).hint(hint));
    }
    if traffic.is_empty() {
        let message = "there are no calls on these tapes";
        return Err(
            Failure::new(Exit::Invalid, message).hint("record a session that does the work")
        );
    }
    Ok(traffic)
}

/// Adds the messages of a tape; returns how many of them a gate did not forward.
fn observe_tape(
    tape: &BacktestTape,
    server: &str,
    traffic: &mut RecordedTraffic,
) -> Result<usize, Failure> {
    let path = &tape.path;
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Io, format!("cannot read `{}`: {error}", path.display()))
    };
    let mut source = TapeSource::open(path, terminal_output::progress(path)).map_err(cannot)?;
    let (mut entries, mut stopped) = (0_u64, 0);
    while let Some(next) = source.reader.next() {
        if let Err(problem @ LineProblem::Line { fault: LineFault::TooLong(_), .. }) = &next {
            terminal_output::warn(&format!("{}: left out: {problem}", path.display()));
        }
        let Ok(numbered) = next else { continue };
        entries += 1;
        let TapeLine::Message(message) = &numbered.entry else { continue };
        // Our own answers are refusals, which mark a call as refused; our own requests do not
        // count.
        let counts = !message.ours || message.from == Side::Server;
        let is_refused = was_refused(&message.extra);
        stopped += usize::from(is_refused);
        if counts && !is_refused {
            let session = message.session.as_deref().unwrap_or_default();
            traffic.observe(server, session, message.from, &message.msg);
        }
    }
    // Requests without an answer must not be paired with answers of the next tape.
    traffic.end_tape();
    if entries == 0 {
        let message_text = format!("`{}` is not a tape: nothing in it is an entry", path.display());
        if !tape.by_chance {
            return Err(Failure::new(Exit::Invalid, message_text));
        }
        terminal_output::warn(&message_text);
    }
    Ok(stopped)
}

/// Whether a gate refused to forward this message.
fn was_refused(extra: &[u8]) -> bool {
    let members = [b"{", extra.strip_prefix(b",").unwrap_or_default(), b"}"].concat();
    json::member(&members, "refused").is_some()
}

/// Generates a policy. It is checked before it is returned, so an invalid one is never written.
pub(crate) fn generate_policy(
    traffic: &RecordedTraffic,
    wish: &GenerateOptions,
) -> Result<GeneratedPolicy, Failure> {
    generate::generate(traffic, wish).map_err(|reason| {
        let message = format!("no policy can be made: {reason}");
        let failure = Failure::new(Exit::Invalid, message);
        match wish.cedar {
            Some(_) => failure.hint("rules can express what Cedar cannot: leave out --cedar"),
            None => failure,
        }
    })
}

/// The comment at the top of a generated policy.
pub(crate) fn head(traffic: &RecordedTraffic, by: &str) -> Vec<String> {
    let mut lines = vec![
        format!("Made by `{by}` from tapes: {}.", traffic_summary(traffic)),
        "The tools that were used pass, with arguments like those; nothing else does.".to_owned(),
        "Where a folder or a list of values is too narrow for your work, widen it by hand."
            .to_owned(),
    ];
    if traffic.refused_count() > 0 {
        let calls = plural(traffic.refused_count(), "call");
        lines.push(format!("{calls} that the server answered with an error did not count."));
    }
    lines
}

/// `3 calls of 1 server`.
fn traffic_summary(traffic: &RecordedTraffic) -> String {
    format!("{} of {}", plural(traffic.count(), "call"), plural(traffic.servers().len(), "server"))
}

/// The path of a file as a policy names it: relative if both are in the same folder.
fn relative_name(file: &Path, policy: Option<&Path>) -> String {
    let folder = policy.and_then(Path::parent).unwrap_or(Path::new(""));
    let near = file.parent().unwrap_or(Path::new("")) == folder;
    let name = file.file_name().filter(|_| near).map(PathBuf::from);
    let name = name.or_else(|| std::path::absolute(file).ok());
    name.unwrap_or_else(|| file.to_owned()).to_string_lossy().into_owned()
}

/// Refuses to overwrite a tape with a policy, even with `--force`.
fn refuse_tape(path: &Path) -> Result<(), Failure> {
    if !seems_a_tape(path) {
        return Ok(());
    }
    let message_text = format!("`{}` is a tape, not a policy file", path.display());
    let hint = "name another file to write, such as tapegate.yaml; tapes to read need no flag";
    Err(Failure::new(Exit::Usage, message_text).hint(hint))
}

/// Checks that a file may be written: it does not exist, or `force` is given.
pub(crate) fn check_overwrite(path: &Path, force: bool) -> Result<(), Failure> {
    if !force && path.symlink_metadata().is_ok_and(|there| !there.file_type().is_fifo()) {
        let message_text = format!("`{}` exists already", path.display());
        let hint = "choose another name, or pass --force to overwrite it";
        return Err(Failure::new(Exit::Io, message_text).hint(hint));
    }
    Ok(())
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    atomic_file::write(path, text.as_bytes()).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot write `{}`: {error}", path.display()))
    })
}
