//! What happened: one model, and the dialects it is written in.
//!
//! A tape is a header, entries and a footer (thoughtjack) or entries alone (overwatch). Messages
//! are embedded as the text they were sent with, never built anew, so key order, number spelling
//! and duplicate keys survive. Reading keeps keys it does not know, and a line that is written
//! again from what was read is the same line.

mod audit;
mod base64;
/// A whole tape in a compact index.
pub mod index;
mod keys;
mod line;
mod outline;
mod reader;
mod section;
mod session;
/// What a tape amounts to in numbers.
pub mod stats;
/// A tape as people read it.
pub mod timeline;
mod translate;
mod write;

use std::borrow::Cow;

use crate::side::{Lane, Side};
use crate::time::At;

pub use audit::{Audit, Totals};
pub use base64::{decode as base64_decode, encode as base64_encode};
pub use line::{Bad, Footer, Header, Line, LineFault, Message, Stamp, Version};
pub use outline::{Finding, Outline, Severity};
pub use reader::{Numbered, Problem, Reader, entry_bytes_max, set_entry_bytes_max};
pub use section::{last_cut, read_section};
pub use session::{BashCommand, Session, SessionFault};
pub use translate::{Aside, Origin, Translated, Translator};
pub use write::{Dialect, Mask, Masked, Scribe, ScribeOptions, Sink};

/// The version of the thoughtjack format that is written.
pub const FORMAT_VERSION: &str = "1.0";

/// The `parse_error` of a last line without its line end.
pub const UNTERMINATED: &str = "unterminated_frame_at_close";
/// The `parse_error` of a batch as it was sent, whose elements are messages of the tape.
pub const BATCH: &str = "batch";
/// The `parse_error` of a message over the size limit.
pub const TOO_LARGE: &str = "message_too_large";
/// The `parse_error` of the marker written when a torn tape is appended to.
pub const TORN_TAIL: &str = "recovered_after_torn_tail";

/// How the `parse_error` of something that could not be handed on begins; the reason follows.
pub const UNDELIVERED: &str = "not_delivered";

/// What the tape keeps of one frame.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// When it arrived.
    pub at: At,
    /// The conversation it belongs to.
    pub lane: Lane,
    /// Who sent it, or in whose place we did.
    pub from: Side,
    /// Its exact bytes, line end not included; of a message over the limit, the first ones.
    pub bytes: Cow<'a, [u8]>,
    /// What the bytes are.
    pub what: What,
    /// Whether its line end arrived.
    pub terminated: bool,
    /// Whether it is a message of our own.
    pub ours: bool,
    /// Whether it came on a stream that had ended early and was gone on with.
    pub resumed: bool,
    /// What the gate has made of it.
    pub fate: Fate,
}

/// What the gate has made of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It goes on as it came.
    Sent,
    /// It waits for a decision; what became of it is seen by its answer.
    Held,
    /// It goes nowhere, for this reason.
    Refused(String),
    /// The entry is what was sent on in its place.
    Rewritten,
}

/// What the bytes of an entry are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// One message.
    Message(Element),
    /// A batch; elements that are no objects have no number.
    Batch(Vec<Option<Element>>),
    /// No message, and why.
    Garbage(String),
    /// A message over the limit that was not forwarded.
    TooLarge {
        /// How long it was.
        bytes_total: u64,
    },
}

/// A message's place on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// Its number, from 1 without gaps.
    pub n: u64,
    /// What it answers.
    pub reply: Option<Reply>,
}

/// The request an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The request's number.
    pub to: u64,
    /// How long the answer took by the monotonic clock.
    pub latency_ms: u64,
}

/// Where a message comes from that is not said live by a server: what a tape of a replay tells of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Whether it is Tapegate's own, and not the server's.
    pub ours: bool,
    /// Of a played answer, how long it took when it was recorded, in microseconds.
    pub latency_us: Option<u64>,
}

impl Provenance {
    /// Of a message that Tapegate says in the server's place.
    pub const OWN: Self = Self { ours: true, latency_us: None };

    /// The latency in whole milliseconds, as a tape has it. An index knows moments to some 16 us.
    pub fn latency_ms(self) -> Option<u64> {
        self.latency_us.map(|us| us.saturating_add(50) / 1000)
    }

    /// Of messages that are said together.
    pub fn joined(self, other: Self) -> Self {
        Self { ours: self.ours || other.ours, latency_us: self.latency_us.max(other.latency_us) }
    }
}

/// Keeps what happened. The wire hands entries over; where they go is the store's business.
pub trait Recorder {
    /// Takes an entry. Nothing may be sent before [`Recorder::commit`] has returned.
    fn append(&mut self, entry: &Entry<'_>);

    /// Hands everything that was appended to the kernel. After an error nothing more is recorded.
    fn commit(&mut self) -> Result<(), RecordError>;

    /// Ends the tape for now: it is whole if nothing more comes, and what comes is still recorded.
    /// Whoever ends a session may be killed before everything has ended in order.
    fn settle(&mut self, _at: At) -> Result<(), RecordError> {
        Ok(())
    }

    /// Ends the tape in order.
    fn close(&mut self, at: At) -> Result<(), RecordError>;
}

/// Why something could not be recorded.
pub type RecordError = Box<dyn std::error::Error + Send + Sync>;
