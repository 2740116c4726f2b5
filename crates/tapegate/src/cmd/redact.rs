//! `tapegate redact`: masks secrets on an existing tape.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapegate_core::tape::TapeLine;
use tapegate_policy::redact::{self, RedactionReport, Redactor, TapeError};
use tapegate_store::replacement::ReplacementFile;
use tapegate_store::tape_source::TapeSource;
use tapegate_store::{OpenError, tape_writer};

use crate::entry_limit::EntryArgs;
use crate::exit::{Exit, Failure};
use crate::output_file::file_only_parser;
use crate::program_name;
use crate::redaction::RedactArgs;
use crate::terminal_output;
use crate::views::{plural, visible_text};

/// Why the tape is not printed.
const SUMMARY: &str = "a tape may take a second file beside it, so it is not printed; name a file";

/// Mask secrets on an existing tape
///
/// Only masked values change. Values that replay needs are never masked: ids, methods, names,
/// cursors, schemas. Equal secrets get equal placeholders, so that `replay` still finds the answer
/// to a live request.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("target").args(["output", "in_place"]).required(true))]
#[command(after_help = "\
Examples:
  tapegate redact session.jsonl -o shared.jsonl --redact secrets
  tapegate redact session.jsonl --in-place --redact secrets,..password
  tapegate redact s.jsonl -o t.jsonl --redact 'params.arguments.*' --redact-key-file ~/.tape-key

Exit codes: 0 done, 1 lines that are not entries were omitted, 2 the file is not a tape, or was
redacted with another key, 3 a file could not be read or written, 64 wrong usage.")]
pub(crate) struct Args {
    /// The tape, plain or gzip, of any dialect
    #[arg(value_name = "TAPE")]
    tape: PathBuf,
    /// The tape to write
    #[arg(short, long, value_name = "FILE", value_parser = file_only_parser(SUMMARY))]
    output: Option<PathBuf>,
    /// Replace the tape itself
    #[arg(long)]
    in_place: bool,
    #[command(flatten)]
    rules: RedactArgs,
    #[command(flatten)]
    entries: EntryArgs,
    /// Overwrite an existing tape; with --in-place, drop lines that are not entries, such as
    /// a torn last one
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    if args.tape == Path::new("-") {
        let failure = Failure::new(Exit::Usage, "`redact` does not read standard input as `-`");
        return Err(failure.hint("name the tape, or a pipe: /dev/stdin").into());
    }
    let Some(redactor) = args.rules.redactor()? else {
        let failure = Failure::new(Exit::Usage, "no rule says what to mask");
        return Err(failure.hint("pass --redact secrets, or a path such as ..password").into());
    };
    // A pipe can be read only once; its headers are read while it is rewritten.
    let redactor = match args.tape.metadata().is_ok_and(|tape| tape.file_type().is_fifo()) {
        true => redactor,
        false => redactor_for_tape(&args.tape, redactor)?,
    };
    let output = args.output.as_ref().unwrap_or(&args.tape);
    let report = rewrite(args, &args.tape, output, &redactor)?;
    let lines_lost =
        |report: &RedactionReport| report.skipped_lines + u64::from(report.torn_bytes.is_some());
    let mut skipped = lines_lost(&report);
    print_counts(output, &report, out)?;
    let (anomaly_file, beside_output) =
        (tape_writer::anomaly_path(&args.tape), tape_writer::anomaly_path(output));
    if anomaly_file.exists() {
        // The same secrets may be in frames that are not messages.
        let beside = rewrite(args, &anomaly_file, &beside_output, &redactor)?;
        skipped += lines_lost(&beside);
        print_counts(&beside_output, &beside, out)?;
    } else if args.force && beside_output.symlink_metadata().is_ok_and(|there| there.is_file()) {
        // The file beside the overwritten tape would be taken for this tape's.
        let name = beside_output.display();
        fs::remove_file(&beside_output).with_context(|| format!("cannot remove `{name}`"))?;
    }
    if report.headers == 0 && report.lines > 0 {
        let line = program_name::command(format!(
            "convert -r {} -o FILE --to thoughtjack",
            visible_text::path(&args.tape)
        ));
        terminal_output::warn(&format!(
            "the tape has no header to say how it was redacted, so `replay` cannot match a live \
             request with what was masked; to allow that, redact the output of `{line}`"
        ));
    }
    Ok(if skipped > 0 { Exit::Findings } else { Exit::Ok })
}

fn print_counts(file: &Path, report: &RedactionReport, out: &mut dyn Write) -> io::Result<()> {
    let (values, lines) = (plural(report.places, "value"), plural(report.lines, "line"));
    let name = file.display();
    writeln!(out, "{name}: {values} masked, on {} of {lines}", report.lines_masked)
}

/// The redactor for a tape that may already be redacted with other rules and its own key.
fn redactor_for_tape(path: &Path, redactor: Redactor) -> anyhow::Result<Redactor> {
    let name = path.display();
    let mut source = TapeSource::open(path, Box::new(|_, _| ()))
        .with_context(|| format!("cannot read `{name}`"))?;
    let Some(Ok(first)) = source.reader.next() else { return Ok(redactor) };
    let TapeLine::Header(header) = first.entry else { return Ok(redactor) };
    redactor.with_tape_rules(&header.extra).map_err(|error| {
        let failure = Failure::new(Exit::Invalid, format!("cannot redact `{name}`: {error}"));
        failure.hint("--redact-key-file must name the key that the tape was redacted with").into()
    })
}

/// Redacts one file into another, or in place.
fn rewrite(
    args: &Args,
    from: &Path,
    to: &Path,
    redactor: &Redactor,
) -> anyhow::Result<RedactionReport> {
    let name = from.display();
    let source = TapeSource::open(from, terminal_output::progress(from))
        .with_context(|| format!("cannot read `{name}`"))?;
    let mut tape =
        ReplacementFile::create(to, args.force || args.in_place).map_err(open_failure)?;
    let report =
        redact::redact_tape(source.reader, &mut tape, redactor).map_err(|error| match error {
            TapeError::NotATape | TapeError::Version { .. } => {
                Failure::new(Exit::Invalid, format!("cannot redact `{name}`: {error}")).into()
            }
            error => anyhow::Error::new(error).context(format!("cannot redact `{name}`")),
        })?;
    // The file beside a tape may be empty.
    if report.lines == 0 && from == args.tape {
        let message =
            format!("cannot redact `{name}`: it is not a tape: nothing in it is an entry");
        return Err(Failure::new(Exit::Invalid, message).into());
    }
    for skipped in &report.skipped {
        terminal_output::warn(&format!(
            "{name}:{}: left out: {}",
            skipped.line, skipped.message_text
        ));
    }
    let more = report.skipped_lines - report.skipped.len() as u64;
    if more > 0 {
        terminal_output::warn(&format!("{name}: omitted {more} more lines that are not entries"));
    }
    if let Some(bytes) = report.torn_bytes {
        let s = if bytes == 1 { "" } else { "s" };
        let message = "ends in the middle of an entry";
        terminal_output::warn(&format!("{name}: {message}; its {bytes} byte{s} are left out"));
    }
    // Before the commit: until then the old tape is untouched.
    let loses_lines = !report.skipped.is_empty() || report.torn_bytes.is_some();
    if args.in_place && !args.force && loses_lines {
        let message = format!("`{name}` has lines that are not entries and would be lost");
        let failure = Failure::new(Exit::Findings, message);
        return Err(failure.hint("write another tape with -o, or pass --force").into());
    }
    tape.commit().map_err(open_failure)?;
    Ok(report)
}

fn open_failure(error: OpenError) -> Failure {
    let failure = Failure::new(Exit::Io, &error);
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
