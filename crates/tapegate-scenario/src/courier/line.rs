//! A message being sent to a client, or waiting for its turn on a pipe.

use tapegate_core::actor::Act;
use tapegate_core::json;
use tapegate_core::time::At;

use super::PIECE_BYTES;
use super::parcel::Parcel;

/// A message that is not sent at once.
#[derive(Debug)]
pub(super) struct Line {
    /// The request it belongs to.
    pub(super) about: Option<Box<[u8]>>,
    pub(super) load: Load,
    /// The ticket of the answer, if it is one.
    pub(super) ticket: Option<u64>,
    /// How many bytes it takes in the queue.
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) enum Load {
    /// A message sent whole when its turn comes.
    Message(Box<[u8]>),
    /// Bytes sent piece by piece.
    Raw(Raw),
}

/// Bytes sent piece by piece.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) parcel: Parcel,
    pub(super) pace: Pace,
    /// When the next piece is due.
    pub(super) due_ns: u64,
    /// Whether the last piece ends the line.
    pub(super) ends: bool,
    /// Whether the first piece was sent.
    pub(super) begun: bool,
}

/// The speed at which pieces are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) chunk_bytes: usize,
    pub(super) delay_ns: u64,
}

impl Pace {
    /// As fast as the client reads.
    pub(super) const FULL: Self = Self { chunk_bytes: PIECE_BYTES, delay_ns: 0 };
}

impl Line {
    /// When it is due.
    pub(super) fn due_ns(&self) -> u64 {
        match &self.load {
            Load::Message(_) => 0,
            Load::Raw(raw) => raw.due_ns,
        }
    }

    /// Whether part of it was sent.
    pub(super) fn has_begun(&self) -> bool {
        matches!(&self.load, Load::Raw(raw) if raw.begun)
    }

    /// Sends the rest as fast as possible, or with `at_once` drops it.
    pub(super) fn hasten(&mut self, at_once: bool) {
        if let Load::Raw(raw) = &mut self.load {
            (raw.pace, raw.due_ns) = (Pace::FULL, 0);
            if at_once {
                (raw.parcel, raw.ends) = (Parcel::default(), true);
            }
        }
    }

    /// Sends what is due and fits into `budget`; returns whether the line is finished.
    pub(super) fn send(
        &mut self,
        at: At,
        budget: &mut usize,
        piece: &mut Vec<u8>,
        act: &mut dyn FnMut(Act<'_>),
    ) -> bool {
        let about = self.about.as_deref();
        match &mut self.load {
            Load::Message(text) => {
                *budget = budget.saturating_sub(text.len());
                match about.filter(|_| self.ticket.is_none()) {
                    Some(about) => act(Act::Tell { about, parts: &[text] }),
                    None => act(Act::Say(&[text])),
                }
                true
            }
            Load::Raw(raw) => raw.send(at, about, budget, piece, act),
        }
    }
}

impl Raw {
    fn send(
        &mut self,
        at: At,
        about: Option<&[u8]>,
        budget: &mut usize,
        piece: &mut Vec<u8>,
        act: &mut dyn FnMut(Act<'_>),
    ) -> bool {
        while self.due_ns <= at.mono_ns && *budget > 0 {
            self.parcel.take(self.pace.chunk_bytes.clamp(1, PIECE_BYTES), piece);
            self.begun = true;
            let over = self.parcel.left() == 0;
            act(Act::Raw { about, bytes: piece, ends: over && self.ends });
            if over {
                return true;
            }
            *budget = budget.saturating_sub(piece.len());
            if self.pace.delay_ns > 0 {
                self.due_ns = at.mono_ns.saturating_add(self.pace.delay_ns);
            }
        }
        false
    }
}

/// Bytes sent at this pace, starting now.
pub(super) fn raw(at: At, parcel: Parcel, pace: Pace, ends: bool) -> Load {
    Load::Raw(Raw { parcel, pace, due_ns: at.mono_ns, ends, begun: false })
}

/// An answer padded to at least `bytes` bytes.
pub(super) fn padded(parts: &[&[u8]], bytes: usize, padding: char) -> Parcel {
    let parcel = Parcel::of(parts);
    let missing = bytes.saturating_sub(parcel.left());
    parcel.and(padding.to_string().into_bytes(), missing.div_ceil(padding.len_utf8()))
}

/// An answer nested in `depth` objects.
pub(super) fn nested(parts: &[&[u8]], depth: usize, key: &str) -> Parcel {
    let mut open = b"{".to_vec();
    json::write_str(&mut open, key);
    open.push(b':');
    Parcel::default().and(open, depth).and(parts.concat(), 1).and(b"}".to_vec(), depth)
}
