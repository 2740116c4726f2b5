//! Opens a tape for writing, for all commands that write one.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::json::JsonObject;
use tapegate_core::tape::{
    EntryWriterOptions, FORMAT_VERSION, Mask, RecordError, Recorder, TapeEntry, TapeHeader,
};
use tapegate_core::time::{SubSecond, Timestamp, write_rfc3339};

use crate::OpenError;
use crate::tape_writer::{OnExisting, TapeOptions, TapeWriter};

/// Members of a governed session's tape header: the folder it worked in, and its policy.
pub const TAPE_FOLDER: &str = "folder";
/// See [`TAPE_FOLDER`].
pub const TAPE_POLICY: &str = "policy";
/// Members of the header of a tape that belongs to a session of an agent: the agent, and the id
/// that all tapes of the session have.
pub const TAPE_AGENT: &str = "agent";
/// See [`TAPE_AGENT`].
pub const TAPE_AGENT_SESSION: &str = "agent_session";

/// A tape to write, and what its header says.
pub struct NewTape<'a> {
    /// Its path; a name that ends in `.gz` makes it compressed.
    pub path: PathBuf,
    /// The format of its entries.
    pub entry_writer: EntryWriterOptions,
    /// How often it is synced to disk.
    pub flush_interval: Duration,
    /// What to do if the file exists.
    pub existing: OnExisting,
    pub name: Option<&'a str>,
    pub tags: Vec<&'a str>,
    /// The server, as text without secrets: command lines and URLs often hold tokens.
    pub upstream: &'a str,
    /// More members of its header, all of them strings.
    pub members: Vec<(&'static str, &'a str)>,
    /// Redacts secrets, in the header and in the entries.
    pub mask: Option<Box<dyn Mask>>,
}

impl NewTape<'_> {
    /// Opens the tape and writes its header.
    pub fn open(self, at: Timestamp) -> Result<TapeWriter, OpenError> {
        let mut recorded_at = Vec::new();
        write_rfc3339(&mut recorded_at, at.wall_us, SubSecond::Micros);
        let version = env!("CARGO_PKG_VERSION");
        let recorder = JsonObject::new().text("recorder", &format!("tapegate/{version}"));
        // Names and paths in the header may contain what the policy masks.
        let masked = |text| match &self.mask {
            Some(mask) => mask.text(text),
            None => Cow::Borrowed(text),
        };
        let members = self.members.iter();
        let members = members.fold(recorder, |all, (key, text)| all.text(key, &masked(text)));
        let mut extra = members.into_members();
        extra.extend(self.mask.iter().flat_map(|mask| mask.header_extra()));
        let header = TapeHeader {
            version: FORMAT_VERSION.into(),
            name: self.name.map(masked),
            tags: self.tags.iter().map(|tag| masked(tag.trim())).collect(),
            recorded_at: String::from_utf8_lossy(&recorded_at),
            upstream: self.upstream.into(),
            tool_version: version.into(),
            extra,
        };
        let options = TapeOptions {
            path: self.path,
            entry_writer: self.entry_writer,
            flush_interval: self.flush_interval,
            existing: self.existing,
            mask: self.mask,
        };
        TapeWriter::open(options, &header, at)
    }
}

/// A text without the characters that do not belong in a file name. It may be empty.
pub fn sanitize_file_name(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let word: String = text.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
    // A name such as `..` must not lead out of the folder.
    word.trim_start_matches('.').to_owned()
}

/// A tape shared by the session and the summary.
#[derive(Clone)]
pub struct SharedTape(pub Rc<RefCell<TapeWriter>>);

impl SharedTape {
    /// Shares a tape.
    pub fn new(tape: TapeWriter) -> Self {
        Self(Rc::new(RefCell::new(tape)))
    }

    /// Deletes the tape, unless it is still shared.
    pub fn discard(self) {
        if let Some(tape) = Rc::into_inner(self.0) {
            tape.into_inner().discard();
        }
    }
}

impl Recorder for SharedTape {
    fn append(&mut self, entry: &TapeEntry<'_>) {
        self.0.borrow_mut().append(entry);
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        self.0.borrow_mut().commit()
    }

    fn checkpoint(&mut self, at: Timestamp) -> Result<(), RecordError> {
        self.0.borrow_mut().checkpoint(at)
    }

    fn close(&mut self, at: Timestamp) -> Result<(), RecordError> {
        self.0.borrow_mut().close(at)
    }
}
