//! A whole tape in a compact index: who said what where, and what belongs together.
//!
//! Bodies stay in the file; the index knows where they stand. A *slot* is what it keeps of a
//! message, an *ask* what it keeps besides of a request that a client made. What the server said
//! of its own accord belongs to a *scene*: the client's message that it came with or after.
//!
//! A client's request or notification begins a scene. Following [`Slot::next`] from it yields, in
//! tape order, what the server said meanwhile, the client's answers to the server's requests, the
//! answer, and what followed it. Answers to nothing that is on the tape are in no scene.
//!
//! The index grows by 32 bytes a message and some 38 a request, whatever is in the bodies.

mod build;
mod glance;
mod one_session;
mod open;
mod packed;
mod scenes;
mod splice;
mod stretch;
mod table;
#[cfg(test)]
mod tests;
mod told;

use std::io;
use std::ops::Range;

use super::line::Header;
use crate::frame::Kind;
use crate::side::Side;
use crate::signature::Signature;
use packed::{Asked, Packed};
use table::Table;

pub use build::Indexer;
pub use splice::{Refusal, Splicer};
pub use stretch::{Stretch, cut};

/// No slot, or no ask.
pub const NONE: u32 = u32::MAX;

/// Where bodies are read from.
pub trait Bodies {
    /// The text that stands at `offset`, as it is in the file.
    fn body(&mut self, offset: u64, length: u32) -> io::Result<&[u8]>;

    /// Says that, once the text at `offset` is wanted, so is what follows it for `length` bytes.
    fn expect(&mut self, _offset: u64, _length: u64) {}
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
    /// When it was recorded, in microseconds since the first message of its recording, to some 16
    /// of them; 0 if that cannot be told.
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
    /// Whether it came on a stream that had ended early and was gone on with.
    pub resumed: bool,
    /// Of a request: whether the asker took it back.
    pub cancelled: bool,
    /// Of a request: whether it has a progress token.
    pub token: bool,
    /// Whether a member that counts occurs twice in it.
    pub repeated: bool,
    /// Whether a gate refused or held it.
    pub gated: bool,
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
pub struct Index {
    slots: Vec<Packed>,
    asks: Vec<Asked>,
    sessions: Vec<Range<u32>>,
    same: Table,
    like: Table,
    client_notifications: Vec<u32>,
    headers: Vec<Header<'static>>,
    /// Slots of answers whose latency cannot be told from `ts`, and what it was in milliseconds.
    latencies: Vec<(u32, u32)>,
}

/// What is odd about a tape that can be used all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// The line.
    pub line: u64,
    /// What is odd, in words.
    pub words: String,
}

impl Index {
    /// How many messages the tape has.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A message.
    pub fn slot(&self, slot: u32) -> Slot {
        let packed = &self.slots[slot as usize];
        Slot { latency_us: self.latency_us(slot, packed), ..packed.unpack() }
    }

    /// How many requests of clients the tape has.
    pub fn asks(&self) -> u32 {
        self.asks.len() as u32
    }

    /// A request of a client. Asks are ordered by session, and in a session as the tape has them.
    pub fn ask(&self, ask: u32) -> Ask {
        let asked = &self.asks[ask as usize];
        Ask { signature: asked.signature(), slot: asked.slot }
    }

    /// The asks of each session.
    pub fn sessions(&self) -> &[Range<u32>] {
        &self.sessions
    }

    /// The first ask with the signature's hash, in ask order.
    pub fn first_same(&self, signature: Signature) -> Option<u32> {
        let wanted = Asked::new(signature, NONE);
        self.same.find(wanted.same_place(), |ask| self.asks[ask as usize].hash == wanted.hash)
    }

    /// The next ask with the same hash as `ask`, or [`NONE`].
    pub fn next_same(&self, ask: u32) -> u32 {
        self.asks[ask as usize].next_same
    }

    /// The first ask for the same thing (method, and name or uri), in ask order. Things are told
    /// apart by 32 bits, so that rarely one of another thing may be among them.
    pub fn first_like(&self, signature: Signature) -> Option<u32> {
        let wanted = Asked::new(signature, NONE);
        self.like.find(wanted.like_place(), |ask| self.asks[ask as usize].like == wanted.like)
    }

    /// The next ask for the same thing as `ask`, or [`NONE`].
    pub fn next_like(&self, ask: u32) -> u32 {
        self.asks[ask as usize].next_like
    }

    /// The slots of notifications that clients sent, in tape order.
    pub fn client_notifications(&self) -> &[u32] {
        &self.client_notifications
    }

    /// The headers of the tape, as text; most tapes have one.
    pub fn headers(&self) -> &[Header<'static>] {
        &self.headers
    }

    fn latency_us(&self, slot: u32, packed: &Packed) -> Option<u64> {
        if packed.is_timed_apart() {
            let place = self.latencies.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
            return Some(u64::from(self.latencies[place].1) * 1000);
        }
        let answers = matches!(packed.kind(), Kind::Response | Kind::Error);
        let asked = self.slots.get(packed.pair as usize).filter(|_| answers)?;
        Some(packed.at_us().saturating_sub(asked.at_us()))
    }
}
