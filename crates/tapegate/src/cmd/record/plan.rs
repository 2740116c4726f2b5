//! What to record and where, resolved from the command line.

use std::path::{Path, PathBuf};

use tapegate_core::tape::{Dialect, ScribeOptions};
use tapegate_core::time::{At, SubSecond, write_rfc3339};
use tapegate_store::OpenError;
use tapegate_store::writer::{Existing, TapeWriter};
use tapegate_wire::clock::Clock;

use super::args::{IfExistsWord, RecordArgs, TapeArgs, WireArgs};
use crate::exit::{Exit, Failure};
use crate::talk;
use crate::taping::NewTape;
use crate::upstream::Upstream;

/// What to record, and how.
pub(super) struct Plan {
    place: Place,
    dialect: Dialect,
    pub(super) upstream: Upstream,
    pub(super) wire: WireArgs,
    if_exists: IfExistsWord,
    pub(super) clock: Clock,
}

/// Where the tape goes.
enum Place {
    /// A file of this name.
    File(PathBuf),
    /// A new file in this folder, with an optional word in its name.
    Folder(PathBuf, Option<String>),
}

impl Plan {
    /// The plan of `tapegate record`.
    pub(super) fn of_record(args: RecordArgs) -> anyhow::Result<Self> {
        let upstream = args.wire.upstream.wanted("to record")?;
        let (dialect, clock) = (args.dialect.into(), Clock::start());
        require_a_file(&args.output)?;
        let folder =
            args.output.is_dir() || args.output.as_os_str().as_encoded_bytes().ends_with(b"/");
        let place = match folder {
            true => Place::Folder(args.output, args.wire.name.as_deref().map(file_word)),
            false => Place::File(args.output),
        };
        // In a folder, the name becomes part of the file name.
        let is_unkept = args.wire.name.is_some() && matches!(place, Place::File(_));
        require_kept(dialect, &args.wire, is_unkept)?;
        let if_exists = args.wire.if_exists();
        require_a_choice(&place, if_exists, "-o FILE")?;
        Ok(Self { place, dialect, upstream, wire: args.wire, if_exists, clock })
    }

    /// The plan of `tapegate tape`.
    pub(super) fn of_tape(args: TapeArgs) -> anyhow::Result<Self> {
        let upstream = args.wire.upstream.wanted("to record")?;
        let (dialect, clock) = (args.dialect.into(), Clock::start());
        require_kept(dialect, &args.wire, args.wire.name.is_some())?;
        args.tape.as_deref().map_or(Ok(()), require_a_file)?;
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
        let if_exists = args.wire.if_exists();
        require_a_choice(&place, if_exists, "--tape FILE")?;
        Ok(Self { place, dialect, upstream, wire: args.wire, if_exists, clock })
    }

    /// Opens the tape. An existing file never prevents a session from being recorded unless the
    /// user asks for that: many clients start their servers from a config that never changes.
    pub(super) fn open_tape(&self) -> anyhow::Result<TapeWriter> {
        let path = match &self.place {
            Place::File(path) => path.clone(),
            Place::Folder(folder, word) => {
                let name = tape_name(word.as_deref(), self.clock.now());
                let path = folder.join(format!("{name}.jsonl"));
                return self.open_at(path, Existing::Number)?.map_err(|error| refused(&error));
            }
        };
        let existing = match self.if_exists {
            IfExistsWord::Number => Existing::Number,
            IfExistsWord::Append => Existing::Append,
            IfExistsWord::Overwrite => Existing::Overwrite,
            IfExistsWord::Fail => Existing::Refuse,
        };
        let opened = match self.open_at(path.clone(), existing)? {
            Err(
                error @ (OpenError::Exists { .. }
                | OpenError::Busy { .. }
                | OpenError::NotATape { .. }),
            ) if existing != Existing::Refuse => {
                talk::say(&error.to_string());
                self.open_at(path.clone(), Existing::Number)?
            }
            done => done,
        };
        let tape = opened.map_err(|error| refused(&error))?;
        if tape.path() != path {
            let (wanted, got) = (path.display(), tape.path().display());
            talk::say(&format!("`{wanted}` exists, so this session is recorded to `{got}`"));
        }
        Ok(tape)
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
            members: Vec::new(),
            redactor: self.wire.redaction.redactor()?,
        };
        Ok(tape.open(self.clock.now()))
    }
}

/// Rejects `-`, which stands for standard output elsewhere.
fn require_a_file(output: &Path) -> Result<(), Failure> {
    if output != Path::new("-") {
        return Ok(());
    }
    let words = "the tape cannot go to `-`: standard output belongs to the client and its server";
    Err(Failure::new(Exit::Usage, words).hint("name a file, or a folder that ends in `/`"))
}

/// Rejects flags that have no effect in a dialect and would be dropped unnoticed.
fn require_kept(dialect: Dialect, wire: &WireArgs, has_name: bool) -> Result<(), Failure> {
    let (words, hint) = match dialect {
        Dialect::Thoughtjack if wire.no_raw => {
            ("`--no-raw` needs the overwatch dialect", "add --dialect overwatch, or leave it out")
        }
        Dialect::Overwatch if has_name || !wire.tags.is_empty() => (
            "the overwatch dialect has no header for `--name` and `--tags`",
            "add --dialect thoughtjack, or leave them out; `tape --session WORD` names the file",
        ),
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Usage, words).hint(hint))
}

/// Rejects overwriting and appending in a folder, where each session gets a new tape.
fn require_a_choice(place: &Place, way: IfExistsWord, file: &str) -> Result<(), Failure> {
    match place {
        Place::Folder(..) if way != IfExistsWord::Number => {
            let words = "--if-exists and --force have no effect in a folder, where each session \
                         gets its own tape";
            let hint = format!("name the tape with {file}, or leave them out");
            Err(Failure::new(Exit::Usage, words).hint(hint))
        }
        _ => Ok(()),
    }
}

fn refused(error: &OpenError) -> anyhow::Error {
    let failure = Failure::new(Exit::Io, error);
    match error {
        OpenError::Exists { .. } => {
            let hint = "choose another name, pass --force to overwrite it, or leave out \
                        `--if-exists fail`: then the next free name is used";
            failure.hint(hint).into()
        }
        _ => match error.hint() {
            Some(hint) => failure.hint(hint).into(),
            None => failure.into(),
        },
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

/// Replaces the characters of a text that do not belong in a file name.
fn file_word(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let word: String = text.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
    word.trim_start_matches('.').to_owned()
}
