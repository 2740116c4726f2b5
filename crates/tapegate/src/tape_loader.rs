//! Loads a tape to be played, for all commands that play one.

use std::fs;
use std::path::{Path, PathBuf};

use tapegate_core::frame::MessageKind;
use tapegate_core::side::Side;
use tapegate_core::signature::Signer;
use tapegate_core::tape::index::{BodySource, Index, NONE};
use tapegate_core::tape::{FormatVersion, TapeHeader, TapeLine, TapeSeverity};
use tapegate_policy::redact::Redactor;
use tapegate_store::loaded_tape::{LoadError, LoadedTape};

use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::redaction::RedactArgs;
use crate::views::divergence::subject_of;
use crate::views::plural;
use crate::{file_type, terminal_output};

/// How many of our own answers are listed.
const OWN_NAMED_MAX: usize = 5;

/// Loads a tape and warns of anything unusual about it.
pub(crate) fn load(path: &Path, signer: &Signer, quiet: bool) -> Result<LoadedTape, Failure> {
    report_loaded(
        path,
        LoadedTape::open(path, signer.clone(), terminal_output::progress(path)),
        quiet,
    )
}

/// The same, but entries that are too long are skipped with a warning.
pub(crate) fn load_without_too_long(
    path: &Path,
    signer: &Signer,
    quiet: bool,
) -> Result<LoadedTape, Failure> {
    report_loaded(
        path,
        LoadedTape::open_without_too_long(path, signer, terminal_output::progress(path)),
        quiet,
    )
}

/// Warns of anything unusual about a tape, or converts the load error.
fn report_loaded(
    path: &Path,
    loaded: Result<LoadedTape, LoadError>,
    quiet: bool,
) -> Result<LoadedTape, Failure> {
    let mut loaded = loaded.map_err(|error| {
        let exit = match error {
            LoadError::Io { .. } | LoadError::TooLong { .. } => Exit::Io,
            LoadError::Refused { .. } => Exit::Invalid,
        };
        let failure = Failure::new(exit, &error);
        if exit == Exit::Invalid && file_type::seems_a_scenario(path) {
            let name = path.display();
            let line = program_name::command(format!("serve {name}"));
            return failure.hint(format!("this seems to be a scenario: run `{line}`"));
        }
        match error.hint() {
            // The library only knows the product's own name.
            Some(hint) => failure.hint(program_name::rename_in_help(hint)),
            None => failure,
        }
    })?;
    let name = path.display();
    for finding in loaded.findings.iter().filter(|_| !quiet) {
        let place = match finding.line {
            0 => format!("{name}: "),
            line => format!("{name}:{line}: "),
        };
        match finding.severity {
            TapeSeverity::Note => terminal_output::info(&format!("{place}{}", finding.message)),
            _ => terminal_output::warn(&format!("{place}{}", finding.message)),
        }
    }
    if !quiet {
        warn_of_own_answers(&mut loaded, &name.to_string());
    }
    Ok(loaded)
}

/// Warns of answers that did not come from the server: they would be played as if they had.
fn warn_of_own_answers(loaded: &mut LoadedTape, name: &str) {
    let LoadedTape { index, body_reader, .. } = loaded;
    let (mut count, mut named) = (0, Vec::<String>::new());
    for slot in (0..index.len() as u32).map(|number| index.entry(number)) {
        let is_answer = matches!(slot.kind, MessageKind::Response | MessageKind::Error);
        if !slot.ours || slot.from != Side::Server || !is_answer {
            continue;
        }
        count += 1;
        if named.len() <= OWN_NAMED_MAX {
            let what = subject_of_answered(index, body_reader, slot.pair);
            if !named.contains(&what) {
                named.push(what);
            }
        }
    }
    if count == 0 {
        return;
    }
    if named.len() > OWN_NAMED_MAX {
        named[OWN_NAMED_MAX] = "and more".to_owned();
    }
    let (answers, are) = (plural(count, "answer"), if count == 1 { "is" } else { "are" });
    let named = named.join(", ");
    terminal_output::warn(&format!(
        "{name}: {answers} on this tape {are} Tapegate's own (`\"by\":\"tapegate\"`), not the server's: \
         {named}"
    ));
}

/// The subject of the request that an answer belongs to.
fn subject_of_answered(index: &Index, bodies: &mut dyn BodySource, request: u32) -> String {
    if request == NONE {
        return "an answer to no request".to_owned();
    }
    let slot = index.entry(request);
    // A body that cannot be read now is reported when it is played.
    bodies.body(slot.offset, slot.length).map(subject_of).unwrap_or_default()
}

/// The redactor the tape was recorded with, so that live messages can be compared with the tape.
pub(crate) fn redactor(
    index: &Index,
    key_file: Option<PathBuf>,
    quiet: bool,
) -> anyhow::Result<Option<Redactor>> {
    let own = RedactArgs { redact: Vec::new(), redact_key_file: key_file }.own_key()?;
    let mut headers = index.headers().iter();
    let read = |header: &TapeHeader<'_>| Redactor::from_header(&header.extra, own.as_ref());
    let Some(first) = headers.by_ref().map(read).find_map(Result::transpose) else {
        return match own {
            None => Ok(None),
            Some(_) => {
                let message = "--redact-key-file has no effect: the tape is not marked as redacted";
                Err(Failure::new(Exit::Usage, message).hint("leave it out").into())
            }
        };
    };
    let first = first.map_err(|error| {
        Failure::new(Exit::Invalid, &error).hint("name the key file with --redact-key-file FILE")
    })?;
    // A tape that was appended to has several headers.
    let same = |other: &Redactor| other.header_extra() == first.header_extra();
    let known = |header| read(header).is_ok_and(|other| other.as_ref().is_none_or(same));
    if !quiet && !headers.all(known) {
        terminal_output::warn(
            "parts of the tape were redacted with different rules or keys; only those of the \
             first part are used",
        );
    }
    Ok(Some(first))
}

/// Refuses the header of a tape whose format this build does not read.
pub(crate) fn check_version(name: &str, line: u64, entry: &TapeLine<'_>) -> Result<(), Failure> {
    let TapeLine::Header(header) = entry else { return Ok(()) };
    match header.format_version() {
        FormatVersion::Other(message) => {
            let message = format!("cannot read `{name}`: line {line}: {message}");
            Err(Failure::new(Exit::Invalid, message))
        }
        _ => Ok(()),
    }
}

pub(crate) fn is_same_file(one: &std::path::Path, two: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path| fs::metadata(path).map(|file: fs::Metadata| (file.dev(), file.ino()));
    matches!((id(one), id(two)), (Ok(one), Ok(two)) if one == two)
}
