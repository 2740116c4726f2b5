//! The tape: one model of what happened, and the dialects it is written in.
//!
//! A tape is a header, entries and a footer (thoughtjack) or entries alone (overwatch). Messages are
//! embedded as the text they were sent with and never re-serialised, so key order, number spelling
//! and duplicate keys survive. Reading keeps unknown keys, so a line that is read and written again
//! stays the same.

mod audit;
mod base64;
mod bash_session;
mod entry_writer;
/// A compact index of a whole tape.
pub mod index;
mod line;
mod line_keys;
mod outline;
mod reader;
mod section;
/// Statistics of a tape.
pub mod stats;
/// A tape as a timeline for people to read.
pub mod timeline;
mod translate;

use std::borrow::Cow;

use crate::side::{Lane, Side};
use crate::time::Timestamp;

pub use audit::{TapeAudit, TapeTotals};
pub use base64::{decode as base64_decode, encode as base64_encode};
pub use bash_session::{BashCommand, BashSession, BashSessionFault};
pub use entry_writer::{ByteSink, Dialect, EntryWriter, EntryWriterOptions, Mask, MaskedMessage};
pub use line::{
    BadFrame, EntryTime, FormatVersion, LineFault, MessageLine, TapeFooter, TapeHeader, TapeLine,
};
pub use outline::{TapeFinding, TapeOutline, TapeSeverity};
pub use reader::{LineProblem, NumberedLine, TapeReader, entry_bytes_max, set_entry_bytes_max};
pub use section::{last_line_start, read_section};
pub use translate::{AsideLine, HeaderOrigin, TranslationStats, Translator};

/// The version of the thoughtjack format that is written.
pub const FORMAT_VERSION: &str = "1.0";

/// The `parse_error` of a last line without a line ending.
pub const UNTERMINATED: &str = "unterminated_frame_at_close";
/// The `parse_error` of a batch as it was sent; its elements are recorded as messages.
pub const BATCH: &str = "batch";
/// The `parse_error` of a message over the size limit.
pub const TOO_LARGE: &str = "message_too_large";
/// The `parse_error` of the marker written when a torn tape is appended to.
pub const TORN_TAIL: &str = "recovered_after_torn_tail";

/// The prefix of the `parse_error` of something that was not delivered; the reason follows.
pub const UNDELIVERED: &str = "not_delivered";

/// The record of one frame.
#[derive(Debug, Clone)]
pub struct TapeEntry<'a> {
    /// When it arrived.
    pub at: Timestamp,
    /// The lane it belongs to.
    pub lane: Lane,
    /// Who sent it, or in whose place we sent it.
    pub from: Side,
    /// Its exact bytes, line ending not included; for a message over the limit, the first ones.
    pub bytes: Cow<'a, [u8]>,
    /// What the bytes are.
    pub body: EntryBody,
    /// Whether its line ending arrived.
    pub terminated: bool,
    /// Whether it is a message of our own.
    pub ours: bool,
    /// Whether it arrived on a stream that had broken off and was resumed.
    pub resumed: bool,
    /// What the gate did with it.
    pub gate_outcome: GateOutcome,
}

/// What the gate did with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateOutcome {
    /// It was sent on unchanged.
    Sent,
    /// It waits for a person's decision; its answer shows the outcome.
    Held,
    /// It waits for a list that the gate has asked the server for. A person may be asked afterwards.
    HeldForList,
    /// It was not sent, for this reason.
    Refused(String),
    /// It was replaced before it was sent on.
    Rewritten,
}

/// What the bytes of an entry are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryBody {
    /// One message.
    Message(EntryElement),
    /// A batch; elements that are not objects have no number.
    Batch(Vec<Option<EntryElement>>),
    /// Not a message, and why.
    Garbage(String),
    /// A message over the limit that was not forwarded.
    TooLarge {
        /// How long it was.
        bytes_total: u64,
    },
}

/// A message's position on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryElement {
    /// Its number, from 1 without gaps.
    pub n: u64,
    /// The request it answers.
    pub reply: Option<ReplyLink>,
}

/// The request an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLink {
    /// The request's number.
    pub to: u64,
    /// How long the answer took by the monotonic clock.
    pub latency_ms: u64,
}

/// The origin of a message that no live server sent, for the tape of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Whether it is Tapegate's own message and not the server's.
    pub ours: bool,
    /// For a replayed answer, how long it took when it was recorded, in microseconds.
    pub latency_us: Option<u64>,
}

impl Provenance {
    /// The provenance of a message that Tapegate sends in the server's place.
    pub const OWN: Self = Self { ours: true, latency_us: None };

    /// The latency in whole milliseconds, as written on tapes. An index keeps times to about 16 us.
    pub fn latency_ms(self) -> Option<u64> {
        // The margin undoes the rounding of the index, so a replayed tape repeats the recorded
        // number.
        self.latency_us.map(|us| us.saturating_add(50) / 1000)
    }

    /// The provenance of messages that are sent together.
    pub fn combine(self, other: Self) -> Self {
        // A batch that is partly ours must not pass for the server's.
        Self { ours: self.ours || other.ours, latency_us: self.latency_us.max(other.latency_us) }
    }
}

/// Records what happened. The wire passes in entries; the store decides where they go.
pub trait Recorder {
    /// Takes an entry. Nothing may be sent before [`Recorder::commit`] has returned.
    fn append(&mut self, entry: &TapeEntry<'_>);

    /// Hands everything appended so far to the kernel. After an error nothing more is recorded.
    fn commit(&mut self) -> Result<(), RecordError>;

    /// Ends the tape provisionally: it is complete as it is, but later entries are still recorded.
    /// The process may be killed before an orderly shutdown finishes.
    fn checkpoint(&mut self, _at: Timestamp) -> Result<(), RecordError> {
        Ok(())
    }

    /// Closes the tape in an orderly way.
    fn close(&mut self, at: Timestamp) -> Result<(), RecordError>;
}

/// Records nothing.
#[derive(Debug, Clone, Copy)]
pub struct NullRecorder;

impl Recorder for NullRecorder {
    fn append(&mut self, _: &TapeEntry<'_>) {}

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }

    fn close(&mut self, _: Timestamp) -> Result<(), RecordError> {
        Ok(())
    }
}

/// Why something could not be recorded.
pub type RecordError = Box<dyn std::error::Error + Send + Sync>;
