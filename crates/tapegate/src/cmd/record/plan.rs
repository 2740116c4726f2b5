//! What is to be recorded, and where.

use std::path::PathBuf;

use tapegate_core::tape::{Dialect, ScribeOptions};
use tapegate_core::time::{At, SubSecond, write_rfc3339};
use tapegate_store::OpenError;
use tapegate_store::writer::{Existing, TapeWriter};
use tapegate_wire::clock::Clock;

use super::args::{RecordArgs, TapeArgs, WireArgs};
use crate::exit::{Exit, Failure};
use crate::taping::NewTape;
use crate::upstream::Upstream;

/// How many tapes of one moment a folder may hold.
const NAMES_MAX: u32 = 1000;

/// What is to be recorded, and how.
pub(super) struct Plan {
    place: Place,
    dialect: Dialect,
    pub(super) upstream: Upstream,
    pub(super) wire: WireArgs,
    pub(super) clock: Clock,
}

/// Where the tape goes.
enum Place {
    /// A file of this name.
    File(PathBuf),
    /// A new file in this folder, with a word in its name.
    Folder(PathBuf, Option<String>),
}

impl Plan {
    /// The plan of `tapegate record`.
    pub(super) fn of_record(args: RecordArgs) -> anyhow::Result<Self> {
        let upstream = args.wire.upstream.wanted("to record")?;
        let (dialect, clock) = (args.dialect.into(), Clock::start());
        let folder =
            args.output.is_dir() || args.output.as_os_str().as_encoded_bytes().ends_with(b"/");
        let place = match folder {
            true => Place::Folder(args.output, args.wire.name.as_deref().map(file_word)),
            false => Place::File(args.output),
        };
        // In a folder the name becomes part of the file's.
        let is_unkept = args.wire.name.is_some() && matches!(place, Place::File(_));
        require_kept(dialect, &args.wire, is_unkept)?;
        Ok(Self { place, dialect, upstream, wire: args.wire, clock })
    }

    /// The plan of `tapegate tape`.
    pub(super) fn of_tape(args: TapeArgs) -> anyhow::Result<Self> {
        let upstream = args.wire.upstream.wanted("to record")?;
        let (dialect, clock) = (args.dialect.into(), Clock::start());
        require_kept(dialect, &args.wire, args.wire.name.is_some())?;
        let place = match (args.tape, args.session) {
            (Some(path), _) => Place::File(path),
            (None, None) => Place::Folder(args.tape_dir, None),
            (None, Some(word)) if file_word(&word) == word => {
                Place::Folder(args.tape_dir, Some(word))
            }
            (None, Some(word)) => {
                let words = format!("`--session {word}` cannot be part of a file name");
                return Err(Failure::new(Exit::Usage, words)
                    .hint("use letters, digits, `.`, `_` and `-`")
                    .into());
            }
        };
        Ok(Self { place, dialect, upstream, wire: args.wire, clock })
    }

    /// Opens the tape; one in a folder gets a name that is free.
    pub(super) fn open_tape(&self) -> anyhow::Result<TapeWriter> {
        let (folder, word) = match &self.place {
            Place::File(path) => {
                let opened = self.open_at(path.clone(), self.existing())?;
                return opened.map_err(|error| refused(&error));
            }
            Place::Folder(folder, word) => (folder, word.as_deref()),
        };
        let name = tape_name(word, self.clock.now());
        let numbered = (2..NAMES_MAX).map(|number| format!("{name}-{number}.jsonl"));
        for name in std::iter::once(format!("{name}.jsonl")).chain(numbered) {
            match self.open_at(folder.join(name), Existing::Refuse)? {
                Err(OpenError::Exists { .. }) => {}
                done => return done.map_err(|error| refused(&error)),
            }
        }
        Err(Failure::new(Exit::Io, format!("no name is free in `{}`", folder.display())).into())
    }

    fn existing(&self) -> Existing {
        if self.wire.force { Existing::Overwrite } else { Existing::Append }
    }

    fn open_at(
        &self,
        path: PathBuf,
        existing: Existing,
    ) -> anyhow::Result<Result<TapeWriter, OpenError>> {
        let tape = NewTape {
            path,
            scribe: ScribeOptions {
                dialect: self.dialect,
                raw: !self.wire.no_raw,
                shared: self.wire.http.is_some(),
            },
            flush_interval: self.wire.flush_interval,
            existing,
            name: self.wire.name.as_deref(),
            tags: self.wire.tags.iter().map(String::as_str).collect(),
            upstream: &self.upstream.words(),
            redactor: self.wire.redaction.redactor()?,
        };
        Ok(tape.open(self.clock.now()))
    }
}

/// Refuses flags that say nothing in a dialect, which would be dropped unnoticed.
fn require_kept(dialect: Dialect, wire: &WireArgs, has_name: bool) -> Result<(), Failure> {
    let (words, hint) = match dialect {
        Dialect::Thoughtjack if wire.no_raw => {
            ("`--no-raw` is for the overwatch dialect", "add --dialect overwatch, or leave it out")
        }
        Dialect::Overwatch if has_name || !wire.tags.is_empty() => (
            "`--name` and `--tags` are not kept in the overwatch dialect, which has no header",
            "add --dialect thoughtjack, or leave them out; `tape --session WORD` names the file",
        ),
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Usage, words).hint(hint))
}

fn refused(error: &OpenError) -> anyhow::Error {
    let failure = Failure::new(Exit::Io, error);
    let folder = "a folder (`record -o DIR/`, `tape --tape-dir DIR`) gives each session its own";
    match error.hint() {
        Some(hint) if matches!(error, OpenError::Exists { .. } | OpenError::Busy { .. }) => {
            failure.hint(format!("{hint}; {folder}")).into()
        }
        Some(hint) => failure.hint(hint).into(),
        None => failure.into(),
    }
}

/// The name of a tape in a folder: `tape-[WORD-]2026-03-20T14-22-11-804Z`.
fn tape_name(word: Option<&str>, at: At) -> String {
    let mut stamp = Vec::new();
    write_rfc3339(&mut stamp, at.wall_us, SubSecond::Millis);
    let stamp = String::from_utf8_lossy(&stamp).replace([':', '.'], "-");
    match word {
        Some(word) => format!("tape-{word}-{stamp}"),
        None => format!("tape-{stamp}"),
    }
}

/// A text with everything replaced that has no place in a file name.
fn file_word(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let word: String = text.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
    word.trim_start_matches('.').to_owned()
}
