//! A whole tape in a compact index: who said what where, and what belongs together.
//!
//! Bodies stay in the file; the index knows where they stand. A *slot* is what it keeps of a
//! message, an *ask* what it keeps besides of a request that a client made. What the server said
//! of its own accord belongs to a *scene*: the client's message that it came with or after.

use std::io;
use std::ops::Range;

use super::line::Header;
use super::reader::Numbered;
use crate::frame::Kind;
use crate::side::Side;
use crate::signature::{Signature, Signer};

/// No slot, or no ask.
pub const NONE: u32 = u32::MAX;

/// Where bodies are read from.
pub trait Bodies {
    /// The text that stands at `offset`, as it is in the file.
    fn body(&mut self, offset: u64, length: u32) -> io::Result<&[u8]>;
}

/// What the index keeps of one message, unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Where its text starts in the file.
    pub offset: u64,
    /// How long its text is.
    pub length: u32,
    /// Its `seq`, or its line where there is none.
    pub number: u32,
    /// When it was recorded, in microseconds since the first message, to some 16 of them.
    pub at_us: u64,
    /// Which session of the tape it belongs to, from 0.
    pub session: u32,
    /// Who sent it.
    pub from: Side,
    /// Its sort.
    pub kind: Kind,
    /// Of a request: the slot of its answer; of an answer: the slot of what it answers.
    pub pair: u32,
    /// The next slot of the same scene.
    pub next: u32,
    /// Whether its text is spread over several lines.
    pub spread: bool,
    /// Whether the recorder said it in the sender's place.
    pub ours: bool,
    /// Of a request: whether the asker took it back.
    pub cancelled: bool,
    /// Of a request: whether it has a progress token.
    pub token: bool,
    /// How long the answer took, in microseconds, by whichever of `ts` and `latency_ms` is to be
    /// trusted. Of answers only.
    pub latency_us: Option<u64>,
}

/// What the index keeps of a client's request besides its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// What it asks for.
    pub signature: Signature,
    /// Its slot.
    pub slot: u32,
}

/// A whole tape in a compact index.
#[derive(Debug, Default)]
pub struct Index {}

/// Makes an index of a tape, line by line.
#[derive(Debug)]
pub struct Indexer {}

/// What is odd about a tape that can be used all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// The line.
    pub line: u64,
    /// What is odd, in words.
    pub words: String,
}

impl Indexer {
    /// An indexer that signs requests with `signer`.
    pub fn new(signer: Signer) -> Self {
        let _ = signer;
        todo!()
    }

    /// Takes the next line of the tape.
    pub fn push(&mut self, line: &Numbered<'_>) {
        let _ = line;
        todo!()
    }

    /// The index, and what was odd.
    pub fn finish(self) -> (Index, Vec<Oddity>) {
        todo!()
    }
}

impl Index {
    /// How many messages the tape has.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A message.
    pub fn slot(&self, slot: u32) -> Slot {
        let _ = slot;
        todo!()
    }

    /// A request of a client. Asks are ordered by session, and in a session as the tape has them.
    pub fn ask(&self, ask: u32) -> Ask {
        let _ = ask;
        todo!()
    }

    /// The asks of each session.
    pub fn sessions(&self) -> &[Range<u32>] {
        todo!()
    }

    /// The first ask with the signature's hash, in ask order.
    pub fn first_same(&self, signature: Signature) -> Option<u32> {
        let _ = signature;
        todo!()
    }

    /// The next ask with the same hash as `ask`, or [`NONE`].
    pub fn next_same(&self, ask: u32) -> u32 {
        let _ = ask;
        todo!()
    }

    /// The first ask for the same thing (method, and name or uri), in ask order.
    pub fn first_like(&self, signature: Signature) -> Option<u32> {
        let _ = signature;
        todo!()
    }

    /// The next ask for the same thing as `ask`, or [`NONE`].
    pub fn next_like(&self, ask: u32) -> u32 {
        let _ = ask;
        todo!()
    }

    /// The slots of notifications that clients sent, in tape order.
    pub fn client_notifications(&self) -> &[u32] {
        todo!()
    }

    /// The headers of the tape, as text; most tapes have one.
    pub fn headers(&self) -> &[Header<'static>] {
        todo!()
    }
}
