//! The memory layout of entries and requests: 32 bytes each.

use super::{IndexEntry, NONE};
use crate::frame::MessageKind;
use crate::side::Side;
use crate::signature::Signature;

/// The maximum position of a text.
pub(super) const OFFSET_MAX: u64 = (1 << OFFSET_BITS) - 1;
/// The maximum number of distinct sessions.
pub(super) const SESSIONS_MAX: u32 = 1 << (64 - TICK_BITS);

const OFFSET_BITS: u32 = 48;
const TICK_BITS: u32 = 40;
/// The length of a tick in microseconds; 40 bits of ticks are 203 days.
const TICK_US: u64 = 16;

#[derive(Debug, Clone, Copy)]
pub(super) struct PackedEntry {
    /// Flags in the upper bits, and the position of the text.
    place: u64,
    /// The session in the upper bits, and the ticks since the first message.
    when: u64,
    pub(super) length: u32,
    pub(super) number: u32,
    pub(super) pair: u32,
    pub(super) next: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum EntryFlag {
    Server = OFFSET_BITS as isize,
    Spread,
    Ours,
    Resumed,
    Cancelled,
    Token,
    Repeated,
    Gated,
    /// The latency is stored in a separate table.
    TimedApart,
}

/// The kind of the message follows the flags.
const KIND_SHIFT: u32 = EntryFlag::TimedApart as u32 + 1;
const KINDS: [MessageKind; 5] = [
    MessageKind::Request,
    MessageKind::Notification,
    MessageKind::Response,
    MessageKind::Error,
    MessageKind::Other,
];

/// A request with the links of its chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainedRequest {
    pub(super) hash: [u64; 2],
    pub(super) like: u32,
    pub(super) entry_number: u32,
    pub(super) next_same: u32,
    pub(super) next_like: u32,
}

impl PackedEntry {
    /// An entry without pair and scene. `offset` must be within the limit.
    pub(super) fn new(offset: u64, length: u32, from: Side, kind: MessageKind) -> Self {
        let kind_bits = KINDS.iter().position(|known| *known == kind).unwrap_or(0) as u64;
        let place = offset & OFFSET_MAX | kind_bits << KIND_SHIFT;
        let mut packed = Self { place, when: 0, length, number: 0, pair: NONE, next: NONE };
        packed.set(EntryFlag::Server, from == Side::Server);
        packed
    }

    pub(super) fn set_time(&mut self, session: u32, at_us: u64) {
        // Beyond 203 days the time stays at its maximum, which only affects delays.
        let ticks = (at_us / TICK_US).min((1 << TICK_BITS) - 1);
        self.when = u64::from(session) << TICK_BITS | ticks;
    }

    pub(super) fn set(&mut self, flag: EntryFlag, on: bool) {
        self.place |= u64::from(on) << flag as u32;
    }

    pub(super) fn has_flag(&self, flag: EntryFlag) -> bool {
        self.place >> flag as u32 & 1 == 1
    }

    pub(super) fn is_timed_apart(&self) -> bool {
        self.has_flag(EntryFlag::TimedApart)
    }

    pub(super) fn kind(&self) -> MessageKind {
        KINDS.get((self.place >> KIND_SHIFT & 7) as usize).copied().unwrap_or(MessageKind::Other)
    }

    pub(super) fn from(&self) -> Side {
        if self.has_flag(EntryFlag::Server) { Side::Server } else { Side::Client }
    }

    pub(super) fn at_us(&self) -> u64 {
        (self.when & ((1 << TICK_BITS) - 1)) * TICK_US
    }

    pub(super) fn session(&self) -> u32 {
        (self.when >> TICK_BITS) as u32
    }

    /// Unpacks everything except the latency.
    pub(super) fn unpack(&self) -> IndexEntry {
        IndexEntry {
            offset: self.place & OFFSET_MAX,
            length: self.length,
            number: self.number,
            at_us: self.at_us(),
            session: self.session(),
            from: self.from(),
            kind: self.kind(),
            pair: self.pair,
            next: self.next,
            spread: self.has_flag(EntryFlag::Spread),
            ours: self.has_flag(EntryFlag::Ours),
            resumed: self.has_flag(EntryFlag::Resumed),
            cancelled: self.has_flag(EntryFlag::Cancelled),
            token: self.has_flag(EntryFlag::Token),
            repeated: self.has_flag(EntryFlag::Repeated),
            gated: self.has_flag(EntryFlag::Gated),
            latency_us: None,
        }
    }
}

impl ChainedRequest {
    pub(super) fn new(signature: Signature, entry_number: u32) -> Self {
        let hash = [(signature.hash >> 64) as u64, signature.hash as u64];
        Self { hash, like: signature.like, entry_number, next_same: NONE, next_like: NONE }
    }

    pub(super) fn signature(&self) -> Signature {
        let hash = u128::from(self.hash[0]) << 64 | u128::from(self.hash[1]);
        Signature { hash, like: self.like }
    }

    /// Its position in the table of hashes.
    pub(super) fn hash_position(&self) -> u64 {
        self.hash[0]
    }

    /// Its position in the table of subjects.
    pub(super) fn subject_position(&self) -> u64 {
        // A hash of 32 bits must fill both the position and the mark of the table.
        u64::from(self.like) << 32 | u64::from(self.like)
    }
}

const _: () = assert!(size_of::<PackedEntry>() == 32 && size_of::<ChainedRequest>() == 32);
