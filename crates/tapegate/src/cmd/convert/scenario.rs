//! Converts a tape to a scenario, which is read back and compared before it is written.

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use tapegate_core::signature::Signer;
use tapegate_core::tape::index::{BodySource, Index, Indexer};
use tapegate_core::tape::{ByteSink, TapeReader};
use tapegate_policy::redact::mask_upstream;
use tapegate_scenario::convert::{
    AssetSink, ConversionOptions, ConversionSummary, ConvertedTape, ScenarioStyle, sizes,
};
use tapegate_scenario::emit;
use tapegate_scenario::load::ScenarioLimits;
use tapegate_store::replacement::ReplacementFile;

use super::assets::AssetFolder;
use super::tape::{self, open_failure};
use super::{Args, ConvertFormat, StyleArg, readback};
use crate::exit::{Exit, Failure};
use crate::verbosity;
use crate::views::json::JsonWriter;
use crate::{tape_loader, terminal_output};

/// The schema of scenarios, for editors; `tapegate check --schema` prints it.
const SCHEMA: &str = "scenario.schema.json";

pub(super) fn convert(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    // Report an existing file before reading the tape.
    let document = match args.to_stdout() {
        true => None,
        false => Some(ReplacementFile::create(&args.output, args.force).map_err(open_failure)?),
    };
    let (index, mut bodies) = open(args)?;
    let (converted, text, folder) = convert_to_fit(args, &index, &mut *bodies)?;
    // Read back before it is written: a scenario that does not load is worse than none.
    readback::check(&args.output, &converted.document, &text, (&folder, args.strict_001))?;
    folder.sync().with_context(|| format!("cannot write `{}.assets`", args.output.display()))?;
    match document {
        None => out.write_all(text.as_bytes())?,
        Some(mut document) => {
            document.put(text.as_bytes());
            document.commit().map_err(open_failure)?;
        }
    }
    // Only now: if the scenario could not be written, its assets are removed again.
    folder.commit();
    print_summary(args, &converted.summary, text.len(), out)?;
    Ok(Exit::Ok)
}

/// With more bytes of messages than this, sequences are written to files from the start.
const LARGE_BYTES: u64 = 256 << 20;
/// How many texts may have their own files.
const FILES_MAX: usize = 10_000;

/// A scenario small enough to be loaded; if it would be too large, sequences go to files.
fn convert_to_fit(
    args: &Args,
    index: &Index,
    bodies: &mut dyn BodySource,
) -> anyhow::Result<(ConvertedTape, String, AssetFolder)> {
    let most = ScenarioLimits::default().config_bytes;
    let bytes_max = if args.to_stdout() { usize::MAX } else { most };
    // The scenario is first built in memory, so it must be small.
    let (bytes, inline_bytes) = sizes(index, args.max_inline_bytes);
    let is_large = bytes > LARGE_BYTES || inline_bytes > 8 * most as u64;
    if args.to_stdout() && bytes > LARGE_BYTES {
        let message = "the tape is too large for a scenario on standard output";
        return Err(Failure::new(Exit::Invalid, message).hint("name a file with -o").into());
    }
    let mut in_files = is_large;
    loop {
        let mut folder = AssetFolder::next_to(&args.output);
        let mut converted = convert_once(args, index, bodies, (&mut folder, bytes_max, in_files))?;
        let text = scenario_text(args, &converted);
        let too_large = text.len() > most
            || converted.summary.answers_left_out > 0
            || converted.summary.spilled.0 > FILES_MAX;
        if !too_large || in_files || args.to_stdout() {
            if text.len() > most {
                let bytes = text.len();
                let warning = format!("the scenario has {bytes} bytes; at most {most} can be read");
                converted.summary.warnings.push(warning);
            }
            return Ok((converted, text, folder));
        }
        in_files = true;
    }
}

/// Opens the tape with its bodies.
fn open(args: &Args) -> anyhow::Result<(Index, Box<dyn BodySource>)> {
    if let Some(session) = tape::session(&args.recording)? {
        let mut text = Vec::new();
        session.write(tape::TOOL, &mut text);
        return Ok((index(&text), Box::new(MemoryBodies(text))));
    }
    let loaded = tape_loader::load_without_too_long(
        &args.recording,
        &Signer::default(),
        verbosity::is_quiet(),
    )?;
    if let Some(number) = args.session
        && number as usize > loaded.index.sessions().len()
    {
        let count = loaded.index.sessions().len();
        let message = format!("the tape has no session {number}, only {count}");
        return Err(Failure::new(Exit::Usage, message).into());
    }
    Ok((loaded.index, Box::new(loaded.body_reader)))
}

/// The index of a tape in memory.
fn index(text: &[u8]) -> Index {
    let mut indexer = Indexer::new(Signer::default());
    let mut reader = TapeReader::new(text);
    while let Some(line) = reader.next() {
        if let Ok(line) = line {
            indexer.push(&line);
        }
    }
    indexer.finish().0
}

/// The bodies of a tape in memory.
struct MemoryBodies(Vec<u8>);

impl BodySource for MemoryBodies {
    fn body(&mut self, offset: u64, length: u32) -> io::Result<&[u8]> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(length as usize);
        self.0.get(start..end).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

fn convert_once(
    args: &Args,
    index: &Index,
    bodies: &mut dyn BodySource,
    (assets, bytes_max, sequences_in_files): (&mut dyn AssetSink, usize, bool),
) -> anyhow::Result<ConvertedTape> {
    let tape = name_of(&args.recording);
    let progress = RefCell::new(terminal_output::progress(&args.output));
    let options = ConversionOptions {
        style: match args.style {
            StyleArg::Simple => ScenarioStyle::Simple,
            StyleArg::Phased => ScenarioStyle::Phased,
        },
        phase_after: args.phase_after,
        strict: args.strict_001,
        session: args.session,
        match_arguments: args.match_arguments,
        tape: &tape,
        name: args.name.as_deref(),
        schema: Some(SCHEMA),
        inline_bytes_max: if args.to_stdout() { usize::MAX } else { args.max_inline_bytes },
        bytes_max,
        sequences_in_files,
        mask: &mask_upstream,
        progress: &|done, total| (progress.borrow_mut())(done, total),
    };
    let convert = tapegate_scenario::convert::convert(index, bodies, assets, &options);
    convert.with_context(|| format!("cannot convert `{}`", args.recording.display()))
}

/// The text of a scenario. Readers of the old schema take every `$` for the start of a variable,
/// even in comments and keys.
fn scenario_text(args: &Args, converted: &ConvertedTape) -> String {
    let text = emit::write(&converted.document);
    if args.strict_001 { text.replace('$', "$$") } else { text }
}

fn name_of(path: &Path) -> String {
    match path.file_name() {
        Some(name) if path != Path::new("-") => name.to_string_lossy().into_owned(),
        _ => "standard input".to_owned(),
    }
}

fn print_summary(
    args: &Args,
    summary: &ConversionSummary,
    bytes: usize,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    for warning in summary.warnings.iter().filter(|_| !verbosity::is_quiet()) {
        terminal_output::warn(warning);
    }
    let text = match args.format {
        ConvertFormat::Json => {
            let mut text = json(args, summary, bytes);
            text.push(b'\n');
            text
        }
        ConvertFormat::Text if verbosity::is_quiet() => Vec::new(),
        ConvertFormat::Text => summary_text(args, summary).into_bytes(),
    };
    match args.to_stdout() {
        // The scenario has already been printed.
        true if args.format == ConvertFormat::Text => {
            let text = String::from_utf8(text).unwrap_or_default();
            text.lines().for_each(terminal_output::info);
        }
        true => {}
        false => out.write_all(&text)?,
    }
    Ok(())
}

fn summary_text(args: &Args, summary: &ConversionSummary) -> String {
    let name = args.output.display();
    let counted = |count: u64, one: &str, many: &str| {
        let word = if count == 1 { one } else { many };
        (count > 0).then(|| format!("{count} {word}"))
    };
    let parts = [
        counted(summary.tools as u64, "tool", "tools"),
        counted(summary.resources as u64, "resource", "resources"),
        counted(summary.templates as u64, "template", "templates"),
        counted(summary.prompts as u64, "prompt", "prompts"),
        counted(summary.methods as u64, "other method", "other methods"),
    ];
    let uses = [
        counted(summary.calls, "call", "calls"),
        counted(summary.reads, "read", "reads"),
        counted(summary.gets, "prompt fetched", "prompts fetched"),
    ];
    let join = |parts: &[Option<String>], none: &str| {
        let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
        if parts.is_empty() { none.to_owned() } else { parts.join(", ") }
    };
    let found = join(&parts, "no tools, resources or prompts");
    let mut text = format!("{name}: {found} from {}\n", join(&uses, "no calls"));
    if let Some(after) = summary.attack_after {
        text += &format!("  calls 1 to {after} are benign; edit the phase `attack`\n");
    }
    if let (count @ 1.., bytes) = summary.spilled {
        let files = if count == 1 { "file" } else { "files" };
        text += &format!("  {count} {files} ({bytes} bytes) in {name}.assets/\n");
    }
    if summary.left_out > 0 {
        let left_out = summary.left_out;
        let s = if left_out == 1 { "" } else { "s" };
        text += &format!("  left out: {left_out} message{s} the server sent outside of any call\n");
    }
    text
}

fn json(args: &Args, summary: &ConversionSummary, bytes: usize) -> Vec<u8> {
    JsonWriter::object(|it| {
        it.text("output", &args.output.display().to_string());
        it.number("bytes", bytes as u64);
        it.number("tools", summary.tools as u64);
        it.number("resources", summary.resources as u64);
        it.number("resource_templates", summary.templates as u64);
        it.number("prompts", summary.prompts as u64);
        it.number("methods", summary.methods as u64);
        it.number("calls", summary.calls);
        it.number("reads", summary.reads);
        it.number("gets", summary.gets);
        it.texts("phases", &summary.phases);
        if let Some(after) = summary.attack_after {
            it.number("attack_after", after);
        }
        it.number("assets", summary.spilled.0 as u64);
        it.number("asset_bytes", summary.spilled.1);
        it.number("answers_left_out", summary.answers_left_out + summary.answers_too_long);
        it.number("left_out", summary.left_out);
        it.texts("warnings", &summary.warnings);
    })
}
