//! A compact index of a whole tape: who sent what, where it is, and what belongs together.
//!
//! Bodies stay in the file; the index stores their positions. Each message has an
//! [`IndexEntry`], and a client's request also a [`RequestEntry`]. Messages that the server sent
//! unprompted belong to a *scene*: that of the client's message that they came with or after.
//!
//! A client's request or notification begins a scene. Following [`IndexEntry::next`] from it yields, in
//! tape order, what the server sent meanwhile, the client's answers to the server's requests, the
//! answer, and what followed it. Answers that match no request on the tape are in no scene.
//!
//! The index grows by 32 bytes per message and about 38 per request, whatever the size of the
//! bodies.

mod chunk;
mod fast_line;
mod index_splicer;
mod indexer;
mod key_table;
mod one_session;
mod open_requests;
mod packed_entry;
mod raw_entry;
mod scene_builder;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;

use super::line::TapeHeader;
use crate::frame::MessageKind;
use crate::side::Side;
use crate::signature::Signature;
use key_table::KeyTable;
use packed_entry::{ChainedRequest, PackedEntry};

pub use chunk::{TapeChunk, first_line_start};
pub use index_splicer::{IndexSplicer, TapeRejection};
pub use indexer::Indexer;

/// No entry, or no request.
pub const NONE: u32 = u32::MAX;

/// A source of message bodies.
pub trait BodySource {
    /// The text at `offset` in the file.
    fn body(&mut self, offset: u64, length: u32) -> io::Result<&[u8]>;

    /// Hints that when the text at `offset` is read, the `length` bytes from there on will be too.
    fn expect(&mut self, _offset: u64, _length: u64) {}
}

/// The index entry of one message, unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// The position of its text in the file.
    pub offset: u64,
    /// The length of its text.
    pub length: u32,
    /// Its `seq`, or its line where there is none.
    pub number: u32,
    /// When it was recorded, in microseconds since the first message of its recording, to about 16
    /// us; 0 if unknown.
    pub at_us: u64,
    /// The session of the tape it belongs to, from 0.
    pub session: u32,
    /// Who sent it.
    pub from: Side,
    pub kind: MessageKind,
    /// For a request, the entry of its answer; for an answer, the entry of its request.
    pub pair: u32,
    /// The next entry of the same scene.
    pub next: u32,
    /// Whether its text spans several lines.
    pub spread: bool,
    /// Whether the recorder sent it in the sender's place.
    pub ours: bool,
    /// Whether it arrived on a stream that had broken off and was resumed.
    pub resumed: bool,
    /// For a request: whether its sender cancelled it.
    pub cancelled: bool,
    /// For a request: whether it has a progress token.
    pub token: bool,
    /// Whether a significant member is repeated in it.
    pub repeated: bool,
    /// Whether a gate refused or held it.
    pub gated: bool,
    /// For an answer: how long it took, in microseconds, by the more reliable of `ts` and
    /// `latency_ms`.
    pub latency_us: Option<u64>,
}

/// The additional index entry of a client's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestEntry {
    /// A hash of what it asks for.
    pub signature: Signature,
    pub entry_number: u32,
}

/// A compact index of a whole tape.
#[derive(Debug, Default)]
pub struct Index {
    entries: Vec<PackedEntry>,
    requests: Vec<ChainedRequest>,
    sessions: Vec<Range<u32>>,
    same: KeyTable,
    like: KeyTable,
    client_notifications: Vec<u32>,
    headers: Vec<TapeHeader<'static>>,
    /// Slots of answers whose latency does not follow from `ts`, and the latency in milliseconds.
    latencies: Vec<(u32, u32)>,
    /// How many entries were too long to be read, and how many messages precede the last of them.
    too_long: u32,
    before_too_long: u32,
}

/// Something unusual about a tape that can be used nevertheless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeOddity {
    pub line: u64,
    /// What is unusual.
    pub message: String,
}

impl Index {
    /// How many messages the tape has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many entries were left out because they are too long to be read.
    pub fn too_long_count(&self) -> u32 {
        self.too_long
    }

    /// Whether a request has no answer here, but one may be among the entries that are too long.
    pub fn may_be_answered_too_long(&self, entry_number: u32) -> bool {
        let entry = self.entry(entry_number);
        entry_number < self.before_too_long && entry.pair == NONE && !entry.cancelled
    }

    /// The entry of a message.
    pub fn entry(&self, entry_number: u32) -> IndexEntry {
        let packed = &self.entries[entry_number as usize];
        IndexEntry { latency_us: self.latency_us(entry_number, packed), ..packed.unpack() }
    }

    /// How many requests of clients the tape has.
    pub fn request_count(&self) -> u32 {
        self.requests.len() as u32
    }

    /// The entry of a client's request. Requests are ordered by session, and within a session as on
    /// the tape.
    pub fn request(&self, request_number: u32) -> RequestEntry {
        let request_entry = &self.requests[request_number as usize];
        RequestEntry {
            signature: request_entry.signature(),
            entry_number: request_entry.entry_number,
        }
    }

    /// The requests of each session.
    pub fn sessions(&self) -> &[Range<u32>] {
        &self.sessions
    }

    /// The first request with the signature's hash, in request order.
    pub fn first_with_hash(&self, signature: Signature) -> Option<u32> {
        let wanted = ChainedRequest::new(signature, NONE);
        self.same.find(wanted.hash_position(), |request_number| {
            self.requests[request_number as usize].hash == wanted.hash
        })
    }

    /// The next request with the same hash as this one, or [`NONE`].
    pub fn next_with_hash(&self, request_number: u32) -> u32 {
        self.requests[request_number as usize].next_same
    }

    /// The first request with the same subject (method, and name or uri), in request order. Subjects
    /// are compared by 32-bit hashes, so in rare cases one with another subject may be among them.
    pub fn first_with_subject(&self, signature: Signature) -> Option<u32> {
        let wanted = ChainedRequest::new(signature, NONE);
        self.like.find(wanted.subject_position(), |request_number| {
            self.requests[request_number as usize].like == wanted.like
        })
    }

    /// The next request with the same subject as this one, or [`NONE`].
    pub fn next_with_subject(&self, request_number: u32) -> u32 {
        self.requests[request_number as usize].next_like
    }

    /// The entries of the clients' notifications, in tape order.
    pub fn client_notifications(&self) -> &[u32] {
        &self.client_notifications
    }

    /// The headers of the tape; most tapes have one.
    pub fn headers(&self) -> &[TapeHeader<'static>] {
        &self.headers
    }

    fn latency_us(&self, entry_number: u32, packed: &PackedEntry) -> Option<u64> {
        if packed.is_timed_apart() {
            let index = self
                .latencies
                .binary_search_by_key(&entry_number, |(entry_number, _)| *entry_number)
                .ok()?;
            return Some(u64::from(self.latencies[index].1) * 1000);
        }
        let answers = matches!(packed.kind(), MessageKind::Response | MessageKind::Error);
        let request_entry = self.entries.get(packed.pair as usize).filter(|_| answers)?;
        Some(packed.at_us().saturating_sub(request_entry.at_us()))
    }
}
