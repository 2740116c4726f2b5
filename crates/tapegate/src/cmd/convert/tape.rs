//! Converts a tape to the other dialect, with the files beside it.

use std::fs;
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapegate_core::json::{self, JsonObject};
use tapegate_core::tape::{
    AsideLine, BashSession, Dialect, HeaderOrigin, LineFault, LineProblem, MessageLine, TapeLine,
    TranslationStats, Translator, entry_bytes_max,
};
use tapegate_store::loaded_tape::ENTRY_LIMIT_HINT;
use tapegate_store::replacement::ReplacementFile;
use tapegate_store::tape_source::{self, TapeSource};
use tapegate_store::{OpenError, atomic_file, input, tape_writer};

use super::{Args, ConvertDialectArg, ConvertFormat};
use crate::exit::{Exit, Failure};
use crate::tape_loader;
use crate::terminal_output;
use crate::verbosity;
use crate::views::json::JsonWriter;
use crate::views::plural;

/// The program that writes tapes, as named in headers.
pub(super) const TOOL: &str = concat!("tapegate ", env!("CARGO_PKG_VERSION"));

pub(super) fn convert(
    args: &Args,
    to: ConvertDialectArg,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    if args.to_stdout() {
        let failure = Failure::new(Exit::Usage, "a tape cannot go to standard output");
        return Err(failure.hint("name a file with -o; a second file may go beside it").into());
    }
    let to = match to {
        ConvertDialectArg::Thoughtjack => Dialect::Thoughtjack,
        ConvertDialectArg::Overwatch => Dialect::Overwatch,
    };
    if let Some(session) = session(&args.recording)? {
        return from_session(args, session, to, out);
    }
    let done = translate(args, &args.recording, &args.output, to)?;
    print_summary(args, done, out)?;
    Ok(Exit::Ok)
}

/// The bash session in a file, if it contains one.
pub(super) fn session(path: &Path) -> anyhow::Result<Option<BashSession>> {
    let name = path.display();
    if path == Path::new("-") {
        return Ok(None);
    }
    let read = || format!("cannot read `{name}`");
    // A pipe can be read only once.
    if !fs::metadata(path).with_context(read)?.is_file() {
        return Ok(None);
    }
    let mut text = tape_source::text(input::open(path).with_context(read)?).with_context(read)?;
    let mut session = BashSession::default();
    let (mut line, mut number) = (Vec::new(), 0u64);
    // A file that is not JSON may have no line ending for gigabytes.
    if !text.fill_buf().with_context(read)?.trim_ascii_start().starts_with(b"{") {
        return Ok(None);
    }
    while read_line(&mut text, &mut line).with_context(read)? > 0 {
        number += 1;
        if session.is_empty() && !BashSession::is_entry(&line) && !line.trim_ascii().is_empty() {
            return Ok(None);
        }
        if !line.trim_ascii().is_empty()
            && let Err(fault) = session.push(&line)
        {
            if text.fill_buf().with_context(read)?.is_empty() && !session.is_empty() {
                terminal_output::warn(&format!(
                    "{name}:{number}: the session ends in the middle of an entry"
                ));
                break;
            }
            let message = format!("`{name}` is damaged: line {number}: {fault}");
            return Err(Failure::new(Exit::Invalid, message).into());
        }
        line.clear();
    }
    Ok((!session.is_empty()).then_some(session))
}

fn from_session(
    args: &Args,
    session: BashSession,
    to: Dialect,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let commands = session.len() as u64;
    if to == Dialect::Overwatch {
        let message = "a bash session becomes a thoughtjack tape";
        let failure = Failure::new(Exit::Usage, message);
        return Err(failure.hint("pass --to thoughtjack, and convert that").into());
    }
    let mut tape = ReplacementFile::create(&args.output, args.force).map_err(open_failure)?;
    session.write(TOOL, &mut tape);
    tape.commit().map_err(open_failure)?;
    let done = TranslationStats { messages: 2 * commands + 5, ..TranslationStats::default() };
    print_summary(args, done, out)?;
    Ok(Exit::Ok)
}

fn translate(
    args: &Args,
    from: &Path,
    output: &Path,
    to: Dialect,
) -> anyhow::Result<TranslationStats> {
    let name = from.display();
    let mut source = TapeSource::open(from, terminal_output::progress(from))
        .with_context(|| format!("cannot read `{name}`"))?;
    let mut tape = ReplacementFile::create(output, args.force).map_err(open_failure)?;
    let beside_output = tape_writer::anomaly_path(output);
    let mut anomaly_file = ConvertedAnomalies::new(beside_output.clone(), args.force);
    let origin = HeaderOrigin { name: stem(from), tool_version: TOOL.to_owned() };
    let beside_from = tape_writer::anomaly_path(from);
    let mut lines = read_anomaly_lines(&beside_from, to)?;
    let beside_name = beside_from.display().to_string();
    let next = Box::new(move || lines.as_mut().and_then(|lines| next_line(lines, &beside_name)));
    let mut translator = Translator::new(to, origin, read_side_files(from, to)?, next);
    let mut first = true;
    while let Some(line) = source.reader.next() {
        let line = match line {
            Ok(line) => line,
            Err(problem @ LineProblem::Torn { .. }) => {
                terminal_output::warn(&format!("{name}: {problem}"));
                continue;
            }
            Err(LineProblem::Io { source, .. }) => return Err(source.into()),
            Err(problem @ LineProblem::Line { fault: LineFault::TooLong(_), .. }) => {
                let message = format!("`{name}` cannot be converted: {problem}");
                return Err(Failure::new(Exit::Invalid, message).hint(ENTRY_LIMIT_HINT).into());
            }
            Err(problem) => {
                let message = format!("`{name}` is damaged: {problem}");
                return Err(Failure::new(Exit::Invalid, message).into());
            }
        };
        tape_loader::check_version(&name.to_string(), line.line, &line.entry)?;
        if std::mem::take(&mut first) && dialect(&line.entry) == Some(to) {
            let message = format!("`{name}` already has that dialect");
            return Err(Failure::new(Exit::Invalid, message).into());
        }
        translator.line(line.text, &line.entry, &mut tape, &mut anomaly_file).map_err(|fault| {
            Failure::new(Exit::Invalid, format!("`{name}` is damaged: line {}: {fault}", line.line))
        })?;
    }
    for finding in source.findings() {
        terminal_output::warn(&format!("{name}: {}", finding.message));
    }
    let (done, asides) = translator.finish(&mut tape);
    let parts = [beside_output, meta_path(output)];
    // Files that existed before are not ours to remove.
    let new: Vec<&PathBuf> = parts.iter().filter(|path| path.symlink_metadata().is_err()).collect();
    let written = anomaly_file
        .commit()
        .and_then(|()| write_side_files(output, &asides, args.force))
        // The tape last: readers that find it must find what belongs to it.
        .and_then(|()| Ok(tape.commit().map_err(open_failure)?));
    if written.is_err() {
        // Without the tape, the files beside it are useless.
        new.into_iter().for_each(|path| drop(fs::remove_file(path)));
    }
    written.map(|()| done)
}

/// The dialect of a tape, from its first line.
fn dialect(line: &TapeLine<'_>) -> Option<Dialect> {
    match line {
        TapeLine::Header(_)
        | TapeLine::Footer(_)
        | TapeLine::Message(MessageLine { seq: Some(_), .. }) => Some(Dialect::Thoughtjack),
        TapeLine::Message(_) | TapeLine::Bad(_) => Some(Dialect::Overwatch),
        TapeLine::Unknown(_) => None,
    }
}

/// The anomalies file of the new tape, created when there is an anomaly.
struct ConvertedAnomalies {
    path: PathBuf,
    force: bool,
    file: Option<ReplacementFile>,
    error: Option<OpenError>,
}

impl ConvertedAnomalies {
    fn new(path: PathBuf, force: bool) -> Self {
        Self { path, force, file: None, error: None }
    }

    fn commit(self) -> anyhow::Result<()> {
        match (self.error, self.file) {
            (Some(error), _) => Err(open_failure(error).into()),
            (None, Some(file)) => Ok(file.commit().map_err(open_failure)?),
            (None, None) => {
                // The anomalies file of the overwritten tape would be taken for this tape's.
                if self.force && self.path.symlink_metadata().is_ok_and(|there| there.is_file()) {
                    fs::remove_file(&self.path)?;
                }
                Ok(())
            }
        }
    }
}

impl tapegate_core::tape::ByteSink for ConvertedAnomalies {
    fn put(&mut self, bytes: &[u8]) {
        if self.file.is_none() && self.error.is_none() {
            match ReplacementFile::create(&self.path, self.force) {
                Ok(file) => self.file = Some(file),
                Err(error) => self.error = Some(error),
            }
        }
        if let Some(file) = &mut self.file {
            file.put(bytes);
        }
    }
}

type TapeLines = Box<dyn BufRead>;

fn read_anomaly_lines(path: &Path, to: Dialect) -> anyhow::Result<Option<TapeLines>> {
    if to == Dialect::Thoughtjack || !path.exists() {
        return Ok(None);
    }
    let read = || format!("cannot read `{}`", path.display());
    let file = input::open(path).with_context(read)?;
    Ok(Some(tape_source::text(file).with_context(read)?))
}

/// The next line of the file beside a tape that is short enough to be an entry.
fn next_line(lines: &mut TapeLines, name: &str) -> Option<Vec<u8>> {
    loop {
        let mut line = Vec::new();
        let count = read_line(lines, &mut line).unwrap_or(0);
        if count < entry_bytes_max() || line.ends_with(b"\n") {
            return (count > 0).then_some(line);
        }
        let fault = LineFault::TooLong(entry_bytes_max());
        terminal_output::warn(&format!("{name}: omitted a line: {fault}"));
        lines.skip_until(b'\n').ok()?;
    }
}

/// Appends the next line, up to the maximum size of an entry.
fn read_line(text: &mut dyn BufRead, line: &mut Vec<u8>) -> std::io::Result<usize> {
    text.take(entry_bytes_max() as u64).read_until(b'\n', line)
}

/// The file with the headers and footers of an overwatch tape.
fn meta_path(tape: &Path) -> PathBuf {
    let mut name = tape.as_os_str().to_owned();
    name.push(".meta.json");
    name.into()
}

/// The largest file with headers and footers that is read.
const META_BYTES_MAX: u64 = 64 << 20;

fn read_side_files(tape: &Path, to: Dialect) -> anyhow::Result<Vec<AsideLine>> {
    let path = meta_path(tape);
    if to == Dialect::Overwatch || !path.exists() {
        return Ok(Vec::new());
    }
    let name = path.display();
    let text = input::read(&path, META_BYTES_MAX);
    let text = text.with_context(|| format!("cannot read `{name}`"))?;
    let lines = json::member(&text, "lines").unwrap_or(b"[]");
    let read = |item: &&[u8]| {
        let after = std::str::from_utf8(json::member(item, "after")?).ok()?.parse().ok()?;
        let line = json::compact(json::member(item, "line")?).into_owned();
        Some(AsideLine { after, line })
    };
    let items = tapegate_core::frame::array_items(lines);
    let asides: Option<Vec<AsideLine>> = items.iter().map(read).collect();
    asides.ok_or_else(|| {
        Failure::new(Exit::Invalid, format!("`{name}` is not what `convert` writes"))
            .hint("move it away to continue without it")
            .into()
    })
}

fn write_side_files(tape: &Path, asides: &[AsideLine], force: bool) -> anyhow::Result<()> {
    let path = meta_path(tape);
    let name = path.display();
    let there = path.symlink_metadata().is_ok();
    if asides.is_empty() {
        if there && force {
            fs::remove_file(&path).with_context(|| format!("cannot remove `{name}`"))?;
        }
        return Ok(());
    }
    if there && !force {
        let failure = Failure::new(Exit::Io, format!("`{name}` exists already"));
        return Err(failure.hint("pass --force to overwrite it").into());
    }
    let line = |aside: &AsideLine| {
        JsonObject::new().number("after", aside.after).raw("line", &aside.line).finish()
    };
    let lines: Vec<Vec<u8>> = asides.iter().map(line).collect();
    let text = [b"{\"lines\":[\n", &*lines.join(&b",\n"[..]), b"\n]}\n"].concat();
    atomic_file::write(&path, &text).with_context(|| format!("cannot write `{name}`"))
}

fn print_summary(args: &Args, done: TranslationStats, out: &mut dyn Write) -> anyhow::Result<()> {
    let TranslationStats { messages, anomalies, asides } = done;
    let name = args.output.display();
    if args.format == ConvertFormat::Json {
        let text = JsonWriter::object(|it| {
            it.text("output", &name.to_string());
            it.number("messages", messages);
            it.number("anomalies", anomalies);
            it.number("aside", asides);
        });
        out.write_all(&text)?;
        writeln!(out)?;
    } else if !verbosity::is_quiet() {
        let (messages, frames) = (plural(messages, "message"), plural(anomalies, "frame"));
        let verb = if anomalies == 1 { "is not a message" } else { "are not messages" };
        writeln!(out, "{name}: {messages}, {frames} that {verb}")?;
    }
    Ok(())
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').find(|part| !part.is_empty()).unwrap_or("tape").to_owned()
}

pub(super) fn open_failure(error: OpenError) -> Failure {
    let failure = Failure::new(Exit::Io, &error);
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
