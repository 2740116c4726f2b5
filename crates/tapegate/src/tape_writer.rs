//! Opens a tape for writing, for all commands that write one.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::json::write_str;
use tapegate_core::tape::{
    EntryWriterOptions, FORMAT_VERSION, Mask, RecordError, Recorder, TapeEntry, TapeHeader,
};
use tapegate_core::time::{SubSecond, Timestamp, write_rfc3339};
use tapegate_policy::redact::{Redactor, mask_upstream};
use tapegate_store::OpenError;
use tapegate_store::tape_writer::{OnExisting, TapeOptions, TapeWriter};

/// Members of a governed session's tape header: the folder it worked in, and its policy.
pub(crate) const TAPE_FOLDER: &str = "folder";
pub(crate) const TAPE_POLICY: &str = "policy";

/// A tape to write.
pub(crate) struct NewTape<'a> {
    pub(crate) path: PathBuf,
    pub(crate) entry_writer: EntryWriterOptions,
    pub(crate) flush_interval: Duration,
    pub(crate) existing: OnExisting,
    pub(crate) name: Option<&'a str>,
    pub(crate) tags: Vec<&'a str>,
    /// The server, as text.
    pub(crate) upstream: &'a str,
    /// More members of its header, all of them strings.
    pub(crate) members: Vec<(&'static str, &'a str)>,
    pub(crate) redactor: Option<Redactor>,
}

impl NewTape<'_> {
    /// Opens the tape and writes its header.
    pub(crate) fn open(self, at: Timestamp) -> Result<TapeWriter, OpenError> {
        let mut recorded_at = Vec::new();
        write_rfc3339(&mut recorded_at, at.wall_us, SubSecond::Micros);
        let version = env!("CARGO_PKG_VERSION");
        let mut extra = format!(",\"recorder\":\"tapegate/{version}\"").into_bytes();
        // Names and paths in the header may contain what the policy masks.
        let masked = |text| match &self.redactor {
            Some(redactor) => redactor.text(text),
            None => Cow::Borrowed(text),
        };
        for (key, text) in &self.members {
            extra.push(b',');
            write_str(&mut extra, key);
            extra.push(b':');
            write_str(&mut extra, &masked(text));
        }
        extra.extend(self.redactor.iter().flat_map(Redactor::header_extra));
        let header = TapeHeader {
            version: FORMAT_VERSION.into(),
            name: self.name.map(masked),
            tags: self.tags.iter().map(|tag| masked(tag.trim())).collect(),
            recorded_at: String::from_utf8_lossy(&recorded_at),
            // Even without --redact, since command lines and URLs often hold tokens.
            upstream: mask_upstream(self.upstream).into(),
            tool_version: version.into(),
            extra,
        };
        let options = TapeOptions {
            path: self.path,
            entry_writer: self.entry_writer,
            flush_interval: self.flush_interval,
            existing: self.existing,
            mask: self.redactor.clone().map(|redactor| Box::new(redactor) as Box<dyn Mask>),
        };
        TapeWriter::open(options, &header, at)
    }
}

/// A tape shared by the session and the summary.
#[derive(Clone)]
pub(crate) struct SharedTape(pub(crate) Rc<RefCell<TapeWriter>>);

impl SharedTape {
    pub(crate) fn new(tape: TapeWriter) -> Self {
        Self(Rc::new(RefCell::new(tape)))
    }

    /// Deletes the tape, unless it is still shared.
    pub(crate) fn discard(self) {
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
