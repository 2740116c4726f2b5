//! What to record and where, resolved from the command line.

use std::path::{Path, PathBuf};

use tapegate_core::tape::{Dialect, EntryWriterOptions, Mask};
use tapegate_core::time::{SubSecond, Timestamp, write_rfc3339};
use tapegate_policy::redact::mask_upstream;
use tapegate_store::OpenError;
use tapegate_store::new_tape::{NewTape, sanitize_file_name};
use tapegate_store::tape_writer::{OnExisting, TapeWriter};
use tapegate_wire::clock::Clock;

use super::args::{IfExistsArg, RecordArgs, TapeArgs, WireArgs};
use crate::exit::{Exit, Failure};
use crate::terminal_output;
use crate::upstream::UpstreamTarget;

/// What to record, and how.
pub(super) struct RecordPlan {
    target: TapeTarget,
    dialect: Dialect,
    pub(super) upstream: UpstreamTarget,
    pub(super) wire: WireArgs,
    if_exists: IfExistsArg,
    pub(super) clock: Clock,
}

/// Where the tape goes.
enum TapeTarget {
    /// A file of this name.
    File(PathBuf),
    /// A new file in this folder, with an optional word in its name.
    Folder(PathBuf, Option<String>),
}

impl RecordPlan {
    /// The plan of `tapegate record`.
    pub(super) fn from_record_args(args: RecordArgs) -> anyhow::Result<Self> {
        let upstream = args.wire.upstream.required("to record")?;
        let (dialect, clock) = (args.dialect.into(), Clock::start());
        require_a_file(&args.output)?;
        let target = match names_a_folder(&args.output)? {
            true => {
                TapeTarget::Folder(args.output, args.wire.name.as_deref().map(sanitize_file_name))
            }
            false => TapeTarget::File(args.output),
        };
        // In a folder, the name becomes part of the file name.
        let is_unkept = args.wire.name.is_some() && matches!(target, TapeTarget::File(_));
        check_dialect_flags(dialect, &args.wire, is_unkept)?;
        let if_exists = args.wire.if_exists();
        require_a_choice(&target, if_exists, "-o FILE")?;
        Ok(Self { target, dialect, upstream, wire: args.wire, if_exists, clock })
    }

    /// The plan of `tapegate tape`.
    pub(super) fn from_tape_args(args: TapeArgs) -> anyhow::Result<Self> {
        let upstream = args.wire.upstream.required("to record")?;
        let (dialect, clock) = (args.dialect.into(), Clock::start());
        check_dialect_flags(dialect, &args.wire, args.wire.name.is_some())?;
        args.tape.as_deref().map_or(Ok(()), require_a_file)?;
        let target = match (args.tape, args.session) {
            (Some(path), _) if ends_in_slash(&path) && names_a_folder(&path)? => {
                TapeTarget::Folder(path, None)
            }
            (Some(path), _) => TapeTarget::File(path),
            (None, None) => TapeTarget::Folder(args.tape_dir, None),
            (None, Some(word)) if sanitize_file_name(&word) == word => {
                TapeTarget::Folder(args.tape_dir, Some(word))
            }
            (None, Some(word)) => {
                let message = format!("`--session {word}` cannot be part of a file name");
                return Err(Failure::new(Exit::Usage, message)
                    .hint("use letters, digits, `.`, `_` and `-`")
                    .into());
            }
        };
        let if_exists = args.wire.if_exists();
        require_a_choice(&target, if_exists, "--tape FILE")?;
        Ok(Self { target, dialect, upstream, wire: args.wire, if_exists, clock })
    }

    /// Opens the tape. An existing file never prevents a session from being recorded unless the
    /// user asks for that: many clients start their servers from a config that never changes.
    pub(super) fn open_tape(&self) -> anyhow::Result<TapeWriter> {
        let path = match &self.target {
            TapeTarget::File(path) => path.clone(),
            TapeTarget::Folder(folder, word) => {
                // The start of the session, so that names sort by time.
                let name = tape_name(word.as_deref(), self.clock.now());
                let path = folder.join(format!("{name}.jsonl"));
                return self
                    .open_at(path, OnExisting::Number)?
                    .map_err(|error| open_failure(&error));
            }
        };
        let existing = match self.if_exists {
            IfExistsArg::Number => OnExisting::Number,
            IfExistsArg::Append => OnExisting::Append,
            IfExistsArg::Overwrite => OnExisting::Overwrite,
            IfExistsArg::Fail => OnExisting::Refuse,
        };
        // A tape that is in use or of another kind must not cost the session its recording.
        let opened = match self.open_at(path.clone(), existing)? {
            Err(
                error @ (OpenError::Exists { .. }
                | OpenError::Busy { .. }
                | OpenError::Compressed { .. }
                | OpenError::NotATape { .. }),
            ) if existing != OnExisting::Refuse => {
                terminal_output::info(&error.to_string());
                self.open_at(path.clone(), OnExisting::Number)?
            }
            done => done,
        };
        let tape = opened.map_err(|error| open_failure(&error))?;
        if tape.path() != path {
            let (wanted, got) = (path.display(), tape.path().display());
            terminal_output::info(&format!(
                "`{wanted}` exists, so this session is recorded to `{got}`"
            ));
        }
        Ok(tape)
    }

    fn open_at(
        &self,
        path: PathBuf,
        existing: OnExisting,
    ) -> anyhow::Result<Result<TapeWriter, OpenError>> {
        let tape = NewTape {
            path,
            entry_writer: EntryWriterOptions {
                dialect: self.dialect,
                raw: !self.wire.no_raw,
                shared: self.wire.http.is_some(),
            },
            flush_interval: self.wire.flush_interval,
            existing,
            name: self.wire.name.as_deref(),
            tags: self.wire.tags.iter().map(String::as_str).collect(),
            // Command lines often contain tokens, and tapes are shared.
            upstream: &mask_upstream(&self.upstream.header_text()),
            members: Vec::new(),
            mask: self
                .wire
                .redaction
                .redactor()?
                .map(|redactor| Box::new(redactor) as Box<dyn Mask>),
        };
        Ok(tape.open(self.clock.now()))
    }
}

fn ends_in_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Whether each session gets a tape of its own in a folder of this name. A path that ends in `/` is
/// a folder even if it does not exist yet.
fn names_a_folder(path: &Path) -> Result<bool, Failure> {
    if !ends_in_slash(path) {
        return Ok(path.is_dir());
    }
    // Without the slash, or a file could not be looked at.
    let bare: PathBuf = path.components().collect();
    if bare.exists() && !bare.is_dir() {
        let (name, file) = (path.display(), bare.display());
        let message = format!("`{name}` would be a folder, but `{file}` is a file");
        return Err(Failure::new(Exit::Usage, message)
            .hint("leave out the `/` to name the file, or name another folder"));
    }
    Ok(true)
}

/// Rejects `-`, which stands for standard output elsewhere.
fn require_a_file(output: &Path) -> Result<(), Failure> {
    if output != Path::new("-") {
        return Ok(());
    }
    let message = "the tape cannot go to `-`: standard output belongs to the client and its server";
    Err(Failure::new(Exit::Usage, message).hint("name a file, or a folder that ends in `/`"))
}

/// Rejects flags that have no effect in a dialect and would be dropped unnoticed.
fn check_dialect_flags(dialect: Dialect, wire: &WireArgs, has_name: bool) -> Result<(), Failure> {
    let (message, hint) = match dialect {
        Dialect::Thoughtjack if wire.no_raw => {
            ("`--no-raw` needs the overwatch dialect", "add --dialect overwatch, or leave it out")
        }
        Dialect::Overwatch if has_name || !wire.tags.is_empty() => (
            "the overwatch dialect has no header for `--name` and `--tags`",
            "add --dialect thoughtjack, or leave them out; `tape --session WORD` names the file",
        ),
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Usage, message).hint(hint))
}

/// Rejects overwriting and appending in a folder, where each session gets a new tape.
fn require_a_choice(target: &TapeTarget, way: IfExistsArg, file: &str) -> Result<(), Failure> {
    match target {
        TapeTarget::Folder(..) if way != IfExistsArg::Number => {
            let message = "--if-exists and --force have no effect in a folder, where each session \
                         gets its own tape";
            let hint = format!("name the tape with {file}, or leave them out");
            Err(Failure::new(Exit::Usage, message).hint(hint))
        }
        _ => Ok(()),
    }
}

fn open_failure(error: &OpenError) -> anyhow::Error {
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
fn tape_name(word: Option<&str>, at: Timestamp) -> String {
    let mut stamp = Vec::new();
    write_rfc3339(&mut stamp, at.wall_us, SubSecond::Millis);
    // Colons are not allowed in names on some file systems.
    let stamp = String::from_utf8_lossy(&stamp).replace([':', '.'], "-");
    match word {
        Some(word) => format!("tape-{word}-{stamp}"),
        None => format!("tape-{stamp}"),
    }
}
